//! The language: constant tables.

/// Number of a word of the machine.
pub type Word = u16;

/// A byte that is emitted or stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Value {
    /// The byte that was taken last.
    Input,
    /// That byte, exclusive-or this.
    Flipped(u8),
    Const(u8),
}

impl Value {
    /// The byte, for this input.
    pub fn of(self, input: u8) -> u8 {
        match self {
            Value::Input => input,
            Value::Flipped(mask) => input ^ mask,
            Value::Const(byte) => byte,
        }
    }
}

/// A question about words. All comparisons are unsigned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Test {
    Is(Word, u32),
    Below(Word, u32),
    Same(Word, Word),
    Differ(Word, Word),
    BelowWord(Word, Word),
    /// The word's low byte is in the set with this number.
    In(Word, u16),
}

/// What a row does. Arithmetic wraps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Step {
    Emit(Value),
    Set(Word, u32),
    Add(Word, u32),
    Or(Word, u32),
    Multiply(Word, u32),
    /// The second word is copied into, added to or subtracted from the first.
    Move(Word, Word),
    AddWord(Word, Word),
    SubtractWord(Word, Word),
    /// Appends a decimal digit to the word; beyond the number given it stays there.
    Digit(Word, Value, u32),
    /// array[word modulo its size] = value.
    Store(u16, Word, Value),
    /// first word = array[second word modulo its size].
    Load(Word, u16, Word),
    /// As `Store`, for an array of cells of two bytes: the value, and above it bits 8 to 15 of the last word.
    StoreCell(u16, Word, Value, Word),
    /// Stores both halves of the last word in sixteen cells of an array, from the last multiple of sixteen on.
    Blank(u16, Word, Word),
    /// Something the machine cannot do: its number is not 0.
    Outside(u16),
    When(Test, &'static [Step], &'static [Step]),
    While(Test, &'static [Step]),
    /// Ends the row in this state.
    Go(u16),
}

/// What happens to the bytes `first..=last` in a state. Without `Go` the state stays.
pub struct Row {
    pub first: u8,
    pub last: u8,
    pub steps: &'static [Step],
}

/// Rows are tried in order; bytes in none of them do nothing.
pub struct State {
    pub name: &'static str,
    pub rows: &'static [Row],
}

/// A machine. It starts in state 0 with all words 0.
pub struct Machine {
    pub name: &'static str,
    pub words: &'static [&'static str],
    /// Sizes in bytes, powers of two.
    pub arrays: &'static [u32],
    /// Sets of bytes, as ranges.
    pub sets: &'static [&'static [(u8, u8)]],
    pub states: &'static [State],
}
