//! The notes of a core file, in Linux's order: registers of the thread that the signal ended, the process, the signal, the auxiliary
//! vector, the mapped files, the thread's vector registers; then the other threads.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::core_file::{NT_AUXV, NT_FILE, NT_PRPSINFO, NT_SIGINFO, PrPsInfo, PrStatus};
use abi::ptrace::{NT_FPREGSET, NT_PRSTATUS, NT_X86_XSTATE, UserRegs};
use abi::siginfo::SigInfo;
use abi::time::Timeval;
use abi::{Errno, Field};
use kernel::space::AreaLabel;
use machine::{PAGE_BYTES, Registers, TryGrow};

use crate::call::Call;
use crate::calls::ptrace::registers::{FEATURES_AT, LEGACY_BYTES, NO_CALL, as_seen};
use crate::calls::times::timeval_of;
use crate::proc::memory::{auxiliary_vector, first_arguments};
use crate::task::thread::Task;

/// Whose notes they are.
const CORE: &[u8] = b"CORE\0";
const LINUX: &[u8] = b"LINUX\0";
/// Most files that are named in bytes (`MAX_FILE_NOTE_SIZE`).
const FILES_BYTES_MAX: usize = 4 << 20;

/// All notes, one behind the other. Error: `ENOMEM`.
pub fn collect(call: &Call<'_>, info: &SigInfo) -> Result<Vec<u8>, Errno> {
    let mut notes = Vec::new();
    let status = status(call, call.task, call.registers, Some(info));
    put(&mut notes, (CORE, NT_PRSTATUS), &status.to_bytes())?;
    put(&mut notes, (CORE, NT_PRPSINFO), &process(call).to_bytes())?;
    put(&mut notes, (CORE, NT_SIGINFO), &info.to_bytes())?;
    put(&mut notes, (CORE, NT_AUXV), &auxiliary_vector(call.unix, call.process())?)?;
    put(&mut notes, (CORE, NT_FILE), &files(call)?)?;
    vectors(call, call.task, &mut notes)?;
    let mut others: Vec<Arc<Task>> = Vec::new();
    let mut failed = false;
    call.process().each_task(|task| {
        if !Arc::ptr_eq(task, call.task) {
            failed |= others.try_push(task.clone()).is_err();
        }
    });
    if failed {
        return Err(Errno::ENOMEM);
    }
    for task in others {
        let registers = task.thread.tte().registers();
        put(&mut notes, (CORE, NT_PRSTATUS), &self::status(call, &task, &registers, None).to_bytes())?;
        vectors(call, &task, &mut notes)?;
    }
    Ok(notes)
}

/// One note: sizes and type, its owner's name, its content, each filled to four bytes (elf(5), `Elf64_Nhdr`).
fn put(notes: &mut Vec<u8>, (owner, kind): (&[u8], u32), content: &[u8]) -> Result<(), Errno> {
    for word in [owner.len() as u32, content.len() as u32, kind] {
        notes.try_extend_from_slice(&word.to_le_bytes())?;
    }
    for part in [owner, content] {
        notes.try_extend_from_slice(part)?;
        notes.try_extend_from_slice(&[0; 3][..part.len().next_multiple_of(4) - part.len()])?;
    }
    Ok(())
}

fn status(call: &Call<'_>, task: &Task, registers: &Registers, info: Option<&SigInfo>) -> PrStatus {
    let process = call.process();
    let family = process.family.get();
    // SYSCALL leaves these two copies; a trap has them by chance alone.
    let in_call = registers.rcx == registers.rip && registers.r11 == registers.rflags && registers.error == 0;
    let number = if in_call { registers.cause as i32 as i64 as u64 } else { NO_CALL };
    PrStatus {
        si_signo: info.map_or(0, |info| info.signo),
        si_code: info.map_or(0, |info| info.code),
        si_errno: info.map_or(0, |info| info.errno),
        pr_cursig: info.map_or(0, |info| info.signo as u16),
        pr_sigpend: task.pending.borrow().set().0,
        pr_sighold: task.mask.borrow().blocked().0,
        pr_pid: task.tid as i32,
        pr_ppid: parent(call),
        pr_pgrp: family.group as i32,
        pr_sid: family.session as i32,
        pr_utime: timeval_of(call.unix.scheduler.ran(&task.thread)),
        pr_stime: Timeval::ZERO,
        pr_cutime: timeval_of(process.children_usage.get().user),
        pr_cstime: Timeval::ZERO,
        pr_reg: UserRegs { orig_rax: number, ..as_seen(task, registers) },
        pr_fpvalid: 1,
        ..PrStatus::zeroed()
    }
}

fn parent(call: &Call<'_>) -> i32 {
    call.process().parent.borrow().upgrade().map_or(0, |parent| parent.pid as i32)
}

fn process(call: &Call<'_>) -> PrPsInfo {
    let process = call.process();
    let family = process.family.get();
    let mut words = [0; 80];
    let arguments = first_arguments(call.unix, process, words.len() as u64 - 1);
    for (place, byte) in words.iter_mut().zip(arguments) {
        *place = if byte == 0 { b' ' } else { byte };
    }
    PrPsInfo {
        pr_state: 0,
        pr_sname: b'R',
        pr_uid: process.user_ids.get().real,
        pr_gid: process.group_ids.get().real,
        pr_pid: process.pid as i32,
        pr_ppid: parent(call),
        pr_pgrp: family.group as i32,
        pr_sid: family.session as i32,
        pr_fname: *call.task.name.borrow(),
        pr_psargs: words,
        ..PrPsInfo::zeroed()
    }
}

/// Which file is mapped where: count, page size, three words for each map (start, end, page in the file), and the names.
fn files(call: &Call<'_>) -> Result<Vec<u8>, Errno> {
    let (mut words, mut names) = (Vec::new(), Vec::new());
    let mut count = 0u64;
    if let Some(space) = call.process().space() {
        let space = space.borrow();
        for area in space.areas().filter(|area| !area.is_special) {
            let AreaLabel::Backing(backing) = area.label else { continue };
            if words.len() + names.len() > FILES_BYTES_MAX {
                break;
            }
            for word in [area.start, area.end, area.offset_bytes / PAGE_BYTES as u64] {
                words.try_extend_from_slice(&word.to_le_bytes())?;
            }
            names.try_extend_from_slice(backing.name())?;
            names.try_push(0)?;
            count += 1;
        }
    }
    let mut content = Vec::new();
    content.try_extend_from_slice(&count.to_le_bytes())?;
    content.try_extend_from_slice(&(PAGE_BYTES as u64).to_le_bytes())?;
    content.try_extend_from_slice(&words)?;
    content.try_extend_from_slice(&names)?;
    Ok(content)
}

fn vectors(call: &Call<'_>, task: &Task, notes: &mut Vec<u8>) -> Result<(), Errno> {
    let mut image = call.buffer(call.unix.machine.vector_bytes())?;
    task.thread.tte().copy_vector_state(&mut image);
    call.unix.machine.vector_features().put(&mut image[FEATURES_AT..]);
    put(notes, (CORE, NT_FPREGSET), &image[..LEGACY_BYTES])?;
    put(notes, (LINUX, NT_X86_XSTATE), &image)
}
