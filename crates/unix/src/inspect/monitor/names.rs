//! What names in expressions mean.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;

use monitor::{Symbol, Symbols};

use super::VARIABLES_MAX;
use crate::emulator::Unix;
use crate::inspect::gauges;
use crate::task::Task;

/// The names of a running system.
pub struct Names {
    pub unix: &'static Unix,
}

impl Symbols for Names {
    fn resolve(&mut self, name: &str) -> Option<Symbol> {
        let unix = self.unix;
        if name.starts_with('$') {
            return variable(unix, name).map(Symbol::Variable);
        }
        let (family, rest) = name.split_once('.').unwrap_or((name, ""));
        match family {
            "gauge" if rest.starts_with(|first: char| !first.is_ascii_digit()) => gauges::of_kernel(unix)
                .iter()
                .find(|(known, _)| *known == rest)
                .map(|(_, value)| Symbol::Constant(*value)),
            "calls" => call_count(unix, rest),
            "thread" => thread(unix, rest).or_else(|| routine(unix, name)),
            _ => unix.desk.parts.borrow().symbol(name).or_else(|| routine(unix, name)),
        }
        .or_else(|| if family == "gauge" { unix.desk.parts.borrow().symbol(name) } else { None })
    }
}

/// The address of a variable's word; it is made, with 0, when it is new.
fn variable(unix: &Unix, name: &str) -> Option<u64> {
    let mut variables = unix.desk.variables.borrow_mut();
    if let Some((_, word)) = variables.iter().find(|(known, _)| known == name) {
        return Some(word.as_ptr() as u64);
    }
    if variables.len() >= VARIABLES_MAX {
        return None;
    }
    let word = Box::new(AtomicU64::new(0));
    let address = word.as_ptr() as u64;
    variables.push((name.to_string(), word));
    Some(address)
}

/// How often call `name` was done in Rust: a word that goes on counting.
fn call_count(unix: &Unix, name: &str) -> Option<Symbol> {
    let number = (0..abi::nr::COUNT).find(|number| abi::nr::name(*number as u64) == Some(name))?;
    Some(Symbol::Word(unix.call_counts.get(number)?.as_ptr() as u64))
}

/// What is known of a program's thread: `thread.1.rip`.
type Known = fn(&'static Unix, &Arc<Task>) -> u64;

const OF_THREADS: [(&str, Known); 10] = [
    ("dispatch", |_, task| task.thread.tte().entries().dispatch),
    ("sw_in", |_, task| task.thread.tte().entries().sw_in),
    ("sw_out", |_, task| task.thread.tte().entries().sw_out),
    ("calls", |_, task| task.calls()),
    ("ran_ns", |unix, task| unix.scheduler.ran(&task.thread).0),
    ("quantum_ns", |_, task| task.thread.tte().quantum().0),
    ("rip", |_, task| task.thread.tte().registers().rip),
    ("rsp", |_, task| task.thread.tte().registers().rsp),
    ("rax", |_, task| task.thread.tte().registers().rax),
    ("descriptors", |_, task| task.process.files().list().len() as u64),
];

fn thread(unix: &'static Unix, rest: &str) -> Option<Symbol> {
    let (number, field) = rest.split_once('.').unwrap_or((rest, "dispatch"));
    let task = unix.tasks.task(number.parse().ok()?)?;
    let (_, known) = OF_THREADS.iter().find(|(name, _)| *name == field)?;
    Some(Symbol::Constant(known(unix, &task)))
}

/// The live routine of this name; `name@2`: the third one. It is no function: its contract is its own.
pub fn routine(unix: &Unix, name: &str) -> Option<Symbol> {
    let (name, number) = match name.split_once('@') {
        Some((name, number)) => (name, number.parse::<usize>().ok()?),
        None => (name, 0),
    };
    let (mut seen, mut found) = (0, None);
    unix.store.each_birth_from(0, |birth, _| {
        if birth.name == name {
            if seen == number {
                found = Some(birth.address);
            }
            seen += 1;
        }
        found.is_none()
    });
    found.map(Symbol::Constant)
}

/// All names that begin so, sorted.
pub fn beginning_with(unix: &'static Unix, start: &str) -> Vec<String> {
    let mut names: Vec<String> = super::COMMANDS.iter().map(|command| command.name.to_string()).collect();
    names.extend(unix.desk.variables.borrow().iter().map(|(name, _)| name.clone()));
    names.extend(gauges::of_kernel(unix).iter().map(|(name, _)| "gauge.".to_string() + name));
    let called = unix.call_counts.iter().enumerate().filter(|(_, count)| count.get() > 0);
    names.extend(called.filter_map(|(number, _)| Some("calls.".to_string() + abi::nr::name(number as u64)?)));
    for number in unix.tasks.numbers_from(0).into_iter().filter(|number| unix.tasks.task(*number).is_some()) {
        names.extend(OF_THREADS.iter().map(|(field, _)| alloc::format!("thread.{number}.{field}")));
    }
    names.extend(unix.desk.parts.borrow().names());
    unix.store.each_birth_from(0, |birth, _| {
        if birth.name.starts_with(start) {
            names.push(birth.name.to_string());
        }
        true
    });
    names.retain(|name| name.starts_with(start));
    names.sort_unstable();
    names.dedup();
    names
}
