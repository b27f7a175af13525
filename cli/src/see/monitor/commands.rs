//! The commands: what a line can begin with, besides expressions.

use std::time::{Duration, Instant};

use bootimage::inspect::{Fields, monitor as op};
use monitor::blocks::KINDS;

use super::desk::{Done, OF_THREADS, Part, Wrong, ask, end, evaluate, evaluate_in, parts, unreadable, variables};
use super::symbols::Modules;
use super::{reader, stops, streams, write};
use crate::failure::Failure;
use crate::see::client::Client;
use crate::see::{Which, code, ps, top, trace};

pub struct Command {
    pub name: &'static str,
    arguments: &'static str,
    does: &'static str,
    run: fn(&mut Client, &str) -> Done,
}

const fn command(
    name: &'static str,
    arguments: &'static str,
    does: &'static str,
    run: fn(&mut Client, &str) -> Done,
) -> Command {
    Command { name, arguments, does, run }
}

/// What only who started the monitor with `--write` may do.
pub const SET: &str = "set";

/// All there are. Whatever begins with none of these words is an expression.
pub const COMMANDS: &[Command] = &[
    command("help", "", "these lines", help),
    command("list", "[PATTERN]", "quajects, variables, routines", list),
    command("gauges", "[PATTERN]", "all gauges", gauges),
    command("threads", "", "the threads of programs", threads),
    command("x", "[thread.T:]ADDRESS [COUNT]", "words of the kernel's memory, or of a program's", memory),
    command(SET, "PLACE = EXPRESSION", "with --write: gauge.1, thread.1.rax, thread.1:(u32)counter", write::set),
    command("code", "NAME|ADDRESS|fd:N", "disassembles a routine, with its birth certificate", disassemble),
    command("why", "NAME|ADDRESS|fd:N", "the same, with what was folded in and until when it holds", why),
    command("new", "KIND [WORDS]", "makes a quaject: gauge queue switch pump monitor clock probe", new),
    command("connect", "PRODUCER CONSUMER", "connects two ends, also thread.T.fd.N; the interfacer says how", connect),
    command("remove", "QUAJECT", "takes it away, and what leads to it", remove),
    command("open", "thread.T.fd.N", "makes a program's stream a quaject of bytes", streams::open),
    command("bind", "CALLBACK CALLENTRY", "binds who is told; also a routine's, pipe.write.full", streams::bind),
    command("unbind", "QUAJECT.CALLOUT", "it leads nowhere again", streams::unbind),
    command("probe", "CALLENTRY [TIMES]", "calls it, and counts the ticks; a live routine is watched", probe),
    command(
        "watch",
        "ROUTINE [TIME]",
        "the same around a live pipe.read, file.write@1, fd:N, thread.T.fd.N",
        streams::watch,
    ),
    command("run", "CALLENTRY(ARGUMENTS)", "points a new thread of the kernel at it", run),
    command("jobs", "", "what these threads answered", jobs),
    command("stop", "THREAD", "a program's thread stands still", stops::stop),
    command("step", "THREAD [TIMES]", "it does so many instructions", stops::step),
    command("cont", "THREAD", "it goes on", stops::cont),
    command("break", "PROCESS ADDRESS", "its threads stop there", stops::set_break),
    command("unbreak", "PROCESS ADDRESS", "takes that away", stops::unbreak),
    command("where", "", "the threads that stand still, with their registers", stops::places_shown),
    command("trace", "[PID] [TIME]", "records calls, switches, interrupts and syntheses for a while", traced),
    command("names", "[START]", "all names that begin so", |client, start| Ok(names(client, start)?.join("\n") + "\n")),
    command("sleep", "SECONDS", "waits", sleep),
    command("wait", "EXPRESSION", "waits until it is there and not 0, at most 10 seconds", wait),
];

/// Does a line: a command by its first word, or an expression.
pub fn take(client: &mut Client, line: &str) -> Done {
    let text = line.trim();
    let from = line.len() - line.trim_start().len();
    if text.is_empty() || text.starts_with('#') {
        return Ok(String::new());
    }
    let name = text.split_whitespace().next().unwrap_or_default();
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        let value = evaluate(client, text).map_err(|wrong| wrong.later(from))?;
        return shown(client, value);
    };
    let rest = text[name.len()..].trim_start();
    (command.run)(client, rest).map_err(|wrong| wrong.later(from + text.len() - rest.len()))
}

