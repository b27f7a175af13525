//! Writes a stream's routines: all that is asked about the stream is asked here, once.

use alloc::vec::Vec;

use synth::{Abs32, Draft, FillError, Imm32, Label, Target};

use crate::region::CODE_BYTES;
use crate::stream::{Buffering, Direction};
use crate::template::{
    CopyAndReturn, Get, Put, ReturnCharacter, SlowFirst, SlowSecond, SlowThird, TakeBytes, TakeRoom, WhenFull, WhenLine,
};

/// What is folded into the routines.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub direction: Direction,
    pub buffering: Buffering,
    /// Where the code will be.
    pub code: usize,
    /// Where the stream is.
    pub stream: usize,
    /// Address of the index word, and the end of the buffer it counts towards.
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
        (Direction::Out, Buffering::None) => slow_second(facts),
        (Direction::Out, buffering) => put(facts, buffering),
        (Direction::In, Buffering::None) => slow_first(facts),
        (Direction::In, _) => get(facts),
    };
    let mut bytes = character.bind(facts.code as u64)?.bytes;
    let run = facts.code + bytes.len().next_multiple_of(16);
    bytes.resize(run - facts.code, 0xCC);
    let code = match facts.buffering {
        Buffering::Full => copying_run(facts),
        // Lines are searched, and unbuffered runs go out, in Rust: the system call weighs more than the questions.
        Buffering::Line | Buffering::None => slow_third(facts),
    };
    bytes.extend(code.bind(run as u64)?.bytes);
    debug_assert!(bytes.len() <= CODE_BYTES);
    Ok(Made { bytes, character: facts.code, run })
}

fn put(facts: &Facts, buffering: Buffering) -> Draft {
    let mut draft = Draft::new();
    Put { index: Abs32(facts.index as u64), end: Abs32(facts.end as u64) }.append_to(&mut draft);
    WhenFull { full: Target::Label(FULL) }.append_to(&mut draft);
    if buffering == Buffering::Line {
        WhenLine { full: Target::Label(FULL) }.append_to(&mut draft);
    }
    ReturnCharacter {}.append_to(&mut draft);
    draft.place(FULL);
    let slow = Abs32(facts.slow_character as u64);
    SlowSecond { stream: Imm32(facts.stream as u32), slow }.append_to(&mut draft);
    draft
}

fn get(facts: &Facts) -> Draft {
    let mut draft = Draft::new();
    let (index, end) = (Abs32(facts.index as u64), Abs32(facts.end as u64));
    Get { index, end, fill: Target::Label(FULL) }.append_to(&mut draft);
    draft.place(FULL);
    let slow = Abs32(facts.slow_character as u64);
    SlowFirst { stream: Imm32(facts.stream as u32), slow }.append_to(&mut draft);
    draft
}

fn copying_run(facts: &Facts) -> Draft {
    let mut draft = Draft::new();
    let (index, end, slow) = (Abs32(facts.index as u64), Abs32(facts.end as u64), Target::Label(FULL));
    match facts.direction {
        Direction::Out => TakeRoom { index, end, slow }.append_to(&mut draft),
        Direction::In => TakeBytes { index, end, slow }.append_to(&mut draft),
    }
    CopyAndReturn {}.append_to(&mut draft);
    draft.place(FULL);
    append_third(facts, &mut draft);
    draft
}

fn slow_first(facts: &Facts) -> Draft {
    let slow = Abs32(facts.slow_character as u64);
    SlowFirst { stream: Imm32(facts.stream as u32), slow }.draft()
}

fn slow_second(facts: &Facts) -> Draft {
    let slow = Abs32(facts.slow_character as u64);
    SlowSecond { stream: Imm32(facts.stream as u32), slow }.draft()
}

fn slow_third(facts: &Facts) -> Draft {
    let mut draft = Draft::new();
    append_third(facts, &mut draft);
    draft
}

fn append_third(facts: &Facts, draft: &mut Draft) {
    SlowThird { stream: Imm32(facts.stream as u32), slow: Abs32(facts.slow_run as u64) }.append_to(draft);
}
