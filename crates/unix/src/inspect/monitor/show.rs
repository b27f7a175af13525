//! Commands that only look.

use alloc::format;
use alloc::string::String;

use codestore::Birth;

use super::commands::usage;
use super::{Answer, Line, Wrong};
use crate::inspect::gauges::of_kernel;

/// Most words that `x` shows at once.
const WORDS_MAX: u64 = 512;

pub fn list(line: &Line<'_>) -> Answer {
    let (unix, pattern) = (line.unix, line.rest.trim());
    let mut text = String::new();
    for part in unix.desk.parts.borrow().described().filter(|line| line.contains(pattern)) {
        text += &part;
    }
    for (name, word) in unix.desk.variables.borrow().iter().filter(|(name, _)| name.contains(pattern)) {
        text += &format!("{name} = {}\n", word.load(core::sync::atomic::Ordering::Relaxed) as i64);
    }
    unix.store.each_birth_from(0, |birth, _| {
        if birth.name.contains(pattern) {
            text += &format!("{:#x} {:>6} bytes  {:<24} {}\n", birth.address, birth.bytes, birth.name, birth.maker);
        }
        text.len() < super::TEXT_BYTES_MAX
    });
    Ok(text)
}

pub fn gauges(line: &Line<'_>) -> Answer {
    let pattern = line.rest.trim();
    let mut text = String::new();
    for (name, value) in of_kernel(line.unix).iter().filter(|(name, _)| name.contains(pattern)) {
        text += &format!("gauge.{name:<20} {value}\n");
    }
    let counts = line.unix.call_counts.iter().enumerate().filter(|(_, count)| count.get() > 0);
    for (name, count) in counts.map(|(number, count)| (abi::nr::name(number as u64).unwrap_or("?"), count.get())) {
        if name.contains(pattern) {
            text += &format!("calls.{name:<20} {count}\n");
        }
    }
    Ok(text)
}

pub fn threads(line: &Line<'_>) -> Answer {
    let unix = line.unix;
    let mut text = String::new();
    for number in unix.tasks.numbers_from(0) {
        let Some(task) = unix.tasks.task(number) else { continue };
        let name = *task.name.borrow();
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        text += &format!(
            "thread.{number:<5} process {:<5} {:?}  {}\n",
            task.process.pid,
            task.thread.state(),
            String::from_utf8_lossy(name)
        );
    }
    Ok(text)
}

/// The last word is the count if it is a number and something stands before it.
pub fn memory(line: &Line<'_>) -> Answer {
    let rest = line.rest.trim();
    let last = rest.rsplit_once(char::is_whitespace).and_then(|(front, last)| Some((front, last.parse::<u64>().ok()?)));
    let (address, count) = last.map_or((rest, 8), |(front, count)| (front, count.min(WORDS_MAX)));
    if address.is_empty() {
        return Err(usage("x"));
    }
    let mut address = line.expression(address)?;
    let mut text = String::new();
    for number in 0..count {
        let Some(word) = line.unix.machine.peek(address) else {
            return if number == 0 {
                Err(Wrong::new(format!("no memory of the kernel is at {address:#x}")))
            } else {
                Ok(text)
            };
        };
        let ends = number % 2 == 1 || number + 1 == count;
        let head = if number % 2 == 0 { format!("{address:#018x}  ") } else { String::new() };
        text += &format!("{head}{word:016x}{}", if ends { "\n" } else { "  " });
        let Some(next) = address.checked_add(8) else { break };
        address = next;
    }
    Ok(text)
}

fn birth(line: &Line<'_>) -> Result<Birth, Wrong> {
    let address = line.expression(line.rest)?;
    line.unix.store.birth(address).ok_or_else(|| Wrong::new(format!("no live routine is at {address:#x}")))
}

fn head(birth: &Birth) -> String {
    let Birth { name, maker, address, bytes, contract, .. } = birth;
    let contract = contract.rsplit("::").next().unwrap_or(contract);
    format!("{name}  made by {maker}  {bytes} bytes at {address:#x}  contract {contract}\n")
}

pub fn code(line: &Line<'_>) -> Answer {
    let birth = birth(line)?;
    let mut bytes = alloc::vec![0; birth.bytes as usize];
    line.unix.store.read(birth.address, &mut bytes);
    let mut text = head(&birth);
    for origin in &birth.origins {
        let range = origin.offset as usize..(origin.offset + origin.bytes) as usize;
        text += &format!("  {:<24}", origin.shape.name);
        for byte in bytes.get(range).unwrap_or_default() {
            text += &format!(" {byte:02x}");
        }
        text.push('\n');
    }
    Ok(text)
}

pub fn why(line: &Line<'_>) -> Answer {
    let birth = birth(line)?;
    let mut bytes = alloc::vec![0; birth.bytes as usize];
    line.unix.store.read(birth.address, &mut bytes);
    let mut text = head(&birth);
    for origin in &birth.origins {
        for (name, hole) in origin.holes(birth.address, &bytes) {
            let fact = kernel::call::fact(line.unix.machine, birth.name, name);
            let (is, until) = fact.map_or(("", ""), |fact| (fact.is, fact.until));
            text += &format!("  {:<20} {name:<12} = {:#x}  {is}; until {until}\n", origin.shape.name, hole.value);
        }
    }
    Ok(text)
}