/// `42  0x2a`, and the routine that is there, if one is.
fn shown(client: &mut Client, value: u64) -> Done {
    let mut text = if value <= 9 { format!("{value}") } else { format!("{}  {value:#x}", value as i64) };
    // Small numbers are nowhere.
    if value > 0xFFFF {
        let routines = code::routines(client)?;
        let routine = routines.iter().find(|routine| value.wrapping_sub(routine.address) < routine.bytes.into());
        if let Some(routine) = routine {
            text += &format!("  {} + {}", routine.name, value - routine.address);
        }
    }
    Ok(text + "\n")
}

pub fn usage(name: &str) -> Wrong {
    let found = COMMANDS.iter().find(|command| command.name == name);
    Wrong::new(found.map_or(String::new(), |command| format!("usage: {name} {}", command.arguments)))
}

fn help(_: &mut Client, _: &str) -> Done {
    let mut text =
        String::from("EXPRESSION: C's operators on 64-bit words: $x = 1 << 4, *(u8 *)pipe.read, gauge.switches\n");
    for Command { name, arguments, does, .. } in COMMANDS {
        text += &format!("{:<30}{does}\n", format!("{name} {arguments}"));
    }
    Ok(text + "! TEXT                        gives the program a line, where the system is the monitor's own\nquit\n")
}

fn list(client: &mut Client, pattern: &str) -> Done {
    let parts = parts(client)?;
    let lines = parts.iter().map(|part| described(part, &parts));
    let mut text: String = lines.filter(|line| line.contains(pattern)).collect();
    for (name, value) in variables(client)?.iter().filter(|(name, _)| name.contains(pattern)) {
        text += &format!("{name} = {}\n", *value as i64);
    }
    for routine in code::routines(client)?.iter().filter(|routine| routine.name.contains(pattern)) {
        text += &format!("{:#x} {:>6} bytes  {:<24} {}\n", routine.address, routine.bytes, routine.name, routine.maker);
    }
    Ok(text)
}

/// Callentries, callouts and what they lead to, data.
pub fn described(part: &Part, all: &[Part]) -> String {
    let mut line = format!("{:<12}", part.name());
    for callentry in part.kind.callentries {
        let arguments = ["", "a", "a, b"][usize::from(callentry.arguments.min(2))];
        line += &format!("  {}({arguments})", callentry.name);
    }
    for ((callout, _), (connection, to, place)) in part.kind.callouts.iter().zip(&part.links) {
        let to = all.iter().find(|part| part.number == *to && *connection > 0);
        let to = to.map_or("nowhere".to_string(), |to| {
            let callentry = to.kind.callentries[usize::from(*place)].name;
            format!("{}.{callentry} ({})", to.name(), op::CONNECTIONS[usize::from(*connection)])
        });
        line += &format!("  {callout} -> {to}");
    }
    if !part.of.is_empty() {
        line += &format!("  of {}", part.of);
    }
    match (part.kind.name, &part.data[..]) {
        ("watch", [calls, ticks, most, least, left, _]) => {
            line += &format!(": {calls} calls");
            if *calls > 0 {
                line += &format!(" of {} ticks, least {least}, most {most}", ticks / calls);
            }
            line += &format!(", {left} left to Rust");
        }
        ("stream", [got, put, standing, ..]) => {
            line += &format!(": {got} got, {put} put");
            line += match standing {
                0 => "",
                1 => ", ended",
                _ => ", failed",
            };
        }
        ("pump", [_, held, total, ..]) if *total > 0 || *held > 0 => {
            line += &format!("  {total} carried{}", if *held > 0 { ", one waits" } else { "" });
        }
        _ => {}
    }
    line + "\n"
}

fn gauges(client: &mut Client, pattern: &str) -> Done {
    let (kernel, calls) = top::gauges(client)?;
    let lines = kernel.iter().map(|(name, value)| format!("gauge.{name:<20} {value}\n"));
    let lines = lines.chain(calls.iter().map(|(name, value)| format!("calls.{name:<20} {value}\n")));
    Ok(lines.filter(|line| line.contains(pattern)).collect())
}

