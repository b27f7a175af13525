//! Stop, step, break: threads of programs that stand still.

use std::time::{Duration, Instant};

use bootimage::inspect::monitor as op;
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

use super::commands::usage;
use super::desk::{Done, Wrong, ask, evaluate_in};
use super::symbols::Modules;
use crate::see::client::Client;
use crate::see::ps;

/// How long a thread may take to come to where it stops.
const PATIENCE: Duration = Duration::from_secs(2);

pub const REGISTERS: [&str; 18] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
    "rip", "rflags",
];
const RIP: usize = 16;

struct Place {
    thread: u32,
    is_still: bool,
    why: u8,
    registers: Vec<u64>,
    code: Vec<u8>,
}

fn places(client: &mut Client) -> Done<Vec<Place>> {
    let bytes = ask(client, op::STANDING, &[])?.unwrap_or_default();
    Ok(client.items(&bytes, |from| {
        let (thread, is_still, why) = (from.u32()?, from.u8()? != 0, from.u8()?);
        let registers = REGISTERS.iter().map(|_| from.u64()).collect::<Option<_>>()?;
        Some(Place { thread, is_still, why, registers, code: from.take(16)?.to_vec() })
    })?)
}

/// Where that is in the program, if its file says so.
fn symbol(client: &mut Client, place: &Place) -> Done {
    let process = ps::tasks(client)?.into_iter().find(|task| task.thread == place.thread).map(|task| task.process);
    let Some(process) = process else { return Ok(String::new()) };
    let name = Modules::of(client, process)?.name(client, place.registers[RIP])?;
    Ok(name.map_or(String::new(), |name| format!(" ({name})")))
}

/// The instruction that comes next, and the registers.
fn shown(client: &mut Client, place: &Place) -> Done {
    let symbol = symbol(client, place)?;
    let why = ["stopped", "at a breakpoint", "stepped"].get(usize::from(place.why)).unwrap_or(&"stopped");
    let rip = place.registers[RIP];
    let mut decoder = Decoder::with_ip(64, &place.code, rip, DecoderOptions::NONE);
    let mut instruction = String::new();
    IntelFormatter::new().format(&decoder.decode(), &mut instruction);
    let mut text = format!("thread {}: {why} at {rip:#x}{symbol}: {instruction}\n", place.thread);
    for line in REGISTERS.iter().zip(&place.registers).collect::<Vec<_>>().chunks(6) {
        for (name, value) in line {
            text += &format!("  {name:<6} {value:16x}");
        }
        text.push('\n');
    }
    Ok(text)
}

/// Waits until the thread stands still.
fn wait(client: &mut Client, thread: u32) -> Done {
    let end = Instant::now() + PATIENCE;
    loop {
        let place = places(client)?.into_iter().find(|place| place.thread == thread);
        match place {
            Some(place) if place.is_still => return shown(client, &place),
            Some(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(2)),
            Some(_) => return Ok(format!("thread {thread} has not come back to its program yet; where shows it\n")),
            None => return Ok(format!("thread {thread} has ended\n")),
        }
    }
}

fn numbers<'a>(name: &str, rest: &'a str) -> Done<(u32, &'a str)> {
    let (first, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Ok((first.parse().map_err(|_| usage(name))?, rest.trim()))
}

fn absent(thread: u32) -> Wrong {
    Wrong::new(format!("there is no thread {thread}, or it does not stand still"))
}

pub fn stop(client: &mut Client, rest: &str) -> Done {
    let (thread, _) = numbers("stop", rest)?;
    ask(client, op::HALT, &[&thread.to_le_bytes()])?.ok_or_else(|| absent(thread))?;
    wait(client, thread)
}

fn go(client: &mut Client, thread: u32, steps: u32) -> Done<()> {
    ask(client, op::GO, &[&thread.to_le_bytes(), &steps.to_le_bytes()])?.ok_or_else(|| absent(thread)).map(|_| ())
}

pub fn step(client: &mut Client, rest: &str) -> Done {
    let (thread, steps) = numbers("step", rest)?;
    let steps = if steps.is_empty() { 1 } else { steps.parse::<u32>().map_err(|_| usage("step"))?.max(1) };
    go(client, thread, steps)?;
    wait(client, thread)
}

pub fn cont(client: &mut Client, rest: &str) -> Done {
    let (thread, _) = numbers("cont", rest)?;
    go(client, thread, 0)?;
    Ok(String::new())
}

fn set(client: &mut Client, name: &str, rest: &str, wanted: u8) -> Done {
    let (process, address) = numbers(name, rest)?;
    if address.is_empty() {
        return Err(usage(name));
    }
    let address = evaluate_in(client, address, Some(process))?;
    let done = ask(client, op::BREAK, &[&process.to_le_bytes(), &address.to_le_bytes(), &[wanted]]);
    match done {
        Ok(Some(_)) => Ok(String::new()),
        Ok(None) => Err(Wrong::new(format!("there is no process {process}"))),
        Err(failure) if failure.error.contains("refused") => {
            Err(Wrong::new(format!("process {process} has no private memory at {address:#x}")))
        }
        Err(failure) => Err(failure.into()),
    }
}

pub fn set_break(client: &mut Client, rest: &str) -> Done {
    set(client, "break", rest, 1)
}

pub fn unbreak(client: &mut Client, rest: &str) -> Done {
    set(client, "unbreak", rest, 0)
}

pub fn places_shown(client: &mut Client, _: &str) -> Done {
    let places = places(client)?;
    places.iter().filter(|place| place.is_still).map(|place| shown(client, place)).collect()
}

/// A register of a thread that stands still, for expressions: `thread.1.rip`.
pub fn register(client: &mut Client, thread: u32, name: &str) -> Option<u64> {
    let at = REGISTERS.iter().position(|known| *known == name)?;
    let places = places(client).ok()?;
    places.iter().find(|place| place.thread == thread && place.is_still).map(|place| place.registers[at])
}
