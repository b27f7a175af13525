//! From a text to a tree, with C's precedences. The parser is that of a grammar (S-115, [`statemachine::parser`]), as code or in
//! plain Rust; what is C's own is here: which bytes tokens are, and what a tree is made of when a part is complete.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use statemachine::parser::{self, BEGIN, CALL, Calls, END, Fault, Grammar, LEAF, Level, Part};
use synth::FillError;

use crate::lexer::{SIGNS, Token, tokens};
use crate::syntax::{Binary, Error, Expression, Place, SyntaxError, Unary, Width};
use crate::{ARGUMENTS_MAX, DEPTH_MAX, OPERATORS_MAX, TEXT_BYTES_MAX};

// Tokens: signs have their place in the list of signs, and 1.
const OPERAND: u8 = 0x80;
/// A name that is called.
const FUNCTION: u8 = 0x81;
/// `(u8)`, and `*(u8 *)`.
const CAST: u8 = 0x82;
const LOAD: u8 = 0x83;

// Actions, beside the parser's own.
const SEQUENCE: u8 = 3;
const ASSIGN: u8 = 4;
const CHOOSE: u8 = 5;
const INDEX: u8 = 6;
const NEGATE: u8 = 7;
const COMPLEMENT: u8 = 8;
const NOT: u8 = 9;
const KEEP: u8 = 10;
const INCREMENT: u8 = 11;
const DECREMENT: u8 = 12;
const VALUE_AT: u8 = 13;
const ADDRESS_OF: u8 = 14;
const CUT: u8 = 15;
/// And the operator's place in [`Binary::ALL`].
const BINARY: u8 = 0x20;
/// The same for `op=`.
const UPDATE: u8 = 0x40;

const fn sign(text: &str) -> u8 {
    let mut at = 0;
    while at < SIGNS.len() {
        let (known, wanted) = (SIGNS[at].as_bytes(), text.as_bytes());
        let mut same = 0;
        while same < known.len() && same < wanted.len() && known[same] == wanted[same] {
            same += 1;
        }
        if same == known.len() && same == wanted.len() {
            return at as u8 + 1;
        }
        at += 1;
    }
    panic!("no such sign")
}

const fn binary(text: &str, operator: Binary) -> (u8, u8) {
    (sign(text), BINARY + operator as u8)
}

const fn update(text: &str, operator: Binary) -> (u8, u8) {
    (sign(text), UPDATE + operator as u8)
}

const GRAMMAR: Grammar<'static> = Grammar {
    levels: &[
        Level::Left(&[(sign(","), SEQUENCE)]),
        Level::Right(&[
            (sign("="), ASSIGN),
            update("+=", Binary::Add),
            update("-=", Binary::Subtract),
            update("*=", Binary::Multiply),
            update("/=", Binary::Divide),
            update("%=", Binary::Remainder),
            update("&=", Binary::BitAnd),
            update("|=", Binary::BitOr),
            update("^=", Binary::BitXor),
            update("<<=", Binary::ShiftLeft),
            update(">>=", Binary::ShiftRight),
        ]),
        Level::Choice { ask: sign("?"), otherwise: sign(":"), action: CHOOSE },
        Level::Left(&[binary("||", Binary::Or)]),
        Level::Left(&[binary("&&", Binary::And)]),
        Level::Left(&[binary("|", Binary::BitOr)]),
        Level::Left(&[binary("^", Binary::BitXor)]),
        Level::Left(&[binary("&", Binary::BitAnd)]),
        Level::Left(&[binary("==", Binary::Equal), binary("!=", Binary::NotEqual)]),
        Level::Left(&[
            binary("<", Binary::Less),
            binary("<=", Binary::LessEqual),
            binary(">", Binary::Greater),
            binary(">=", Binary::GreaterEqual),
        ]),
        Level::Left(&[binary("<<", Binary::ShiftLeft), binary(">>", Binary::ShiftRight)]),
        Level::Left(&[binary("+", Binary::Add), binary("-", Binary::Subtract)]),
        Level::Left(&[binary("*", Binary::Multiply), binary("/", Binary::Divide), binary("%", Binary::Remainder)]),
        Level::Prefix(&[
            (sign("-"), NEGATE),
            (sign("~"), COMPLEMENT),
            (sign("!"), NOT),
            (sign("+"), KEEP),
            (sign("++"), INCREMENT),
            (sign("--"), DECREMENT),
            (sign("*"), VALUE_AT),
            (LOAD, VALUE_AT),
            (sign("&"), ADDRESS_OF),
            (CAST, CUT),
        ]),
        Level::Index { open: sign("["), close: sign("]"), action: INDEX },
    ],
    leaves: &[OPERAND],
    group: (sign("("), sign(")")),
    calls: Some(Calls { name: FUNCTION, comma: sign(","), level: 1 }),
    depth_max: DEPTH_MAX as u32,
};

