//! Expressions: read, compiled, published, run, retired; with `--generic` interpreted.

use alloc::format;
use alloc::string::String;

use codestore::{Asked, Maker};
use monitor::{CompileError, Ended, Error, Expression, LexError, Rules, SyntaxError, Token, Width, World, cut};

use super::Wrong;
use super::names::Names;
use crate::emulator::Unix;

/// The value of an expression.
pub fn evaluate(unix: &'static Unix, text: &str) -> Result<u64, Wrong> {
    let expression = monitor::parse(text).map_err(unreadable)?;
    let rules = Rules { reach: Some(unix.machine.kernel_range()), stores: false };
    let draft = monitor::compile(&expression, &mut Names { unix }, &rules).map_err(|error| refused(text, &error))?;
    let (value, ended) = if unix.options.generic {
        interpret(unix, &expression)
    } else {
        let code = unix.store.publish::<Asked>("monitor.expression", Maker::new("monitor"), draft);
        let code = code.map_err(|error| Wrong::new(format!("no room for the code: {error:?}")))?;
        let ending = code.run();
        (ending.value, Ended::from_word(ending.why))
    };
    match ended {
        Ended::Well => Ok(value),
        Ended::BadAddress => Err(Wrong::new("it loads where no memory of the kernel is")),
        Ended::DividedByZero => Err(Wrong::new("it divides by zero")),
    }
}

fn interpret(unix: &'static Unix, expression: &Expression) -> (u64, Ended) {
    match monitor::interpret(expression, &mut Names { unix }) {
        Ok(value) => (value, Ended::Well),
        Err(ended) => (0, ended),
    }
}

impl World for Names {
    fn load(&mut self, address: u64, width: Width) -> Option<u64> {
        // Two aligned words hold every unaligned one.
        let (low, shift) = (address & !7, address % 8 * 8);
        let first = self.unix.machine.peek(low)? >> shift;
        let bits = match width {
            Width::U8 | Width::I8 => 8,
            Width::U16 | Width::I16 => 16,
            Width::U32 | Width::I32 => 32,
            Width::Word => 64,
        };
        if shift + bits <= 64 {
            return Some(cut(width, first));
        }
        let second = self.unix.machine.peek(low.checked_add(8)?)? << (64 - shift);
        Some(cut(width, first | second))
    }

    fn store(&mut self, address: u64, width: Width, value: u64) -> bool {
        let variables = self.unix.desk.variables.borrow();
        let variable = variables.iter().find(|(_, word)| word.as_ptr() as u64 == address);
        if let Some((_, word)) = variable {
            word.store(value, core::sync::atomic::Ordering::Relaxed);
        }
        variable.is_some() && width == Width::Word
    }

    fn call(&mut self, entry: u64, arguments: &[u64]) -> u64 {
        let mut words = [0; 6];
        words[..arguments.len()].copy_from_slice(arguments);
        let code = self.unix.desk.parts.borrow().code_at(entry);
        code.map_or(monitor::blocks::NOTHING, |code| code.call(words))
    }
}

fn unreadable(error: Error) -> Wrong {
    let (why, column): (String, usize) = match error {
        Error::Lexical(LexError::Character(character, at)) => (format!("{character:?} begins nothing"), at),
        Error::Lexical(LexError::Number(at)) => ("this is no number of 64 bits".into(), at),
        Error::Syntax(error, at) => {
            let why = match error {
                SyntaxError::Expected(sign) => format!("{sign:?} is needed here"),
                SyntaxError::ExpectedOperand => "an operand is needed here".into(),
                SyntaxError::NotAPlace => "this is nothing that can be assigned to".into(),
                SyntaxError::TooLong => {
                    format!("the expression is too long; at most {} operators", monitor::OPERATORS_MAX)
                }
                SyntaxError::TooDeep => format!("this is nested too deep; at most {} levels", monitor::DEPTH_MAX),
                SyntaxError::TooManyArguments => format!("at most {} arguments", monitor::ARGUMENTS_MAX),
                SyntaxError::Trailing => "the expression ends before this".into(),
            };
            (why, at)
        }
    };
    Wrong::at(column, why)
}

fn refused(text: &str, error: &CompileError) -> Wrong {
    let (name, why) = match error {
        CompileError::Unknown(name) => (name, format!("there is no {name}; list shows what there is")),
        CompileError::NotAPlace(name) => (name, format!("{name} has no place that this could go to")),
        CompileError::NotAFunction(name) => (name, format!("{name} cannot be called here")),
        CompileError::Arguments { name, takes, given } => {
            (name, format!("{name} takes {takes} arguments, not {given}"))
        }
        CompileError::MayNotStore => return Wrong::new("memory is only looked at; variables ($x) can be assigned to"),
    };
    let tokens = monitor::tokens(text).unwrap_or_default();
    let column = tokens.iter().find(|(token, _)| *token == Token::Name(name)).map(|(_, at)| *at);
    Wrong { column, why }
}

/// `42  0x2a`, and the routine that is there, if one is.
pub fn show(unix: &Unix, value: u64) -> String {
    let mut text = if value <= 9 { format!("{value}") } else { format!("{}  {value:#x}", value as i64) };
    if let Some(birth) = unix.store.birth(value) {
        text += &format!("  {} + {}", birth.name, value - birth.address);
    }
    text.push('\n');
    text
}
