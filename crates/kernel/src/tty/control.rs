//! What programs ask of a tty besides reading and writing: settings, flushing, flow, size.
//!
//! The caller asks `JobControl::check_change` first wherever Linux does: for all of these but the
//! queries and the window size.

use super::input::special_bytes;
use super::termios::{DISABLED, Termios, WindowSize, cc, iflag, lflag};
use super::{CookTtyOut, Effects, Signal, Tty};

/// What `TCFLSH` forgets. The discriminants are the argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// Unread input (`TCIFLUSH`).
    Input = 0,
    /// Unsent output (`TCOFLUSH`).
    Output = 1,
    /// Both (`TCIOFLUSH`).
    Both = 2,
}

/// What `TCXONC` does. The discriminants are the argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Stop output (`TCOOFF`).
    StopOutput = 0,
    /// Start output (`TCOON`).
    StartOutput = 1,
    /// Ask the device to stop sending (`TCIOFF`).
    StopInput = 2,
    /// Ask the device to send (`TCION`).
    StartInput = 3,
}

/// Input bytes above which the device is asked to pause, and at or below which to go on (`IXOFF`).
const THROTTLE_ROOM_BYTES: usize = 128;

impl Queue {
    /// From the argument of `TCFLSH`; `None` is EINVAL.
    pub fn from_argument(argument: u64) -> Option<Queue> {
        [Queue::Input, Queue::Output, Queue::Both].into_iter().find(|&queue| queue as u64 == argument)
    }
}

impl Flow {
    /// From the argument of `TCXONC`; `None` is EINVAL.
    pub fn from_argument(argument: u64) -> Option<Flow> {
        let all = [Flow::StopOutput, Flow::StartOutput, Flow::StopInput, Flow::StartInput];
        all.into_iter().find(|&flow| flow as u64 == argument)
    }
}

impl Tty {
    /// `TCGETS`, `TCGETS2`: the settings, to be written out by `Termios::to_bytes`.
    pub fn termios(&self) -> &Termios {
        &self.termios
    }

    /// `TCSETS`, `TCSETS2`. Before it `TCSETSF` calls `flush` for the input, and both `TCSETSF` and
    /// `TCSETSW` sleep until `is_drained`.
    ///
    /// Where lines begin or cease to be collected, pending input becomes readable as it is.
    pub fn set_termios(&mut self, new: Termios) -> Effects {
        let old = core::mem::replace(&mut self.termios, new);
        let mut effects = Effects { wake_readers: true, wake_writers: true, ..Effects::default() };
        if (old.c_lflag ^ new.c_lflag) & (lflag::ICANON | lflag::EXTPROC) != 0 {
            self.input.change_mode(new.local(lflag::ICANON));
        }
        self.input.special = special_bytes(&new);
        self.unbind_editor();
        self.note_settings(&old);
        // Without IXON no key could ever start what ^S stopped.
        if old.input(iflag::IXON) && !new.input(iflag::IXON) {
            self.start_output(&mut effects);
            self.show_echo();
        }
        effects.output_pending = self.output.pending() > 0;
        self.settle();
        effects
    }

    /// `TCFLSH`.
    pub fn flush(&mut self, queue: Queue) -> Effects {
        if queue != Queue::Output {
            self.flush_input();
            self.unthrottle();
        }
        if queue != Queue::Input {
            self.flush_output();
        }
        self.settle();
        Effects { wake_writers: queue != Queue::Input, output_pending: self.output.pending() > 0, ..Effects::default() }
    }

    /// `TCXONC`.
    pub fn control_flow(&mut self, flow: Flow) -> Effects {
        let mut effects = Effects::default();
        match flow {
            Flow::StopOutput => self.change_flow(CookTtyOut::hold),
            Flow::StartOutput => effects.wake_writers = self.change_flow(CookTtyOut::release),
            Flow::StopInput => self.send_key(cc::VSTOP),
            Flow::StartInput => self.send_key(cc::VSTART),
        }
        effects.output_pending = self.output.pending() > 0;
        self.settle();
        effects
    }

    /// `TIOCSTI`: as if the device had sent `byte`. Who may do that is for the caller to decide.
    pub fn inject(&mut self, byte: u8) -> Effects {
        self.device_input(&[byte])
    }

    /// `TIOCOUTQ`: bytes the device has not taken.
    pub fn unsent_bytes(&self) -> usize {
        self.output.pending()
    }

    /// Whether a drain (`TCSBRK` with an argument, `tcdrain`, `TCSETSW`) is over.
    pub fn is_drained(&self) -> bool {
        self.output.pending() == 0
    }

    /// `TIOCGWINSZ`.
    pub fn window_size(&self) -> WindowSize {
        self.window
    }

    /// `TIOCSWINSZ`, or news from the device. A real change is a SIGWINCH.
    pub fn set_window_size(&mut self, size: WindowSize) -> Effects {
        let mut effects = Effects::default();
        if size != self.window {
            self.window = size;
            effects.signals.insert(Signal::WindowChange);
        }
        effects
    }

    /// Asks the device to pause when input piles up that somebody can read.
    pub(super) fn throttle(&mut self) {
        let readable = !self.termios.is_canonical() || self.input.has_line();
        let full = self.input.len() + THROTTLE_ROOM_BYTES > super::INPUT_BYTES;
        if full && readable && !self.throttled && self.termios.input(iflag::IXOFF) {
            self.throttled = true;
            self.send_key(cc::VSTOP);
        }
    }

    /// Asks a paused device to go on once little is left to read.
    pub(super) fn unthrottle(&mut self) {
        if self.throttled && self.readable_bytes() <= THROTTLE_ROOM_BYTES {
            self.throttled = false;
            self.send_key(cc::VSTART);
        }
    }

    fn send_key(&mut self, place: usize) {
        let key = self.key(place);
        if key != DISABLED {
            self.output.send_urgent(key);
        }
    }
}
