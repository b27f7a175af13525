//! What a terminal tells whoever holds its other side in packet mode (`TIOCPKT`, tty_ioctl(4)).

use super::termios::{Termios, cc, iflag, lflag};
use super::{CookTtyOut, Tty};

/// Things that have happened since they were last told; a bit each, with Linux's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Notices(u8);

impl Notices {
    /// Input that programs had not read was thrown away.
    pub(super) const INPUT_FLUSHED: Notices = Notices(0x01);
    /// So was output that had not been taken.
    pub(super) const OUTPUT_FLUSHED: Notices = Notices(0x02);
    const STOPPED: Notices = Notices(0x04);
    const STARTED: Notices = Notices(0x08);
    /// ^S and ^Q do not, or do, stop and start the output.
    const KEYS_PASS: Notices = Notices(0x10);
    const KEYS_STOP: Notices = Notices(0x20);
    /// The settings of a terminal whose line is edited at the other side (`EXTPROC`) have changed.
    pub(super) const SETTINGS: Notices = Notices(0x40);

    pub(super) fn note(&mut self, what: Notices) {
        self.0 |= what.0;
    }

    /// The output was stopped or started; only the last of both counts.
    pub(super) fn note_flow(&mut self, runs: bool) {
        self.replace(Notices::STOPPED, Notices::STARTED, runs);
    }

    /// The same for what the keys do.
    pub(super) fn note_keys(&mut self, stop: bool) {
        self.replace(Notices::KEYS_PASS, Notices::KEYS_STOP, stop);
    }

    fn replace(&mut self, off: Notices, on: Notices, is_on: bool) {
        self.0 &= !(off.0 | on.0);
        self.note(if is_on { on } else { off });
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The byte that a read begins with.
    pub fn byte(self) -> u8 {
        self.0
    }
}

impl Tty {
    /// What has happened since this was last asked.
    pub fn take_notices(&mut self) -> Notices {
        core::mem::take(&mut self.notices)
    }

    pub fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }

    pub(super) fn flush_input(&mut self) {
        self.input.flush();
        self.notices.note(Notices::INPUT_FLUSHED);
    }

    pub(super) fn flush_output(&mut self) {
        self.output.flush();
        self.notices.note(Notices::OUTPUT_FLUSHED);
    }

    /// Stops or starts the output by `change`.
    pub(super) fn change_flow<R>(&mut self, change: impl FnOnce(&mut CookTtyOut) -> R) -> R {
        let before = self.output.is_stopped();
        let result = change(&mut self.output);
        let is_stopped = self.output.is_stopped();
        if is_stopped != before {
            self.notices.note_flow(!is_stopped);
        }
        result
    }

    /// The settings were `old`.
    pub(super) fn note_settings(&mut self, old: &Termios) {
        let (before, now) = (stops_by_usual_keys(old), stops_by_usual_keys(&self.termios));
        if before != now {
            self.notices.note_keys(now);
        }
        if old.local(lflag::EXTPROC) || self.termios.local(lflag::EXTPROC) {
            self.notices.note(Notices::SETTINGS);
        }
    }
}

/// ^S stops the output and ^Q starts it: the other side may do that itself.
fn stops_by_usual_keys(termios: &Termios) -> bool {
    const CONTROL_S: u8 = 0x13;
    const CONTROL_Q: u8 = 0x11;
    termios.input(iflag::IXON) && termios.c_cc[cc::VSTOP] == CONTROL_S && termios.c_cc[cc::VSTART] == CONTROL_Q
}
