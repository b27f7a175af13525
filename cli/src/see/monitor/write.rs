//! Memory and registers of programs and words of quajects: looked at, and with `--write` set.

use bootimage::inspect::monitor as op;

use super::commands::usage;
use super::desk::{Done, Wrong, ask, evaluate, evaluate_in, parts};
use super::stops::REGISTERS;
use crate::see::client::Client;
use crate::see::ps;

/// `thread.1:REST` as the thread's process and the rest.
pub fn memory_of<'a>(client: &mut Client, text: &'a str) -> Done<Option<(u32, &'a str)>> {
    let found = text.strip_prefix("thread.").and_then(|text| text.split_once(':'));
    let Some((Ok(thread), rest)) = found.map(|(number, rest)| (number.parse::<u32>(), rest)) else { return Ok(None) };
    let process = ps::tasks(client)?.into_iter().find(|task| task.thread == thread).map(|task| task.process);
    process.map(|process| Some((process, rest))).ok_or_else(|| Wrong::new(format!("there is no thread {thread}")))
}

/// Words of a program's memory, as far as it is there.
pub fn words(client: &mut Client, process: u32, address: u64, count: u32) -> Done<Vec<u64>> {
    let mut words = Vec::new();
    for at in 0..count.min(512) {
        let from = address.wrapping_add(8 * u64::from(at));
        let request: [&[u8]; 3] = [&process.to_le_bytes(), &from.to_le_bytes(), &8u32.to_le_bytes()];
        let Some(bytes) = ask(client, op::PEEK, &request)? else { break };
        let Ok(word) = bytes.try_into() else { break };
        words.push(u64::from_le_bytes(word));
    }
    Ok(words)
}

/// `(u8) rest`, `(u32 *) rest`: how many bytes; 8 without.
fn width(text: &str) -> Done<(usize, &str)> {
    let Some((name, rest)) = text.strip_prefix('(').and_then(|text| text.split_once(')')) else { return Ok((8, text)) };
    let name = name.trim_end_matches(['*', ' ']);
    let bytes = [("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8)].iter().find(|(known, _)| *known == name);
    Ok(bytes.map_or((8, text), |(_, bytes)| (*bytes, rest)))
}

/// `set PLACE = EXPRESSION`: a register, a quaject's first word, a program's memory.
pub fn set(client: &mut Client, rest: &str) -> Done {
    let (place, value) = rest.split_once('=').ok_or_else(|| usage("set"))?;
    let from = place.len() + 1;
    let place = place.trim();
    let value = evaluate(client, value).map_err(|wrong| wrong.later(from))?;
    if let Some((process, address)) = memory_of(client, place)? {
        let (bytes, address) = width(address)?;
        let address = evaluate_in(client, address, Some(process))?;
        return poke(client, process, address, &value.to_le_bytes()[..bytes]);
    }
    let part = parts(client)?.iter().find(|part| part.name() == place).map(|part| part.number);
    if let Some(number) = part {
        ask(client, op::SET, &[&number.to_le_bytes(), &value.to_le_bytes()])?;
        return Ok(String::new());
    }
    let register = place.strip_prefix("thread.").and_then(|text| text.split_once('.'));
    let register = register.and_then(|(thread, name)| {
        Some((thread.parse::<u32>().ok()?, REGISTERS.iter().position(|known| *known == name)?))
    });
    let (thread, number) = register.ok_or_else(|| Wrong::at(0, format!("{place} is no place that can be set")))?;
    let request: [&[u8]; 3] = [&thread.to_le_bytes(), &[number as u8], &value.to_le_bytes()];
    match ask(client, op::REGISTER, &request) {
        Ok(Some(_)) => Ok(String::new()),
        Ok(None) => Err(Wrong::new(format!("thread {thread} does not stand still; stop it first"))),
        Err(failure) if failure.error.contains("refused") => Err(Wrong::new("that is no address of a program")),
        Err(failure) => Err(failure.into()),
    }
}

fn poke(client: &mut Client, process: u32, address: u64, bytes: &[u8]) -> Done {
    let done = ask(client, op::POKE, &[&process.to_le_bytes(), &address.to_le_bytes(), bytes]);
    match done {
        Ok(Some(_)) => Ok(String::new()),
        Ok(None) => Err(Wrong::new(format!("there is no process {process}"))),
        Err(failure) if failure.error.contains("refused") => {
            Err(Wrong::new(format!("process {process} has no private memory at {address:#x}")))
        }
        Err(failure) if failure.error.contains("already") => Err(Wrong::new("a breakpoint is there; unbreak it first")),
        Err(failure) => Err(failure.into()),
    }
}