fn threads(client: &mut Client, _: &str) -> Done {
    Ok(ps::table(&ps::tasks(client)?))
}

/// The last word is the count if it is a number and something stands before it.
fn memory(client: &mut Client, rest: &str) -> Done {
    let last = rest.rsplit_once(char::is_whitespace).and_then(|(front, last)| Some((front, last.parse::<u32>().ok()?)));
    let (address, count) = last.unwrap_or((rest, 8));
    if address.is_empty() {
        return Err(usage("x"));
    }
    let (address, words) = match write::memory_of(client, address)? {
        Some((process, address)) => {
            let address = evaluate_in(client, address, Some(process))?;
            (address, write::words(client, process, address, count)?)
        }
        None => {
            let address = evaluate(client, address)?;
            let bytes = ask(client, op::MEMORY, &[&address.to_le_bytes(), &count.to_le_bytes()])?.unwrap_or_default();
            (address, client.items(&bytes, |from| from.u64())?)
        }
    };
    if words.is_empty() {
        return Err(Wrong::new(format!("no such memory is at {address:#x}")));
    }
    let mut text = String::new();
    for (number, pair) in words.chunks(2).enumerate() {
        text += &format!("{:#018x} ", address.wrapping_add(16 * number as u64));
        pair.iter().for_each(|word| text += &format!(" {word:016x}"));
        text.push('\n');
    }
    Ok(text)
}

fn code_at(client: &mut Client, text: &str, why: bool) -> Done {
    let address = streams::routine(client, text)?;
    let options = code::CodeOptions {
        what: vec![format!("{address:#x}")],
        pid: 1,
        why,
        json: false,
        by: None,
        which: Which { of: None },
    };
    code::code(client, &options)?;
    Ok(String::new())
}

fn disassemble(client: &mut Client, text: &str) -> Done {
    code_at(client, text, false)
}

fn why(client: &mut Client, text: &str) -> Done {
    code_at(client, text, true)
}

/// The number in an answer that is one.
pub fn number(answer: Option<Vec<u8>>) -> Done<u32> {
    let answer = answer.unwrap_or_default();
    Fields(&answer).u32().ok_or_else(|| Wrong::new("the kernel refused it"))
}

fn make(client: &mut Client, kind: u8, words: u32) -> Done<u32> {
    number(ask(client, op::NEW, &[&[kind], &words.to_le_bytes()])?)
}

fn new(client: &mut Client, rest: &str) -> Done {
    let mut words = rest.split_whitespace();
    let name = words.next().ok_or_else(|| usage("new"))?;
    let kind = KINDS.iter().position(|kind| kind.name == name).ok_or_else(|| usage("new"))?;
    let size = words.next().map_or(Ok(16), str::parse::<u32>).map_err(|_| usage("new"))?;
    if !size.is_power_of_two() || size > 4096 {
        return Err(Wrong::new("a queue has 1 to 4096 words, a power of two"));
    }
    let number = make(client, kind as u8, size)?;
    let parts = parts(client)?;
    let made = parts.iter().find(|part| part.number == number);
    Ok(made.map_or(String::new(), |part| described(part, &parts)))
}

/// An end as requests have it.
pub fn side(parts: &[Part], name: &str) -> Done<[u8; 5]> {
    let (at, end) = end(parts, name)
        .ok_or_else(|| Wrong::new(format!("{name} is no callentry or callout of a quaject; list shows them")))?;
    let [a, b, c, d] = parts[at].number.to_le_bytes();
    Ok([a, b, c, d, end])
}

pub fn refusal(failure: Failure, from: &str, to: &str) -> Wrong {
    match &failure.error {
        error if error.contains("already") => Wrong::new("calls would come back to where they began, or tell a stream"),
        error if error.contains("refused") => Wrong::new(format!("{from} does not produce what {to} consumes")),
        _ => failure.into(),
    }
}

fn connect(client: &mut Client, rest: &str) -> Done {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let [from, to] = words[..] else { return Err(usage("connect")) };
    let (from, to) = (&streams::end_of(client, from, "get")?[..], &streams::end_of(client, to, "put")?[..]);
    connect_ends(client, from, to)
}

