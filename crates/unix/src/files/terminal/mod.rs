//! Terminals: the cooked tty of the kernel between a line to the outside and the programs.
//!
//! ```text
//!            console.rs                                    ends.rs
//!   channel ───take_input──▶ ┌──────────────┐ ──read──▶  TtyStream, one per open file
//!   channel ◀──give_output── │ Tty (kernel) │ ◀─write──
//!                            └──────┬───────┘
//!                    pty.rs         │ Effects: who wakes, which signals, is there output
//!   PtyMaster ──write──▶ the same Tty ──read──▶ PtyMaster
//!                  window.rs        the same Tty ──────▶ cells
//! ```
//! A terminal's number is its name: `/dev/pts/N`, device (136, N). Number 0 is the console, connected to the
//! machine's terminal channel; the others are pseudo terminals. Text windows have numbers of their own: `/dev/ttyN`, (4, N).
//!
//! Invariant: the tty is never borrowed while somebody sleeps or is woken, or a signal is sent.

mod console;
pub(crate) mod ends;
mod job;
pub(crate) mod pty;
pub(crate) mod registry;
pub(crate) mod window;

pub use ends::TtyStream;
pub use pty::PtyMaster;
pub use registry::{Terminals, node_of};
pub use window::{WINDOW_MAJOR, WINDOWS};

use alloc::boxed::Box;
use alloc::sync::Arc;

use abi::Errno;
use kernel::call::Makers;
use kernel::charge::{Held, Kept};
use kernel::schedule::WaitQueue;
use kernel::screen::TextWindow;
use kernel::tty::{EDITOR_WORTH_BYTES, Effects, INPUT_BYTES, Signal, Tty, TtyCode};
use machine::stages::{self, Stage};
use machine::{Channel, KernelCell, KernelValue, Nanos};

use crate::emulator::Unix;
use console::Console;
use pty::Pty;

/// Output that a tty keeps until its line takes it.
const OUTPUT_BYTES: usize = 8192;

/// Major number of pseudo terminals, which here are all terminals but windows (Linux `devices.txt`).
pub const TERMINAL_MAJOR: u32 = 136;

/// What a terminal is connected to.
enum Line {
    Console(Console),
    Pty(Pty),
    Window(Box<TextWindow>),
}

/// A terminal. Programs reach it through [`TtyStream`].
pub struct Terminal {
    unix: &'static Unix,
    pub number: u32,
    pub tty: KernelCell<Tty>,
    line: Line,
    /// Readers and pollers wait here.
    readers: WaitQueue,
    /// Writers wait here, and who waits for the output to drain.
    writers: WaitQueue,
    /// When the newest byte came: the timer of `VTIME` starts there.
    newest_input: KernelValue<Nanos>,
    /// How many open files the programs' side has.
    opens: KernelValue<u32>,
    /// `TIOCEXCL`: only root may open it again.
    pub exclusive: KernelValue<bool>,
    /// The synthesized routines, made when it is first opened. They know the words of `tty`.
    code: KernelCell<Option<TtyCode>>,
}

impl Terminal {
    /// A terminal that nobody has. Error: `ENOMEM`.
    fn new(unix: &'static Unix, number: u32, line: Line) -> Result<Arc<Terminal>, Errno> {
        let _stage = stages::enter(Stage::Allocate);
        Ok(Arc::new(Terminal {
            unix,
            number,
            tty: KernelCell::new(Tty::new(OUTPUT_BYTES).map_err(|_| Errno::ENOMEM)?),
            line,
            readers: WaitQueue::new(),
            writers: WaitQueue::new(),
            newest_input: KernelValue::new(Nanos(0)),
            opens: KernelValue::new(0),
            exclusive: KernelValue::new(false),
            code: KernelCell::new(None),
        }))
    }

    /// What one of its open files keeps of it.
    pub fn held(self: &Arc<Terminal>) -> Held {
        let window = if self.window().is_some() { size_of::<TextWindow>() } else { 0 };
        let bytes = size_of::<Terminal>() + OUTPUT_BYTES + INPUT_BYTES + window;
        Held::new(Kept::Terminals, bytes / Arc::strong_count(self))
    }

    /// Major and minor number.
    pub fn device_numbers(&self) -> (u32, u32) {
        (if self.window().is_some() { WINDOW_MAJOR } else { TERMINAL_MAJOR }, self.number)
    }

