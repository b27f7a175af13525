//! The programs' side of a terminal: reading and writing.

use alloc::sync::Arc;
use core::any::Any;

use abi::Errno;
use kernel::call::{FileCode, Makers};
use kernel::charge::Held;
use kernel::schedule::WaitQueue;
use kernel::stream::{Io, Ready, Stream, UserRange};
use kernel::tty::{INPUT_BYTES, Patience, ReadOutcome};
use machine::{Nanos, try_filled};

use super::Terminal;
use crate::limits::PIECE_BYTES;

/// An open file of a terminal.
pub struct TtyStream {
    terminal: Arc<Terminal>,
}

impl TtyStream {
    pub fn new(terminal: &Arc<Terminal>) -> Arc<TtyStream> {
        terminal.opens.set(terminal.opens.get() + 1);
        if let Some(pty) = terminal.master() {
            pty.slave_opened();
        }
        Arc::new(TtyStream { terminal: terminal.clone() })
    }

    pub fn terminal(&self) -> &Arc<Terminal> {
        &self.terminal
    }
}

impl Drop for TtyStream {
    fn drop(&mut self) {
        let opens = self.terminal.opens.get() - 1;
        self.terminal.opens.set(opens);
        if let Some(pty) = self.terminal.master()
            && opens == 0
        {
            pty.slave_closed(self.terminal.unix.scheduler);
        }
    }
}

impl Stream for TtyStream {
    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        let mut piece = try_filled(0, to.bytes.min(INPUT_BYTES))?;
        let bytes = self.read_kernel(io, &mut piece)?;
        io.copy_out(to.address, &piece[..bytes])?;
        Ok(bytes)
    }

    fn write(&self, io: &Io<'_>, from: UserRange) -> Result<usize, Errno> {
        self.terminal.write_window(io, from, |piece| self.write_kernel(io, piece))
    }

    fn read_kernel(&self, io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        let terminal = &*self.terminal;
        let task = terminal.unix.current();
        let started = io.machine().now();
        loop {
            terminal.permit_read(&task)?;
            let patience = match io.is_nonblocking() {
                true => Patience::None,
                false => Patience::Idle(terminal.idle_since(started)),
            };
            let limit = match terminal.try_read(into, patience) {
                ReadOutcome::Bytes(bytes) => return Ok(bytes),
                ReadOutcome::Eof => return Ok(0),
                ReadOutcome::WouldBlock => None,
                ReadOutcome::WaitFor(limit) => Some(io.machine().now().saturating_add(limit)),
            };
            if let Err(error) = io.wait_until(&terminal.readers, limit) {
                // Bytes that were not enough are better than none.
                return match terminal.try_read(into, Patience::None) {
                    ReadOutcome::Bytes(bytes) => Ok(bytes),
                    _ => Err(error),
                };
            }
        }
    }

    fn write_kernel(&self, io: &Io<'_>, from: &[u8]) -> Result<usize, Errno> {
        let terminal = &*self.terminal;
        if terminal.stops_background_writers() {
            terminal.permit_change(&terminal.unix.current())?;
        }
        if terminal.put_through(from) {
            return Ok(from.len());
        }
        let mut done = 0;
        while done < from.len() {
            let (taken, hung_up) = {
                let mut tty = terminal.tty.borrow_mut();
                (tty.program_write(&from[done..]), tty.is_hung_up())
            };
            done += taken;
            let stuck = terminal.give_output() + taken == 0;
            let outcome = match (hung_up, stuck) {
                (true, _) => Err(Errno::EIO),
                (_, true) => io.wait(&terminal.writers),
                _ => Ok(()),
            };
            if let Err(error) = outcome {
                return if done > 0 { Ok(done) } else { Err(error) };
            }
        }
        Ok(done)
    }

    fn held(&self) -> Held {
        self.terminal.held()
    }

    fn ready(&self) -> Ready {
        let tty = self.terminal.tty.borrow();
        let ready = Ready::NONE.with_if(tty.is_readable(), Ready::READABLE).with_if(tty.is_writable(), Ready::WRITABLE);
        let gone = Ready::READABLE.with(Ready::WRITABLE).with(Ready::ERROR).with(Ready::HANG_UP);
        ready.with_if(tty.is_hung_up(), gone)
    }

    fn tells_by_signal(&self) -> bool {
        true
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.terminal.readers);
        visit(&self.terminal.writers);
    }

    /// Of the console, unless the next open could make it a session's terminal or be refused. A process that gets
    /// another controlling terminal forgets its synthesized opens.
    fn opens_without_trace(&self) -> bool {
        let is_taken = self.terminal.tty.borrow().job().session.is_some();
        self.terminal.master().is_none() && is_taken && !self.terminal.exclusive.get()
    }

    fn callentries(&self, makers: Makers) -> FileCode {
        let code = self.terminal().code(makers);
        FileCode { read: code.read, write: code.write, ..FileCode::default() }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Terminal {
    /// How long a reader has waited in vain: since it came, or since the newest byte.
    fn idle_since(&self, started: Nanos) -> Nanos {
        let from = started.max(self.newest_input.get());
        Nanos(self.unix.machine.now().0.saturating_sub(from.0))
    }

    /// Reads what is there, whoever asks. Error: `EAGAIN`.
    pub fn read_now(&self, into: &mut [u8]) -> Result<usize, Errno> {
        match self.try_read(into, Patience::None) {
            ReadOutcome::Bytes(bytes) => Ok(bytes),
            ReadOutcome::Eof => Ok(0),
            _ => Err(Errno::EAGAIN),
        }
    }

    /// Whether a program's write may stop the program.
    pub fn stops_background_writers(&self) -> bool {
        self.tty.borrow().stops_background_writers()
    }

    /// Reads if it can; the line may go on where that made room.
    fn try_read(&self, into: &mut [u8], patience: Patience) -> ReadOutcome {
        let outcome = self.tty.borrow_mut().program_read(into, patience);
        if matches!(outcome, ReadOutcome::Bytes(_) | ReadOutcome::Eof) {
            self.made_room();
        }
        outcome
    }
}

/// Hands a program's bytes to `put` in pieces of the kernel's own memory, with a safe point between two. After some others run, and a
/// signal ends it: nothing else may, where bytes are always taken.
pub(super) fn write_pieces(
    io: &Io<'_>,
    from: UserRange,
    piece_bytes: usize,
    mut put: impl FnMut(&[u8]) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let mut piece = try_filled(0, from.bytes.min(piece_bytes))?;
    let mut done = 0;
    while done < from.bytes {
        if done > 0 {
            pause(io, done);
            if io.is_interrupted() {
                break;
            }
        }
        let rest = from.after(done);
        let part = &mut piece[..rest.bytes.min(piece_bytes)];
        let copied = io.copy_in(rest.address, part);
        match copied.and_then(|()| put(part)) {
            Ok(bytes) => {
                done += bytes;
                if bytes < part.len() {
                    break;
                }
            }
            Err(error) => return if done > 0 { Ok(done) } else { Err(error) },
        }
    }
    Ok(done)
}

fn pause(io: &Io<'_>, done: usize) {
    match io.held() {
        Some(held) if done.is_multiple_of(PIECE_BYTES) => io.scheduler.let_others_run(held),
        _ => io.breathe(),
    }
}
