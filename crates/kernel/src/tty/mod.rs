//! The tty (S-95, S-96): a raw ring of bytes on either side of two filters, the cooked tty.
//!
//! ```text
//!              device_input            program_read
//!   device ──▶ CookTtyIn: edits lines ──▶ lines, bytes ──▶ program
//!     ▲             │ echo                                   │
//!     │             ▼                                        │ program_write
//!     │        EchoQueue ──▶ CookTtyOut: line ends, tabs ◀───┘
//!     └───────── take_output ── ring ◀──┘
//! ```
//!
//! The quajects are those of the papers. `CookTtyIn` has the callentries `getchar` and `read`
//! (`program_read`) and the callouts `raw_get` (bytes come by `device_input`) and `echo`
//! (`EchoQueue`). `CookTtyOut` has `putchar` and `write` (`program_write`) and the callout `raw_write`
//! (the device calls `take_output`). `Tty` connects the two, as every open terminal has them.
//!
//! Nothing here does I/O, sleeps, allocates after `new`, or knows a process. What must happen
//! outside comes back as `Effects`. The behaviour is that of Linux's default line discipline, to the
//! byte; `oracle.rs` compares the two.

mod bytes;
mod control;
mod cooker;
mod echo;
mod editor;
mod erase;
mod input;
mod job;
mod keys;
mod notices;
mod output;
pub mod raw;
mod read;
mod receive;
mod ring;
mod signal;
mod template;
pub mod termios;

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

use core::cell::Cell;

use cooker::Cooker;
pub use cooker::OutputFilter;
use echo::EchoQueue;
use editor::LineEditor;
use quaject::Makers;

pub use control::{Flow, Queue};
pub use editor::EDITOR_WORTH_BYTES;
pub use input::{CookTtyIn, INPUT_BYTES};
pub use job::{Access, Caller, JobControl, JobError, ProcessNumber};
pub use notices::Notices;
pub(crate) use output::OutputWords;
pub use output::{CookTtyOut, Gate};
pub use read::{Patience, RawDecision, ReadOutcome, decide_raw_read};
pub use ring::{ByteRing, NoMemory};
pub use signal::{Signal, Signals};
pub use template::{Line, TtyCode};
pub(crate) use template::{MayFilter, RawCheck};
pub use termios::{Termios, WindowSize};

/// What the caller has to do after a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Effects {
    /// Bytes taken of those offered to `device_input`.
    pub accepted: usize,
    /// Signals for the foreground group, if there is one.
    pub signals: Signals,
    /// Sleeping readers and pollers should look again.
    pub wake_readers: bool,
    /// Sleeping writers and pollers should look again.
    pub wake_writers: bool,
    /// The device has something to take.
    pub output_pending: bool,
}

impl Effects {
    /// Both effects together, for a caller that makes several calls before it acts.
    pub fn and(mut self, other: Effects) -> Effects {
        self.accepted += other.accepted;
        self.signals.add_all(other.signals);
        self.wake_readers |= other.wake_readers;
        self.wake_writers |= other.wake_writers;
        self.output_pending |= other.output_pending;
        self
    }
}

/// A terminal: both filters, the settings they share, and the session it controls.
///
/// Invariants: `input.special` follows from `termios`; between calls the gates of both filters follow from everything else
/// (`settle`), so that synthesized code may run whenever they are open.
pub struct Tty {
    termios: Termios,
    window: WindowSize,
    input: CookTtyIn,
    echo: EchoQueue,
    output: CookTtyOut,
    /// Who makes code; `None`: all is done in Rust.
    makers: Option<Makers>,
    editor: LineEditor,
    cooker: Cooker,
    /// Who the tty belongs to.
    job: JobControl,
    /// The device had to keep bytes.
    refused_input: bool,
    /// How many of those were searched for ^S and ^Q already.
    searched_bytes: usize,
    /// The device was asked to pause (`IXOFF`).
    throttled: bool,
    hung_up: bool,
    notices: Notices,
}

