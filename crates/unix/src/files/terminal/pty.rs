//! Pseudo terminals: a terminal whose line is another program, through `/dev/ptmx`.

use alloc::sync::Arc;
use core::any::Any;

use abi::Errno;
use kernel::charge::Held;
use kernel::schedule::{Scheduler, WaitQueue};
use kernel::stream::{Io, Ready, Stream, UserRange};
use machine::{KernelValue, try_filled};

use super::Terminal;
use super::ends::write_pieces;
use crate::limits::PIECE_BYTES;

/// What a pseudo terminal has beside its tty.
pub struct Pty {
    /// `TIOCSPTLCK`: the programs' side cannot be opened. So it is at first.
    pub locked: KernelValue<bool>,
    /// The programs' side was open and is not any more.
    abandoned: KernelValue<bool>,
    /// `TIOCPKT`: each read of the master begins with a byte that says whether there is data or news.
    pub in_packets: KernelValue<bool>,
    /// The master's readers, writers and pollers.
    master: WaitQueue,
}

impl Pty {
    pub fn new() -> Pty {
        Pty {
            locked: KernelValue::new(true),
            abandoned: KernelValue::new(false),
            in_packets: KernelValue::new(false),
            master: WaitQueue::new(),
        }
    }

    /// The master should look again: there is output, or room for input.
    pub fn tell_master(&self, scheduler: &Scheduler) {
        scheduler.wake(&self.master);
    }

    pub fn slave_opened(&self) {
        self.abandoned.set(false);
    }

    pub fn slave_closed(&self, scheduler: &Scheduler) {
        self.abandoned.set(true);
        self.tell_master(scheduler);
    }
}

/// Bytes that are typed between two safe points: each may be echoed, edited and signalled.
const TYPED_BYTES: usize = 64;

/// The open file of a pseudo terminal's other side.
pub struct PtyMaster {
    terminal: Arc<Terminal>,
}

impl PtyMaster {
    /// A new pseudo terminal and its master. Errors: `ENOSPC` when there are too many, `ENOMEM`.
    pub fn open(unix: &'static crate::Unix) -> Result<Arc<PtyMaster>, Errno> {
        let terminal = unix.terminals.add_pty(unix)?;
        Ok(Arc::new(PtyMaster { terminal }))
    }

    pub fn terminal(&self) -> &Arc<Terminal> {
        &self.terminal
    }

    fn pty(&self) -> &Pty {
        self.terminal.master().expect("only pseudo terminals have masters")
    }

    /// The programs' output, if there is some.
    fn take_output(&self, into: &mut [u8]) -> Option<usize> {
        let taken = self.terminal.tty.borrow_mut().take_output(into);
        if taken > 0 {
            self.terminal.unix.scheduler.wake(&self.terminal.writers);
        }
        (taken > 0).then_some(taken)
    }

    /// A byte with news alone, or a 0 and output behind it.
    fn take_packet(&self, into: &mut [u8]) -> Option<usize> {
        let (first, rest) = into.split_first_mut()?;
        let notices = self.terminal.tty.borrow_mut().take_notices();
        if !notices.is_empty() {
            *first = notices.byte();
            return Some(1);
        }
        *first = 0;
        if rest.is_empty() {
            return (!self.terminal.tty.borrow().is_drained()).then_some(1);
        }
        self.take_output(rest).map(|taken| 1 + taken)
    }

    /// Begins or ends packet mode. What happened before it began is no news.
    pub fn set_packets(&self, in_packets: bool) {
        if in_packets && !self.pty().in_packets.replace(true) {
            self.terminal.tty.borrow_mut().take_notices();
        }
        self.pty().in_packets.set(in_packets);
    }
}

impl Drop for PtyMaster {
    fn drop(&mut self) {
        self.terminal.hang_up();
        self.terminal.unix.terminals.remove_pty(&self.terminal);
    }
}

impl Stream for PtyMaster {
    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        let mut piece = try_filled(0, to.bytes.min(PIECE_BYTES))?;
        let bytes = self.read_kernel(io, &mut piece)?;
        io.copy_out(to.address, &piece[..bytes])?;
        Ok(bytes)
    }

    fn write(&self, io: &Io<'_>, from: UserRange) -> Result<usize, Errno> {
        write_pieces(io, from, TYPED_BYTES, |piece| self.write_kernel(io, piece))
    }

    fn read_kernel(&self, io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            let taken = if self.pty().in_packets.get() { self.take_packet(into) } else { self.take_output(into) };
            if let Some(taken) = taken {
                return Ok(taken);
            }
            if self.pty().abandoned.get() {
                return Err(Errno::EIO);
            }
            io.wait(&self.pty().master)?;
        }
    }

    fn write_kernel(&self, io: &Io<'_>, from: &[u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while done < from.len() {
            let effects = self.terminal.tty.borrow_mut().device_input(&from[done..]);
            if effects.accepted > 0 {
                self.terminal.apply(effects);
                done += effects.accepted;
            } else if let Err(error) = io.wait(&self.pty().master) {
                // Who moved nothing wakes nobody: two writers would wake each other for ever.
                return if done > 0 { Ok(done) } else { Err(error) };
            }
        }
        Ok(done)
    }

    fn held(&self) -> Held {
        self.terminal.held()
    }

    fn ready(&self) -> Ready {
        let has_output = !self.terminal.tty.borrow().is_drained();
        let ready = Ready::WRITABLE.with_if(has_output, Ready::READABLE);
        let has_news = self.pty().in_packets.get() && self.terminal.tty.borrow().has_notices();
        let news = Ready::READABLE.with(Ready::PRIORITY);
        ready.with_if(has_news, news).with_if(self.pty().abandoned.get(), Ready::HANG_UP)
    }

    fn tells_by_signal(&self) -> bool {
        true
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.pty().master);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
