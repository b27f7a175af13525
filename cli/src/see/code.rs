//! `synth code`: live synthesized code of a running system, with its birth certificates.

use bootimage::inspect::{Fields, opcode};
use clap::Args;
use serde_json::{Value, json};

use super::client::Client;
use super::{Which, listing, ps};
use crate::failure::{Failure, TOOL};

#[derive(Args, Debug)]
pub struct CodeOptions {
    /// fd:N (entries of a descriptor), thread:N (a thread's own code and calls), quaject NAME (routines whose name holds
    /// NAME), or an address
    #[arg(value_name = "fd:N | thread:N | quaject NAME | ADDRESS", num_args = 0..=2)]
    pub what: Vec<String>,
    /// The process whose descriptors are meant
    #[arg(long, value_name = "PID", default_value_t = 1)]
    pub pid: u32,
    /// For each folded value: the fact it stands for, and what would invalidate it
    #[arg(long)]
    pub why: bool,
    /// Print an array of objects: each routine with its certificate, and its bytes in hexadecimal when one is named
    #[arg(long)]
    pub json: bool,
    /// List what fills the code store, in this order
    #[arg(long, value_name = "ORDER", value_enum)]
    pub by: Option<Order>,
    #[command(flatten)]
    pub which: Which,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Order {
    Size,
    Name,
    Address,
}

/// One live routine, as the list of all has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    pub address: u64,
    pub bytes: u32,
    pub name: String,
    pub maker: String,
}

impl Routine {
    fn as_json(&self) -> Value {
        json!({ "address": self.address, "bytes": self.bytes, "name": self.name, "maker": self.maker })
    }
}

/// One hole of a template, filled.
#[derive(Clone, Debug)]
pub struct Hole {
    pub name: String,
    /// 0 an address, 1 a number, 2 a jump out of the routine, 3 a jump inside it (`value` is an offset).
    pub kind: u8,
    pub value: u64,
    /// What the word at the address holds now.
    pub now: Option<u64>,
    pub is: String,
    pub until: String,
}

/// A stretch of a routine that came from one template.
#[derive(Clone, Debug)]
pub struct Part {
    pub name: String,
    pub offset: u32,
    pub bytes: u32,
    pub holes: Vec<Hole>,
}

/// Everything about one routine.
#[derive(Clone, Debug)]
pub struct Certificate {
    pub routine: Routine,
    pub references: u32,
    pub contract: String,
    pub parts: Vec<Part>,
    pub code: Vec<u8>,
}

impl Certificate {
    fn as_json(&self, entry: &str) -> Value {
        let hole = |hole: &Hole| json!({ "name": hole.name, "value": hole.value, "now": hole.now, "is": hole.is, "until": hole.until });
        let part = |part: &Part| {
            let holes: Vec<_> = part.holes.iter().map(hole).collect();
            json!({ "template": part.name, "offset": part.offset, "bytes": part.bytes, "holes": holes })
        };
        let parts: Vec<_> = self.parts.iter().map(part).collect();
        let code: String = self.code.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({
            "entry": entry,
            "address": self.routine.address,
            "routine": self.routine.as_json(),
            "references": self.references,
            "contract": self.contract,
            "parts": parts,
            "code": code,
        })
    }
}

pub fn code(client: &mut Client, options: &CodeOptions) -> Result<u8, Failure> {
    let all = routines(client)?;
    if options.what.is_empty() || options.by.is_some() {
        let sorted = listing::sorted(all, options.by.unwrap_or(Order::Address));
        if options.json {
            super::print_json(&sorted.iter().map(Routine::as_json).collect());
        } else {
            super::print(&listing::table(&sorted));
        }
        return Ok(0);
    }
    let Found { heading, entries } = entries(client, options, &all)?;
    if options.json {
        let mut found = Vec::new();
        for (title, address) in &entries {
            found.push(match certificate(client, *address)? {
                Some(certificate) => certificate.as_json(title),
                None => json!({ "entry": title, "address": address, "routine": null }),
            });
        }
        super::print_json(&found.into());
        return Ok(0);
    }
    super::print(&heading);
    for (number, (title, address)) in entries.iter().enumerate() {
        if number > 0 {
            super::print("\n");
        }
        match certificate(client, *address)? {
            Some(certificate) => super::print(&listing::show(title, *address, &certificate, &all, options.why)),
            None => super::print(&format!("{title}: {address:#x} is no synthesized code: the call is done in Rust\n")),
        }
    }
    Ok(0)
}

/// All live routines, by address.
pub fn routines(client: &mut Client) -> Result<Vec<Routine>, Failure> {
    let bytes = client.ask(opcode::ROUTINES, &[])?.unwrap_or_default();
    client.items(&bytes, |from| {
        Some(Routine { address: from.u64()?, bytes: from.u32()?, name: text(from)?, maker: text(from)? })
    })
}

