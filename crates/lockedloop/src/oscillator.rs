//! What is adjusted: an oscillator, by its frequency or by its interval.

use crate::units::{Frequency, Interval, Part};

/// What a loop adjusts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Adjust {
    /// A change counts from now on: the phase goes on smoothly.
    Frequency,
    /// A change counts for the whole interval to the next event, which moves.
    Interval,
}

/// Makes events at a rate that can be changed.
///
/// Invariant: `phase` cycles (in 2⁻³²) had gone by at tick `since`; events are where the phase is a multiple of 2³².
#[derive(Clone, Copy, Debug)]
pub struct Oscillator {
    adjust: Adjust,
    frequency: Frequency,
    since: u64,
    phase: u64,
    /// Events up to here, as a phase, are done.
    done: u64,
}

const CYCLE: u64 = 1 << Part::BITS;

impl Oscillator {
    /// Its first event is at tick `now`.
    pub fn new(adjust: Adjust, frequency: Frequency, now: u64) -> Oscillator {
        Oscillator { adjust, frequency, since: now, phase: 0, done: CYCLE.wrapping_neg() }
    }

    pub fn frequency(&self) -> Frequency {
        self.frequency
    }

    pub fn interval(&self) -> Interval {
        self.frequency.interval()
    }

    /// Cycles gone by at `now`, in units of 2⁻³²; wraps around.
    pub fn phase(&self, now: u64) -> u64 {
        self.phase.wrapping_add(self.frequency.phase_in(now.saturating_sub(self.since)))
    }

    /// Sets the frequency at tick `now`.
    pub fn set(&mut self, frequency: Frequency, now: u64) {
        match self.adjust {
            Adjust::Frequency => {
                self.phase = self.phase(now);
                self.since = self.since.max(now);
            }
            Adjust::Interval => self.begin_interval(now),
        }
        self.frequency = frequency;
    }

    /// Counts from the last event at or before `now`, so that all of the interval changes.
    fn begin_interval(&mut self, now: u64) {
        let reached = self.phase(now);
        let within = reached % CYCLE;
        let ticks = ((u128::from(within) * u128::from(self.interval().0)) >> (Part::BITS + 16)) as u64;
        self.since = now.saturating_sub(ticks).max(self.since);
        self.phase = reached - within;
    }

    /// Lets the nearest event fall on `now`: the next one if less than half a cycle is missing, otherwise the one before, which may
    /// have been made already.
    pub fn align(&mut self, now: u64) {
        self.phase = self.phase(now).wrapping_add(CYCLE / 2) & !(CYCLE - 1);
        self.since = self.since.max(now);
        if self.done != self.phase {
            self.done = self.phase.wrapping_sub(CYCLE);
        }
    }

    /// When the next event is due: the first tick at which the phase has got there.
    pub fn next(&self) -> u64 {
        let wanted = self.done.wrapping_add(CYCLE).wrapping_sub(self.phase);
        if wanted as i64 <= 0 {
            return self.since;
        }
        let ticks = (u128::from(wanted) << (48 - Part::BITS)).div_ceil(u128::from(self.frequency.0.max(1)));
        self.since.saturating_add(u64::try_from(ticks).unwrap_or(u64::MAX))
    }

    /// The next event, if it is due at `now`.
    pub fn event_until(&mut self, now: u64) -> Option<u64> {
        let next = self.next();
        if next > now {
            return None;
        }
        self.done = self.done.wrapping_add(CYCLE);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(oscillator: &mut Oscillator, until: u64) -> u64 {
        let mut count = 0;
        while oscillator.event_until(until).is_some() {
            count += 1;
        }
        count
    }

    #[test]
    fn no_part_of_a_tick_is_lost() {
        for adjust in [Adjust::Frequency, Adjust::Interval] {
            let mut oscillator = Oscillator::new(adjust, Frequency::of(44_100, 1_000_000_000), 0);
            assert_eq!(events(&mut oscillator, 0), 1);
            assert!((44_099..=44_100).contains(&events(&mut oscillator, 1_000_000_000)));
            let minute = events(&mut oscillator, 60_000_000_000);
            assert!((44_100 * 59 - 1..=44_100 * 59 + 1).contains(&minute), "{minute}");
        }
    }

    #[test]
    fn a_frequency_changes_at_once_and_an_interval_as_a_whole() {
        let after_the_change = |adjust| {
            let mut oscillator = Oscillator::new(adjust, Frequency::of(1, 1 << 10), 0);
            assert_eq!(oscillator.event_until(0), Some(0));
            oscillator.set(Frequency::of(1, 1 << 11), 1 << 9);
            oscillator.next()
        };
        assert_eq!(after_the_change(Adjust::Frequency), (1 << 9) + (1 << 10));
        assert_eq!(after_the_change(Adjust::Interval), 1 << 11);
    }

    #[test]
    fn the_nearest_event_is_aligned() {
        for (late, next) in [(300, 300 + (1 << 10)), (800, 800)] {
            let mut oscillator = Oscillator::new(Adjust::Frequency, Frequency::of(1, 1 << 10), 0);
            events(&mut oscillator, late);
            oscillator.align(late);
            assert_eq!(oscillator.next(), next);
        }
    }
}
