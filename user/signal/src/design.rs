//! Sines, windows and filters. All are computed by the same additions and multiplications everywhere, so that what is made with them
//! is the same, bit for bit, on every machine.

use alloc::vec::Vec;
use core::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI, TAU};

/// The sine of `turns` whole turns, exact to 10⁻¹⁵.
pub fn sine(turns: f64) -> f64 {
    let turn = turns - floor(turns);
    let (sign, half) = if turn < 0.5 { (1.0, turn) } else { (-1.0, turn - 0.5) };
    let angle = (if half > 0.25 { 0.5 - half } else { half }) * TAU;
    sign * if angle > FRAC_PI_4 { cosine_series(FRAC_PI_2 - angle) } else { sine_series(angle) }
}

/// The cosine of so many turns.
pub fn cosine(turns: f64) -> f64 {
    sine(turns + 0.25)
}

fn floor(value: f64) -> f64 {
    let whole = value as i64 as f64;
    if whole > value { whole - 1.0 } else { whole }
}

/// Σ (−1)ᵏ xᵏ / …, from the smallest term on; |x| ≤ π / 4.
fn series(square: f64, first: f64, from: u32) -> f64 {
    let mut sum = 0.0;
    for step in (0..10).rev() {
        let divisor = f64::from((2 * step + from) * (2 * step + from + 1));
        sum = 1.0 - sum * square / divisor;
    }
    first * sum
}

fn sine_series(x: f64) -> f64 {
    series(x * x, x, 2)
}

fn cosine_series(x: f64) -> f64 {
    series(x * x, 1.0, 1)
}

/// A low pass as long as asked, by Blackman's window: `cutoff` is a part of the sampling rate, below 1/2. Its taps add up to one.
pub fn low_pass(taps: usize, cutoff: f64) -> Vec<f64> {
    let middle = (taps.max(1) - 1) as f64 / 2.0;
    let of_tap = |tap: usize| {
        let at = tap as f64 - middle;
        let ideal = if at == 0.0 { 2.0 * cutoff } else { sine(cutoff * at) / (PI * at) };
        let place = (tap as f64 + 0.5) / taps as f64;
        ideal * (0.42 - 0.5 * cosine(place) + 0.08 * cosine(2.0 * place))
    };
    let made: Vec<f64> = (0..taps).map(of_tap).collect();
    let sum: f64 = made.iter().sum();
    made.into_iter().map(|tap| tap / sum).collect()
}

/// In fixed point, with `shift` bits of fraction.
pub fn fixed(taps: &[f64], shift: u32) -> Vec<i16> {
    let whole = f64::from(1u32 << shift);
    let rounded = |tap: &f64| floor(tap * whole + 0.5).clamp(-32_767.0, 32_767.0) as i16;
    taps.iter().map(rounded).collect()
}

/// The shift of [`interpolator`]'s taps.
pub const INTERPOLATOR_SHIFT: u32 = 14;

/// Taps of an interpolator that makes `phases` samples of each, with `for_each` taps for each of them. Its first phase is the sample
/// itself: the low pass is zero at all other multiples of `phases`. Each phase adds up to exactly one, so that silence stays silent
/// and a constant constant.
pub fn interpolator(phases: usize, for_each: usize) -> Vec<i16> {
    let count = phases * for_each;
    // One tap more, so that the middle falls on a multiple of the phases; the last one is a zero of the sinc.
    let middle = phases * (for_each / 2);
    let of_tap = |tap: usize| {
        let at = tap as f64 - middle as f64;
        let part = at / phases as f64;
        let ideal = if tap == middle { 1.0 } else { sine(part / 2.0) / (PI * part) };
        let place = 0.5 + at / count as f64;
        ideal * (0.42 - 0.5 * cosine(place) + 0.08 * cosine(2.0 * place))
    };
    let mut taps: Vec<f64> = (0..count).map(of_tap).collect();
    for phase in 0..phases {
        let sum: f64 = taps.iter().skip(phase).step_by(phases).sum();
        taps.iter_mut().skip(phase).step_by(phases).for_each(|tap| *tap /= sum);
    }
    let mut taps = fixed(&taps, INTERPOLATOR_SHIFT);
    for phase in 0..phases {
        balance(&mut taps[phase..], phases);
    }
    taps
}

/// Lets every `step`-th tap add up to one, by the largest.
fn balance(taps: &mut [i16], step: usize) {
    let sum: i32 = taps.iter().step_by(step).map(|tap| i32::from(*tap)).sum();
    if let Some(largest) = taps.iter_mut().step_by(step).max_by_key(|tap| **tap) {
        *largest += ((1 << INTERPOLATOR_SHIFT) - sum) as i16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sines_are_those_of_the_c_library() {
        for step in -4000..4000 {
            let turns = f64::from(step) / 777.0;
            assert!((sine(turns) - (turns * TAU).sin()).abs() < 1e-13, "{turns}");
            assert!((cosine(turns) - (turns * TAU).cos()).abs() < 1e-13, "{turns}");
        }
    }

    #[test]
    fn an_interpolator_repeats_the_sample_and_keeps_a_constant() {
        for (phases, for_each) in [(2, 16), (4, 24), (4, 32)] {
            let taps = interpolator(phases, for_each);
            let first: Vec<i16> = taps.iter().step_by(phases).copied().filter(|tap| *tap != 0).collect();
            assert_eq!(first, [1 << INTERPOLATOR_SHIFT]);
            for phase in 0..phases {
                let sum: i32 = taps[phase..].iter().step_by(phases).map(|tap| i32::from(*tap)).sum();
                assert_eq!(sum, 1 << INTERPOLATOR_SHIFT);
            }
        }
    }
}
