//! Frequencies, intervals and parts of a whole, in fixed point.

/// Fraction bits of an [`Interval`]; those of a [`Frequency`] are the rest of 64, so that one is the reciprocal of the other.
const INTERVAL_BITS: u32 = 16;
const FREQUENCY_BITS: u32 = 64 - INTERVAL_BITS;

/// Events in 2⁴⁸ ticks. With ticks of a nanosecond 44,100 Hz is exact to 10⁻¹⁰, and 1 Hz to 4 millionths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Frequency(pub u64);

/// Ticks for each event, in 65,536ths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Interval(pub u64);

/// A signed part of a whole, in units of 2⁻³²: an error of frequency relative to the frequency, one of phase in cycles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Part(pub i64);

/// Events made for events that come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ratio {
    outputs: u32,
    inputs: u32,
}

/// 2⁶⁴ / `value`, as large as a word holds.
fn reciprocal(value: u64) -> u64 {
    let value = value.max(1);
    (value.wrapping_neg() / value).saturating_add(1)
}

fn clamp_u64(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

impl Frequency {
    /// So many events in so many ticks; never zero.
    pub fn of(events: u64, ticks: u64) -> Frequency {
        Frequency(clamp_u64((u128::from(events) << FREQUENCY_BITS) / u128::from(ticks.max(1))).max(1))
    }

    pub fn interval(self) -> Interval {
        Interval(reciprocal(self.0))
    }

    /// Events in `ticks`, rounded down.
    pub fn events_in(self, ticks: u64) -> u64 {
        clamp_u64((u128::from(self.0) * u128::from(ticks)) >> FREQUENCY_BITS)
    }

    /// Cycles in `ticks`, in units of 2⁻³²; wraps around as phases do.
    pub(crate) fn phase_in(self, ticks: u64) -> u64 {
        ((u128::from(self.0) * u128::from(ticks)) >> (FREQUENCY_BITS - Part::BITS)) as u64
    }

    pub fn times(self, ratio: Ratio) -> Frequency {
        let outputs = u128::from(self.0) * u128::from(ratio.outputs);
        Frequency(clamp_u64(outputs / u128::from(ratio.inputs)).max(1))
    }

    /// The frequency changed by a part of itself.
    #[must_use]
    pub fn changed(self, by: Part) -> Frequency {
        let whole = (1i128 << Part::BITS) + i128::from(by.0);
        Frequency(clamp_u64((u128::from(self.0) * whole.max(0) as u128) >> Part::BITS).max(1))
    }

    /// How much larger than `own` this is, as a part of `own`.
    pub fn beyond(self, own: Frequency) -> Part {
        Part::of(i128::from(self.0) - i128::from(own.0), own.0)
    }
}

impl Interval {
    pub const fn of_ticks(ticks: u64) -> Interval {
        Interval(ticks.saturating_mul(1 << INTERVAL_BITS))
    }

    /// Whole ticks, rounded.
    pub fn ticks(self) -> u64 {
        (self.0 >> INTERVAL_BITS) + (self.0 >> (INTERVAL_BITS - 1) & 1)
    }

    pub fn frequency(self) -> Frequency {
        Frequency(reciprocal(self.0))
    }
}

impl Part {
    pub const BITS: u32 = 32;
    pub const WHOLE: Part = Part(1 << Part::BITS);

    /// `part / whole`, at most 2³¹ wholes.
    pub fn of(part: i128, whole: u64) -> Part {
        let scaled = (part << Part::BITS) / i128::from(whole.max(1));
        Part(scaled.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    pub const fn millionths(ppm: i64) -> Part {
        Part((ppm << Part::BITS) / 1_000_000)
    }

    /// In millionths, rounded down.
    pub fn ppm(self) -> i64 {
        ((i128::from(self.0) * 1_000_000) >> Part::BITS) as i64
    }

    #[must_use]
    pub fn abs(self) -> Part {
        Part(self.0.saturating_abs())
    }

    /// Divided by 2^`shift`, rounded to nearest: a part that never reaches zero would drift.
    #[must_use]
    pub(crate) fn shifted(self, shift: u32) -> Part {
        match shift {
            0 => self,
            _ => Part((self.0 + (1 << (shift - 1))) >> shift),
        }
    }
}

impl core::ops::Add for Part {
    type Output = Part;

    fn add(self, other: Part) -> Part {
        Part(self.0.saturating_add(other.0))
    }
}

impl Ratio {
    /// # Panics
    /// When one of them is zero or above 32,767.
    pub const fn of(outputs: u32, inputs: u32) -> Ratio {
        assert!(outputs > 0 && inputs > 0 && outputs < 1 << 15 && inputs < 1 << 15);
        Ratio { outputs, inputs }
    }

    pub const fn outputs(self) -> u32 {
        self.outputs
    }

    pub const fn inputs(self) -> u32 {
        self.inputs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn frequencies_and_intervals_are_reciprocal() {
        for hertz in [10, 60, 75, 44_100, 48_000, 1_000_000] {
            let frequency = Frequency::of(hertz, SECOND);
            let interval = frequency.interval();
            assert!((SECOND / hertz).abs_diff(interval.ticks()) <= 1 + SECOND / hertz / 1_000_000);
            let error = interval.frequency().beyond(frequency);
            assert!(error.abs() < Part::millionths(1), "{hertz}: {error:?}");
            assert!((hertz - 1..=hertz).contains(&frequency.events_in(SECOND)));
        }
    }

    #[test]
    fn a_change_is_a_part_of_the_whole() {
        let frequency = Frequency::of(48_000, SECOND);
        for ppm in [-200_000, -200, 0, 200, 500_000] {
            let changed = frequency.changed(Part::millionths(ppm));
            assert!((changed.beyond(frequency).ppm() - ppm).abs() <= 1, "{ppm}");
        }
    }

    #[test]
    fn no_number_leaves_the_range() {
        assert_eq!(Frequency::of(0, 5).interval().ticks(), 1 << 48);
        assert!(Frequency::of(u64::MAX, 0).times(Ratio::of(32_767, 1)).0 == u64::MAX);
        assert_eq!(Frequency(5).changed(Part(i64::MIN)), Frequency(1));
        assert_eq!(Frequency(u64::MAX).beyond(Frequency(1)), Part(i64::MAX));
        assert_eq!(Part(i64::MIN).abs(), Part(i64::MAX));
    }
}
