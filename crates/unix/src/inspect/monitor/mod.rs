//! `synth monitor`: the kernel's part (S-120). The host tool has the language and the words for people; here operations
//! become code that is published, run and retired, and quajects are made, connected and run.
//!
//! All of it is done where a request is found, in the interrupt of the control port, so nothing of the kernel moves
//! meanwhile. It cannot hurt: operations leave the stack as it was ([`monitor::decode`]), loads are confined to the
//! kernel's own memory and land where that is absent, the only stores are to variables and by the callentries of parts,
//! whose loops are bounded. No program can reach the port.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "the monitor is the owner of the machine, who makes few parts"
)]

mod jobs;
mod parts;
mod programs;
mod stops;
mod streams;
mod watches;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use bootimage::inspect::Items;
use codestore::{Asked, Maker};
use kernel::schedule::WaitQueue;
use machine::{Exception, Held, KernelCell, Registers};
use monitor::{Allowed, Width, World, cut};

use super::{Answerer, Cursor, Question, Refusal};
use crate::emulator::Unix;
use crate::task::thread::Task;
use bootimage::inspect::monitor as op;
use parts::Parts;
use stops::Stops;

/// Variables that there can be.
const VARIABLES_MAX: usize = 64;
/// Most words of memory in an answer.
const WORDS_MAX: u32 = 512;
/// Most calls of a probe's request.
const TIMES_MAX: u32 = 10_000;

/// A name and its word.
type Variable = (Box<[u8]>, Box<AtomicU64>);

/// The monitor's places in the kernel. An image that is started without it has no code for it.
pub struct MonitorHooks {
    pub(super) answer: super::Answerer,
    pub(crate) before_user: fn(Held<'_>, &'static Unix, &Arc<Task>, &mut Registers),
    pub(crate) exception: fn(Held<'_>, &'static Unix, &Arc<Task>, &mut Registers, &Exception) -> bool,
}

/// The monitor (S-120).
pub static MONITOR: MonitorHooks = MonitorHooks {
    answer: monitor,
    before_user: |held, unix, task, registers| unix.desk.stops.before_user(held, unix, task, registers),
    exception: |held, unix, task, registers, exception| {
        unix.desk.stops.exception(held, unix, task, registers, exception)
    },
};

/// No monitor: its questions are unknown.
pub static NO_MONITOR: MonitorHooks = MonitorHooks {
    answer: |_, _| Err(Refusal::Unknown),
    before_user: |_, _, _, _| {},
    exception: |_, _, _, _, _| false,
};

/// What people have laid out for themselves, kept while the system runs.
pub(crate) struct Desk {
    /// Their words stay where they are: code knows the addresses.
    variables: KernelCell<Vec<Variable>>,
    parts: KernelCell<Parts>,
    pub(crate) stops: Stops,
    /// Pumps that had nothing to carry wait here.
    pumps: WaitQueue,
}

impl Desk {
    pub const fn new() -> Desk {
        Desk {
            variables: KernelCell::new(Vec::new()),
            parts: KernelCell::new(Parts::new()),
            stops: Stops::new(),
            pumps: WaitQueue::new(),
        }
    }

    /// Words of quajects may have moved: pumps look again.
    fn moved(&self, unix: &'static Unix) {
        unix.scheduler.wake(&self.pumps);
    }

    /// Sleeps until words may have moved, or one of the connected streams has news.
    fn wait(&self, held: Held<'_>, unix: &'static Unix) {
        let taps: Vec<_> = self.parts.borrow().taps().map(|(_, tap)| tap.clone()).collect();
        let mut queues = alloc::vec![&self.pumps];
        taps.iter().for_each(|tap| tap.each_queue(&mut |queue| queues.push(queue)));
        unix.scheduler.sleep(held, &queues, None);
    }
}

/// What follows the opcode [`bootimage::inspect::opcode::MONITOR`] as the first byte.
const DEEDS: [(u8, Answerer); 24] = [
    (op::EVALUATE, evaluate),
    (op::VARIABLE, variable),
    (op::VARIABLES, variables),
    (op::MEMORY, memory),
    (op::PARTS, parts::list),
    (op::NEW, parts::new),
    (op::CONNECT, parts::connect),
    (op::REMOVE, parts::remove),
    (op::TIMES, parts::times),
    (op::RUN, jobs::run),
    (op::JOBS, jobs::list),
    (op::HALT, stops::halt),
    (op::GO, stops::go),
    (op::BREAK, stops::set_break),
    (op::STANDING, stops::list),
    (op::OPEN, streams::open),
    (op::WATCH, watches::watch),
    (op::UNBIND, parts::unbind),
    (op::SET, parts::set),
    (op::AREAS, programs::areas),
    (op::FILE, programs::file),
    (op::PEEK, programs::peek),
    (op::POKE, programs::poke),
    (op::REGISTER, stops::set_register),
];

