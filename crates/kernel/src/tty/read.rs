//! What a program's read gets, and how long it waits.

use machine::Nanos;

use super::Tty;
use super::termios::{cc, lflag};

/// How a reader waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// Not at all: `O_NONBLOCK`, or a signal ended the wait.
    None,
    /// It has been idle for so long: since the read began or the newest byte came, what is later.
    Idle(Nanos),
}

/// The result of an attempt to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadOutcome {
    /// So many bytes, at least 1.
    Bytes(usize),
    /// The read returns 0: end of file, a hung up tty, or `VTIME` ran out without input.
    Eof,
    /// Nothing to read: EAGAIN, EINTR, or sleep until `wake_readers`.
    WouldBlock,
    /// Sleep until `wake_readers`, and at most so long; then try again with the idle time so far.
    WaitFor(Nanos),
}

/// What `VMIN` and `VTIME` decide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RawDecision {
    /// The read returns with so many bytes, perhaps 0.
    Ready(usize),
    /// It waits for input.
    Wait,
    /// It waits for input, and at most so long.
    WaitFor(Nanos),
}

/// Nanoseconds of one unit of `VTIME`.
const TENTH_NS: u64 = 100_000_000;

/// The four cases of reading without lines (POSIX, general terminal interface, 11.1.7), where
/// `available` bytes are there, `requested` fit, and the reader has been `idle` (see `Patience`).
///
/// Linux since 5.12 reads in pieces of 64 bytes, so there a `vmin` above 64 is satisfied with 64.
/// That breaks POSIX, and no program can want it: here `vmin` holds.
pub fn decide_raw_read(vmin: u8, vtime: u8, requested: usize, available: usize, idle: Nanos) -> RawDecision {
    let limit = Nanos(u64::from(vtime) * TENTH_NS);
    let ready = RawDecision::Ready(available.min(requested));
    let enough = requested.min(usize::from(vmin).max(1));
    match (vmin, vtime) {
        _ if available >= enough => ready,
        (0, 0) => ready,
        // Between bytes the timer of VMIN > 0 runs only once the first byte is there.
        (1.., _) if available == 0 || vtime == 0 => RawDecision::Wait,
        _ if idle.0 >= limit.0 => ready,
        _ => RawDecision::WaitFor(Nanos(limit.0 - idle.0)),
    }
}

impl Tty {
    /// Callentry `read`: one line, or without lines what `VMIN` and `VTIME` ask for. Bytes leave
    /// the tty only with `ReadOutcome::Bytes`. An empty `into` reads nothing, as `Eof`.
    pub fn program_read(&mut self, into: &mut [u8], patience: Patience) -> ReadOutcome {
        if into.is_empty() {
            return ReadOutcome::Eof;
        }
        let outcome = if self.termios.is_canonical() { self.read_line(into) } else { self.read_bytes(into, patience) };
        self.settle();
        outcome
    }

    fn read_bytes(&mut self, into: &mut [u8], patience: Patience) -> ReadOutcome {
        match self.decide(into.len(), patience) {
            RawDecision::Ready(count) => self.read_raw(&mut into[..count]),
            _ if self.hung_up => ReadOutcome::Eof,
            RawDecision::Wait => ReadOutcome::WouldBlock,
            RawDecision::WaitFor(limit) => ReadOutcome::WaitFor(limit),
        }
    }

    /// Whether a read would return at once (`poll`).
    pub fn is_readable(&self) -> bool {
        if self.hung_up {
            return true;
        }
        if self.termios.is_canonical() {
            return self.input.has_line();
        }
        let (vmin, vtime) = (self.key(cc::VMIN), self.key(cc::VTIME));
        let enough = if vtime == 0 { usize::from(vmin).max(1) } else { 1 };
        self.input.len() >= enough
    }

    /// `TIOCINQ`, `FIONREAD`: bytes that wait to be read, in canonical mode those of finished lines.
    pub fn readable_bytes(&self) -> usize {
        if self.termios.is_canonical() { self.input.line_bytes() } else { self.input.len() }
    }

    fn decide(&self, requested: usize, patience: Patience) -> RawDecision {
        // Lines edited elsewhere (EXTPROC): like lines, they are not subject to VMIN and VTIME.
        let timing = if self.termios.local(lflag::ICANON) { (1, 0) } else { (self.key(cc::VMIN), self.key(cc::VTIME)) };
        let (vmin, vtime) = timing;
        let available = self.input.len();
        match patience {
            Patience::Idle(idle) => decide_raw_read(vmin, vtime, requested, available, idle),
            Patience::None if available > 0 => RawDecision::Ready(available.min(requested)),
            Patience::None if vmin == 0 && vtime == 0 => RawDecision::Ready(0),
            Patience::None => RawDecision::Wait,
        }
    }

    fn read_line(&mut self, into: &mut [u8]) -> ReadOutcome {
        if !self.input.has_line() {
            return if self.hung_up { ReadOutcome::Eof } else { ReadOutcome::WouldBlock };
        }
        let count = self.input.take_line(into);
        self.unthrottle();
        if count == 0 { ReadOutcome::Eof } else { ReadOutcome::Bytes(count) }
    }

    fn read_raw(&mut self, into: &mut [u8]) -> ReadOutcome {
        let count = self.input.take_raw(into);
        self.unthrottle();
        // With EXTPROC the other side edits lines, and sends an end of file as the bare key.
        let remote = lflag::EXTPROC | lflag::ICANON;
        let ends = count == 1 && into[0] == self.key(cc::VEOF) && self.input.len() == 0;
        if count == 0 || (ends && self.termios.c_lflag & remote == remote) {
            ReadOutcome::Eof
        } else {
            ReadOutcome::Bytes(count)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RawDecision::{Ready, Wait, WaitFor};
    use super::*;

    fn decide(vmin: u8, vtime: u8, available: usize, idle_tenths: u64) -> RawDecision {
        decide_raw_read(vmin, vtime, 10, available, Nanos(idle_tenths * TENTH_NS))
    }

    #[test]
    fn without_vmin_and_vtime_a_read_never_waits() {
        assert_eq!(decide(0, 0, 0, 0), Ready(0));
        assert_eq!(decide(0, 0, 3, 0), Ready(3));
    }

    #[test]
    fn vmin_alone_waits_for_so_many_or_a_full_buffer() {
        assert_eq!(decide(4, 0, 3, 99), Wait);
        assert_eq!(decide(4, 0, 4, 0), Ready(4));
        assert_eq!(decide(200, 0, 12, 0), Ready(10));
    }

    #[test]
    fn vtime_alone_limits_the_whole_read() {
        assert_eq!(decide(0, 5, 0, 2), WaitFor(Nanos(3 * TENTH_NS)));
        assert_eq!(decide(0, 5, 0, 5), Ready(0));
        assert_eq!(decide(0, 5, 1, 0), Ready(1));
    }

    #[test]
    fn both_time_the_gap_between_bytes() {
        assert_eq!(decide(4, 5, 0, 99), Wait);
        assert_eq!(decide(4, 5, 2, 1), WaitFor(Nanos(4 * TENTH_NS)));
        assert_eq!(decide(4, 5, 2, 5), Ready(2));
        assert_eq!(decide(4, 5, 4, 0), Ready(4));
    }
}
