//! The keys that end a run whose program ignores everything: Ctrl-], three times within a second, as systemd-nspawn has them.
//!
//! They reach the program, too, which may be waiting for one. The hosted machine reads the terminal itself, and looks for them
//! there (`crates/machine-hosted/src/channels.rs`).

use std::time::{Duration, Instant};

/// Ctrl-].
const KEY: u8 = 0x1d;
const TIMES: u32 = 3;
const WITHIN: Duration = Duration::from_secs(1);

/// What is said of it at a terminal.
pub const HINT: &str = "Ctrl-], three times within a second, ends the run whatever the program does";
/// What is said when it was typed.
pub const ENDED: &str = "synth: ended by Ctrl-], three times";

/// How much of the sequence has been typed.
#[derive(Default)]
pub struct Escape {
    count: u32,
    since: Option<Instant>,
}

impl Escape {
    /// Whether bytes that were typed at this time complete the sequence.
    pub fn is_complete(&mut self, typed: &[u8], now: Instant) -> bool {
        for &byte in typed {
            if byte != KEY {
                self.count = 0;
                continue;
            }
            if self.count == 0 || self.since.is_none_or(|since| now.duration_since(since) > WITHIN) {
                (self.count, self.since) = (0, Some(now));
            }
            self.count += 1;
            if self.count == TIMES {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_in_a_row_within_a_second_end_the_run() {
        let start = Instant::now();
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut escape = Escape::default();
        assert!(!escape.is_complete(b"text\x1d", after(0)));
        assert!(!escape.is_complete(b"\x1d", after(300)));
        assert!(escape.is_complete(b"\x1d", after(600)));
        assert!(Escape::default().is_complete(b"a\x1d\x1d\x1d", start));
    }

    #[test]
    fn other_keys_between_them_and_long_pauses_begin_anew() {
        let start = Instant::now();
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut escape = Escape::default();
        assert!(!escape.is_complete(b"\x1d\x1dx\x1d\x1d", start));
        assert!(!escape.is_complete(b"\x1d", after(2000)));
        assert!(!escape.is_complete(b"\x1d", after(2100)));
        assert!(escape.is_complete(b"\x1d", after(2900)));
    }
}
