//! What the kernel is asked: operations, variables, quajects; and what names mean.

use bootimage::inspect::{Fields, monitor as op, opcode};
use monitor::blocks::{DATA_WORDS, KINDS, Kind};
use monitor::{CompileError, Ended, Error, LexError, OPS_MAX, Symbol, Symbols, SyntaxError, Token};

use super::reader;
use super::symbols::Modules;
use crate::failure::{Failure, TOOL};
use crate::see::client::Client;
use crate::see::{code, ps, top};

/// Why a line was not done.
pub enum Wrong {
    /// The line is wrong, here if anywhere: an offset in bytes.
    Line { column: Option<usize>, why: String },
    /// The system cannot be asked any more.
    System(Failure),
}

impl From<Failure> for Wrong {
    fn from(failure: Failure) -> Wrong {
        // What one request cannot have is not the end.
        match failure.status {
            crate::failure::UNAVAILABLE
                if !failure.error.contains("no memory") && !failure.error.contains("already") =>
            {
                Wrong::System(failure)
            }
            _ => Wrong::new(failure.error),
        }
    }
}

impl Wrong {
    pub fn new(why: impl Into<String>) -> Wrong {
        Wrong::Line { column: None, why: why.into() }
    }

    pub fn at(column: usize, why: impl Into<String>) -> Wrong {
        Wrong::Line { column: Some(column), why: why.into() }
    }

    /// The same, in a line in which the text begins later.
    pub fn later(self, by: usize) -> Wrong {
        match self {
            Wrong::Line { column, why } => Wrong::Line { column: column.map(|column| column + by), why },
            system => system,
        }
    }
}

pub type Done<T = String> = Result<T, Wrong>;

/// A quaject that people made.
pub struct Part {
    pub number: u32,
    pub kind: &'static Kind,
    pub words: u64,
    pub entries: Vec<u64>,
    /// Connection, quaject, callentry of each callout.
    pub links: Vec<(u8, u32, u8)>,
    /// The stream or the routine that it is of.
    pub of: String,
    /// What its words held when it was asked for.
    pub data: Vec<u64>,
}

impl Part {
    pub fn name(&self) -> String {
        format!("{}.{}", self.kind.name, self.number)
    }
}

/// Asks the monitor's part of the kernel.
pub fn ask(client: &mut Client, deed: u8, arguments: &[&[u8]]) -> Result<Option<Vec<u8>>, Failure> {
    let mut request = vec![deed];
    arguments.iter().for_each(|argument| request.extend_from_slice(argument));
    client.ask(opcode::MONITOR, &request)
}

pub fn parts(client: &mut Client) -> Done<Vec<Part>> {
    let bytes = ask(client, op::PARTS, &[])?.unwrap_or_default();
    Ok(client.items(&bytes, |from| {
        let (number, kind, words) = (from.u32()?, from.u8()?, from.u64()?);
        let kind = KINDS.get(usize::from(kind))?;
        let entries = kind.callentries.iter().map(|_| from.u64()).collect::<Option<_>>()?;
        let links = kind.callouts.iter().map(|_| Some((from.u8()?, from.u32()?, from.u8()?))).collect::<Option<_>>()?;
        let of = String::from_utf8_lossy(from.text()?).into_owned();
        let data = (0..DATA_WORDS).map(|_| from.u64()).collect::<Option<_>>()?;
        Some(Part { number, kind, words, entries, links, of, data })
    })?)
}

pub fn variables(client: &mut Client) -> Done<Vec<(String, u64)>> {
    let bytes = ask(client, op::VARIABLES, &[])?.unwrap_or_default();
    Ok(client.items(&bytes, |from| Some((String::from_utf8_lossy(from.text()?).into_owned(), from.u64()?)))?)
}