fn text(from: &mut Fields<'_>) -> Option<String> {
    from.text().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// What was asked for.
struct Found {
    /// For people, in front of it.
    heading: String,
    /// Titles and addresses.
    entries: Vec<(String, u64)>,
}

impl From<Vec<(String, u64)>> for Found {
    fn from(entries: Vec<(String, u64)>) -> Found {
        Found { heading: String::new(), entries }
    }
}

fn entries(client: &mut Client, options: &CodeOptions, all: &[Routine]) -> Result<Found, Failure> {
    let words: Vec<&str> = options.what.iter().map(String::as_str).collect();
    match words[..] {
        ["quaject", name] => {
            let found = all.iter().filter(|routine| routine.name.contains(name));
            let found: Vec<_> = found.map(|routine| (routine.name.clone(), routine.address)).collect();
            if found.is_empty() {
                let error = format!("no live routine has {name} in its name");
                return Err(Failure::new(TOOL, error, "synth code lists all"));
            }
            Ok(found.into())
        }
        [word] => match word.split_once(':') {
            Some(("fd", number)) => descriptor(client, options.pid, parse(number)?),
            Some(("thread", number)) => thread(client, parse(number)?),
            _ => address(word, all).map(Found::from),
        },
        _ => Err(misunderstood(&options.what.join(" "))),
    }
}

fn parse(number: &str) -> Result<u32, Failure> {
    number.parse().map_err(|_| misunderstood(number))
}

fn misunderstood(word: &str) -> Failure {
    let help = "give fd:N, thread:N, quaject NAME, or an address such as 0xffffffffc0000040";
    Failure::new(TOOL, format!("{word} is nothing that has code"), help)
}

fn descriptor(client: &mut Client, process: u32, descriptor: u32) -> Result<Found, Failure> {
    let arguments = [process.to_le_bytes(), descriptor.to_le_bytes()].concat();
    let Some(bytes) = client.ask(opcode::DESCRIPTOR, &arguments)? else {
        let is_there = ps::tasks(client)?.iter().any(|task| task.process == process);
        let what = if is_there { format!("has no descriptor {descriptor}") } else { "is not there".into() };
        return Err(Failure::new(TOOL, format!("process {process} {what}"), "synth ps and synth graph show what is"));
    };
    let get = |from: &mut Fields<'_>| {
        let (name, slow) = (text(from)?, from.u64()?);
        let mut entry = || Some((from.u64()?, from.u64()?));
        Some((name, slow, [entry()?, entry()?, entry()?]))
    };
    let items = client.items(&bytes, get)?;
    let Some((name, slow, entries)) = items.into_iter().next() else { return Ok(Vec::new().into()) };
    let mut text = format!("descriptor {descriptor} of process {process}: {name}\n\n");
    let mut found = Vec::new();
    for (call, (bound, own)) in ["read", "write", "lseek"].into_iter().zip(entries) {
        let state = match (bound, own) {
            (_, 0) if bound == slow => "done in Rust",
            (_, own) if own != 0 && bound == slow => "a routine, but the process's entries do not lead to it yet",
            _ => "a routine, bound",
        };
        text += &format!("{call:<6} {state}\n");
        if bound != slow || own != 0 {
            found.push((call.to_string(), if bound != slow { bound } else { own }));
        }
    }
    if !found.is_empty() {
        text.push('\n');
    }
    Ok(Found { heading: text, entries: found })
}

fn thread(client: &mut Client, thread: u32) -> Result<Found, Failure> {
    let Some(bytes) = client.ask(opcode::THREAD, &thread.to_le_bytes())? else {
        return Err(Failure::new(TOOL, format!("there is no thread {thread}"), "synth ps lists them"));
    };
    let entries = client.items(&bytes, |from| Some((text(from)?, from.u64()?)))?;
    let heading = format!("thread {thread}: calls that are not in this list are done in Rust\n\n");
    // `sw_in` is the second half of `sw_in_mmu`.
    let entries = entries.into_iter().filter(|(name, _)| name != "sw_in").collect();
    Ok(Found { heading, entries })
}

fn address(word: &str, all: &[Routine]) -> Result<Vec<(String, u64)>, Failure> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let address = u64::from_str_radix(digits, 16).map_err(|_| misunderstood(word))?;
    let routine = all.iter().find(|routine| address.wrapping_sub(routine.address) < routine.bytes.into());
    let Some(routine) = routine else {
        let error = format!("no live routine is at {address:#x}");
        return Err(Failure::new(TOOL, error, "it was retired, or never was: synth code lists those that live"));
    };
    Ok(vec![(routine.name.clone(), address)])
}

/// The certificate and the bytes of the routine at `address`; `None` when none is there.
fn certificate(client: &mut Client, address: u64) -> Result<Option<Certificate>, Failure> {
    let Some(bytes) = client.ask(opcode::ROUTINE, &address.to_le_bytes())? else { return Ok(None) };
    let get = |from: &mut Fields<'_>| {
        let (address, bytes, references) = (from.u64()?, from.u32()?, from.u32()?);
        let routine = Routine { address, bytes, name: text(from)?, maker: text(from)? };
        let (contract, count) = (text(from)?, from.u32()?);
        let parts = (0..count).map(|_| part(from)).collect::<Option<_>>()?;
        Some(Certificate { routine, references, contract, parts, code: Vec::new() })
    };
    let Some(mut certificate) = client.items(&bytes, get)?.into_iter().next() else { return Ok(None) };
    let Some(code) = client.ask(opcode::BYTES, &address.to_le_bytes())? else { return Ok(None) };
    certificate.code = code;
    Ok(Some(certificate))
}

fn part(from: &mut Fields<'_>) -> Option<Part> {
    let (name, offset, bytes, count) = (text(from)?, from.u32()?, from.u32()?, from.u16()?);
    let hole = |from: &mut Fields<'_>| {
        let (name, kind, value, now) = (text(from)?, from.u8()?, from.u64()?, from.u64()?);
        let now = (kind & 0x80 != 0).then_some(now);
        Some(Hole { name, kind: kind & 0x7F, value, now, is: text(from)?, until: text(from)? })
    };
    let holes = (0..count).map(|_| hole(from)).collect::<Option<_>>()?;
    Some(Part { name, offset, bytes, holes })
}