/// Connects two ends by name.
pub fn connect_ends(client: &mut Client, from: &str, to: &str) -> Done {
    let before = parts(client)?;
    let sides = [side(&before, from)?, side(&before, to)?];
    let answer = ask(client, op::CONNECT, &[&sides[0], &sides[1]]).map_err(|failure| refusal(failure, from, to))?;
    let answer = answer.unwrap_or_default();
    let mut fields = Fields(&answer);
    let (connection, between) = (fields.u8().unwrap_or(0), fields.u32().unwrap_or(0));
    let after = parts(client)?;
    let name = op::CONNECTIONS.get(usize::from(connection)).unwrap_or(&"nothing");
    let mut text = format!("{name}\n");
    for part in after.iter().filter(|part| part.number == between) {
        text = format!("{name}: {}", described(part, &after));
    }
    Ok(text)
}

fn remove(client: &mut Client, name: &str) -> Done {
    let number = parts(client)?.iter().find(|part| part.name() == name).map(|part| part.number);
    let number = number.ok_or_else(|| Wrong::new(format!("there is no quaject {name}; list shows them")))?;
    ask(client, op::REMOVE, &[&number.to_le_bytes()])?;
    Ok(String::new())
}

/// A probe is put before the callentry, called so often, and taken away; an empty one tells what probing takes.
fn probe(client: &mut Client, rest: &str) -> Done {
    let mut words = rest.split_whitespace();
    let name = words.next().ok_or_else(|| usage("probe"))?;
    if end(&parts(client)?, name).is_none() {
        return streams::watch(client, rest);
    }
    let times = words.next().map_or(Ok(1000), str::parse::<u32>).map_err(|_| usage("probe"))?.clamp(1, 10_000);
    let target = side(&parts(client)?, name)?;
    let mut measured = [0; 3];
    for (round, connected) in [(0, true), (1, false)] {
        let number = make(client, monitor::blocks::PROBE as u8, 16)?;
        let made = ask_probe(client, number, connected.then_some(target), times);
        ask(client, op::REMOVE, &[&number.to_le_bytes()])?;
        let (ticks, calls) = made.map_err(|wrong| match wrong {
            Wrong::Line { .. } => Wrong::new(format!("{name} cannot be probed: it does not take one word")),
            other => other,
        })?;
        measured[round] = ticks;
        measured[2] = calls;
    }
    let [ticks, empty, calls] = measured;
    let calls = calls.max(1);
    Ok(format!("{calls} calls, {} ticks each; a call of nothing takes {}\n", ticks / calls, empty / calls))
}

/// Ticks and calls of a probe.
fn ask_probe(client: &mut Client, number: u32, target: Option<[u8; 5]>, times: u32) -> Done<(u64, u64)> {
    let [a, b, c, d] = number.to_le_bytes();
    if let Some(target) = target {
        ask(client, op::CONNECT, &[&[a, b, c, d, op::CALLOUT], &target])?;
    }
    let all = parts(client)?;
    let probe = all.iter().find(|part| part.number == number).ok_or_else(|| Wrong::new("the probe has gone"))?;
    ask(client, op::TIMES, &[&probe.entries[0].to_le_bytes(), &times.to_le_bytes()])?;
    let bytes = ask(client, op::MEMORY, &[&probe.words.to_le_bytes(), &2u32.to_le_bytes()])?.unwrap_or_default();
    let mut fields = Fields(&bytes);
    Ok((fields.u64().unwrap_or(0), fields.u64().unwrap_or(0)))
}

