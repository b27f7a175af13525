//! What an expression is, as a tree, and what is wrong with a text that is none.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::lexer::LexError;

/// How many bytes of a word count, and whether the highest bit is a sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    Word,
}

impl Width {
    pub const ALL: [Width; 7] = [Width::U8, Width::I8, Width::U16, Width::I16, Width::U32, Width::I32, Width::Word];
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    Negate,
    Complement,
    Not,
}

/// `And` and `Or` are C's `&&` and `||`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
}

impl Binary {
    /// `And` and `Or` last: no single operation does them.
    pub const ALL: [Binary; 18] = [
        Binary::Add,
        Binary::Subtract,
        Binary::Multiply,
        Binary::Divide,
        Binary::Remainder,
        Binary::BitAnd,
        Binary::BitOr,
        Binary::BitXor,
        Binary::ShiftLeft,
        Binary::ShiftRight,
        Binary::Equal,
        Binary::NotEqual,
        Binary::Less,
        Binary::LessEqual,
        Binary::Greater,
        Binary::GreaterEqual,
        Binary::And,
        Binary::Or,
    ];
}

/// What can be assigned to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    Name(String),
    Memory(Width, Box<Expression>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expression {
    Number(u64),
    /// What a place holds.
    Value(Place),
    /// Where a name is.
    AddressOf(String),
    Cut(Width, Box<Expression>),
    Unary(Unary, Box<Expression>),
    Binary(Binary, Box<Expression>, Box<Expression>),
    Choose(Box<Expression>, Box<Expression>, Box<Expression>),
    Assign(Place, Box<Expression>),
    /// `a op= b`: the place is evaluated once.
    Update(Binary, Place, Box<Expression>),
    Call(String, Vec<Expression>),
    Sequence(Box<Expression>, Box<Expression>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    Lexical(LexError),
    /// What was found instead of what is possible there, and where; the text ended if it is `None`.
    Syntax(SyntaxError, usize),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SyntaxError {
    /// This sign was needed.
    Expected(&'static str),
    ExpectedOperand,
    NotAPlace,
    /// See [`crate::TEXT_BYTES_MAX`], [`crate::OPERATORS_MAX`], [`crate::DEPTH_MAX`], [`crate::ARGUMENTS_MAX`].
    TooLong,
    TooDeep,
    TooManyArguments,
    /// Something stands after the end.
    Trailing,
}