fn monitor(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let deed = question.arguments.u8().ok_or(Refusal::Bad)?;
    let (_, answer) = DEEDS.iter().find(|(known, _)| *known == deed).ok_or(Refusal::Unknown)?;
    answer(question, out)
}

/// What operations touch.
struct Touch(&'static Unix);

impl Allowed for Touch {
    fn is_variable(&self, address: u64) -> bool {
        self.0.desk.variables.borrow().iter().any(|(_, word)| word.as_ptr() as u64 == address)
    }

    fn is_function(&self, entry: u64, arguments: u8) -> bool {
        self.0.desk.parts.borrow().callentry_at(entry).is_some_and(|(_, takes)| takes == arguments)
    }
}

impl World for Touch {
    fn load(&mut self, address: u64, width: Width) -> Option<u64> {
        // Two aligned words hold every unaligned one.
        let (low, shift) = (address & !7, address % 8 * 8);
        let mut value = self.0.machine.peek(low)? >> shift;
        let bits = match width {
            Width::U8 | Width::I8 => 8,
            Width::U16 | Width::I16 => 16,
            Width::U32 | Width::I32 => 32,
            Width::Word => 64,
        };
        if shift + bits > 64 {
            value |= self.0.machine.peek(low.checked_add(8)?)? << (64 - shift);
        }
        Some(cut(width, value))
    }

    fn store(&mut self, address: u64, value: u64) {
        let variables = self.0.desk.variables.borrow();
        if let Some((_, word)) = variables.iter().find(|(_, word)| word.as_ptr() as u64 == address) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn call(&mut self, entry: u64, arguments: &[u64]) -> u64 {
        let mut words = [0; 6];
        words[..arguments.len()].copy_from_slice(arguments);
        let found = self.0.desk.parts.borrow().callentry_at(entry);
        found.map_or(monitor::blocks::NOTHING, |(code, _)| code.call(words))
    }
}

/// Operations become a routine, which runs and goes; with `--generic` they are interpreted.
fn evaluate(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let unix = question.unix;
    let ops = monitor::decode(question.arguments.0, &Touch(unix)).ok_or(Refusal::Bad)?;
    let (value, why) = if unix.options.generic {
        monitor::interpret(&ops, &mut Touch(unix)).map_or_else(|ended| (0, ended as u64), |value| (value, 0))
    } else {
        let draft = monitor::compile(&ops, Some(&unix.machine.kernel_range()));
        let code = unix.store.publish::<Asked>("monitor.expression", Maker::new("monitor"), draft);
        let ending = code.map_err(|_| Refusal::NoMemory)?.run();
        (ending.value, ending.why)
    };
    unix.desk.moved(unix);
    out.u64(value).u8(why as u8);
    Ok(0)
}

/// The address of the variable of a name; it is made, with 0, when it is new.
fn variable(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let name = question.arguments.0;
    let mut variables = question.unix.desk.variables.borrow_mut();
    let known = variables.iter().position(|(known, _)| **known == *name);
    if known.is_none() {
        if variables.len() >= VARIABLES_MAX || name.len() > 64 {
            return Err(Refusal::NoMemory);
        }
        variables.push((name.into(), Box::new(AtomicU64::new(0))));
    }
    let at = known.unwrap_or(variables.len() - 1);
    out.u64(variables[at].1.as_ptr() as u64);
    Ok(0)
}

fn variables(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    for (name, word) in &*question.unix.desk.variables.borrow() {
        out.text(name).u64(word.load(Ordering::Relaxed));
    }
    Ok(0)
}

/// Words from an address on, as far as the kernel's own memory is there.
fn memory(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let (mut address, count) = (question.u64()?, question.u32()?);
    for _ in 0..count.min(WORDS_MAX) {
        let Some(word) = question.unix.machine.peek(address) else { break };
        out.u64(word);
        let Some(next) = address.checked_add(8) else { break };
        address = next;
    }
    Ok(0)
}