fn run(client: &mut Client, rest: &str) -> Done {
    let (name, inner) = rest.split_once('(').ok_or_else(|| usage("run"))?;
    let inner = inner.strip_suffix(')').ok_or_else(|| usage("run"))?;
    let all = parts(client)?;
    let found = end(&all, name.trim_end()).filter(|(_, end)| end & op::CALLOUT == 0);
    let (at, place) =
        found.ok_or_else(|| Wrong::at(0, format!("{name} is no callentry of a quaject; list shows them")))?;
    let takes = usize::from(all[at].kind.callentries[usize::from(place)].arguments);
    let given: Vec<&str> = inner.split(',').filter(|text| !text.trim().is_empty()).collect();
    if given.len() != takes {
        return Err(Wrong::new(format!("{name} takes {takes} arguments, not {}", given.len())));
    }
    let mut words = [[0; 8]; 6];
    for (word, text) in words.iter_mut().zip(given) {
        let from = text.as_ptr() as usize - rest.as_ptr() as usize;
        *word = evaluate(client, text).map_err(|wrong| wrong.later(from))?.to_le_bytes();
    }
    let entry = all[at].entries[usize::from(place)].to_le_bytes();
    let answer = ask(client, op::RUN, &[&entry, words.as_flattened()])?.unwrap_or_default();
    let mut fields = Fields(&answer);
    let (job, thread) = (fields.u32().unwrap_or(0), fields.u32().unwrap_or(0));
    Ok(format!("job {job}: thread {thread} of the kernel runs {rest}\n"))
}

fn jobs(client: &mut Client, _: &str) -> Done {
    let bytes = ask(client, op::JOBS, &[])?.unwrap_or_default();
    let jobs = client.items(&bytes, |from| Some((from.u32()?, from.u8()?, from.u64()?)))?;
    let line = |(job, done, answer): &(u32, u8, u64)| match done {
        0 => format!("job {job}: not yet\n"),
        _ => format!("job {job}: answered {}\n", *answer as i64),
    };
    Ok(jobs.iter().map(line).collect())
}

fn traced(client: &mut Client, rest: &str) -> Done {
    Ok(trace::as_text(client, &rest.split_whitespace().collect::<Vec<_>>())?)
}

fn sleep(_: &mut Client, rest: &str) -> Done {
    let seconds = rest.parse::<f64>().map_err(|_| usage("sleep"))?;
    std::thread::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 60.0)));
    Ok(String::new())
}

/// How long `wait` tries, and how often.
const WAIT_MOST: Duration = Duration::from_secs(10);
const WAIT_BETWEEN: Duration = Duration::from_millis(2);

fn wait(client: &mut Client, rest: &str) -> Done {
    if rest.is_empty() {
        return Err(usage("wait"));
    }
    reader::read(rest).map_err(unreadable)?;
    let end = Instant::now() + WAIT_MOST;
    loop {
        let found = evaluate(client, rest);
        match found {
            Ok(0) | Err(Wrong::Line { .. }) if Instant::now() < end => std::thread::sleep(WAIT_BETWEEN),
            Ok(0) => return Err(Wrong::new(format!("it was 0 for {} seconds", WAIT_MOST.as_secs()))),
            Ok(_) => return Ok(String::new()),
            Err(wrong) => return Err(wrong),
        }
    }
}

/// All names that begin so, sorted.
pub fn names(client: &mut Client, start: &str) -> Done<Vec<String>> {
    let mut names: Vec<String> = COMMANDS.iter().map(|command| command.name.to_string()).collect();
    names.extend(variables(client)?.into_iter().map(|(name, _)| name));
    let (kernel, calls) = top::gauges(client)?;
    names.extend(kernel.keys().map(|name| format!("gauge.{name}")));
    names.extend(calls.keys().map(|name| format!("calls.{name}")));
    for task in ps::tasks(client)? {
        names.extend(OF_THREADS.iter().map(|field| format!("thread.{}.{field}", task.thread)));
    }
    for part in parts(client)? {
        names.push(part.name());
        names.extend(part.kind.callentries.iter().map(|callentry| format!("{}.{}", part.name(), callentry.name)));
        names.extend(part.kind.callouts.iter().map(|(callout, _)| format!("{}.{callout}", part.name())));
    }
    names.extend(code::routines(client)?.into_iter().map(|routine| routine.name));
    // Programs have many: only where somebody has begun one.
    if let (false, Some(task)) = (start.is_empty(), ps::tasks(client)?.first()) {
        names.extend(Modules::of(client, task.process)?.names(client, start)?);
    }
    names.retain(|name| name.starts_with(start));
    names.sort_unstable();
    names.dedup();
    Ok(names)
}
