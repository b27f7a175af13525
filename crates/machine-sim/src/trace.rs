//! What happened: the last events for people, a hash of all for comparing runs.

use std::collections::VecDeque;
use std::fmt;

use machine::{Nanos, TteId};

/// Events that are kept to be shown.
const KEPT: usize = 60;

pub struct Trace {
    last: VecDeque<String>,
    hash: u64,
}

impl Trace {
    pub fn new() -> Trace {
        Trace { last: VecDeque::new(), hash: 0xCBF2_9CE4_8422_2325 }
    }

    /// Notes an event of `thread`.
    pub fn note(&mut self, now: Nanos, thread: TteId, event: fmt::Arguments<'_>) {
        let line = format!("{:>12} ns  thread {:<3} {event}", now.0, thread.0);
        // FNV-1a.
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn last(&self) -> Vec<String> {
        self.last.iter().cloned().collect()
    }
}
