//! Filters: one sample out for each that comes in, or two, or four.

use alloc::vec;
use alloc::vec::Vec;

use synth::{Draft, Imm32, Label, Target, Template};

use crate::routine::{Desk, Routine, VECTOR_BYTES, Way};
use crate::template::{
    Add0, Add1, Add2, Add3, Begin0, Begin1, Begin2, Begin3, Next, Round0, Round1, Round2, Round3, Samples, Silent0,
    Silent1, Silent2, Silent3, Store1, Store2, Store4,
};

/// Why there can be no such filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// No taps, more than [`TAPS_MAX`] for a phase, or not a multiple of the phases.
    Taps,
    /// More phases than four, or three; a shift above 15.
    Shape,
    /// Taps of a phase whose absolute values add up to more than 65,535 could overflow a sum of 32 bits; so could -32,768.
    Loud,
}

/// Most taps of a phase.
pub const TAPS_MAX: usize = 1024;
/// Samples of a vector: a synthesized loop does so many at a time.
const STRIDE: usize = VECTOR_BYTES / 2;
/// Samples that are filtered at once.
const BLOCK: usize = 256;
/// Blocks below this are not worth a vector.
const FEW: usize = 6;

/// A filter of `phases` outputs for each input: `out[phases n + p] = Σ taps[phases k + p] × in[n − k]`, divided by 2^shift, rounded and
/// saturated. With one phase it is an ordinary FIR filter, with four the interpolator of a CD player with 4:1 oversampling.
#[derive(Debug)]
pub struct Polyphase {
    phases: usize,
    shift: u32,
    /// By phase; the newest sample's tap is last, and the number is even.
    taps: Vec<Vec<i16>>,
    /// The samples before the block, then the block.
    window: Vec<i16>,
    /// What a synthesized loop wrote, which may be more than was asked for.
    made: Vec<i16>,
    routine: Option<Routine>,
}

impl Polyphase {
    /// A filter, synthesized if that can be.
    ///
    /// # Errors
    /// What cannot be.
    pub fn new(taps: &[i16], phases: usize, shift: u32) -> Result<Polyphase, Refused> {
        Polyphase::in_way(taps, phases, shift, Way::Synthesized)
    }

    /// A filter whose inner loop runs in this way; see [`Polyphase::way`] for what became of it.
    ///
    /// # Errors
    /// What cannot be.
    pub fn in_way(taps: &[i16], phases: usize, shift: u32, way: Way) -> Result<Polyphase, Refused> {
        if ![1, 2, 4].contains(&phases) || shift > 15 {
            return Err(Refused::Shape);
        }
        let count = taps.len() / phases;
        if count == 0 || count > TAPS_MAX || !taps.len().is_multiple_of(phases) {
            return Err(Refused::Taps);
        }
        let by_phase = (0..phases).map(|phase| reversed(taps.iter().skip(phase).step_by(phases).copied().collect()));
        let taps: Vec<Vec<i16>> = by_phase.collect();
        if taps.iter().any(|taps| is_loud(taps)) {
            return Err(Refused::Loud);
        }
        let routine = if way == Way::Synthesized { synthesize(&taps, shift) } else { None };
        let window = vec![0; taps[0].len() - 1 + BLOCK];
        Ok(Polyphase { phases, shift, taps, window, made: vec![0; BLOCK * phases], routine })
    }

    pub fn way(&self) -> Way {
        if self.routine.is_some() { Way::Synthesized } else { Way::Compiled }
    }

    pub fn phases(&self) -> usize {
        self.phases
    }

    /// Filters; `output` has [`Polyphase::phases`] times as many samples.
    ///
    /// # Panics
    /// When it has another number.
    pub fn process(&mut self, input: &[i16], output: &mut [i16]) {
        assert_eq!(input.len() * self.phases, output.len(), "an output of another length");
        for (input, output) in input.chunks(BLOCK).zip(output.chunks_mut(BLOCK * self.phases)) {
            let before = self.window.len() - BLOCK;
            self.window[before..before + input.len()].copy_from_slice(input);
            match &self.routine {
                Some(routine) if input.len() >= FEW => run(routine, &self.window, &mut self.made, input.len(), output),
                _ => compiled(&self.taps, self.shift, &self.window, output),
            }
            self.window.copy_within(input.len()..input.len() + before, 0);
        }
    }
}

/// With the newest sample's tap last, and an even number of them.
fn reversed(mut taps: Vec<i16>) -> Vec<i16> {
    if !taps.len().is_multiple_of(2) {
        taps.push(0);
    }
    taps.reverse();
    taps
}

