//! `synth monitor`: a line of text comes, is done at once, and text goes back (S-120).
//!
//! A line is a command ([`COMMANDS`]) or an expression, which is compiled, published, run and retired. It runs where it is
//! found, in the interrupt of the control port, so nothing of the kernel moves meanwhile. It cannot hurt: loads are
//! confined to the kernel's own memory and land when that is absent, the only stores are to variables and by the
//! callentries of parts, whose loops are bounded. No program can reach the port.

mod commands;
mod expression;
mod jobs;
mod names;
mod parts;
mod show;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;

use bootimage::inspect::Items;
use machine::KernelCell;

use super::{Cursor, Question, Refusal};
use crate::emulator::Unix;
use commands::COMMANDS;
use parts::Parts;

/// Variables that there can be.
const VARIABLES_MAX: usize = 64;
/// Longest answer to a line; the rest is left out.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// What people have laid out for themselves, kept while the system runs.
pub(crate) struct Desk {
    /// Their words stay where they are: code knows the addresses.
    variables: KernelCell<Vec<(String, Box<AtomicU64>)>>,
    parts: KernelCell<Parts>,
    /// The last answer and its number, until all of it was fetched.
    answer: KernelCell<(u32, Vec<u8>)>,
}

impl Desk {
    pub const fn new() -> Desk {
        Desk {
            variables: KernelCell::new(Vec::new()),
            parts: KernelCell::new(Parts::new()),
            answer: KernelCell::new((0, Vec::new())),
        }
    }
}

/// Why a line was not done.
#[derive(Debug)]
struct Wrong {
    /// Where in the line, in bytes, if anywhere.
    column: Option<usize>,
    why: String,
}

impl Wrong {
    fn new(why: impl Into<String>) -> Wrong {
        Wrong { column: None, why: why.into() }
    }

    fn at(column: usize, why: impl Into<String>) -> Wrong {
        Wrong { column: Some(column), why: why.into() }
    }
}

type Answer = Result<String, Wrong>;

/// A command's arguments.
struct Line<'a> {
    unix: &'static Unix,
    /// Behind the command's name.
    rest: &'a str,
    /// Where `rest` begins in the line.
    from: usize,
}

impl<'a> Line<'a> {
    fn words(&self) -> impl Iterator<Item = &'a str> {
        self.rest.split_ascii_whitespace()
    }

    fn expression(&self, text: &str) -> Result<u64, Wrong> {
        let from = text.as_ptr() as usize - self.rest.as_ptr() as usize + self.from;
        expression::evaluate(self.unix, text).map_err(|mut wrong| {
            wrong.column = wrong.column.map(|column| column + from);
            wrong
        })
    }
}

/// Does a line; further pages are of the answer to the last one.
pub fn line(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let unix = question.unix;
    let (number, at) = ((question.cursor >> 32) as u32, question.cursor as u32 as usize);
    if question.cursor == 0 {
        let text = core::str::from_utf8(question.arguments.0).map_err(|_| Refusal::Bad)?;
        let done = dispatch(unix, text);
        let mut answer = Vec::new();
        let (refused, column) = match &done {
            Ok(_) => (0, u32::MAX),
            Err(wrong) => (1, wrong.column.map_or(u32::MAX, |column| column as u32)),
        };
        answer.push(refused);
        answer.extend_from_slice(&column.to_le_bytes());
        let text = match &done {
            Ok(text) => text,
            Err(wrong) => &wrong.why,
        };
        answer.extend_from_slice(&text.as_bytes()[..text.len().min(TEXT_BYTES_MAX)]);
        let mut last = unix.desk.answer.borrow_mut();
        *last = (last.0.wrapping_add(1).max(1), answer);
    }
    let mut last = unix.desk.answer.borrow_mut();
    if question.cursor != 0 && (number != last.0 || at >= last.1.len()) {
        return Err(Refusal::Absent);
    }
    let end = last.1.len().min(at + out.room());
    out.bytes.extend_from_slice(&last.1[at..end]);
    if end < last.1.len() {
        return Ok(u64::from(last.0) << 32 | end as u64);
    }
    last.1 = Vec::new();
    Ok(0)
}

/// A command by its first word, or an expression.
fn dispatch(unix: &'static Unix, text: &str) -> Answer {
    let text = text.trim_end();
    let start = text.len() - text.trim_start().len();
    let trimmed = &text[start..];
    if trimmed.is_empty() || trimmed.starts_with('#') {
        return Ok(String::new());
    }
    let name = trimmed.split_ascii_whitespace().next().unwrap_or_default();
    if let Some(command) = COMMANDS.iter().find(|command| command.name == name) {
        let rest = trimmed[name.len()..].trim_start();
        return (command.run)(&Line { unix, rest, from: text.len() - rest.len() });
    }
    expression::evaluate(unix, trimmed).map(|value| expression::show(unix, value)).map_err(|mut wrong| {
        wrong.column = wrong.column.map(|column| column + start);
        wrong
    })
}
