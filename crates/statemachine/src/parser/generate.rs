//! A parser's code.

use alloc::vec::Vec;

use synth::{Draft, FillError, Imm32, Label, Target};

use super::template::*;
use super::{BEGIN, CALL, DEEP, Fault, Grammar, LEAF, Level, OPERAND, Operators, Part, TRAILING};

/// What a parser's code returns; C's `struct` of two words.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Answer {
    words: u64,
    why: u64,
}

/// A parser's entry: tokens that end with [`super::END`], and room for as many words as there are tokens.
pub type Entry = unsafe extern "C" fn(tokens: *const u8, answer: *mut u32) -> Answer;

impl Answer {
    /// The parts, of the words that the parser wrote.
    ///
    /// # Errors
    /// Why the tokens are no expression, and the number of the token that shows it.
    pub fn parts(self, words: &[u32]) -> Result<Vec<Part>, (Fault, usize)> {
        if self.why != 0 {
            return Err((Fault::from_word(self.why as u32), self.words as usize));
        }
        let part = |word: &u32| Part { action: *word as u8, token: (*word >> 8) as usize };
        Ok(words.iter().take(self.words as usize).map(part).collect())
    }
}

/// Where the routines of a parser are.
struct Places {
    fail: u64,
    /// Those of the levels, and of operands.
    levels: Vec<u64>,
}

const AGAIN: Label = Label(0);
const OTHER: Label = Label(1);
const DONE: Label = Label(2);

/// The parser of a grammar, to run at `address`.
///
/// # Errors
/// The address is not one where jumps reach.
pub fn generate(grammar: &Grammar<'_>, address: u64) -> Result<Vec<u8>, FillError> {
    // Once to see how long the routines are, and once with their places. Which is which decides no length.
    let nowhere = Places { fail: address, levels: alloc::vec![address; grammar.levels.len() + 1] };
    let mut at = address;
    let mut starts = Vec::new();
    for draft in routines(grammar, &nowhere) {
        starts.push(at);
        at += draft.len() as u64;
    }
    let places = Places { fail: starts[1], levels: starts.split_off(2) };
    let mut code = Vec::new();
    for draft in routines(grammar, &places) {
        let here = address + code.len() as u64;
        code.extend(draft.bind(here)?.bytes);
    }
    Ok(code)
}

/// The entry, the end of a failure, the levels and operands.
fn routines(grammar: &Grammar<'_>, places: &Places) -> Vec<Draft> {
    let (start, fail) = (Target::Address(places.levels[0]), Target::Address(places.fail));
    let enter = ParseEnter { depth: Imm32(grammar.depth_max), start, why: Imm32(TRAILING), fail };
    let mut all = alloc::vec![enter.draft(), ParseFail {}.draft()];
    all.extend((0..grammar.levels.len()).map(|number| level(grammar, places, number)));
    all.push(operand(grammar, places));
    all
}

fn level(grammar: &Grammar<'_>, places: &Places, number: usize) -> Draft {
    let [start, own, tighter] = [0, number, number + 1].map(|level| Target::Address(places.levels[level]));
    let (fail, why, again) = (Target::Address(places.fail), Imm32(DEEP), Target::Label(AGAIN));
    let mut draft = Draft::new();
    let nested = |draft: &mut Draft, operators: Operators<'_>| {
        for (operator, action) in operators {
            let (operator, action) = (token(*operator), token(*action));
            NestedOperator { operator, why, fail, own, action }.append_to(draft);
        }
    };
    if let Level::Prefix(operators) = grammar.levels[number] {
        LookAhead {}.append_to(&mut draft);
        nested(&mut draft, operators);
        GoOn { to: tighter }.append_to(&mut draft);
        return draft;
    }
    BeginLevel { tighter }.append_to(&mut draft);
    draft.place(AGAIN);
    LookAhead {}.append_to(&mut draft);
    match grammar.levels[number] {
        Level::Left(operators) => {
            for (operator, action) in operators {
                let (operator, action) = (token(*operator), token(*action));
                LeftOperator { operator, tighter, action, again }.append_to(&mut draft);
            }
        }
        Level::Right(operators) => nested(&mut draft, operators),
        Level::Choice { ask, otherwise, action } => {
            let [ask, otherwise, action] = [ask, otherwise, action].map(token);
            ChoiceOperator { ask, why, fail, start, otherwise, own, action }.append_to(&mut draft);
        }
        Level::Index { open, close, action } => {
            let [open, close, action] = [open, close, action].map(token);
            IndexOperator { open, why, fail, start, close, action, again }.append_to(&mut draft);
        }
        Level::Prefix(_) => {}
    }
    EndLevel {}.append_to(&mut draft);
    draft
}

fn operand(grammar: &Grammar<'_>, places: &Places) -> Draft {
    let (start, fail, why) = (Target::Address(places.levels[0]), Target::Address(places.fail), Imm32(DEEP));
    let [open, close] = [grammar.group.0, grammar.group.1].map(token);
    let mut draft = Draft::new();
    LookAhead {}.append_to(&mut draft);
    for leaf in grammar.leaves {
        LeafOperand { leaf: token(*leaf), action: token(LEAF) }.append_to(&mut draft);
    }
    GroupOperand { open, why, fail, start, close }.append_to(&mut draft);
    if let Some(calls) = grammar.calls {
        let (other, done) = (Target::Label(OTHER), Target::Label(DONE));
        let inner = Target::Address(places.levels[calls.level]);
        CallBegin { name: token(calls.name), other, action: token(BEGIN), why, fail, open, close, done }
            .append_to(&mut draft);
        CallArguments { inner, comma: token(calls.comma) }.append_to(&mut draft);
        draft.place(DONE);
        CallEnd { close, fail, action: token(CALL) }.append_to(&mut draft);
        draft.place(OTHER);
    }
    NoOperand { why: Imm32(OPERAND), fail }.append_to(&mut draft);
    draft
}

fn token(token: u8) -> Imm32 {
    Imm32(token.into())
}
