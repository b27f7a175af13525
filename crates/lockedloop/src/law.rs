//! A filter and a law by themselves. Where nothing leads back from what is set to what is measured (a thread's rate of I/O for each
//! second that it *runs* is the same with a long quantum and a short one) a loop needs no more.

/// A low-pass filter: each step goes 1/`N` of the way.
#[derive(Clone, Copy, Debug)]
pub struct LowPass<const N: u64>;

impl<const N: u64> LowPass<N> {
    /// The next value of a filter that stands at `value`. It stops at most `N - 1` before where it is led; all is below
    /// 2⁶⁴ / `N`.
    #[inline]
    pub const fn step(value: u64, toward: u64) -> u64 {
        ((N - 1) * value + toward) / N
    }
}

/// A straight line: what a measured frequency earns, from `least` to `most`.
#[derive(Clone, Copy, Debug)]
pub struct Straight<const LEAST: u64, const MOST: u64>;

impl<const LEAST: u64, const MOST: u64> Straight<LEAST, MOST> {
    /// The weight of one event in a tick with which `full` events in `ticks` earn the most.
    #[inline]
    pub const fn weight(full: u64, ticks: u64) -> u64 {
        (MOST - LEAST) / full * ticks
    }

    /// What `events` in `ticks` earn.
    #[inline]
    pub fn earned(events: u64, ticks: u64, weight: u64) -> u64 {
        let earned = events.wrapping_mul(weight) / ticks.max(1);
        earned.saturating_add(LEAST).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_stops_short_of_its_goal_by_less_than_its_width() {
        let settle = |mut value, toward| {
            for _ in 0..400 {
                value = LowPass::<8>::step(value, toward);
            }
            value
        };
        assert_eq!(settle(1_000_000, 0), 0);
        assert!((999_993..=1_000_000).contains(&settle(0, 1_000_000)));
    }

    #[test]
    fn the_line_has_two_ends() {
        type Line = Straight<200, 1000>;
        let weight = Line::weight(20, 1000);
        assert_eq!([0, 10, 20, 1 << 20].map(|events| Line::earned(events, 1000, weight)), [200, 600, 1000, 1000]);
        assert!((200..=1000).contains(&Line::earned(u64::MAX, 0, weight)));
    }
}
