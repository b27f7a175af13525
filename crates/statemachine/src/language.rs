//! The language: constant tables.

/// Number of a word of the machine.
pub type Word = u16;

/// A byte that is emitted or stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

    /// Another number for each value.
    pub(crate) fn key(self) -> u32 {
        match self {
            Value::Input => 0,
            Value::Flipped(mask) => 0x100 | u32::from(mask),
            Value::Const(byte) => 0x200 | u32::from(byte),
        }
    }

    /// The value with this number.
    pub(crate) fn of_key(key: u32) -> Value {
        match key >> 8 {
            0 => Value::Input,
            1 => Value::Flipped(key as u8),
            _ => Value::Const(key as u8),
        }
    }
}

/// Two small numbers as one, so that of two small ones it is small.
fn pair(a: u16, b: u16) -> u32 {
    u32::from(b) << 16 | u32::from(a)
}

fn unpaired(pair: u32) -> (u16, u16) {
    (pair as u16, (pair >> 16) as u16)
}

/// A question about words. All comparisons are unsigned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    Is(Word, u32),
    Below(Word, u32),
    Same(Word, Word),
    Differ(Word, Word),
    BelowWord(Word, Word),
    /// The word's low byte is in the set with this number.
    In(Word, u16),
}

impl Test {
    /// Other numbers for each test; no step has the same.
    pub(crate) fn key(self) -> [u32; 3] {
        match self {
            Test::Is(a, number) => [10, a.into(), number],
            Test::Below(a, number) => [11, a.into(), number],
            Test::Same(a, b) => [12, pair(a, b), 0],
            Test::Differ(a, b) => [13, pair(a, b), 0],
            Test::BelowWord(a, b) => [14, pair(a, b), 0],
            Test::In(a, set) => [15, pair(a, set), 0],
        }
    }

    /// The test with these numbers. `None`: they are a step's.
    pub(crate) fn of_key([kind, first, number]: [u32; 3]) -> Option<Test> {
        let (a, b) = unpaired(first);
        Some(match kind {
            10 => Test::Is(a, number),
            11 => Test::Below(a, number),
            12 => Test::Same(a, b),
            13 => Test::Differ(a, b),
            14 => Test::BelowWord(a, b),
            15 => Test::In(a, b),
            _ => return None,
        })
    }
}

/// What a row does. Arithmetic wraps.
#[derive(Clone, Copy, Debug)]
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
    /// Bit number word, modulo the array's bits, of the array becomes 1.
    Mark(u16, Word),
    /// As `Store`, for an array of cells of two bytes: the value, with the bits of the last word above it.
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

impl Step {
    /// Other numbers for each step on words and arrays.
    pub(crate) fn key(self) -> [u32; 3] {
        match self {
            Step::Set(a, number) => [20, a.into(), number],
            Step::Add(a, number) => [21, a.into(), number],
            Step::Or(a, number) => [22, a.into(), number],
            Step::Multiply(a, by) => [23, a.into(), by],
            Step::Move(a, b) => [24, pair(a, b), 0],
            Step::AddWord(a, b) => [25, pair(a, b), 0],
            Step::SubtractWord(a, b) => [26, pair(a, b), 0],
            Step::Digit(a, value, most) => [27 | value.key() << 8, a.into(), most],
            Step::Store(array, index, value) => [28, pair(array, index), value.key()],
            Step::Load(a, array, index) => [29, pair(a, array), index.into()],
            Step::StoreCell(array, index, value, above) => [30 | value.key() << 8, pair(array, index), above.into()],
            Step::Blank(array, index, cells) => [31, pair(array, index), cells.into()],
            Step::Mark(array, index) => [32, pair(array, index), 0],
            // These have become nodes or edges.
            Step::Emit(_) | Step::Outside(_) | Step::When(..) | Step::While(..) | Step::Go(_) => [0; 3],
        }
    }

    /// The step with these numbers; of numbers that no step has, one without effect on a state.
    pub(crate) fn of_key([kind, first, second]: [u32; 3]) -> Step {
        let (value, (a, b)) = (Value::of_key(kind >> 8), unpaired(first));
        match kind & 0xff {
            20 => Step::Set(a, second),
            21 => Step::Add(a, second),
            22 => Step::Or(a, second),
            23 => Step::Multiply(a, second),
            24 => Step::Move(a, b),
            25 => Step::AddWord(a, b),
            26 => Step::SubtractWord(a, b),
            27 => Step::Digit(a, value, second),
            28 => Step::Store(a, b, Value::of_key(second)),
            29 => Step::Load(a, b, second as u16),
            30 => Step::StoreCell(a, b, value, second as u16),
            31 => Step::Blank(a, b, second as u16),
            _ => Step::Mark(a, b),
        }
    }
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
