//! The raw tty's interrupt handler against the raw tty's Rust: buffers of any length, a ring that is nearly full, a device that
//! lies.

use std::collections::VecDeque;

use codestore::Code;
use golden::bench;
use kernel::tty::raw::{RawHandler, RawTty};
use machine::{PAGE_BYTES, Samples};

use crate::race::Race;

pub struct Lines {
    code: RawTty,
    handler: Code<RawHandler>,
    twin: RawTty,
    /// What the device has filled, and nobody has picked up.
    filled: VecDeque<Vec<u8>>,
}

impl Lines {
    pub fn new() -> Lines {
        let [code, twin] = [(); 2].map(|()| RawTty::new().expect("memory for a ring"));
        let handler = code.synthesize(bench().makers()).expect("room for code");
        Lines { code, handler, twin, filled: VecDeque::new() }
    }

    pub fn step(&mut self, race: &mut Race) {
        let most = race.random.pick(&[1, 2, 30, PAGE_BYTES]) as u64;
        match race.random.below(4) {
            0 => {
                let bytes: Vec<u8> = (0..race.random.below(most + 1)).map(|_| race.random.bits() as u8).collect();
                if bench().line.fill(&bytes) {
                    self.filled.push_back(bytes);
                }
            }
            1 => {
                let count = race.random.below(most + 1) as usize;
                self.code.skip(count);
                self.twin.skip(count);
            }
            2 if self.filled.is_empty() && race.random.once_in(4) => self.lie(race),
            _ => self.interrupt(race),
        }
        let waiting = [&self.code, &self.twin].map(|raw| {
            let mut bytes = vec![0; raw.len()];
            raw.peek(&mut bytes);
            bytes
        });
        assert_eq!(waiting[0], waiting[1], "{}: what waits", race.place());
    }

    fn raise(&self, race: &Race) {
        let slot = bench().sample_clock().expect("the bench has one").slot;
        let before = slot.entry();
        // SAFETY: the handler ends as one of samples does.
        slot.store(unsafe { machine::Entry::new(self.handler.entry().address()) });
        assert!(golden::raise_sample(), "{}: the handler has lost a register", race.place());
        slot.store(before);
        assert!(self.code.take_signal(), "{}: nothing is chained", race.place());
    }

    /// One buffer, whole, or none.
    fn interrupt(&mut self, race: &Race) {
        self.raise(race);
        let is_taken = self.filled.front().is_some_and(|bytes| self.twin.room() >= bytes.len());
        if is_taken {
            self.twin.put(&self.filled.pop_front().expect("just seen"));
        }
        let heard = bench().line.take_back();
        assert_eq!(heard, (usize::from(is_taken), true, is_taken), "{}: what the device hears", race.place());
    }

    /// A buffer that does not exist, or that holds more than it can.
    fn lie(&self, race: &mut Race) {
        let (buffer, bytes) = race.random.pick(&[(8, 1), (u32::MAX, 1), (0, PAGE_BYTES as u32 + 1), (0, u32::MAX)]);
        bench().line.say(buffer, bytes);
        self.raise(race);
        assert_eq!(bench().line.take_back(), (0, true, false), "{}: the device lied", race.place());
        bench().line.unsay();
    }
}