    /// Does what a call of the tty asks for.
    pub fn apply(&self, effects: Effects) {
        if effects.accepted > 0 {
            self.newest_input.set(self.unix.machine.now());
        }
        if effects.output_pending {
            self.give_output();
        }
        if let Line::Pty(pty) = &self.line
            && pty.in_packets.get()
            && self.tty.borrow().has_notices()
        {
            pty.tell_master(self.unix.scheduler);
        }
        if effects.wake_readers {
            self.unix.scheduler.wake(&self.readers);
        }
        if effects.wake_writers {
            self.unix.scheduler.wake(&self.writers);
        }
        if !effects.signals.is_empty() {
            let foreground = self.tty.borrow().job().foreground;
            for signal in effects.signals.iter() {
                self.signal_group(foreground, signal);
            }
        }
    }

    /// Moves output to the line, as much as it takes. Returns the number of bytes.
    fn give_output(&self) -> usize {
        match &self.line {
            Line::Console(console) => {
                let moved = console.take_from(self.unix.machine, &self.tty);
                if moved > 0 {
                    self.unix.scheduler.wake(&self.writers);
                }
                moved
            }
            Line::Pty(pty) => {
                pty.tell_master(self.unix.scheduler);
                0
            }
            Line::Window(window) => self.show(window),
        }
    }

    /// The routines; none where every call is done in Rust. Bytes for a pseudo terminal's master have no way in code.
    pub fn code(&self, makers: Makers) -> TtyCode {
        let channel = matches!(self.line, Line::Console(_)).then_some(Channel::Terminal);
        if makers.watch().is_some() {
            // The window's routine is a machine's, which nobody can watch.
            let code = self.tty.borrow().synthesize(channel, makers);
            return TtyCode { write: code.write.filter(|_| self.window().is_none()), ..code };
        }
        let mut code = self.code.borrow_mut();
        let make = || {
            let mut tty = self.tty.borrow_mut();
            tty.work_in_code(makers, EDITOR_WORTH_BYTES);
            let code = tty.synthesize(channel, makers);
            let write = self.window().and_then(TextWindow::code);
            TtyCode { write: write.or(code.write), ..code }
        };
        code.get_or_insert_with(make).clone()
    }

    /// The line is asked for bytes that the tty had no room for, or that have come meanwhile.
    fn take_input(&self) {
        match &self.line {
            Line::Console(console) => console.give_to(self),
            Line::Pty(pty) => pty.tell_master(self.unix.scheduler),
            Line::Window(_) => {}
        }
    }

    /// After something was read or flushed: there is room for input again.
    pub fn made_room(&self) {
        if self.tty.borrow_mut().device_may_resume() {
            self.take_input();
        }
    }

    /// The device has news: input, or room for output.
    pub fn device(&self) {
        self.take_input();
        self.give_output();
        if let Line::Console(console) = &self.line
            && console.has_sent_all(self.unix.machine)
        {
            self.unix.scheduler.wake(&self.writers);
        }
    }

    /// Everything written has reached the other side.
    pub fn is_drained(&self) -> bool {
        match &self.line {
            Line::Console(console) => self.tty.borrow().is_drained() && console.has_sent_all(self.unix.machine),
            // What the master can read counts as sent, for nobody may ever read it.
            Line::Pty(_) => true,
            Line::Window(_) => self.tty.borrow().is_drained(),
        }
    }

    /// `TIOCOUTQ`: bytes written that are not sent.
    pub fn unsent_bytes(&self) -> usize {
        match &self.line {
            Line::Console(_) | Line::Window(_) => self.tty.borrow().unsent_bytes(),
            Line::Pty(_) => 0,
        }
    }

    /// Waiting queue of those who write or wait for the end of output.
    pub fn writers(&self) -> &WaitQueue {
        &self.writers
    }

    pub fn master(&self) -> Option<&Pty> {
        match &self.line {
            Line::Pty(pty) => Some(pty),
            Line::Console(_) | Line::Window(_) => None,
        }
    }

    /// The other side is gone: programs read the end, and the session is told.
    fn hang_up(&self) {
        if self.tty.borrow().is_hung_up() {
            return;
        }
        let (effects, job) = {
            let mut tty = self.tty.borrow_mut();
            (tty.hang_up(), tty.job())
        };
        self.apply(effects);
        if let Some(leader) = job.session.and_then(|session| self.unix.tasks.process(session as u32)) {
            self.signal_process(&leader, Signal::HangUp);
            self.signal_process(&leader, Signal::Continue);
        }
        self.signal_group(job.foreground, Signal::HangUp);
        self.signal_group(job.foreground, Signal::Continue);
        self.leave_session();
    }
}
