//! Core files (core(5)): what a program was when a signal ended it, for a debugger.
//!
//! - `name.rs`    how the file is called (`/proc/sys/kernel/core_pattern`)
//! - `notes.rs`   the notes: registers of all threads, the process, the signal, mapped files
//! - `memory.rs`  which memory goes in, and where it lies in the file

mod memory;
mod name;
mod notes;

use alloc::sync::Arc;

use abi::Errno;
use abi::file::{AT_FDCWD, O_CREAT, O_LARGEFILE, O_NOFOLLOW, O_NONBLOCK, O_WRONLY};
use abi::process::RLIMIT_CORE;
use abi::siginfo::SigInfo;
use kernel::file::NodeKind;
use machine::{Held, PAGE_BYTES, Registers};

use crate::call::Call;
use crate::calls::files::open_path;
use crate::calls::transfer::copies::put_at;
use crate::emulator::Unix;
use crate::files::open_file::OpenFile;
use crate::task::process::Process;
use crate::task::thread::Task;

/// Who reads a core file reads the program's secrets.
const MODE: u32 = 0o600;

/// Writes the core file of a process that `info` is about to end, if its limit allows one; true if there is a file, though perhaps a
/// short one, as on Linux. The other threads stand still meanwhile.
pub fn dump(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers, info: &SigInfo) -> bool {
    let process = task.process.clone();
    let limit = process.limits.borrow().0[RLIMIT_CORE as usize].0;
    if limit < PAGE_BYTES as u64 || process.settings.get().dumpable != 1 || task.is_ending() {
        return false;
    }
    let call = Call { held, unix, task, registers, registers_replaced: false };
    let was_stopped = process.stopped.get();
    hold_others(&process, task);
    let written = write(&call, info, limit);
    process.stopped.set(was_stopped);
    written.is_ok()
}

/// The other threads do not go back to their program: they stop as by `SIGSTOP`, until the process ends.
fn hold_others(process: &Process, task: &Arc<Task>) {
    process.stopped.set(true);
    process.each_task(|other| {
        if !Arc::ptr_eq(other, task) {
            other.call_attention();
        }
    });
}

/// Errors: those of creating a file; one that is there already and is not the user's own plain file.
fn write(call: &Call<'_>, info: &SigInfo, limit: u64) -> Result<(), Errno> {
    let notes = notes::collect(call, info)?;
    let plan = memory::plan(call, notes.len())?;
    let file = open(call, info)?;
    let mut output = Output { call, file: &file, at: 0, limit };
    // From here on there is a file, whatever becomes of it: no room, the limit, another signal.
    let _ = plan.write(&mut output, &notes);
    Ok(())
}

/// The file is created, or one that is there cut off: never through a link, nor one with other names or of another user.
fn open(call: &Call<'_>, info: &SigInfo) -> Result<Arc<OpenFile>, Errno> {
    let path = name::expand(call, info)?;
    let flags = O_CREAT | O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_LARGEFILE;
    let file = Arc::new(open_path(call, AT_FDCWD as u64, &path, flags, MODE)?);
    let node = file.node().ok_or(Errno::EINVAL)?;
    let found = node.attributes();
    let user = call.process().credentials.borrow().user;
    if node.kind() != NodeKind::Regular || found.links > 1 || found.user != user {
        return Err(Errno::EPERM);
    }
    node.truncate(0, &call.process().credentials.borrow(), call.now())?;
    Ok(file)
}

/// A file that grows.
struct Output<'a> {
    call: &'a Call<'a>,
    file: &'a Arc<OpenFile>,
    at: u64,
    limit: u64,
}

impl Output<'_> {
    /// Writes all of it. Errors: `EFBIG` at the limit, `EINTR` when the process is killed, `ENOSPC` and others of a write.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let mut done = 0;
        while done < bytes.len() {
            // Who waits has a turn, and perhaps kills.
            self.call.unix.scheduler.let_others_run(self.call.held);
            if self.call.task.is_ending() {
                return Err(Errno::EINTR);
            }
            let allowed = self.limit.saturating_sub(self.at).min((bytes.len() - done) as u64) as usize;
            if allowed == 0 {
                return Err(Errno::EFBIG);
            }
            let written = put_at(self.call, self.file, self.at, &bytes[done..done + allowed])?;
            if written == 0 {
                return Err(Errno::ENOSPC);
            }
            self.at += written as u64;
            done += written;
        }
        Ok(())
    }

    /// A hole. Error: `EFBIG` at the limit.
    fn skip(&mut self, bytes: u64) -> Result<(), Errno> {
        self.at = self.at.saturating_add(bytes);
        if self.at > self.limit { Err(Errno::EFBIG) } else { Ok(()) }
    }
}
