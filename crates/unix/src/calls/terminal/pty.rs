//! Requests of a pseudo terminal's master.

use alloc::sync::Arc;

use abi::Errno;
use abi::file::{O_CLOEXEC, O_NOCTTY};
use abi::tty::*;
use kernel::tty::{ProcessNumber, Signal};

use super::either_side;
use crate::call::{Call, CallResult};
use crate::files::descriptors::Slot;
use crate::files::open_file::{Body, OpenFile};
use crate::files::terminal::ends::TtyStream;
use crate::files::terminal::pty::PtyMaster;
use crate::files::terminal::registry::node_of as terminal_node;

/// Most requests act on the terminal as the programs see it.
pub fn master(call: &Call<'_>, master: &PtyMaster, request: u32, argument: u64) -> CallResult {
    let terminal = master.terminal();
    let pty = terminal.master().ok_or(Errno::ENOTTY)?;
    let job = terminal.tty.borrow().job();
    let group = |number: Option<ProcessNumber>| number.unwrap_or(0) as u32;
    match request {
        TIOCGPTN => call.write(argument, &terminal.number).map(|()| 0),
        TIOCSPTLCK => {
            pty.locked.set(call.read::<u32>(argument)? != 0);
            Ok(0)
        }
        TIOCGPTLCK => call.write(argument, &u32::from(pty.locked.get())).map(|()| 0),
        TIOCGPTPEER => open_peer(call, master, argument as u32),
        TIOCSIG => signal(master, argument),
        TIOCPKT => {
            master.set_packets(call.read::<u32>(argument)? != 0);
            Ok(0)
        }
        TIOCGPKT => call.write(argument, &u32::from(pty.in_packets.get())).map(|()| 0),
        TIOCGPGRP => call.write(argument, &group(job.foreground)).map(|()| 0),
        TIOCGSID if job.session.is_some() => call.write(argument, &group(job.session)).map(|()| 0),
        // What is readable here is the programs' output.
        FIONREAD => {
            let unsent = terminal.tty.borrow().unsent_bytes();
            call.write(argument, &(unsent as u32)).map(|()| 0)
        }
        TIOCOUTQ | TIOCGETD => call.write(argument, &0u32).map(|()| 0),
        TCSBRK | TCSBRKP => Ok(0),
        _ => either_side(call, terminal, request, argument),
    }
}

/// `TIOCGPTPEER`: opens the programs' side without its name.
fn open_peer(call: &Call<'_>, master: &PtyMaster, flags: u32) -> CallResult {
    let terminal = master.terminal();
    let node = terminal_node(call.unix, terminal)?;
    if flags & O_NOCTTY == 0 {
        let _ = terminal.acquire(call.process(), &terminal.caller(call.task));
    }
    let body = Body::Stream(TtyStream::new(terminal));
    let file = OpenFile::new(body, Some(node), flags & !(O_CLOEXEC | O_NOCTTY));
    let slot = Slot { file: Arc::new(file), close_on_exec: flags & O_CLOEXEC != 0 };
    let limit = call.process().limits.borrow().descriptors();
    call.files().add(slot, 0, limit).map(|descriptor| descriptor.0.into())
}

/// `TIOCSIG`: a signal for the foreground group, as if its key had been typed. Error: `EINVAL`.
fn signal(master: &PtyMaster, number: u64) -> CallResult {
    let signals = [Signal::Interrupt, Signal::Quit, Signal::TerminalStop];
    let signal = signals.into_iter().find(|signal| *signal as u64 == number).ok_or(Errno::EINVAL)?;
    let foreground = master.terminal().tty.borrow().job().foreground;
    master.terminal().signal_group(foreground, signal);
    Ok(0)
}
