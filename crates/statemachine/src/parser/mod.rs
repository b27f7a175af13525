//! Parsers on the processor's stack (S-115; thesis 7.4.1): "the parser stack using the hardware, jsr and rts for the state
//! transitions".
//!
//! A [`Grammar`] is that of expressions: levels of operators that bind from loosely to tightly, and operands. [`generate`]
//! writes a routine for each level and one for operands. To begin a part is `call`, to end it `ret`; what a parser's tables push,
//! the state to come back to, is the return address. A syntax error deep inside cuts the whole parse away with one `leave`.
//! [`parse`] does the same in plain Rust, by looking the grammar up at each token (R6).
//!
//! What goes in is a byte for each token, and [`END`]. What comes out is the expression in postfix order: a [`Part`] for each
//! operand, operator and bracket, when it is complete. The kernel monitor's C expressions are read by it.

mod generate;
mod template;
mod twin;

pub use generate::{Answer, Entry, generate};
pub use template::templates;
pub use twin::parse;

/// The token behind the last one.
pub const END: u8 = 0;
/// An operand by itself is this action; those of a grammar begin at 3.
pub const LEAF: u8 = 0;
/// A call's arguments follow, each a whole part, until [`CALL`] with the same token.
pub const BEGIN: u8 = 1;
pub const CALL: u8 = 2;

/// Operators: their token, and the action when one is complete.
pub type Operators<'a> = &'a [(u8, u8)];

/// What an expression is made of. Tokens are not 0.
pub struct Grammar<'a> {
    /// Levels from the loosest to the tightest; behind the last come operands.
    pub levels: &'a [Level<'a>],
    /// Tokens that are operands by themselves.
    pub leaves: &'a [u8],
    /// Around a whole expression that is an operand.
    pub group: (u8, u8),
    pub calls: Option<Calls>,
    /// Most parts inside each other. Each takes (levels + 4) words of the stack at most.
    pub depth_max: u32,
}

/// How operators of one level stand.
pub enum Level<'a> {
    /// Between operands, and group from the left.
    Left(Operators<'a>),
    /// Between operands, and group from the right.
    Right(Operators<'a>),
    /// `condition ask expression otherwise this-level`.
    Choice { ask: u8, otherwise: u8, action: u8 },
    /// Before an operand.
    Prefix(Operators<'a>),
    /// `operand open expression close`.
    Index { open: u8, close: u8, action: u8 },
}

/// `name open argument comma argument close`, in the brackets of a group. The name's token says that a call follows: one that
/// does not is another token.
#[derive(Clone, Copy)]
pub struct Calls {
    pub name: u8,
    pub comma: u8,
    /// The level of an argument.
    pub level: usize,
}

/// An operand, operator or bracket that is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    pub action: u8,
    /// Number of its token.
    pub token: usize,
}

/// Why tokens are no expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// This token was needed.
    Expected(u8),
    ExpectedOperand,
    TooDeep,
    /// Something stands behind the end.
    Trailing,
}

/// How a fault is numbered by the generated code; tokens are themselves.
const OPERAND: u32 = 256;
const DEEP: u32 = 257;
const TRAILING: u32 = 258;

impl Fault {
    fn from_word(word: u32) -> Fault {
        match word {
            OPERAND => Fault::ExpectedOperand,
            DEEP => Fault::TooDeep,
            TRAILING => Fault::Trailing,
            token => Fault::Expected(token as u8),
        }
    }
}