impl Tty {
    /// A tty with Linux's defaults and room for `output_bytes` of output (rounded up to a power of
    /// two, at least 16 so that any conversion fits).
    pub fn new(output_bytes: usize) -> Result<Tty, NoMemory> {
        let termios = Termios::default();
        let tty = Tty {
            termios,
            window: WindowSize::default(),
            input: CookTtyIn::new(&termios)?,
            echo: EchoQueue::new()?,
            output: CookTtyOut::new(output_bytes.max(16))?,
            makers: None,
            editor: LineEditor::default(),
            cooker: Cooker::default(),
            job: JobControl::default(),
            refused_input: false,
            searched_bytes: 0,
            throttled: false,
            hung_up: false,
            notices: Notices::default(),
        };
        tty.settle();
        Ok(tty)
    }

    /// From now on the tty may work in code. A line editor is made for settings under which `worth_bytes` have come.
    pub fn work_in_code(&mut self, makers: Makers, worth_bytes: usize) {
        self.makers = Some(makers);
        self.editor.worth_bytes = worth_bytes;
    }

    /// Who the tty belongs to.
    pub fn job(&self) -> JobControl {
        self.job
    }

    /// Changes whom the tty belongs to.
    pub fn change_job<R>(&mut self, change: impl FnOnce(&mut JobControl) -> R) -> R {
        let result = change(&mut self.job);
        self.settle();
        result
    }

    /// Decides what synthesized code may do until the next call.
    fn settle(&self) {
        let may_pass = !self.hung_up && !self.echo.waits() && !self.stops_background_writers();
        self.output.settle(&self.termios, may_pass);
        let words = self.input.words();
        let may_read = self.termios.is_canonical() && !self.hung_up && !self.throttled && !self.refused_input;
        words.gate.set(u64::from(!may_read));
        words.foreground.set(self.job.foreground.map_or(u64::MAX, |group| group as u64));
    }

    /// Callentry `write`: takes as many of `bytes` as have room now and returns their number. The
    /// caller sleeps until `wake_writers` for the rest. Echo that waits goes first. A tty that hung
    /// up takes nothing; `is_hung_up` tells that from a full one (EIO).
    ///
    /// With `TOSTOP` (`stops_background_writers`) the caller asks `JobControl::check_change` first.
    pub fn program_write(&mut self, bytes: &[u8]) -> usize {
        if self.hung_up {
            return 0;
        }
        self.show_echo();
        let in_code = self.cook(bytes);
        let written = in_code + self.output.write(&bytes[in_code..], &self.termios);
        self.settle();
        written
    }

    /// Which way a program's bytes may go now to a device that takes bytes for characters, past the ring.
    pub fn gate(&self) -> Gate {
        self.output.gate()
    }

    /// The column of the cursor, and that of the line being typed.
    pub fn columns(&self) -> [&Cell<u32>; 2] {
        self.output.columns()
    }

    pub(crate) fn output_words(&self) -> &OutputWords {
        self.output.words()
    }

    /// Whether a write from the background is a SIGTTOU.
    pub fn stops_background_writers(&self) -> bool {
        self.termios.local(termios::lflag::TOSTOP)
    }

    /// Whether a write would take something, for `poll`.
    pub fn is_writable(&self) -> bool {
        self.output.is_writable()
    }

    /// Whether ^S or `TCXONC` stopped the output.
    pub fn is_stopped(&self) -> bool {
        self.output.is_stopped()
    }

    /// Callentry of the device: moves output to it and returns the number of bytes. Where that makes
    /// room (the number is not 0), writers should be woken.
    pub fn take_output(&mut self, into: &mut [u8]) -> usize {
        let crowded = self.output.is_crowded();
        let taken = self.output.take(into);
        // Echo that found no room must not wait for the next key or write.
        if crowded && taken > 0 {
            self.show_echo();
        }
        self.settle();
        taken
    }

    /// Bytes of echo that were forgotten because the device did not take them.
    pub fn forgotten_echo(&self) -> u64 {
        self.echo.forgotten
    }

    /// Whether the device should offer again what `device_input` left with it. True once.
    pub fn device_may_resume(&mut self) -> bool {
        let room = self.input.raw_room() > 0;
        let resumes = room && core::mem::take(&mut self.refused_input);
        self.settle();
        resumes
    }

    /// The device is gone: readers get what is there and then the end, writers EIO. The caller sends
    /// SIGHUP and SIGCONT to the session leader and the foreground group.
    pub fn hang_up(&mut self) -> Effects {
        self.hung_up = true;
        self.settle();
        Effects { wake_readers: true, wake_writers: true, ..Effects::default() }
    }

    /// Whether the device is gone.
    pub fn is_hung_up(&self) -> bool {
        self.hung_up
    }
}