/// An end of a quaject: its part, its number in requests, and its place.
pub fn end(parts: &[Part], name: &str) -> Option<(usize, u8)> {
    let (part, end) = name.rsplit_once('.')?;
    let at = parts.iter().position(|known| known.name() == part)?;
    let kind = parts[at].kind;
    let callentry = kind.callentries.iter().position(|callentry| callentry.name == end);
    let callout = kind.callouts.iter().position(|(callout, _)| *callout == end);
    let place = match callentry {
        Some(place) => place as u8,
        None => op::CALLOUT | callout? as u8,
    };
    Some((at, place))
}

/// Fields of threads that can be named: `thread.1.ran_ns`.
pub const OF_THREADS: [&str; 8] =
    ["tte", "process", "descriptors", "ran_ns", "quantum_ns", "calls", "dispatch", "sw_in"];

/// What names mean, in a system.
pub struct Names<'a> {
    pub client: &'a mut Client,
    /// Whose symbols are names, too.
    process: Option<u32>,
    /// Why the last name could not be looked up.
    failure: Option<Failure>,
}

impl<'a> Names<'a> {
    pub fn new(client: &'a mut Client, process: Option<u32>) -> Names<'a> {
        Names { client, process, failure: None }
    }

    /// What a name of the kernel is, or of the process.
    fn find(&mut self, name: &str) -> Result<Option<Symbol>, Failure> {
        if let Some(found) = self.find_in_kernel(name)? {
            return Ok(Some(found));
        }
        let Some(process) = self.process else { return Ok(None) };
        let found = Modules::of(self.client, process).and_then(|mut modules| modules.address(self.client, name));
        match found {
            Ok(address) => Ok(address.map(Symbol::Constant)),
            Err(Wrong::System(failure)) => Err(failure),
            Err(Wrong::Line { .. }) => Ok(None),
        }
    }

    fn find_in_kernel(&mut self, name: &str) -> Result<Option<Symbol>, Failure> {
        if name.starts_with('$') {
            let answer = ask(self.client, op::VARIABLE, &[name.as_bytes()])?.unwrap_or_default();
            return Ok(Fields(&answer).u64().map(Symbol::Variable));
        }
        // A descriptor's stream becomes a quaject.
        let end = match super::streams::end_of(self.client, name, "get") {
            Ok(end) => end,
            Err(Wrong::System(failure)) => return Err(failure),
            Err(Wrong::Line { .. }) => return Ok(None),
        };
        let name = &end[..];
        let own = match parts(self.client) {
            Ok(parts) => part_symbol(&parts, name),
            Err(Wrong::System(failure)) => return Err(failure),
            Err(Wrong::Line { .. }) => None,
        };
        if own.is_some() {
            return Ok(own);
        }
        let (family, rest) = name.split_once('.').unwrap_or((name, ""));
        let constant = |value: Option<u64>| value.map(Symbol::Constant);
        match family {
            "gauge" | "calls" => {
                let (kernel, calls) = top::gauges(self.client)?;
                let found = if family == "gauge" { kernel.get(rest) } else { calls.get(rest) };
                Ok(constant(found.copied()))
            }
            "thread" => match self.thread(rest)? {
                Some(value) => Ok(Some(Symbol::Constant(value))),
                None => self.routine(name).map(constant),
            },
            _ => self.routine(name).map(constant),
        }
    }

    fn thread(&mut self, rest: &str) -> Result<Option<u64>, Failure> {
        let (number, field) = rest.split_once('.').unwrap_or((rest, "dispatch"));
        let Ok(number) = number.parse::<u32>() else { return Ok(None) };
        let tasks = ps::tasks(self.client)?;
        let Some(task) = tasks.iter().find(|task| task.thread == number) else { return Ok(None) };
        Ok(match field {
            "tte" => Some(task.tte.into()),
            "process" => Some(task.process.into()),
            "descriptors" => Some(task.descriptors.into()),
            "ran_ns" => Some(task.ran_ns),
            "quantum_ns" => Some(task.quantum_ns),
            "calls" => Some(task.calls),
            entry => {
                if let Some(value) = super::stops::register(self.client, number, entry) {
                    return Ok(Some(value));
                }
                let bytes = self.client.ask(opcode::THREAD, &number.to_le_bytes())?.unwrap_or_default();
                let entries = self.client.items(&bytes, |from| Some((from.text()?.to_vec(), from.u64()?)))?;
                entries.iter().find(|(known, _)| known == entry.as_bytes()).map(|(_, address)| *address)
            }
        })
    }

    /// The live routine of this name; `name@2`: the third one. It is no function: its contract is its own.
    fn routine(&mut self, name: &str) -> Result<Option<u64>, Failure> {
        let (name, number) = match name.split_once('@') {
            Some((name, number)) => (name, number.parse().unwrap_or(usize::MAX)),
            None => (name, 0),
        };
        let routines = code::routines(self.client)?;
        Ok(routines.iter().filter(|routine| routine.name == name).nth(number).map(|routine| routine.address))
    }
}

/// `queue.1.put` as a function, a callout as its slot, `queue.1` as its first word.
fn part_symbol(parts: &[Part], name: &str) -> Option<Symbol> {
    if let Some(part) = parts.iter().find(|part| part.name() == name) {
        return Some(Symbol::Word(part.words));
    }
    let (at, end) = end(parts, name)?;
    let part = &parts[at];
    if end & op::CALLOUT != 0 {
        return Some(Symbol::Word(part.words + 8 * (DATA_WORDS as u64 + u64::from(end & !op::CALLOUT))));
    }
    let callentry = part.kind.callentries[usize::from(end)];
    Some(Symbol::Function { entry: part.entries[usize::from(end)], arguments: callentry.arguments.into() })
}

impl Symbols for Names<'_> {
    fn resolve(&mut self, name: &str) -> Option<Symbol> {
        self.find(name).unwrap_or_else(|failure| {
            self.failure = Some(failure);
            None
        })
    }
}

