//! From tokens to a tree, with C's precedences.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::lexer::{LexError, Token, tokens};
use crate::{ARGUMENTS_MAX, DEPTH_MAX, OPERATORS_MAX, TEXT_BYTES_MAX};

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
    /// See [`crate::TEXT_BYTES_MAX`], [`OPERATORS_MAX`], [`DEPTH_MAX`], [`ARGUMENTS_MAX`].
    TooLong,
    TooDeep,
    TooManyArguments,
    /// Something stands after the end.
    Trailing,
}

/// Reads one expression.
///
/// # Errors
/// Where and why the text is none.
pub fn parse(text: &str) -> Result<Expression, Error> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::Syntax(SyntaxError::TooLong, TEXT_BYTES_MAX));
    }
    let tokens = tokens(text).map_err(Error::Lexical)?;
    let mut parser = Parser { tokens: &tokens, at: 0, end: text.len(), depth: 0, operators: 0 };
    let expression = parser.sequence()?;
    if parser.at < tokens.len() {
        return Err(parser.error(SyntaxError::Trailing));
    }
    Ok(expression)
}

struct Parser<'a> {
    tokens: &'a [(Token<'a>, usize)],
    at: usize,
    /// Length of the text.
    end: usize,
    depth: usize,
    operators: usize,
}

type Parsed<T = Expression> = Result<T, Error>;

/// Binary operators from the loosest to the tightest.
const LEVELS: [&[(&str, Binary)]; 10] = [
    &[("||", Binary::Or)],
    &[("&&", Binary::And)],
    &[("|", Binary::BitOr)],
    &[("^", Binary::BitXor)],
    &[("&", Binary::BitAnd)],
    &[("==", Binary::Equal), ("!=", Binary::NotEqual)],
    &[("<", Binary::Less), ("<=", Binary::LessEqual), (">", Binary::Greater), (">=", Binary::GreaterEqual)],
    &[("<<", Binary::ShiftLeft), (">>", Binary::ShiftRight)],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[("*", Binary::Multiply), ("/", Binary::Divide), ("%", Binary::Remainder)],
];

const UPDATES: [(&str, Binary); 10] = [
    ("+=", Binary::Add),
    ("-=", Binary::Subtract),
    ("*=", Binary::Multiply),
    ("/=", Binary::Divide),
    ("%=", Binary::Remainder),
    ("&=", Binary::BitAnd),
    ("|=", Binary::BitOr),
    ("^=", Binary::BitXor),
    ("<<=", Binary::ShiftLeft),
    (">>=", Binary::ShiftRight),
];

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

impl<'a> Parser<'a> {
    fn error(&self, error: SyntaxError) -> Error {
        Error::Syntax(error, self.tokens.get(self.at).map_or(self.end, |(_, at)| *at))
    }