const WIDTHS: [(&str, Width); 12] = [
    ("u8", Width::U8),
    ("i8", Width::I8),
    ("u16", Width::U16),
    ("i16", Width::I16),
    ("u32", Width::U32),
    ("i32", Width::I32),
    ("u64", Width::Word),
    ("i64", Width::Word),
    ("char", Width::I8),
    ("short", Width::I16),
    ("int", Width::I32),
    ("long", Width::Word),
];

/// The parser as code that runs at `address`: a [`parser::Entry`] for [`parse_with`].
///
/// # Errors
/// Never, for addresses of programs.
pub fn parser_code(address: u64) -> Result<Vec<u8>, FillError> {
    parser::generate(&GRAMMAR, address)
}

/// Reads one expression, in plain Rust.
///
/// # Errors
/// Where and why the text is none.
pub fn parse(text: &str) -> Result<Expression, Error> {
    parse_with(text, |tokens| parser::parse(&GRAMMAR, tokens))
}

/// Reads one expression; `parts` runs the parser: in plain Rust, or the one that [`parser_code`] made.
///
/// # Errors
/// Where and why the text is none.
pub fn parse_with(
    text: &str,
    parts: impl FnOnce(&[u8]) -> Result<Vec<Part>, (Fault, usize)>,
) -> Result<Expression, Error> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::Syntax(SyntaxError::TooLong, TEXT_BYTES_MAX));
    }
    let words = words(&tokens(text).map_err(Error::Lexical)?);
    let mut bytes: Vec<u8> = words.iter().map(|word| word.byte).collect();
    bytes.push(END);
    let place = |token: usize| words.get(token).map_or(text.len(), |word| word.at);
    let parts = parts(&bytes).map_err(|(fault, token)| Error::Syntax(what(fault), place(token)))?;
    let mut tree = Tree { values: Vec::new(), calls: Vec::new(), operators: 0 };
    for part in parts {
        // The parser speaks of its tokens only.
        let Some(word) = words.get(part.token) else { continue };
        tree.add(part.action, word).map_err(|error| Error::Syntax(error, word.at))?;
    }
    tree.pop().map_err(|error| Error::Syntax(error, text.len()))
}

fn what(fault: Fault) -> SyntaxError {
    match fault {
        Fault::Expected(token) => SyntaxError::Expected(SIGNS[usize::from(token).clamp(1, SIGNS.len()) - 1]),
        Fault::ExpectedOperand => SyntaxError::ExpectedOperand,
        Fault::TooDeep => SyntaxError::TooDeep,
        Fault::Trailing => SyntaxError::Trailing,
    }
}

/// What the parser sees as one token.
struct Word<'a> {
    byte: u8,
    /// The operand or the called name; of other tokens the sign.
    token: Token<'a>,
    /// Of [`CAST`] and [`LOAD`]; a load without one is of a word.
    width: Width,
    /// Offset in the text.
    at: usize,
}

/// Joins the tokens that are one for the parser.
fn words<'a>(tokens: &[(Token<'a>, usize)]) -> Vec<Word<'a>> {
    let mut words = Vec::with_capacity(tokens.len());
    let mut rest = tokens;
    while let Some((token, at)) = rest.first().copied() {
        let (byte, width, count) = match token {
            Token::Number(_) => (OPERAND, Width::Word, 1),
            Token::Name(_) if begins(&rest[1..], "(") => (FUNCTION, Width::Word, 1),
            Token::Name(_) => (OPERAND, Width::Word, 1),
            Token::Sign(text) => {
                let load = if text == "*" { width(&rest[1..], &["*", ")"]) } else { None };
                match (load, width(rest, &[")"])) {
                    (Some(width), _) => (LOAD, width, 5),
                    (_, Some(width)) => (CAST, width, 3),
                    _ => (sign(text), Width::Word, 1),
                }
            }
        };
        words.push(Word { byte, token, width, at });
        rest = &rest[count..];
    }
    words
}

