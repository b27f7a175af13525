//! The same in plain Rust.

use alloc::vec::Vec;

use super::{BEGIN, CALL, END, Fault, Grammar, LEAF, Level, Operators, Part};

/// Reads tokens, which end with [`END`].
///
/// # Errors
/// Why they are no expression, and the number of the token that shows it.
pub fn parse(grammar: &Grammar<'_>, tokens: &[u8]) -> Result<Vec<Part>, (Fault, usize)> {
    let mut parser = Parser { grammar, tokens, at: 0, left: grammar.depth_max, parts: Vec::new() };
    let parsed = parser.level(0).and_then(|()| match parser.next() {
        END => Ok(()),
        _ => Err(Fault::Trailing),
    });
    match parsed {
        Ok(()) => Ok(parser.parts),
        Err(fault) => Err((fault, parser.at)),
    }
}

struct Parser<'a> {
    grammar: &'a Grammar<'a>,
    tokens: &'a [u8],
    at: usize,
    /// Parts that may still begin inside each other.
    left: u32,
    parts: Vec<Part>,
}

impl Parser<'_> {
    fn next(&self) -> u8 {
        self.tokens.get(self.at).copied().unwrap_or(END)
    }

    fn find(&self, operators: Operators<'_>) -> Option<u8> {
        operators.iter().find(|(operator, _)| *operator == self.next()).map(|(_, action)| *action)
    }

    fn expect(&mut self, token: u8) -> Result<(), Fault> {
        if self.next() != token {
            return Err(Fault::Expected(token));
        }
        self.at += 1;
        Ok(())
    }

    /// Does what comes behind the next token, a level down; then that token is complete.
    fn behind(&mut self, action: u8, inner: impl FnOnce(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        let token = self.at;
        self.at += 1;
        inner(self)?;
        self.parts.push(Part { action, token });
        Ok(())
    }

    fn deeper(&mut self, inner: impl FnOnce(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        self.left = self.left.checked_sub(1).ok_or(Fault::TooDeep)?;
        inner(self)?;
        self.left += 1;
        Ok(())
    }

    fn level(&mut self, number: usize) -> Result<(), Fault> {
        let Some(level) = self.grammar.levels.get(number) else { return self.operand() };
        if let Level::Prefix(operators) = level {
            return match self.find(operators) {
                Some(action) => self.behind(action, |parser| parser.deeper(|parser| parser.level(number))),
                None => self.level(number + 1),
            };
        }
        self.level(number + 1)?;
        match *level {
            Level::Left(operators) => {
                while let Some(action) = self.find(operators) {
                    self.behind(action, |parser| parser.level(number + 1))?;
                }
            }
            Level::Right(operators) => {
                if let Some(action) = self.find(operators) {
                    self.behind(action, |parser| parser.deeper(|parser| parser.level(number)))?;
                }
            }
            Level::Choice { ask, otherwise, action } if self.next() == ask => self.behind(action, |parser| {
                parser.deeper(|parser| {
                    parser.level(0)?;
                    parser.expect(otherwise)?;
                    parser.level(number)
                })
            })?,
            Level::Index { open, close, action } => {
                while self.next() == open {
                    self.behind(action, |parser| parser.enclosed(close))?;
                }
            }
            Level::Choice { .. } | Level::Prefix(_) => {}
        }
        Ok(())
    }

    fn enclosed(&mut self, close: u8) -> Result<(), Fault> {
        self.deeper(|parser| {
            parser.level(0)?;
            parser.expect(close)
        })
    }

    fn operand(&mut self) -> Result<(), Fault> {
        let (token, (open, close)) = (self.at, self.grammar.group);
        let next = self.next();
        if self.grammar.leaves.contains(&next) {
            self.parts.push(Part { action: LEAF, token });
            self.at += 1;
            return Ok(());
        }
        if next == open {
            self.at += 1;
            return self.enclosed(close);
        }
        let Some(calls) = self.grammar.calls.filter(|calls| calls.name == next) else {
            return Err(Fault::ExpectedOperand);
        };
        self.parts.push(Part { action: BEGIN, token });
        self.at += 1;
        self.deeper(|parser| {
            parser.expect(open)?;
            if parser.next() != close {
                parser.level(calls.level)?;
                while parser.next() == calls.comma {
                    parser.at += 1;
                    parser.level(calls.level)?;
                }
            }
            parser.expect(close)
        })?;
        self.parts.push(Part { action: CALL, token });
        Ok(())
    }
}
