//! Signals as a stream of records (`signalfd`).

use alloc::sync::Arc;
use core::any::Any;

use abi::file::{O_NONBLOCK, O_RDWR};
use abi::poll::{SFD_CLOEXEC, SFD_NONBLOCK, SignalfdSiginfo};
use abi::siginfo::{Cause, SigInfo};
use abi::{Errno, Field};
use kernel::charge::{Held, Kept};
use kernel::schedule::WaitQueue;
use kernel::stream::{Io, Ready, Stream, UserRange};
use machine::KernelCell;

use super::actions::check_set_size;
use crate::call::{Call, CallResult};
use crate::calls::times;
use crate::emulator::Unix;
use crate::files::descriptors::Slot;
use crate::files::open_file::OpenFile;
use crate::signal::pending::take_next;
use crate::signal::set::SignalSet;
use crate::task::process::Process;

/// An open signal descriptor. It shows the signals of whoever reads it, as on Linux.
struct SignalStream {
    unix: &'static Unix,
    wanted: KernelCell<SignalSet>,
    /// Whose signals wake sleepers: the process that made the descriptor.
    maker: Arc<Process>,
}

/// Errors: `EINVAL` for unknown flags, another size, or a descriptor that is none of these; `EBADF`, `EMFILE`,
/// `EFAULT`.
pub fn signalfd(call: &Call<'_>, descriptor: u64, set: u64, set_bytes: u64, flags: u64) -> CallResult {
    let flags = flags as u32;
    check_set_size(set_bytes)?;
    let wanted = SignalSet(call.read(set)?).blockable();
    if flags & !(SFD_CLOEXEC | SFD_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    if descriptor as i32 != -1 {
        let file = call.file(descriptor)?;
        let stream = file.stream_of::<SignalStream>().ok_or(Errno::EINVAL)?;
        stream.wanted.set(wanted);
        call.unix.scheduler.wake(&stream.maker.signal_arrived);
        return Ok(descriptor);
    }
    let maker = call.process().clone();
    let stream = Arc::new(SignalStream { unix: call.unix, wanted: KernelCell::new(wanted), maker });
    let nonblocking = if flags & SFD_NONBLOCK != 0 { O_NONBLOCK } else { 0 };
    let file = Arc::new(OpenFile::stream(stream, O_RDWR | nonblocking));
    let slot = Slot { file, close_on_exec: flags & SFD_CLOEXEC != 0 };
    let limit = call.process().limits.borrow().descriptors();
    Ok(call.files().add(slot, 0, limit)?.0.into())
}

impl SignalStream {
    fn take(&self) -> Option<SigInfo> {
        let task = self.unix.current();
        let blocked = SignalSet(!self.wanted.get().0);
        let mut taken = take_next(&mut task.pending.borrow_mut(), &mut task.process.pending.borrow_mut(), blocked)?;
        times::taken(self.unix, &task.process, &mut taken);
        Some(taken)
    }

    fn wait_for_one(&self, io: &Io<'_>) -> Result<SigInfo, Errno> {
        let process = self.unix.current().process.clone();
        loop {
            if let Some(info) = self.take() {
                return Ok(info);
            }
            io.wait(&process.signal_arrived)?;
        }
    }
}

impl Stream for SignalStream {
    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        const BYTES: usize = SignalfdSiginfo::BYTES;
        let mut done = 0;
        while to.bytes - done >= BYTES {
            let next = if done == 0 { Some(self.wait_for_one(io)?) } else { self.take() };
            let Some(next) = next else { break };
            let mut bytes = [0; BYTES];
            record(&next).put(&mut bytes);
            io.copy_out(to.after(done).address, &bytes)?;
            done += BYTES;
        }
        if done == 0 { Err(Errno::EINVAL) } else { Ok(done) }
    }

    fn held(&self) -> Held {
        Held::new(Kept::Signals, size_of::<SignalStream>())
    }

    fn ready(&self) -> Ready {
        let task = self.unix.current();
        let pending = task.pending.borrow().set().union(task.process.pending.borrow().set());
        Ready::NONE.with_if(!pending.intersection(self.wanted.get()).is_empty(), Ready::READABLE)
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.maker.signal_arrived);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn record(info: &SigInfo) -> SignalfdSiginfo {
    let mut record = SignalfdSiginfo {
        ssi_signo: info.signo as u32,
        ssi_errno: info.errno,
        ssi_code: info.code,
        ..SignalfdSiginfo::zeroed()
    };
    match info.cause {
        Cause::Kill { pid, uid } => (record.ssi_pid, record.ssi_uid) = (pid as u32, uid),
        Cause::Queue { pid, uid, value } => {
            (record.ssi_pid, record.ssi_uid) = (pid as u32, uid);
            (record.ssi_int, record.ssi_ptr) = (value as i32, value);
        }
        Cause::Timer { id, overrun, value } => {
            (record.ssi_tid, record.ssi_overrun) = (id as u32, overrun as u32);
            (record.ssi_int, record.ssi_ptr) = (value as i32, value);
        }
        Cause::Child { pid, uid, status, utime, stime } => {
            (record.ssi_pid, record.ssi_uid, record.ssi_status) = (pid as u32, uid, status);
            (record.ssi_utime, record.ssi_stime) = (utime as u64, stime as u64);
        }
        Cause::Fault { address } => record.ssi_addr = address,
        Cause::Poll { band, fd } => (record.ssi_band, record.ssi_fd) = (band as u32, fd),
        Cause::Call { address, call, architecture } => {
            (record.ssi_call_addr, record.ssi_syscall, record.ssi_arch) = (address, call, architecture);
        }
    }
    record
}
