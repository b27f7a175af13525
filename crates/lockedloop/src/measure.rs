//! What is measured: a frequency over a window of events, or each interval.

/// What a loop measures.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Ticks in which events are counted; 0: each interval by itself.
    window_ticks: u64,
    first: Option<u64>,
    last: u64,
    events: u64,
}

/// Events, and the ticks they took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Measured {
    pub events: u64,
    pub ticks: u64,
}

/// Measures frequency: events are counted until `window_ticks` have gone by. The window ends with an event, not with a tick, so that
/// no part of a cycle is lost. Noise of single events averages out, and the answer comes late.
pub fn by_frequency(window_ticks: u64) -> Measure {
    Measure { window_ticks, first: None, last: 0, events: 0 }
}

/// Measures the interval before each event. The answer comes at once, with all the noise of one event.
pub fn by_interval() -> Measure {
    by_frequency(0)
}

impl Measure {
    /// Ticks since the last event; `None`: this is the first.
    pub(crate) fn gap(&self, now: u64) -> Option<u64> {
        self.first.map(|_| now.wrapping_sub(self.last))
    }

    /// An event, which stands for `stands_for` if some before it were missed.
    pub(crate) fn event(&mut self, now: u64, stands_for: u64) -> Option<Measured> {
        self.last = now;
        let Some(first) = self.first else {
            self.first = Some(now);
            return None;
        };
        self.events += stands_for;
        let ticks = now.wrapping_sub(first);
        if ticks == 0 || ticks < self.window_ticks {
            return None;
        }
        let measured = Measured { events: self.events, ticks };
        (self.first, self.events) = (Some(now), 0);
        Some(measured)
    }

    /// Begins anew, with the next event or with one that came `at`.
    pub(crate) fn restart(&mut self, at: Option<u64>) {
        (self.first, self.events) = (at, 0);
        self.last = at.unwrap_or(self.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_with_an_event() {
        let mut measure = by_frequency(1000);
        let found: [_; 8] = core::array::from_fn(|event| measure.event(event as u64 * 300, 1));
        let window = Some(Measured { events: 4, ticks: 1200 });
        assert_eq!(found, [None, None, None, None, window, None, None, None]);
    }

    #[test]
    fn an_interval_is_measured_at_each_event() {
        let mut measure = by_interval();
        assert_eq!(measure.event(100, 1), None);
        assert_eq!(measure.event(130, 1), Some(Measured { events: 1, ticks: 30 }));
        assert_eq!(measure.event(190, 2), Some(Measured { events: 2, ticks: 60 }));
        assert_eq!(measure.event(190, 1), None);
    }
}