pub(crate) fn is_loud(taps: &[i16]) -> bool {
    taps.contains(&i16::MIN) || taps.iter().map(|tap| u64::from(tap.unsigned_abs())).sum::<u64>() > 65_535
}

/// The same in Rust: what the synthesized loops must equal.
fn compiled(taps: &[Vec<i16>], shift: u32, window: &[i16], output: &mut [i16]) {
    let half = 1 << shift >> 1;
    for (at, frame) in output.chunks_exact_mut(taps.len()).enumerate() {
        for (out, taps) in frame.iter_mut().zip(taps) {
            let sum = dot(taps, &window[at..at + taps.len()]) + half;
            *out = (sum >> shift).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        }
    }
}

/// Not inlined: alone the compiler makes vectors of it.
#[inline(never)]
fn dot(taps: &[i16], samples: &[i16]) -> i32 {
    taps.iter().zip(samples).map(|(tap, sample)| i32::from(*tap) * i32::from(*sample)).sum()
}

/// Runs whole vectors: straight into the output as far as it goes, the rest by way of `made`.
fn run(routine: &Routine, window: &[i16], made: &mut [i16], count: usize, output: &mut [i16]) {
    let phases = output.len() / count;
    let whole = count / STRIDE * STRIDE;
    // SAFETY: 1. the entry is a finished routine of C's calling convention that does what `synthesize` says. 2. It reads
    // `count` rounded up to a stride, and the taps before: the window has room for a whole block and stays. 3. It writes `phases`
    // times as many samples: `output` has `whole` times `phases` of them, `made` a block's.
    let call = |to: &mut [i16], from: usize, count: usize| unsafe {
        let code: extern "C" fn(*mut i16, *const i16, usize) = core::mem::transmute(routine.entry());
        code(to.as_mut_ptr(), window[from..].as_ptr(), count);
    };
    if whole > 0 {
        call(output, 0, whole);
    }
    if whole < count {
        call(made, whole, STRIDE);
        let rest = (count - whole) * phases;
        output[whole * phases..].copy_from_slice(&made[..rest]);
    }
}

const AGAIN: Label = Label(0);

/// The bytes of code that two taps of a phase can take, and those that all else can.
const PAIR_BYTES: usize = 48;
const FRAME_BYTES: usize = 1024;

/// One template for each phase: each has registers of its own.
type OfPhase = [fn() -> Template; 4];
const BEGIN: OfPhase = [Begin0::template, Begin1::template, Begin2::template, Begin3::template];
const ADD: OfPhase = [Add0::template, Add1::template, Add2::template, Add3::template];
const SILENT: OfPhase = [Silent0::template, Silent1::template, Silent2::template, Silent3::template];
const ROUND: OfPhase = [Round0::template, Round1::template, Round2::template, Round3::template];

/// The loop for these taps: for each 16 samples, two taps of all phases at a time. Taps that are zero in pairs have no code; a phase
/// that only repeats the sample has one pair.
fn synthesize(taps: &[Vec<i16>], shift: u32) -> Option<Routine> {
    let pairs = taps[0].len() / 2;
    let mut desk = Desk::new(2 + pairs * taps.len(), pairs * taps.len() * PAIR_BYTES + FRAME_BYTES)?;
    let (half, shift) = (desk.constant((1i32 << shift >> 1).to_le_bytes()), desk.count(shift));
    let mut draft = Draft::new();
    draft.place(AGAIN);
    let mut has_begun = [false; 4];
    for pair in 0..pairs {
        let of_phase = |phase: usize| [taps[phase][2 * pair], taps[phase][2 * pair + 1]];
        let heard: Vec<usize> = (0..taps.len()).filter(|phase| of_phase(*phase) != [0, 0]).collect();
        if heard.is_empty() {
            continue;
        }
        let at = pair as u32 * 4;
        Samples { at: Imm32(at), later: Imm32(at + 2) }.append_to(&mut draft);
        for phase in heard {
            let [low, high] = of_phase(phase);
            let sum = if has_begun[phase] { ADD } else { BEGIN };
            draft.append(&sum[phase](), &[desk.pair(low, high).into()]);
            has_begun[phase] = true;
        }
    }
    for phase in 0..taps.len() {
        if !has_begun[phase] {
            draft.append(&SILENT[phase](), &[]);
        }
        draft.append(&ROUND[phase](), &[half.into(), shift.into()]);
    }
    match taps.len() {
        1 => Store1 {}.append_to(&mut draft),
        2 => Store2 {}.append_to(&mut draft),
        _ => Store4 {}.append_to(&mut draft),
    }
    Next { again: Target::Label(AGAIN) }.append_to(&mut draft);
    desk.publish(draft)
}
