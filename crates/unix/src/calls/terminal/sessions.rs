//! Whose terminal it is, and which group is in front.

use abi::Errno;
use abi::process::CAP_SYS_ADMIN;
use abi::tty::*;
use kernel::tty::{JobError, ProcessNumber};

use crate::call::{Call, CallResult};
use crate::emulator::Unix;
use crate::files::open_file::OpenFile;
use crate::files::terminal::Terminal;

pub fn serve(call: &Call<'_>, file: &OpenFile, terminal: &Terminal, request: u32, argument: u64) -> CallResult {
    let caller = terminal.caller(call.task);
    let job = terminal.tty.borrow().job();
    match request {
        TIOCNOTTY if caller.controlled_here => {
            call.unix.terminals.give_up(call.process());
            Ok(0)
        }
        TIOCSCTTY => acquire(call, file, terminal, argument),
        TIOCGPGRP => number(call, argument, job.foreground_for(&caller)),
        TIOCGSID => number(call, argument, job.session_for(&caller)),
        TIOCSPGRP => set_foreground(call, terminal, argument),
        _ => Err(Errno::ENOTTY),
    }
}

fn number(call: &Call<'_>, argument: u64, number: Result<ProcessNumber, JobError>) -> CallResult {
    let number = number.map_err(errno)?;
    call.write(argument, &(number as u32)).map(|()| 0)
}

/// With an argument of 1, root takes the terminal from another session. Error: `EPERM`.
fn acquire(call: &Call<'_>, file: &OpenFile, terminal: &Terminal, argument: u64) -> CallResult {
    let caller = terminal.caller(call.task);
    let privileged = call.can(CAP_SYS_ADMIN);
    let session = terminal.tty.borrow().job().session;
    let is_foreign = session.is_some_and(|session| session != caller.session);
    if is_foreign && caller.leads_session && !caller.controlled && argument == 1 && privileged {
        terminal.leave_session();
    }
    if session != Some(caller.session) && !file.is_readable() && !privileged {
        return Err(Errno::EPERM);
    }
    terminal.acquire(call.process(), &caller)?;
    Ok(0)
}

/// Errors: `ENOTTY` when it is not the caller's terminal, `EFAULT`, `EINVAL`, `ESRCH`, `EPERM` for another session's group.
fn set_foreground(call: &Call<'_>, terminal: &Terminal, argument: u64) -> CallResult {
    // A background caller that may not is told that it is no terminal.
    terminal.permit_change(call.task).map_err(|error| if error == Errno::EIO { Errno::ENOTTY } else { error })?;
    let caller = terminal.caller(call.task);
    if !caller.controlled_here {
        return Err(Errno::ENOTTY);
    }
    let group = call.read::<u32>(argument)? as ProcessNumber;
    let session = session_of(call.unix, group);
    let changed = terminal.tty.borrow_mut().change_job(|job| job.set_foreground(group, &caller, |_| session));
    changed.map_err(errno)?;
    Ok(0)
}

/// The session of an existing group.
fn session_of(unix: &Unix, group: ProcessNumber) -> Option<ProcessNumber> {
    let processes = unix.tasks.processes();
    let mut families = processes.map(|process| process.family.get());
    families.find(|family| family.group as ProcessNumber == group).map(|family| family.session as ProcessNumber)
}

fn errno(error: JobError) -> Errno {
    match error {
        JobError::NotControlling | JobError::Orphaned => Errno::ENOTTY,
        JobError::Stop => Errno::EINTR,
        JobError::Invalid => Errno::EINVAL,
        JobError::NoSuchGroup => Errno::ESRCH,
        JobError::NotPermitted => Errno::EPERM,
    }
}
