//! From one rate to another, which may change while it runs.

use alloc::vec::Vec;

use crate::design::{cosine, sine};

/// A resampler: for each sample out it reads the signal at a place between samples, by the nearest of 512 filters of 16 taps. The
/// filter changes with each sample, so no code could be written for it: it is compiled.
#[derive(Debug)]
pub struct Resampler {
    /// By phase, the oldest sample's tap first.
    filters: Vec<[i16; TAPS]>,
    window: [i16; 2 * TAPS],
    /// Where the newest sample lies; the window is written twice, so that sixteen in a row can always be read.
    newest: usize,
    /// How far the next sample out is behind the newest one in, in 2⁻⁴⁸.
    place: u64,
    step: u64,
}

const TAPS: usize = 16;
const PHASE_BITS: u32 = 9;
const ONE: u64 = 1 << 48;
const SHIFT: u32 = 14;

impl Resampler {
    /// A resampler that takes `step` × 2⁻⁴⁸ samples for each that it makes; 0 is taken for the least. Frequencies above half of the
    /// slower rate are left out.
    pub fn new(step: u64) -> Resampler {
        let cutoff = (0.47 * (ONE as f64 / step.max(1) as f64)).min(0.47);
        let filters = (0..1 << PHASE_BITS).map(|phase| filter(f64::from(phase) / f64::from(1 << PHASE_BITS), cutoff));
        Resampler { filters: filters.collect(), window: [0; 2 * TAPS], newest: 0, place: ONE, step: step.max(1) }
    }

    /// The step of a pair of rates.
    pub fn step_of(from: u32, to: u32) -> u64 {
        ((u128::from(from) << 48) / u128::from(to.max(1))) as u64
    }

    /// From the next sample on.
    pub fn set_step(&mut self, step: u64) {
        self.step = step.max(1);
    }

    /// Makes samples until the output is full or the input used up: samples read, samples made.
    pub fn process(&mut self, input: &[i16], output: &mut [i16]) -> (usize, usize) {
        let mut input_left = input.iter();
        for (made, out) in output.iter_mut().enumerate() {
            while self.place >= ONE {
                let Some(sample) = input_left.next() else { return (input.len(), made) };
                self.newest = (self.newest + 1) % TAPS;
                (self.window[self.newest], self.window[self.newest + TAPS]) = (*sample, *sample);
                self.place -= ONE;
            }
            *out = self.read();
            self.place += self.step;
        }
        (input.len() - input_left.len(), output.len())
    }

    fn read(&self) -> i16 {
        let taps = &self.filters[(self.place >> (48 - PHASE_BITS)) as usize];
        let samples = &self.window[self.newest + 1..][..TAPS];
        let products = taps.iter().zip(samples).map(|(tap, sample)| i32::from(*tap) * i32::from(*sample));
        let sum = products.sum::<i32>() + (1 << (SHIFT - 1));
        (sum >> SHIFT).clamp(i16::MIN.into(), i16::MAX.into()) as i16
    }
}

/// The low pass that reads a signal `part` of a sample before its eighth newest.
fn filter(part: f64, cutoff: f64) -> [i16; TAPS] {
    let mut taps = [0.0; TAPS];
    for (number, tap) in taps.iter_mut().enumerate() {
        let at = number as f64 - (TAPS / 2 - 1) as f64 - part;
        let ideal = if at.abs() < 1e-9 { 2.0 * cutoff } else { sine(cutoff * at) / (core::f64::consts::PI * at) };
        let place = 0.5 + at / TAPS as f64;
        *tap = ideal * (0.42 - 0.5 * cosine(place) + 0.08 * cosine(2.0 * place));
    }
    let sum: f64 = taps.iter().sum();
    let mut fixed: [i16; TAPS] = [0; TAPS];
    let scaled = taps.map(|tap| tap / sum);
    fixed.copy_from_slice(&crate::design::fixed(&scaled, SHIFT));
    let missing: i32 = (1 << SHIFT) - fixed.iter().map(|tap| i32::from(*tap)).sum::<i32>();
    fixed[TAPS / 2 - 1 + usize::from(part > 0.5)] += missing as i16;
    fixed
}