    fn peek(&self, ahead: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + ahead).map(|(token, _)| *token)
    }

    fn accept(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(0), Some(Token::Sign(found)) if found == sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &'static str) -> Parsed<()> {
        if self.accept(sign) { Ok(()) } else { Err(self.error(SyntaxError::Expected(sign))) }
    }

    /// Goes one level deeper; refuses what would take too much stack, here and when the routine runs.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(SyntaxError::TooDeep));
        }
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Counts an operator that makes a tree deeper without depth of the parser.
    fn count(&mut self) -> Parsed<()> {
        self.operators += 1;
        if self.operators > OPERATORS_MAX { Err(self.error(SyntaxError::TooLong)) } else { Ok(()) }
    }

    fn sequence(&mut self) -> Parsed {
        let mut first = self.assignment()?;
        while self.accept(",") {
            self.count()?;
            first = Expression::Sequence(Box::new(first), Box::new(self.assignment()?));
        }
        Ok(first)
    }

    fn assignment(&mut self) -> Parsed {
        self.deeper(|parser| {
            let left = parser.choice()?;
            let update = UPDATES.iter().find(|(sign, _)| parser.accept(sign));
            if update.is_none() && !parser.accept("=") {
                return Ok(left);
            }
            let Expression::Value(place) = left else { return Err(parser.error(SyntaxError::NotAPlace)) };
            let right = Box::new(parser.assignment()?);
            Ok(match update {
                Some((_, operator)) => Expression::Update(*operator, place, right),
                None => Expression::Assign(place, right),
            })
        })
    }

    fn choice(&mut self) -> Parsed {
        let condition = self.binary(0)?;
        if !self.accept("?") {
            return Ok(condition);
        }
        self.deeper(|parser| {
            let yes = parser.sequence()?;
            parser.expect(":")?;
            let no = parser.choice()?;
            Ok(Expression::Choose(Box::new(condition), Box::new(yes), Box::new(no)))
        })
    }

    /// Operators of `level` and tighter ones. One call for all levels of a chain: the stack of the kernel is small.
    fn binary(&mut self, level: usize) -> Parsed {
        let mut left = self.unary()?;
        while let Some((found, operator)) = self.operator(level) {
            self.at += 1;
            self.count()?;
            let right = self.binary(found + 1)?;
            left = Expression::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    /// The binary operator that comes next, if it binds as tightly as `level`; its own level.
    fn operator(&self, level: usize) -> Option<(usize, Binary)> {
        let Some(Token::Sign(sign)) = self.peek(0) else { return None };
        // Longer signs were read whole: `<` is not the beginning of `<<`.
        LEVELS.iter().enumerate().skip(level).find_map(|(level, operators)| {
            operators.iter().find(|(known, _)| *known == sign).map(|(_, operator)| (level, *operator))
        })
    }

    fn unary(&mut self) -> Parsed {
        self.deeper(|parser| {
            for (sign, operator) in [("-", Unary::Negate), ("~", Unary::Complement), ("!", Unary::Not)] {
                if parser.accept(sign) {
                    return Ok(Expression::Unary(operator, Box::new(parser.unary()?)));
                }
            }
            if parser.accept("+") {
                return parser.unary();
            }
            for (sign, operator) in [("++", Binary::Add), ("--", Binary::Subtract)] {
                if parser.accept(sign) {
                    let Expression::Value(place) = parser.unary()? else {
                        return Err(parser.error(SyntaxError::NotAPlace));
                    };
                    return Ok(Expression::Update(operator, place, Box::new(Expression::Number(1))));
                }
            }
            if parser.accept("*") {
                let (width, address) = parser.pointer()?;
                return Ok(Expression::Value(Place::Memory(width, Box::new(address))));
            }
            if parser.accept("&") {
                let Some(Token::Name(name)) = parser.peek(0) else { return Err(parser.error(SyntaxError::NotAPlace)) };
                parser.at += 1;
                return Ok(Expression::AddressOf(name.to_string()));
            }
            match parser.width(false) {
                Some(width) => Ok(Expression::Cut(width, Box::new(parser.unary()?))),
                None => parser.postfix(),
            }
        })
    }

    /// What follows a `*`: `(u8 *)address`, or an address of a word.
    fn pointer(&mut self) -> Parsed<(Width, Expression)> {
        let width = self.width(true).unwrap_or(Width::Word);
        Ok((width, self.unary()?))
    }

    /// `(u8)`, or `(u8 *)` if `pointer`.
    fn width(&mut self, pointer: bool) -> Option<Width> {
        let (Token::Sign("("), Token::Name(name)) = (self.peek(0)?, self.peek(1)?) else { return None };
        let (_, width) = WIDTHS.iter().find(|(known, _)| *known == name)?;
        let star = self.peek(2)? == Token::Sign("*");
        if star != pointer || self.peek(2 + usize::from(star))? != Token::Sign(")") {
            return None;
        }
        self.at += 3 + usize::from(star);
        Some(*width)
    }

    fn postfix(&mut self) -> Parsed {
        let mut value = self.operand()?;
        while self.accept("[") {
            self.count()?;
            let index = self.sequence()?;
            self.expect("]")?;
            // Words, as the kernel's tables are.
            let scaled = Expression::Binary(Binary::Multiply, Box::new(index), Box::new(Expression::Number(8)));
            let address = Expression::Binary(Binary::Add, Box::new(value), Box::new(scaled));
            value = Expression::Value(Place::Memory(Width::Word, Box::new(address)));
        }
        Ok(value)
    }

    fn operand(&mut self) -> Parsed {
        match self.peek(0) {
            Some(Token::Number(value)) => {
                self.at += 1;
                Ok(Expression::Number(value))
            }
            Some(Token::Name(name)) => {
                self.at += 1;
                if self.accept("(") {
                    return Ok(Expression::Call(name.to_string(), self.arguments()?));
                }
                Ok(Expression::Value(Place::Name(name.to_string())))
            }
            Some(Token::Sign("(")) => {
                self.at += 1;
                let inner = self.sequence()?;
                self.expect(")")?;
                Ok(inner)
            }
            _ => Err(self.error(SyntaxError::ExpectedOperand)),
        }
    }

    fn arguments(&mut self) -> Parsed<Vec<Expression>> {
        let mut arguments = Vec::new();
        if self.accept(")") {
            return Ok(arguments);
        }
        loop {
            if arguments.len() == ARGUMENTS_MAX {
                return Err(self.error(SyntaxError::TooManyArguments));
            }
            arguments.push(self.assignment()?);
            if self.accept(")") {
                return Ok(arguments);
            }
            self.expect(",")?;
        }
    }
}
