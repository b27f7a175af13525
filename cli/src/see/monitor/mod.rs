//! `synth monitor`: C expressions and commands for a running system; the kernel compiles and runs them (S-120).
//!
//! ```text
//!   line ─ parse, lower ─► operations ──socket──► synth run ──control port──► kernel: compile, publish, run, retire
//! ```
//! Lines come from a terminal with history and completion, from a file or a pipe, or from `-c`. The
//! words for people are here; the kernel has the code generators, the quajects and the threads.

mod commands;
mod desk;
mod prompt;
mod reader;
mod stops;
mod streams;
mod symbols;
mod system;
mod write;

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};

use clap::Args;

use super::Which;
use super::client::Client;
use crate::failure::Failure;
use desk::Wrong;
use system::System;

#[derive(Args, Debug)]
pub struct MonitorOptions {
    /// Do this line and end; may be repeated
    #[arg(short, long = "command", value_name = "LINE", allow_hyphen_values = true)]
    pub commands: Vec<String>,
    #[command(flatten)]
    pub which: Which,
    /// Let `set` change words of quajects, and memory and registers of programs
    #[arg(long)]
    pub write: bool,
    /// Boot a system of its own, even while one runs that can be asked
    #[arg(long, conflicts_with = "of")]
    pub own: bool,
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
        self.own || !self.argv.is_empty() || self.hosted || self.generic || self.icount
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
    let mut desk = Desk { client, system, refused: 0, may_write: options.write };
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
    may_write: bool,
}

impl Desk {
    fn status(&self) -> u8 {
        if self.refused > 0 { REFUSED } else { 0 }
    }

    /// Does one line and prints what comes of it; `false`: that was the last. `prompt` stands before the line on the
    /// screen, if it was typed.
    fn take(&mut self, line: &str, prompt: &str) -> Result<bool, Failure> {
        if matches!(line.trim(), "quit" | "exit") {
            return Ok(false);
        }
        // `!x` is an expression.
        let sets = line.split_whitespace().next() == Some(commands::SET);
        let done = match line.trim_start().strip_prefix("! ") {
            None if sets && !self.may_write => Err(Wrong::new("this monitor only looks; start it with --write")),
            None => commands::take(&mut self.client, line),
            Some(text) => match &mut self.system {
                Some(system) => {
                    system.type_in(text.trim_start());
                    Ok(String::new())
                }
                None => Err(Wrong::new("the system is not this monitor's own: its input is elsewhere")),
            },
        };
        match done {
            Ok(text) => super::print(&text),
            Err(Wrong::System(failure)) => return Err(failure),
            Err(Wrong::Line { column, why }) => self.complain(line, column, prompt, &why),
        }
        Ok(true)
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

    /// Names that begin so.
    fn names(&mut self, start: &str) -> Vec<String> {
        commands::names(&mut self.client, start).unwrap_or_default()
    }
}
