//! The host's terminal: raw while the guest's line discipline is at work, and always put back.

use std::io::Write;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use rustix::termios::{OptionalActions, OutputModes, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

/// Which of the standard descriptors are terminals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terminals {
    pub is_tty: [bool; 3],
}

/// The modes to go back to, while the terminal is raw. Only standard input is ever changed.
static SAVED: Mutex<Option<Saved>> = Mutex::new(None);

struct Saved {
    before: Termios,
    raw: Termios,
}

impl Terminals {
    pub fn of_process() -> Self {
        let is_tty = [isatty(rustix::stdio::stdin()), isatty(rustix::stdio::stdout()), isatty(rustix::stdio::stderr())];
        Terminals { is_tty }
    }

    pub fn any(self) -> bool {
        self.is_tty.contains(&true)
    }

    /// The descriptor the guest's terminal output goes to.
    pub fn output(self) -> Option<BorrowedFd<'static>> {
        let standard = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
        [1, 2, 0].into_iter().find(|&fd| self.is_tty[fd]).map(|fd| standard[fd])
    }

    /// Rows, columns, and the pixels of both; zeros when there is no terminal.
    pub fn window_size(self) -> [u16; 4] {
        let size = self.output().and_then(|fd| tcgetwinsize(fd).ok());
        size.map_or([0; 4], |size| [size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel])
    }

    /// Passes every key on to the guest from now on, if standard input is a terminal.
    pub fn make_raw(self) {
        if !self.is_tty[0] {
            return;
        }
        let Ok(before) = tcgetattr(rustix::stdio::stdin()) else { return };
        let mut raw = before.clone();
        raw.make_raw();
        // Where output goes elsewhere, another program may be writing lines to this terminal: leave them whole.
        if !(self.is_tty[1] && self.is_tty[2]) {
            raw.output_modes |= before.output_modes & (OutputModes::OPOST | OutputModes::ONLCR);
        }
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &raw);
        if let Ok(mut saved) = SAVED.lock() {
            *saved = Some(Saved { before, raw });
        }
    }
}

/// Makes the terminal raw again after the shell has had it (job control of the host).
pub fn resume() {
    let Ok(saved) = SAVED.lock() else { return };
    if let Some(saved) = saved.as_ref() {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &saved.raw);
    }
}

/// Puts the terminal back as it was found. Called on every way out, also from the panic hook.
pub fn restore() {
    let Ok(mut saved) = SAVED.try_lock() else { return };
    if let Some(saved) = saved.take() {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &saved.before);
    }
}

/// Writes text for a person to standard error, with the line ends that the terminal needs at the moment.
pub fn say(text: &[u8]) {
    let bare = SAVED
        .lock()
        .is_ok_and(|saved| saved.as_ref().is_some_and(|saved| !saved.raw.output_modes.contains(OutputModes::OPOST)));
    let mut stderr = std::io::stderr().lock();
    if !bare {
        let _ = stderr.write_all(text);
        return;
    }
    let mut shown = Vec::with_capacity(text.len() + 16);
    for &byte in text {
        if byte == b'\n' {
            shown.push(b'\r');
        }
        shown.push(byte);
    }
    let _ = stderr.write_all(&shown);
}
