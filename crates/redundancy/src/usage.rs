//! How often an object is read and written.

use crate::mutant;

/// After this many seconds an access counts half.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HalfLife(pub f32);

impl HalfLife {
    /// What is left of 1 after some seconds.
    pub fn left(self, seconds: f32) -> f32 {
        if mutant::is("usage.decay") { 1.0 } else { power_of_half(seconds / self.0) }
    }

    /// A count in accesses per second: a steady rate r holds the count at r · half-life / ln 2.
    pub fn rate(self, count: f32) -> f32 {
        count * core::f32::consts::LN_2 / self.0
    }
}

/// 2^-x for x ≥ 0, to 2 parts in 10,000. `core` has no `exp2`.
fn power_of_half(x: f32) -> f32 {
    if x >= 60.0 {
        return 0.0;
    }
    let x = x.max(0.0);
    let whole = x as u32;
    let part = x - whole as f32;
    // A cubic through 1 and 1/2 at the ends, so that the curve has no steps.
    let curve = 1.0 + part * (-0.691_42 + part * (0.230_56 - part * 0.039_14));
    curve / (1u64 << whole) as f32
}

/// Reads and writes of an object, by one node or by all: counts that decay.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Usage {
    reads: f32,
    writes: f32,
    /// When the counts were last decayed.
    at: f32,
}

impl Usage {
    /// The counts as they are at `now`.
    pub fn at(&self, now: f32, half_life: HalfLife) -> Usage {
        let left = half_life.left(now - self.at);
        Usage { reads: self.reads * left, writes: self.writes * left, at: now }
    }

    pub fn read(&mut self, times: f32, now: f32, half_life: HalfLife) {
        *self = self.at(now, half_life);
        self.reads += times;
    }

    pub fn write(&mut self, now: f32, half_life: HalfLife) {
        *self = self.at(now, half_life);
        self.writes += 1.0;
    }

    /// Reads per second, as of the last decay.
    pub fn reads_per_second(&self, half_life: HalfLife) -> f32 {
        half_life.rate(self.reads)
    }

    /// Writes per second, as of the last decay.
    pub fn writes_per_second(&self, half_life: HalfLife) -> f32 {
        half_life.rate(self.writes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_one_half_are_near() {
        for step in 0..4000 {
            let x = step as f32 / 100.0;
            let exact = 0.5f64.powf(f64::from(x));
            assert!((f64::from(power_of_half(x)) / exact - 1.0).abs() < 2e-4, "{x}");
        }
        assert_eq!(power_of_half(1e9), 0.0);
    }

    #[test]
    fn a_steady_rate_is_found_and_forgotten() {
        let half_life = HalfLife(1.0);
        let mut usage = Usage::default();
        for step in 0..2000 {
            usage.read(1.0, step as f32 * 0.01, half_life);
        }
        let found = usage.reads_per_second(half_life);
        assert!((98.0..102.0).contains(&found), "{found}");
        let later = usage.at(20.0 + 10.0, half_life).reads_per_second(half_life);
        assert!(later < 0.2, "{later}");
    }
}
