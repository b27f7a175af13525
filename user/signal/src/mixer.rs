//! Signals added up, each with its gain.

use alloc::vec::Vec;

use synth::{Draft, Imm32, Label, Target};

use crate::polyphase::Refused;
use crate::routine::{Desk, Routine, VECTOR_BYTES, Way};
use crate::template::{MixBegin, MixEnd, MixFirst, MixInputs, MixMore};

/// A mixer of fixed gains: `out[n] = Σ gain × in[n]`, divided by 2^shift, rounded and saturated.
#[derive(Debug)]
pub struct Mixer {
    gains: Vec<i16>,
    shift: u32,
    routine: Option<Routine>,
}

/// Most signals.
pub const INPUTS_MAX: usize = 64;
const STRIDE: usize = VECTOR_BYTES / 2;
const AGAIN: Label = Label(0);
/// The bytes of code that two inputs can take, and those that all else can.
const PAIR_BYTES: usize = 96;
const FRAME_BYTES: usize = 256;

impl Mixer {
    /// A mixer for so many signals as there are gains, synthesized if that can be.
    ///
    /// # Errors
    /// What cannot be.
    pub fn new(gains: &[i16], shift: u32) -> Result<Mixer, Refused> {
        Mixer::in_way(gains, shift, Way::Synthesized)
    }

    /// A mixer whose inner loop runs in this way.
    ///
    /// # Errors
    /// What cannot be.
    pub fn in_way(gains: &[i16], shift: u32, way: Way) -> Result<Mixer, Refused> {
        if gains.is_empty() || gains.len() > INPUTS_MAX {
            return Err(Refused::Taps);
        }
        if shift > 15 {
            return Err(Refused::Shape);
        }
        if crate::polyphase::is_loud(gains) {
            return Err(Refused::Loud);
        }
        let routine = if way == Way::Synthesized { synthesize(gains, shift) } else { None };
        Ok(Mixer { gains: gains.into(), shift, routine })
    }

    pub fn way(&self) -> Way {
        if self.routine.is_some() { Way::Synthesized } else { Way::Compiled }
    }

    /// How many signals it mixes.
    pub fn inputs(&self) -> usize {
        self.gains.len()
    }

    /// Mixes; all inputs are as long as the output.
    ///
    /// # Panics
    /// When one is not, or there are not as many as gains.
    pub fn process(&self, inputs: &[&[i16]], output: &mut [i16]) {
        assert_eq!(inputs.len(), self.gains.len(), "inputs without a gain, or gains without an input");
        assert!(inputs.iter().all(|input| input.len() == output.len()), "an input of another length");
        let whole = output.len() / STRIDE * STRIDE;
        let begun = match &self.routine {
            Some(routine) if whole > 0 => {
                let mut places = [core::ptr::null(); INPUTS_MAX];
                places.iter_mut().zip(inputs).for_each(|(place, input)| *place = input.as_ptr());
                // SAFETY: 1. the entry is a finished routine of C's calling convention that does what `synthesize` says. 2. It
                // reads and writes `whole` samples, which all have.
                unsafe {
                    let code: extern "C" fn(*mut i16, *const *const i16, usize) = core::mem::transmute(routine.entry());
                    code(output.as_mut_ptr(), places.as_ptr(), whole * 2);
                }
                whole
            }
            _ => 0,
        };
        self.compiled(inputs, output, begun);
    }

    /// The same in Rust, from sample `from` on: what the synthesized loop must equal.
    fn compiled(&self, inputs: &[&[i16]], output: &mut [i16], from: usize) {
        let half = 1 << self.shift >> 1;
        for (at, out) in output.iter_mut().enumerate().skip(from) {
            let products = self.gains.iter().zip(inputs).map(|(gain, input)| i32::from(*gain) * i32::from(input[at]));
            let sum = products.sum::<i32>() + half;
            *out = (sum >> self.shift).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        }
    }
}

/// The loop for these gains: inputs whose gain is zero are not even read.
fn synthesize(gains: &[i16], shift: u32) -> Option<Routine> {
    let heard: Vec<usize> = (0..gains.len()).filter(|input| gains[*input] != 0).collect();
    if heard.is_empty() {
        return None;
    }
    let mut desk = Desk::new(2 + heard.len(), heard.len() * PAIR_BYTES + FRAME_BYTES)?;
    let (half, shift) = (desk.constant((1i32 << shift >> 1).to_le_bytes()), desk.count(shift));
    let mut draft = Draft::new();
    MixBegin {}.append_to(&mut draft);
    draft.place(AGAIN);
    for (number, pair) in heard.chunks(2).enumerate() {
        // One that is left over is its own neighbour, which does not sound.
        let (first, second) = (pair[0], *pair.last()?);
        let gains = desk.pair(gains[first], if pair.len() == 2 { gains[second] } else { 0 });
        let place = |input: usize| Imm32(input as u32 * 8);
        MixInputs { first: place(first), second: place(second) }.append_to(&mut draft);
        match number {
            0 => MixFirst { gains }.append_to(&mut draft),
            _ => MixMore { gains }.append_to(&mut draft),
        }
    }
    MixEnd { half, shift, again: Target::Label(AGAIN) }.append_to(&mut draft);
    desk.publish(draft)
}
