//! Writes a stream's routines: all that is asked about the stream is asked here, once.

use alloc::vec::Vec;

use synth::{Abs32, Draft, FillError, Imm32, Label, Target};

use crate::region::CODE_BYTES;
use crate::stream::{Buffering, Direction};
use crate::template::{CopyAndReturn, Get, GoSlow, Put, ReturnCharacter, TakeBytes, TakeRoom, WhenFull, WhenLine};

/// What is folded into the routines.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub direction: Direction,
    pub buffering: Buffering,
    /// Where the code will be.
    pub code: usize,
    /// Offset of the index word in the stream, and the end of the buffer it counts towards.
    pub index: usize,
    pub end: usize,
    /// Addresses of the words that hold the addresses of the Rust paths.
    pub slow_character: usize,
    pub slow_run: usize,
}

/// The finished code and where its two entries are: one character, and a run of bytes.
#[derive(Debug)]
pub struct Made {
    pub bytes: Vec<u8>,
    pub character: usize,
    pub run: usize,
}

const FULL: Label = Label(0);

/// Makes `put` and `write`, or `get` and `read`.
///
/// # Errors
/// An address that does not fit: the region is not in the low 2 GB.
pub fn make(facts: &Facts) -> Result<Made, FillError> {
    let character = match (facts.direction, facts.buffering) {
        (_, Buffering::None) => GoSlow { slow: Abs32(facts.slow_character as u64) }.draft(),
        (Direction::Out, buffering) => put(facts, buffering),
        (Direction::In, _) => get(facts),
    };
    let mut bytes = character.bind(facts.code as u64)?.bytes;
    let run = facts.code + bytes.len().next_multiple_of(16);
    bytes.resize(run - facts.code, 0xCC);
    let code = match facts.buffering {
        Buffering::Full => copying_run(facts),
        // Lines are searched, and unbuffered runs go out, in Rust: the system call weighs more than the questions.
        Buffering::Line | Buffering::None => GoSlow { slow: Abs32(facts.slow_run as u64) }.draft(),
    };
    bytes.extend(code.bind(run as u64)?.bytes);
    debug_assert!(bytes.len() <= CODE_BYTES);
    Ok(Made { bytes, character: facts.code, run })
}

fn put(facts: &Facts, buffering: Buffering) -> Draft {
    let mut draft = Draft::new();
    Put { index: Imm32(facts.index as u32), end: Abs32(facts.end as u64) }.append_to(&mut draft);
    WhenFull { full: Target::Label(FULL) }.append_to(&mut draft);
    if buffering == Buffering::Line {
        WhenLine { full: Target::Label(FULL) }.append_to(&mut draft);
    }
    ReturnCharacter {}.append_to(&mut draft);
    draft.place(FULL);
    GoSlow { slow: Abs32(facts.slow_character as u64) }.append_to(&mut draft);
    draft
}

fn get(facts: &Facts) -> Draft {
    let mut draft = Draft::new();
    Get { end: Abs32(facts.end as u64), fill: Target::Label(FULL) }.append_to(&mut draft);
    draft.place(FULL);
    GoSlow { slow: Abs32(facts.slow_character as u64) }.append_to(&mut draft);
    draft
}

fn copying_run(facts: &Facts) -> Draft {
    let mut draft = Draft::new();
    let (end, slow) = (Abs32(facts.end as u64), Target::Label(FULL));
    match facts.direction {
        Direction::Out => TakeRoom { end, slow }.append_to(&mut draft),
        Direction::In => TakeBytes { end, slow }.append_to(&mut draft),
    }
    CopyAndReturn {}.append_to(&mut draft);
    draft.place(FULL);
    GoSlow { slow: Abs32(facts.slow_run as u64) }.append_to(&mut draft);
    draft
}
