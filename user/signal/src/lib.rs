//! Signal processing for ordinary Linux programs (S-113; thesis 7.4.1: "To achieve the high performance necessary for real-time
//! operation, I use fixed-point arithmetic for the calculations").
//!
//! - [`Polyphase`]: a filter, or one that makes two or four samples of each (the papers' 4:1 interpolator). [`Correlator`] slides a
//!   pattern over a signal. [`Mixer`] adds signals, each with its gain. What they are made of is constant, so their inner loops are
//!   *synthesized*: coefficients stand beside the code, those that are zero have none, and nothing is counted that was known before.
//! - [`Fft`]: powers of two, in floating point or in 16 bits. [`Resampler`]: any ratio, which may change with every block.
//!   [`Reverb`]: a room. Their coefficients change from sample to sample, so they are compiled.
//! - [`design`]: coefficients, from sines that are the same on every machine.
//!
//! Samples are `i16`, coefficients `i16` with a shift. Everything in fixed point is exact: a synthesized loop, its compiled twin and
//! any processor give the same bits. No function keeps anything but in the value that it is called on, so all are reentrant.
//!
//! [`Way`] says which loop runs: where the processor has no AVX2, or the system refuses code, it is the compiled one. What is
//! faster was measured: docs/adr/0079-signals.md.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

#[cfg(feature = "c")]
mod c;
mod correlator;
pub mod design;
mod fft;
mod mixer;
mod polyphase;
mod resampler;
mod reverb;
mod routine;
mod template;

pub use correlator::{Correlator, autocorrelation};
pub use fft::{Fft, Size};
pub use mixer::Mixer;
pub use polyphase::{Polyphase, Refused};
pub use resampler::Resampler;
pub use reverb::{Reverb, Room};
pub use routine::Way;
