//! ioctl, and the terminal.
//!
//! A request is first looked for among those that every file knows, then among those of what the file is open
//! on; the rest is `ENOTTY`.

mod files;
mod modes;
mod pty;
mod sessions;
pub(super) mod table;

use alloc::sync::Arc;

use abi::Errno;
use abi::process::CAP_SYS_ADMIN;
use abi::tty::*;
use kernel::tty::{Flow, Queue, WindowSize};

use crate::call::{Call, CallResult};
use crate::calls::sockets;
use crate::devices::{self, Device};
use crate::files::open_file::{Body, OpenFile};
use crate::files::terminal::Terminal;
use crate::files::terminal::ends::TtyStream;
use crate::files::terminal::pty::PtyMaster;
use crate::files::terminal::window::{WINDOW_MAJOR, WINDOWS};

pub const DEVICE: Device = Device {
    names: |show| {
        [("tty", 0, 0o666), ("console", 1, 0o600), ("ptmx", 2, 0o666)]
            .iter()
            .for_each(|(name, minor, mode)| show(format_args!("{name}"), (5, *minor), *mode));
        (0..=WINDOWS).for_each(|number| show(format_args!("tty{number}"), (WINDOW_MAJOR, number), 0o620));
    },
    open: |call, _, numbers, flags| {
        let opened = call.unix.terminals.open(call.task, call.unix, numbers, flags).transpose()?;
        Some(opened.map(Body::Stream))
    },
    request: |call, file, request, argument| {
        if let Some(stream) = file.stream_of::<TtyStream>() {
            return Some(terminal(call, file, stream.terminal(), request, argument));
        }
        let master = file.stream_of::<PtyMaster>()?;
        Some(pty::master(call, master, request, argument))
    },
};

pub fn ioctl(call: &Call<'_>, descriptor: u64, request: u32, argument: u64) -> CallResult {
    let file = call.file(descriptor)?;
    match files::serve(call, descriptor, &file, request, argument) {
        Some(result) => result,
        None => match sockets::requests::serve(call, &file, request, argument) {
            Some(result) => result,
            None => devices::table::request(call, &file, request, argument),
        },
    }
}

/// Requests that the programs' side of a terminal knows.
fn terminal(call: &Call<'_>, file: &OpenFile, terminal: &Arc<Terminal>, request: u32, argument: u64) -> CallResult {
    if terminal.tty.borrow().is_hung_up() {
        return Err(if request == TIOCSPGRP { Errno::ENOTTY } else { Errno::EIO });
    }
    match request {
        TCSBRK => drain(call, terminal),
        TCSBRKP | TIOCSBRK => drain(call, terminal),
        TIOCCBRK => terminal.permit_change(call.task).map(|()| 0),
        TIOCSTI => inject(call, terminal, argument),
        TIOCEXCL => set_exclusive(call, terminal, true),
        TIOCNXCL => set_exclusive(call, terminal, false),
        TIOCGEXCL => call.write(argument, &u32::from(terminal.exclusive.get())).map(|()| 0),
        TIOCGETD => call.write(argument, &0u32).map(|()| 0),
        TIOCSETD => set_discipline(call, terminal, argument),
        TIOCGDEV => {
            let (major, minor) = terminal.device_numbers();
            call.write(argument, &(major << 8 | minor)).map(|()| 0)
        }
        TIOCOUTQ => call.write(argument, &(terminal.unsent_bytes() as u32)).map(|()| 0),
        TCXONC => control_flow(call, terminal, argument),
        TIOCNOTTY | TIOCSCTTY | TIOCGPGRP | TIOCSPGRP | TIOCGSID => {
            sessions::serve(call, file, terminal, request, argument)
        }
        _ => either_side(call, terminal, request, argument),
    }
}

/// Requests that mean the same on both sides of a pseudo terminal.
fn either_side(call: &Call<'_>, terminal: &Terminal, request: u32, argument: u64) -> CallResult {
    match request {
        FIONREAD => {
            let readable = terminal.tty.borrow().readable_bytes();
            call.write(argument, &(readable as u32)).map(|()| 0)
        }
        TIOCGWINSZ => {
            let size = terminal.tty.borrow().window_size();
            call.copy_out(argument, &size.to_bytes()).map(|()| 0)
        }
        TIOCSWINSZ => {
            let mut bytes = [0; 8];
            call.copy_in(argument, &mut bytes)?;
            let effects = terminal.tty.borrow_mut().set_window_size(WindowSize::from_bytes(&bytes));
            terminal.apply(effects);
            Ok(0)
        }
        TCFLSH => flush(call, terminal, argument),
        _ => modes::serve(call, terminal, request, argument),
    }
}

/// Sleeps until all output has left the machine. Error: `EINTR`.
fn wait_until_sent(call: &Call<'_>, terminal: &Terminal) -> Result<(), Errno> {
    while !terminal.is_drained() {
        call.with_io(false, |io| io.wait(terminal.writers()))?;
    }
    Ok(())
}

/// A break has no meaning on these lines; what is left of the requests is the wait.
fn drain(call: &Call<'_>, terminal: &Terminal) -> CallResult {
    terminal.permit_change(call.task)?;
    wait_until_sent(call, terminal)?;
    Ok(0)
}

/// `TIOCSTI` is for root and for the terminal's own session. Errors: `EPERM`, `EFAULT`.
fn inject(call: &Call<'_>, terminal: &Terminal, argument: u64) -> CallResult {
    let may = terminal.controls(call.process()) || call.can(CAP_SYS_ADMIN);
    if !may {
        return Err(Errno::EPERM);
    }
    let byte: u8 = call.read(argument)?;
    let effects = terminal.tty.borrow_mut().inject(byte);
    terminal.apply(effects);
    Ok(0)
}

fn set_exclusive(call: &Call<'_>, terminal: &Terminal, exclusive: bool) -> CallResult {
    terminal.exclusive.set(exclusive);
    call.unix.tasks.unbind_opens();
    Ok(0)
}

/// There is one line discipline, number 0.
fn set_discipline(call: &Call<'_>, terminal: &Terminal, argument: u64) -> CallResult {
    terminal.permit_change(call.task)?;
    match call.read::<u32>(argument)? {
        0 => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}

fn flush(call: &Call<'_>, terminal: &Terminal, argument: u64) -> CallResult {
    terminal.permit_change(call.task)?;
    let queue = Queue::from_argument(argument).ok_or(Errno::EINVAL)?;
    let effects = terminal.tty.borrow_mut().flush(queue);
    terminal.apply(effects);
    terminal.made_room();
    Ok(0)
}

fn control_flow(call: &Call<'_>, terminal: &Terminal, argument: u64) -> CallResult {
    terminal.permit_change(call.task)?;
    let flow = Flow::from_argument(argument).ok_or(Errno::EINVAL)?;
    let effects = terminal.tty.borrow_mut().control_flow(flow);
    terminal.apply(effects);
    Ok(0)
}
