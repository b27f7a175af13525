//! Gauges (S-31): they count calls, arrivals, interrupts, and tell schedulers how fast these come.
//!
//! Two ways of counting: a plain word where one party counts (one load, one store), a locked word where many do. On top
//! of either, a rate: events per second, smoothed as the papers' low-pass filter does, y = (7y + x) / 8.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use machine::{KernelCell, Nanos};

use crate::link::{Users, Way, cheapest};

/// How a gauge counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GaugeKind {
    /// One party counts at a time.
    Plain,
    /// Several count at once.
    Shared,
}

const WAYS: &[Way<GaugeKind, Users>] = &[
    Way { kind: GaugeKind::Plain, cost: 1, serves: |users| *users == Users::One },
    Way { kind: GaugeKind::Shared, cost: 18, serves: |_| true },
];

/// A count that only grows, and its rate.
///
/// Callentries: `count`, `total`, `rate`. Invariant: `seen.total <= total`.
pub struct Gauge {
    kind: GaugeKind,
    total: AtomicU64,
    seen: KernelCell<Seen>,
}

#[derive(Clone, Copy)]
struct Seen {
    total: u64,
    at: Nanos,
    per_second: u64,
}

impl Gauge {
    /// A gauge for what so many count.
    pub fn new(users: Users, now: Nanos) -> Gauge {
        let kind = cheapest(WAYS, &users).unwrap_or(GaugeKind::Shared);
        Gauge { kind, total: AtomicU64::new(0), seen: KernelCell::new(Seen { total: 0, at: now, per_second: 0 }) }
    }

    /// How it counts.
    pub fn kind(&self) -> GaugeKind {
        self.kind
    }

    /// Counts `events`.
    pub fn count(&self, events: u64) {
        match self.kind {
            GaugeKind::Plain => self.total.store(self.total.load(Relaxed) + events, Relaxed),
            GaugeKind::Shared => drop(self.total.fetch_add(events, Relaxed)),
        }
    }

    /// Events so far.
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Address of the count, for templates that count by themselves.
    pub fn word(&self) -> u64 {
        &raw const self.total as u64
    }

    /// Events per second, smoothed over the last eight looks. A look within a microsecond of the last changes nothing.
    pub fn rate(&self, now: Nanos) -> u64 {
        let mut seen = self.seen.get();
        let elapsed = now.0.saturating_sub(seen.at.0);
        if elapsed < 1000 {
            return seen.per_second;
        }
        let events = u128::from(self.total() - seen.total);
        let current = (events * u128::from(Nanos::PER_SECOND) / u128::from(elapsed)) as u64;
        seen.per_second = ((u128::from(seen.per_second) * 7 + u128::from(current)) / 8) as u64;
        (seen.total, seen.at) = (self.total(), now);
        self.seen.set(seen);
        seen.per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_counter_is_plain_and_many_are_shared() {
        assert_eq!(Gauge::new(Users::One, Nanos(0)).kind(), GaugeKind::Plain);
        assert_eq!(Gauge::new(Users::Many, Nanos(0)).kind(), GaugeKind::Shared);
    }

    #[test]
    fn the_rate_follows_what_is_counted() {
        let gauge = Gauge::new(Users::One, Nanos(0));
        for millisecond in 1..=100 {
            gauge.count(5);
            gauge.rate(Nanos(millisecond * 1_000_000));
        }
        let rate = gauge.rate(Nanos(100_000_000));
        assert!((4900..=5000).contains(&rate), "{rate} events a second");
        assert_eq!(gauge.total(), 500);
        let idle = (101..=200).map(|millisecond| gauge.rate(Nanos(millisecond * 1_000_000))).last();
        assert!(idle < Some(10), "an idle gauge falls to nothing: {idle:?}");
    }
}
