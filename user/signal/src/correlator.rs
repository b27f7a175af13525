//! How alike signals are.

use alloc::vec::Vec;

use crate::polyphase::{Polyphase, Refused};
use crate::routine::Way;

/// Slides a pattern over a signal: `out[n] = Σ pattern[k] × in[n − length + 1 + k]`, divided by 2^shift, rounded and saturated. That is the
/// filter whose taps are the pattern backwards, so its loop is synthesized as a filter's is.
#[derive(Debug)]
pub struct Correlator(Polyphase);

impl Correlator {
    /// # Errors
    /// What cannot be: see [`Refused`].
    pub fn new(pattern: &[i16], shift: u32) -> Result<Correlator, Refused> {
        Correlator::in_way(pattern, shift, Way::Synthesized)
    }

    /// # Errors
    /// As [`Correlator::new`].
    pub fn in_way(pattern: &[i16], shift: u32, way: Way) -> Result<Correlator, Refused> {
        let taps: Vec<i16> = pattern.iter().rev().copied().collect();
        Polyphase::in_way(&taps, 1, shift, way).map(Correlator)
    }

    pub fn way(&self) -> Way {
        self.0.way()
    }

    /// # Panics
    /// When the output is not as long as the input.
    pub fn process(&mut self, input: &[i16], output: &mut [i16]) {
        self.0.process(input, output);
    }
}

/// How alike a signal is to itself `lag` samples before, for each lag of a range: `Σ signal[n] × signal[n − lag]`. Nothing in it is
/// constant, so it is compiled.
pub fn autocorrelation(signal: &[i32], lags: core::ops::Range<usize>) -> Vec<i64> {
    let of_lag = |lag: usize| {
        let later = signal.get(lag..).unwrap_or(&[]);
        later.iter().zip(signal).map(|(now, before)| i64::from(*now) * i64::from(*before)).sum()
    };
    lags.map(of_lag).collect()
}
