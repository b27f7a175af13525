//! `synth monitor`: C expressions and commands for a running system; the kernel compiles and runs them (S-120).
//!
//! ```text
//!   prompt ──line──► client ──socket──► synth run ──control port──► kernel: parse, compile, publish, run, retire
//! ```
//! Lines come from a terminal with history and completion, from a file or a pipe, or from `-c`. What the tool does
//! itself: `quit`, `! TEXT` (to the program's standard input), `code` (it has the disassembler), `trace`.

mod prompt;
mod system;

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};
use std::time::Duration;

use bootimage::inspect::{REQUEST_BYTES_MAX, opcode};
use clap::Args;

use super::client::Client;
use super::{Which, code, trace};
use crate::failure::Failure;
use system::System;

#[derive(Args, Debug)]
pub struct MonitorOptions {
    /// Do this line and end; may be repeated
    #[arg(short, long = "command", value_name = "LINE", allow_hyphen_values = true)]
    pub commands: Vec<String>,
    #[command(flatten)]
    pub which: Which,
    /// Boot a system of its own inside a Linux process instead of a virtual machine
    #[arg(long, conflicts_with = "of")]
    pub hosted: bool,
    /// Boot a system of its own that runs the plain Rust paths: expressions are interpreted
    #[arg(long, conflicts_with = "of")]
    pub generic: bool,
    /// Boot a system of its own that counts instructions as time
    #[arg(long, conflicts_with_all = ["of", "hosted"])]
    pub icount: bool,
    /// End after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<f64>,
    /// Add a file, a folder or a program to its guest; may be repeated
    #[arg(long, value_name = "HOST[:GUEST]")]
    pub with: Vec<OsString>,
    /// Boot a system of its own with this program; without one, with a shell, unless a system runs that can be asked
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM [ARGS]", conflicts_with = "of")]
    pub argv: Vec<OsString>,
}

impl MonitorOptions {
    fn wants_own(&self) -> bool {
        !self.argv.is_empty() || self.hosted || self.generic || self.icount
    }
}

/// A line was refused.
const REFUSED: u8 = 1;

/// Does the lines; status 1 when one of them was refused, in a script.
pub fn monitor(options: &MonitorOptions) -> Result<u8, Failure> {
    let mut system = None;
    let client = match options.which.of {
        None if options.wants_own() => None,
        of => match Client::connect(of) {
            Ok(client) => Some(client),
            Err(failure) if of.is_some() || failure.status != crate::failure::UNAVAILABLE => return Err(failure),
            Err(_) => None,
        },
    };
    let client = match client {
        Some(client) => client,
        None => system.insert(System::boot(options)?).connect()?,
    };
    let mut desk = Desk { client, system, refused: 0 };
    if !options.commands.is_empty() {
        for line in &options.commands {
            if !desk.take(line, "")? {
                break;
            }
        }
        return Ok(desk.status());
    }
    if std::io::stdin().is_terminal() {
        prompt::converse(&mut desk)?;
        return Ok(0);
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if !desk.take(&line, "")? {
            break;
        }
    }
    Ok(desk.status())
}

/// A conversation with one system.
struct Desk {
    client: Client,
    /// The system, where it is our own.
    system: Option<System>,
    refused: u32,
}

impl Desk {
    fn status(&self) -> u8 {
        if self.refused > 0 { REFUSED } else { 0 }
    }

    /// Does one line and prints what comes of it; `false`: that was the last. `prompt` stands before the line on the
    /// screen, if it was typed.
    fn take(&mut self, line: &str, prompt: &str) -> Result<bool, Failure> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["quit" | "exit"] => return Ok(false),
            ["sleep", seconds] => {
                let seconds = seconds.parse::<f64>().unwrap_or(0.0).clamp(0.0, 60.0);
                std::thread::sleep(Duration::from_secs_f64(seconds));
            }
            ["code", ..] if self.disassemble(line.trim_start()[4..].trim())? => {}
            ["trace", rest @ ..] => super::print(&trace::as_text(&mut self.client, rest)?),
            [first, ..] if first.starts_with('!') => {
                let text = line.trim_start()[1..].trim_start();
                match &mut self.system {
                    Some(system) => system.type_in(text),
                    None => self.complain(
                        line,
                        None,
                        prompt,
                        "the system is not this monitor's own: its input is elsewhere",
                    ),
                }
            }
            _ => match self.ask(line)? {
                (None, text) => super::print(&text),
                (Some(column), why) => self.complain(line, column, prompt, &why),
            },
        }
        Ok(true)
    }

    /// A line's answer: with `Some` it was refused, and the wrong character is there, if it is anywhere.
    fn ask(&mut self, line: &str) -> Result<(Option<Option<usize>>, String), Failure> {
        if line.len() > REQUEST_BYTES_MAX - 16 {
            return Ok((Some(None), "the line is too long".into()));
        }
        let answer = self.client.ask(opcode::MONITOR, line.as_bytes())?.unwrap_or_default();
        let Some(([refused, column @ ..], text)) = answer.split_first_chunk::<5>() else {
            return Ok((Some(None), "there is no answer".into()));
        };
        let column = u32::from_le_bytes(*column);
        let column = (column != u32::MAX).then_some(column as usize);
        Ok(((*refused != 0).then_some(column), String::from_utf8_lossy(text).into_owned()))
    }

    /// As a compiler does: the line, a caret under the wrong character, the reason.
    fn complain(&mut self, line: &str, column: Option<usize>, prompt: &str, why: &str) {
        self.refused += 1;
        if let Some(column) = column {
            let before = line.get(..column).unwrap_or(line).chars().count();
            if prompt.is_empty() {
                eprintln!("  {line}");
            }
            let indent = if prompt.is_empty() { 2 } else { prompt.chars().count() };
            eprintln!("{}^", " ".repeat(indent + before));
        }
        eprintln!("error: {why}");
    }

    /// Shows the code at what an expression is worth; `false` where that is no address of code.
    fn disassemble(&mut self, text: &str) -> Result<bool, Failure> {
        let (refused, answer) = self.ask(text)?;
        let address = answer.split_whitespace().find(|word| word.starts_with("0x"));
        let Some(address) = address.filter(|_| refused.is_none() && answer.contains(" + ")) else { return Ok(false) };
        let what = vec![address.to_string()];
        let options = code::CodeOptions { what, pid: 1, why: false, by: None, which: Which { of: None } };
        code::code(&mut self.client, &options).map(|_| true)
    }

    /// Names that begin so.
    fn names(&mut self, start: &str) -> Vec<String> {
        let answer = self.ask(&format!("names {start}"));
        answer.map_or(Vec::new(), |(_, text)| text.lines().map(str::to_string).collect())
    }
}