fn begins(tokens: &[(Token<'_>, usize)], sign: &str) -> bool {
    matches!(tokens.first(), Some((Token::Sign(found), _)) if *found == sign)
}

/// The type in `(type`, if these signs follow.
fn width(tokens: &[(Token<'_>, usize)], signs: &[&str]) -> Option<Width> {
    let (Token::Name(name), _) = tokens.get(1)? else { return None };
    let (_, width) = WIDTHS.iter().find(|(known, _)| known == name)?;
    let fits = begins(tokens, "(") && (0..signs.len()).all(|at| begins(&tokens[tokens.len().min(2 + at)..], signs[at]));
    fits.then_some(*width)
}

/// Trees that are complete, and calls that are not.
struct Tree {
    values: Vec<Expression>,
    /// Name, and how many values were there when it began.
    calls: Vec<(String, usize)>,
    operators: usize,
}

type Made<T = Expression> = Result<T, SyntaxError>;

impl Tree {
    fn pop(&mut self) -> Made {
        self.values.pop().ok_or(SyntaxError::ExpectedOperand)
    }

    fn boxed(&mut self) -> Made<Box<Expression>> {
        self.pop().map(Box::new)
    }

    fn place(&mut self) -> Made<Place> {
        let Expression::Value(place) = self.pop()? else { return Err(SyntaxError::NotAPlace) };
        Ok(place)
    }

    /// Counts an operator that makes the tree deeper without depth of the parser.
    fn count(&mut self) -> Made<()> {
        self.operators += 1;
        if self.operators > OPERATORS_MAX { Err(SyntaxError::TooLong) } else { Ok(()) }
    }

    fn add(&mut self, action: u8, word: &Word<'_>) -> Made<()> {
        if action == BEGIN {
            self.calls.push((name(word), self.values.len()));
            return Ok(());
        }
        let made = match action {
            LEAF => match word.token {
                Token::Number(value) => Expression::Number(value),
                _ => Expression::Value(Place::Name(name(word))),
            },
            CALL => self.call()?,
            SEQUENCE | INDEX => {
                self.count()?;
                let (second, first) = (self.boxed()?, self.boxed()?);
                if action == SEQUENCE { Expression::Sequence(first, second) } else { element(first, second) }
            }
            CHOOSE => {
                let (no, yes, condition) = (self.boxed()?, self.boxed()?, self.boxed()?);
                Expression::Choose(condition, yes, no)
            }
            ASSIGN => {
                let value = self.boxed()?;
                Expression::Assign(self.place()?, value)
            }
            NEGATE => Expression::Unary(Unary::Negate, self.boxed()?),
            COMPLEMENT => Expression::Unary(Unary::Complement, self.boxed()?),
            NOT => Expression::Unary(Unary::Not, self.boxed()?),
            KEEP => self.pop()?,
            INCREMENT | DECREMENT => {
                let operator = if action == INCREMENT { Binary::Add } else { Binary::Subtract };
                Expression::Update(operator, self.place()?, Box::new(Expression::Number(1)))
            }
            VALUE_AT => Expression::Value(Place::Memory(word.width, self.boxed()?)),
            ADDRESS_OF => match self.place()? {
                Place::Name(name) => Expression::AddressOf(name),
                Place::Memory(..) => return Err(SyntaxError::NotAPlace),
            },
            CUT => Expression::Cut(word.width, self.boxed()?),
            UPDATE.. => {
                let value = self.boxed()?;
                Expression::Update(operator(action - UPDATE), self.place()?, value)
            }
            _ => {
                self.count()?;
                let (right, left) = (self.boxed()?, self.boxed()?);
                Expression::Binary(operator(action - BINARY), left, right)
            }
        };
        self.values.push(made);
        Ok(())
    }

    fn call(&mut self) -> Made {
        let (name, from) = self.calls.pop().ok_or(SyntaxError::ExpectedOperand)?;
        let arguments = self.values.split_off(from.min(self.values.len()));
        if arguments.len() > ARGUMENTS_MAX {
            return Err(SyntaxError::TooManyArguments);
        }
        Ok(Expression::Call(name, arguments))
    }
}

fn operator(place: u8) -> Binary {
    Binary::ALL[usize::from(place) % Binary::ALL.len()]
}

fn name(word: &Word<'_>) -> String {
    match word.token {
        Token::Name(name) => name.to_string(),
        _ => String::new(),
    }
}

/// Words, as the kernel's tables are.
fn element(table: Box<Expression>, index: Box<Expression>) -> Expression {
    let scaled = Expression::Binary(Binary::Multiply, index, Box::new(Expression::Number(8)));
    let address = Expression::Binary(Binary::Add, table, Box::new(scaled));
    Expression::Value(Place::Memory(Width::Word, Box::new(address)))
}
