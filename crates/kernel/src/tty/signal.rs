//! Signals a tty sends.

/// A signal from the tty. The numbers are Linux's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Signal {
    /// SIGHUP.
    HangUp = 1,
    /// SIGINT.
    Interrupt = 2,
    /// SIGQUIT.
    Quit = 3,
    /// SIGCONT.
    Continue = 18,
    /// SIGTSTP.
    TerminalStop = 20,
    /// SIGTTIN.
    TerminalInput = 21,
    /// SIGTTOU.
    TerminalOutput = 22,
    /// SIGWINCH.
    WindowChange = 28,
}

const ALL: [Signal; 8] = [
    Signal::HangUp,
    Signal::Interrupt,
    Signal::Quit,
    Signal::Continue,
    Signal::TerminalStop,
    Signal::TerminalInput,
    Signal::TerminalOutput,
    Signal::WindowChange,
];

/// Signals for the foreground group; a bit each, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signals(u32);

impl Signals {
    /// Adds a signal. Twice is once, as with pending signals.
    pub fn insert(&mut self, signal: Signal) {
        self.0 |= 1 << signal as u8;
    }

    /// Whether `signal` is to be sent.
    pub fn contains(&self, signal: Signal) -> bool {
        self.0 & (1 << signal as u8) != 0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// The signals, by number.
    pub fn iter(self) -> impl Iterator<Item = Signal> {
        ALL.into_iter().filter(move |&signal| self.contains(signal))
    }

    pub(super) fn add_all(&mut self, other: Signals) {
        self.0 |= other.0;
    }
}
