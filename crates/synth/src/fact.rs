//! Facts: what a value that was folded into code stands for.

/// What stands in a hole, and what would make the code that was made with it untrue. Each list of facts is kept next to the
/// templates it is about; people see them with `synth code --why`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fact {
    /// The hole's name.
    pub hole: &'static str,
    /// The value is the address of a word of so many bytes (4 or 8), and what people want to see is what stands there; 0: it
    /// is the value itself.
    pub word_bytes: u8,
    /// What it is.
    pub is: &'static str,
    /// What invalidates it, and what then happens.
    pub until: &'static str,
}

impl Fact {
    /// A value that was folded in as it is.
    pub const fn value(hole: &'static str, is: &'static str, until: &'static str) -> Fact {
        Fact { hole, word_bytes: 0, is, until }
    }

    /// The address of a 32-bit word that the code reads or writes.
    pub const fn half(hole: &'static str, is: &'static str, until: &'static str) -> Fact {
        Fact { hole, word_bytes: 4, is, until }
    }

    /// The address of a 64-bit word that the code reads or writes.
    pub const fn word(hole: &'static str, is: &'static str, until: &'static str) -> Fact {
        Fact { hole, word_bytes: 8, is, until }
    }
}
