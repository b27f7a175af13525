//! Streams of programs: opened as quajects, watched, and told of.

use std::time::Duration;

use bootimage::inspect::{Fields, monitor as op, opcode};
use monitor::blocks::{Flow, KINDS, STREAM};

use super::commands::{connect_ends, described, number, refusal, side, usage};
use super::desk::{Done, Wrong, ask, end, evaluate, parts};
use crate::see::client::Client;
use crate::see::{ps, trace};

/// `thread.T.fd.N`, and what follows it.
fn descriptor(name: &str) -> Option<(u32, u32, &str)> {
    let (thread, rest) = name.strip_prefix("thread.")?.split_once(".fd.")?;
    let (descriptor, rest) = rest.split_once('.').unwrap_or((rest, ""));
    Some((thread.parse().ok()?, descriptor.parse().ok()?, rest))
}

/// The stream of a descriptor as a quaject; its name.
fn stream(client: &mut Client, thread: u32, descriptor: u32) -> Done {
    let answer = ask(client, op::OPEN, &[&thread.to_le_bytes(), &descriptor.to_le_bytes()]);
    let absent = || Wrong::new(format!("thread {thread} has no descriptor {descriptor}"));
    match answer {
        Ok(Some(answer)) => Ok(format!("{}.{}", KINDS[STREAM].name, number(Some(answer))?)),
        Ok(None) => Err(absent()),
        Err(failure) if failure.error.contains("refused") => {
            Err(Wrong::new("it asks who reads or writes it; pipes, files, terminals and /dev/zero do not"))
        }
        Err(failure) => Err(failure.into()),
    }
}

/// A name as an end: that of a descriptor becomes the stream's callentry `way`, unless it says which.
pub fn end_of(client: &mut Client, name: &str, way: &str) -> Done {
    match descriptor(name) {
        Some((thread, descriptor, rest)) => {
            let stream = stream(client, thread, descriptor)?;
            Ok(format!("{stream}.{}", if rest.is_empty() { way } else { rest }))
        }
        None => Ok(name.to_string()),
    }
}

pub fn open(client: &mut Client, rest: &str) -> Done {
    let (thread, number, _) = descriptor(rest).ok_or_else(|| usage("open"))?;
    let name = stream(client, thread, number)?;
    shown(client, &name)
}

fn shown(client: &mut Client, name: &str) -> Done {
    let parts = parts(client)?;
    let part = parts.iter().find(|part| part.name() == name);
    Ok(part.map_or(String::new(), |part| described(part, &parts)))
}

/// The routine that a name stands for: `pipe.read@1`, `fd:0`, `thread.1.fd.0` with `.read`, `.write` or `.lseek`.
pub fn routine(client: &mut Client, name: &str) -> Done<u64> {
    let (number, descriptor, way) = match name.strip_prefix("fd:") {
        Some(rest) => {
            let (descriptor, way) = rest.split_once('.').unwrap_or((rest, ""));
            (1, descriptor.parse().map_err(|_| usage("watch"))?, way)
        }
        None => match descriptor(name) {
            Some(found) => found,
            None => return evaluate(client, name),
        },
    };
    let process = ps::tasks(client)?.into_iter().find(|task| task.thread == number).map(|task| task.process);
    let process = process.ok_or_else(|| Wrong::new(format!("there is no thread {number}")))?;
    let mut request = process.to_le_bytes().to_vec();
    request.extend(u32::to_le_bytes(descriptor));
    let answer = client.ask(opcode::DESCRIPTOR, &request)?;
    let answer = answer.ok_or_else(|| Wrong::new(format!("thread {number} has no descriptor {descriptor}")))?;
    let mut fields = Fields(&answer);
    let _ = (fields.text(), fields.u64());
    let own: Vec<u64> = (0..3).filter_map(|_| fields.u64().and(fields.u64())).collect();
    let ways = ["read", "write", "lseek"];
    let wanted = |at: usize| own.get(at).copied().unwrap_or(0) != 0 && (way.is_empty() || ways[at] == way);
    let at = (0..3).find(|at| wanted(*at));
    at.map(|at| own[at]).ok_or_else(|| Wrong::new(format!("{name} has no such routine; its calls are done in Rust")))
}

/// Puts a watch around a routine; its name.
fn put_watch(client: &mut Client, name: &str, callback: &str) -> Done {
    let mut answer = Ok(None);
    // The program may close the file between the two questions, and open another.
    for _ in 0..3 {
        let entry = routine(client, name)?;
        answer = ask(client, op::WATCH, &[&entry.to_le_bytes(), callback.as_bytes()]);
        if !matches!(answer, Ok(None)) {
            break;
        }
    }
    match answer {
        Ok(Some(answer)) => Ok(format!("watch.{}", number(Some(answer))?)),
        Ok(None) if callback.is_empty() => {
            Err(Wrong::new(format!("no descriptor leads to {name}; routines of streams can be watched")))
        }
        Ok(None) => Err(Wrong::new(format!("no descriptor leads to {name}, or it has no callback {callback}"))),
        Err(failure) if failure.error.contains("already") => {
            Err(Wrong::new(format!("{name} is watched already, or there are too many quajects")))
        }
        Err(failure) => Err(failure.into()),
    }
}

/// With a time it is taken away after that.
pub fn watch(client: &mut Client, rest: &str) -> Done {
    let (name, time) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if name.is_empty() {
        return Err(usage("watch"));
    }
    let wait = match time.trim() {
        "" => None,
        time => Some(trace::parse_time(time).map_err(Wrong::new)?),
    };
    let watch = put_watch(client, name, "")?;
    let Some(wait) = wait else { return shown(client, &watch) };
    std::thread::sleep(wait.min(Duration::from_secs(60)));
    let text = shown(client, &watch)?;
    let number = watch.rsplit_once('.').and_then(|(_, number)| number.parse::<u32>().ok()).unwrap_or(0);
    ask(client, op::REMOVE, &[&number.to_le_bytes()])?;
    Ok(text)
}

/// A callback of a quaject that people made, or of a routine, which is watched from then on.
pub fn bind(client: &mut Client, rest: &str) -> Done {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let [callback, to] = words[..] else { return Err(usage("bind")) };
    let all = parts(client)?;
    side(&all, to)?;
    if let Some((at, place)) = end(&all, callback) {
        let callouts = all[at].kind.callouts;
        let is_callback = callouts.get(usize::from(place & !op::CALLOUT)).is_some_and(|(_, flow)| *flow == Flow::Tells);
        if place & op::CALLOUT == 0 || !is_callback {
            return Err(Wrong::at(0, format!("{callback} is no callback; connect connects callouts")));
        }
        return connect_ends(client, callback, to);
    }
    let (name, callback) = callback.rsplit_once('.').ok_or_else(|| usage("bind"))?;
    let watch = put_watch(client, name, callback)?;
    connect_ends(client, &format!("{watch}.told"), to)?;
    shown(client, &watch)
}

pub fn unbind(client: &mut Client, rest: &str) -> Done {
    let side = side(&parts(client)?, rest)?;
    let done = ask(client, op::UNBIND, &[&side]).map_err(|failure| refusal(failure, rest, rest))?;
    done.map(|_| String::new()).ok_or_else(|| Wrong::new(format!("{rest} is no callout")))
}