/// The value of an expression: read and lowered here, compiled and run by the kernel.
pub fn evaluate(client: &mut Client, text: &str) -> Done<u64> {
    evaluate_in(client, text, None)
}

/// The same, where symbols of a process are names.
pub fn evaluate_in(client: &mut Client, text: &str, process: Option<u32>) -> Done<u64> {
    let expression = reader::read(text).map_err(unreadable)?;
    let mut names = Names::new(client, process);
    let lowered = monitor::lower(&expression, &mut names);
    if let Some(failure) = names.failure {
        return Err(failure.into());
    }
    let ops = lowered.map_err(|error| refused(text, &error))?;
    if ops.len() > OPS_MAX {
        return Err(Wrong::new("the expression is too long"));
    }
    let mut bytes = Vec::new();
    ops.iter().for_each(|op| monitor::encode(*op, &mut bytes));
    let answer = ask(client, op::EVALUATE, &[&bytes])?.unwrap_or_default();
    let mut fields = Fields(&answer);
    let (Some(value), Some(why)) = (fields.u64(), fields.u8()) else {
        return Err(Failure::new(TOOL, "the system gave no value", "").into());
    };
    match Ended::from_word(why.into()) {
        Ended::Well => Ok(value),
        Ended::BadAddress => Err(Wrong::new("it loads where no memory of the kernel is")),
        Ended::DividedByZero => Err(Wrong::new("it divides by zero")),
    }
}

/// What is wrong with a line that is no expression.
pub fn unreadable(error: Error) -> Wrong {
    let (why, column) = match error {
        Error::Lexical(LexError::Character(character, at)) => (format!("{character:?} begins nothing"), at),
        Error::Lexical(LexError::Number(at)) => ("this is no number of 64 bits".into(), at),
        Error::Syntax(error, at) => {
            let why = match error {
                SyntaxError::Expected(sign) => format!("{sign:?} is needed here"),
                SyntaxError::ExpectedOperand => "an operand is needed here".into(),
                SyntaxError::NotAPlace => "this is nothing that can be assigned to".into(),
                SyntaxError::TooLong => "the expression is too long".into(),
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
    Wrong::Line { column, why }
}
