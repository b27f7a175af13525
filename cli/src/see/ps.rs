//! `synth ps`: the threads of a running system.

use std::fmt::Write;

use bootimage::inspect::{Task, opcode, state};
use clap::Args;
use serde_json::{Value, json};

use super::Which;
use super::client::Client;
use crate::failure::Failure;

#[derive(Args, Debug)]
pub struct PsOptions {
    /// Print an array of objects instead of a table; times in nanoseconds
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub which: Which,
}

/// Prints one line for each thread.
pub fn ps(client: &mut Client, options: &PsOptions) -> Result<u8, Failure> {
    let tasks = tasks(client)?;
    if options.json {
        super::print_json(&tasks.iter().map(as_json).collect());
    } else {
        super::print(&table(&tasks));
    }
    Ok(0)
}

pub fn as_json(task: &Task) -> Value {
    json!({
        "pid": task.process,
        "tid": task.thread,
        "ppid": task.parent,
        "state": state_name(task.state),
        "ran_ns": task.ran_ns,
        "calls": task.calls,
        "quantum_ns": task.quantum_ns,
        "descriptors": task.descriptors,
        "name": String::from_utf8_lossy(&task.name),
        "waits_for": waits_for(task),
    })
}

/// All threads.
pub fn tasks(client: &mut Client) -> Result<Vec<Task>, Failure> {
    let bytes = client.ask(opcode::TASKS, &[])?.unwrap_or_default();
    client.items(&bytes, Task::get)
}

pub fn table(tasks: &[Task]) -> String {
    let mut text =
        String::from("  PID   TID  PPID STATE       TIME      CALLS  QUANTUM FDS NAME             WAITS FOR\n");
    for task in tasks {
        let _ = writeln!(
            text,
            "{:>5} {:>5} {:>5} {:<8} {:>7} {:>10} {:>5} us {:>3} {:<16} {}",
            task.process,
            task.thread,
            task.parent,
            state_name(task.state),
            time(task.ran_ns),
            task.calls,
            task.quantum_ns / 1000,
            task.descriptors,
            String::from_utf8_lossy(&task.name),
            waits_for(task)
        );
    }
    text
}

pub fn state_name(number: u8) -> &'static str {
    match number {
        state::RUNNING => "running",
        state::READY => "ready",
        state::ASLEEP => "asleep",
        state::ENDED => "ended",
        state::STOPPED => "stopped",
        state::ZOMBIE => "zombie",
        _ => "?",
    }
}

/// Nanoseconds in three digits or so.
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} us", ns / 1000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

/// The call that a sleeping thread is in, and what its descriptor leads to.
pub fn waits_for(task: &Task) -> String {
    if task.call == u16::MAX {
        return String::new();
    }
    let name = abi::nr::name(task.call.into()).unwrap_or("?");
    if task.waits_for.is_empty() {
        return name.to_string();
    }
    format!("{name} fd {} {}", task.arguments[0] as u32, String::from_utf8_lossy(&task.waits_for))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeping_reader_shows_what_it_reads() {
        let task = Task { call: 0, arguments: [3, 0, 0], waits_for: b"pipe:[1]".to_vec(), ..Task::default() };
        assert_eq!(waits_for(&task), "read fd 3 pipe:[1]");
        let nothing = Task { call: u16::MAX, ..Task::default() };
        assert_eq!(waits_for(&nothing), "");
        assert!(table(std::slice::from_ref(&task)).contains("running"));
        assert_eq!(as_json(&task)["waits_for"], "read fd 3 pipe:[1]");
    }
}
