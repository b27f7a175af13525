//! The commands that look at a running system: what they show is compared with what the program is known to do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use super::scene::{self, Check, Scene, expect};
use crate::options::Options;
use crate::process::{self, Event, Outcome, Running, Silence};
use crate::report::Tally;
use crate::side::runner_command;

#[path = "seeing_noise.rs"]
mod noise;

/// The tool itself failed: what was asked for is not there.
const TOOL: i32 = 125;
/// There is no system to ask.
const UNAVAILABLE: i32 = 69;
/// Records that the ring of a run holds that is traced as a whole.
const RUN_RECORDS: u64 = 1 << 17;

const CHECKS: [(&str, Check); 18] = [
    ("ps_shows_who_sleeps_in_what", ps),
    ("code_of_a_descriptor", code_of_descriptor),
    ("code_why", code_why),
    ("code_of_a_thread", code_of_thread),
    ("code_by_size", code_by_size),
    ("all_code_is_of_a_declared_quaject", all_code_is_declared),
    ("code_of_nothing_is_refused", code_of_nothing),
    ("graph_has_pipes_between_quaspaces", graph),
    ("top_counts", top),
    ("trace_of_a_running_system", live_trace),
    ("trace_counts_every_call", whole_trace),
    ("trace_tells_places_in_files", places),
    ("trace_tells_what_it_lost", overflow),
    ("trace_outlives_the_end_of_the_group", ended_with_its_group),
    ("counted_traces_repeat", repeats),
    ("no_system_and_several", none_and_several),
    ("the_end_in_the_middle", end_in_the_middle),
    ("random_requests", noise::random_requests),
];

/// Runs every check.
///
/// # Errors
/// A sentence when the tool is not there or the program cannot be built.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    scene::play("seeing", &CHECKS, options, tally)
}

impl Scene<'_> {
    fn runner(&self) -> Command {
        let mut command = runner_command(&self.options.runner);
        command.args(["--timeout", "60"]).env("XDG_RUNTIME_DIR", &self.folder);
        command
    }

    /// Starts the program that waits, and waits until all of it does.
    fn waiting(&self) -> Result<System<'_>, String> {
        let mut command = self.runner();
        command.arg(&self.program).arg("wait");
        let mut running = Running::start(command, Vec::new())?;
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            match running.next(deadline) {
                Ok(Event::Stdout(bytes)) if bytes.starts_with(b"ready") => break,
                Ok(_) => {}
                Err(_) => return Err(format!("the program that waits did not say ready: status {}", running.kill())),
            }
        }
        Ok(System { scene: self, running: Some(running) })
    }

    /// A command that looks.
    fn look(&self, words: &[&str]) -> Result<Outcome, String> {
        let mut command = Command::new(&self.options.runner[0]);
        command.args(words).env("XDG_RUNTIME_DIR", &self.folder);
        process::run(command, Vec::new(), Duration::from_secs(60))
    }

    fn shown(&self, words: &[&str]) -> Result<String, String> {
        let outcome = self.look(words)?;
        let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
        match outcome.status {
            0 => Ok(text),
            status => Err(format!("{words:?}: status {status}\n{text}{}", String::from_utf8_lossy(&outcome.stderr))),
        }
    }

    /// The command is refused with this status and a line that says why.
    fn refused(&self, words: &[&str], status: i32, why: &str) -> Result<(), String> {
        let outcome = self.look(words)?;
        let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
        let is_told = text.starts_with("error: ") && text.contains(why);
        if outcome.status == status && is_told {
            return Ok(());
        }
        Err(format!("{words:?}: status {}, expected {status} and {why:?}\n{text}", outcome.status))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs `seeing calls N`, traced into a file, and reads that.
    fn traced_calls(&self, calls: u64, more: &[&str], name: &str) -> Result<Value, String> {
        let file = self.file(name);
        let mut command = self.runner();
        command.args(more).arg("--trace").arg(&file).arg(&self.program).args(["calls", &calls.to_string()]);
        let outcome = process::run(command, Vec::new(), Duration::from_secs(60))?;
        if outcome.status != 0 {
            return Err(format!("status {}\n{}", outcome.status, String::from_utf8_lossy(&outcome.stderr)));
        }
        read_json(&file)
    }
}

/// A system that waits; ended when it is dropped.
struct System<'a> {
    scene: &'a Scene<'a>,
    running: Option<Running>,
}

impl System<'_> {
    fn shown(&self, words: &[&str]) -> Result<String, String> {
        self.scene.shown(words)
    }
}

impl Drop for System<'_> {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
        }
    }
}

fn read_json(file: &Path) -> Result<Value, String> {
    let text = fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{} is no JSON: {error}", file.display()))
}

fn ps(scene: &Scene<'_>) -> Result<(), String> {
    let system = scene.waiting()?;
    let text = system.shown(&["ps"])?;
    let line = |pid: &str| text.lines().find(|line| line.split_whitespace().next() == Some(pid)).unwrap_or_default();
    expect(line("2"), &["asleep", "seeing", "read fd 5 pipe:["])?;
    let words: Vec<_> = line("2").split_whitespace().collect();
    if words.get(2) != Some(&"1") {
        return Err(format!("process 2 is no child of 1:\n{text}"));
    }
    expect(line("1"), &["seeing"])
}

fn code_of_descriptor(scene: &Scene<'_>) -> Result<(), String> {
    let system = scene.waiting()?;
    let text = system.shown(&["code", "fd:4"])?;
    expect(
        &text,
        &[
            "descriptor 4 of process 1: pipe:[",
            "write  a routine, bound",
            "write: pipe.write  made by pipe2",
            "contract FileCall",
            "  from   ",
            " + Leave + ",
            "\n; Leave\n",
            "cmp rdx, 1",
            ", [{head}]",
            "now 0x12c",
        ],
    )
}

fn code_why(scene: &Scene<'_>) -> Result<(), String> {
    let system = scene.waiting()?;
    let text = system.shown(&["code", "fd:4", "--why"])?;
    expect(&text, &["is     capacity, or 0 when nobody can read", "until  F_SETPIPE_SZ"])?;
    if text.contains("nobody wrote down") {
        return Err(format!("a hole without a fact:\n{text}"));
    }
    // 300 bytes lie in the pipe: the words say so.
    expect(&text, &["now 0x12c", "now 0x10000"])
}

fn code_of_thread(scene: &Scene<'_>) -> Result<(), String> {
    let system = scene.waiting()?;
    let text = system.shown(&["code", "thread:1"])?;
    expect(&text, &["dispatch: thread.dispatch", "sw_out: thread.sw_out", "write: thread.by_descriptor"])?;
    expect(&text, &["getppid: thread.constant", "value = 0x0", " -> thread."])
}

fn code_by_size(scene: &Scene<'_>) -> Result<(), String> {
    let system = scene.waiting()?;
    let text = system.shown(&["code", "--by", "size"])?;
    let sizes: Vec<u64> = text
        .lines()
        .skip(1)
        .filter(|line| line.contains(" 0x"))
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .collect();
    if sizes.len() < 10 || !sizes.is_sorted_by(|a, b| a >= b) {
        return Err(format!("not by size:\n{text}"));
    }
    expect(&text, &[&format!("{} bytes in {} routines", sizes.iter().sum::<u64>(), sizes.len()), "pipe.read"])
}

/// Every routine in the code store of a running system is named by a callentry of a declared class (S-25, S-124), and many
/// kinds are there.
fn all_code_is_declared(scene: &Scene<'_>) -> Result<(), String> {
    let mut command = scene.runner();
    command.arg(&scene.program).arg("kinds");
    let outcome = process::run(command, Vec::new(), Duration::from_secs(60))?;
    let text = String::from_utf8_lossy(&outcome.stdout);
    let (classes, code) = text.split_once("\n=\n").ok_or_else(|| format!("no two lists in\n{text}"))?;
    let callentries = classes.lines().filter_map(|line| line.strip_prefix("  callentry ")?.split_once(") "));
    let declared: BTreeSet<&str> = callentries.flat_map(|(_, routines)| routines.split(' ')).collect();
    // 0000000064000000 20 thread.slow_call creation of thread 0
    let routines = code.lines().filter(|line| !line.starts_with(' '));
    let names: BTreeSet<&str> = routines.filter_map(|line| line.split(' ').nth(2)).collect();
    if let Some(stranger) = names.difference(&declared).next() {
        return Err(format!("{stranger} is of no declared quaject"));
    }
    let usual =
        ["thread.sw_in", "thread.by_descriptor", "call.open", "call.close", "pipe.read", "file.pread", "zero.read"];
    match usual.into_iter().find(|name| !names.contains(name)) {
        Some(absent) => Err(format!("there is no {absent} among {names:?}")),
        None => Ok(()),
    }
}

fn code_of_nothing(scene: &Scene<'_>) -> Result<(), String> {
    let _system = scene.waiting()?;
    scene.refused(&["code", "fd:99"], TOOL, "process 1 has no descriptor 99")?;
    scene.refused(&["code", "fd:0", "--pid", "77"], TOOL, "process 77 is not there")?;
    scene.refused(&["code", "thread:77"], TOOL, "there is no thread 77")?;
    scene.refused(&["code", "0x1234"], TOOL, "no live routine is at 0x1234")?;
    scene.refused(&["code", "quaject", "nothing.like.it"], TOOL, "no live routine has")?;
    scene.refused(&["code", "fd:x"], TOOL, "is nothing that has code")
}

fn graph(scene: &Scene<'_>) -> Result<(), String> {
    let system = scene.waiting()?;
    let text = system.shown(&["graph"])?;
    expect(&text, &["digraph synthesis {", "(quaspace 1)", "(quaspace 2)", "300 of 65536 bytes full"])?;
    let node = |part: &str| {
        let line = text.lines().find(|line| line.contains("[label=") && line.contains(part));
        line.and_then(|line| line.split_whitespace().next()).unwrap_or_default()
    };
    let (parent, child, full) = (node("(quaspace 1)"), node("(quaspace 2)"), node("300 of 65536"));
    expect(&text, &[&format!("{parent} -> {full} [label=\"fd 4\""), &format!("{full} -> {parent} [label=\"fd 3\"")])?;
    expect(&text, &[&format!(" -> {child} [label=\"fd 5\"")])?;
    let file = scene.file("graph.svg");
    system.shown(&["graph", "-o", &file.display().to_string()])?;
    let svg = fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let nodes = text.matches("shape=").count();
    let boxes = svg.matches(" rx=").count();
    if !svg.starts_with("<svg ") || !svg.ends_with("</svg>\n") || nodes != boxes {
        return Err(format!("{nodes} nodes, {boxes} boxes:\n{svg}"));
    }
    Ok(())
}

fn top(scene: &Scene<'_>) -> Result<(), String> {
    let system = scene.waiting()?;
    let text = system.shown(&["top", "--once", "--every", "0.3"])?;
    expect(
        &text,
        &["threads 2", "switches ", "syntheses ", "calls done in Rust: ", "clock_nanosleep", "read fd 5 pipe:["],
    )?;
    // The parent's question has become a constant: Rust does not see it, a trace does.
    if text.contains("getppid") {
        return Err(format!("getppid is done in Rust:\n{text}"));
    }
    let text = system.shown(&["top", "--once", "--every", "0.3", "--calls"])?;
    expect(&text, &["getppid"])
}

/// Times of all spans of each track, in the file's order.
fn spans(trace: &Value) -> BTreeMap<(u64, u64), Vec<(u64, u64)>> {
    let mut tracks = BTreeMap::<_, Vec<_>>::new();
    let nanos = |event: &Value, name: &str| (event[name].as_f64().unwrap_or(-1.0) * 1000.0).round() as u64;
    for event in trace["traceEvents"].as_array().into_iter().flatten().filter(|event| event["ph"] == "X") {
        let track = (event["pid"].as_u64().unwrap_or(0), event["tid"].as_u64().unwrap_or(0));
        let start = nanos(event, "ts");
        tracks.entry(track).or_default().push((start, start + nanos(event, "dur")));
    }
    tracks
}

/// Two spans of a track follow each other, or one lies in the other.
fn are_nested(trace: &Value) -> Result<(), String> {
    for (track, mut spans) in spans(trace) {
        spans.sort_by_key(|(start, end)| (*start, std::cmp::Reverse(*end)));
        let mut open: Vec<u64> = Vec::new();
        for (start, end) in spans {
            open.retain(|last| *last > start);
            if open.last().is_some_and(|last| end > *last) {
                return Err(format!("track {track:?}: the span {start}..{end} leaves the one it is in"));
            }
            open.push(end);
        }
    }
    Ok(())
}

fn count(trace: &Value, name: &str) -> u64 {
    let events = trace["traceEvents"].as_array().into_iter().flatten();
    events.filter(|event| event["name"] == name).count() as u64
}

fn live_trace(scene: &Scene<'_>) -> Result<(), String> {
    let system = scene.waiting()?;
    let file = scene.file("live.json").display().to_string();
    for _ in 0..2 {
        system.shown(&["trace", "--for", "300ms", "-o", &file])?;
        let trace = read_json(Path::new(&file))?;
        are_nested(&trace)?;
        let (asked, slept) = (count(&trace, "getppid"), count(&trace, "clock_nanosleep"));
        // Ten questions for each sleep, but for those at both ends.
        if slept < 3 || asked.abs_diff(slept * 10) > 20 || trace["otherData"]["lost"] != 0 {
            return Err(format!("{asked} times getppid, {slept} times clock_nanosleep: {}", trace["otherData"]));
        }
        if count(&trace, "timer") == 0 || spans(&trace).get(&(0, 0)).is_none_or(|turns| turns.len() < 3) {
            return Err("no interrupts or no switches".into());
        }
    }
    // Nothing is left behind: the routines that record are gone.
    let text = system.shown(&["code"])?;
    if text.contains("trace.call") {
        return Err(format!("a trace that has ended left code behind:\n{text}"));
    }
    Ok(())
}

fn whole_trace(scene: &Scene<'_>) -> Result<(), String> {
    for more in [&[][..], &["--generic"]] {
        let trace = scene.traced_calls(1000, more, "whole.json")?;
        are_nested(&trace)?;
        let (asked, lost) = (count(&trace, "getppid"), &trace["otherData"]["lost"]);
        if asked != 1000 || *lost != 0 {
            return Err(format!("{more:?}: {asked} times getppid, {lost} lost"));
        }
        let in_rust = spans(&trace).get(&(1, 1)).map_or(0, Vec::len);
        if more.is_empty() != (in_rust < 1000) {
            return Err(format!("{more:?}: {in_rust} calls are spans"));
        }
    }
    Ok(())
}

/// What Rust reads and writes of files is told with its place, and pages that are supplied; without synthesis that is all.
fn places(scene: &Scene<'_>) -> Result<(), String> {
    let (input, file) = (scene.file("input"), scene.file("places.json"));
    fs::write(&input, vec![b'x'; 10_000]).map_err(|error| error.to_string())?;
    let mut command = scene.runner();
    command.args(["--generic", "--with", &format!("{}:/input", input.display()), "--trace"]).arg(&file);
    command.args(["busybox", "dd", "if=/input", "of=/tmp/copy", "bs=4096"]);
    let outcome = process::run(command, Vec::new(), Duration::from_secs(60))?;
    let trace = read_json(&file)?;
    let placed = |name: &str| -> Vec<(u64, u64)> {
        let events = trace["traceEvents"].as_array().into_iter().flatten().filter(|event| event["name"] == name);
        let place = |event: &Value| Some((event["args"]["position"].as_u64()?, event["args"]["bytes"].as_u64()?));
        events.filter_map(place).collect()
    };
    let expected = [(0, 4096), (4096, 4096), (8192, 1808)];
    // Where the end is, is read, too.
    let (read, written) = (placed("file read"), placed("file written"));
    let are_there = expected.iter().all(|place| read.contains(place)) && written == expected;
    let pages = count(&trace, "page read") + count(&trace, "page written") + count(&trace, "page executed");
    if outcome.status != 0 || !are_there || pages == 0 {
        return Err(format!("status {}, read {read:?}, written {written:?}, {pages} pages", outcome.status));
    }
    Ok(())
}

fn overflow(scene: &Scene<'_>) -> Result<(), String> {
    let trace = scene.traced_calls(200_000, &[], "overflow.json")?;
    let (kept, lost) = (trace["otherData"]["records"].as_u64(), trace["otherData"]["lost"].as_u64());
    if kept != Some(RUN_RECORDS) || lost.is_none_or(|lost| !(200_000 - RUN_RECORDS..201_000).contains(&lost)) {
        return Err(format!("{kept:?} records, {lost:?} lost"));
    }
    are_nested(&trace)
}

/// A terminal and timeout(1) signal the whole process group: tool and machine.
fn ended_with_its_group(scene: &Scene<'_>) -> Result<(), String> {
    let file = scene.file("group.json");
    let mut command = scene.runner();
    command.arg("--trace").arg(&file);
    command.args(["busybox", "sh", "-c", "echo ready; while :; do echo text >/dev/null; done"]);
    let mut running = Running::start(command, Vec::new())?;
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut text = Vec::new();
    loop {
        match running.next(deadline) {
            Ok(Event::Stdout(bytes)) if bytes.starts_with(b"ready") => signal_group(running.id())?,
            Ok(Event::Stderr(bytes)) => text.extend(bytes),
            Ok(_) => {}
            Err(Silence::Ended) => break,
            Err(Silence::TimedOut) => return Err(format!("it did not end: status {}", running.kill())),
        }
    }
    let (status, trace) = (running.wait(), read_json(&file)?);
    match trace["otherData"]["records"].as_u64() {
        Some(1..) if status == 143 => Ok(()),
        records => Err(format!("status {status}, {records:?} records\n{}", String::from_utf8_lossy(&text))),
    }
}

fn signal_group(process: u32) -> Result<(), String> {
    let group = Pid::from_raw(process as i32).ok_or("no such process")?;
    kill_process_group(group, Signal::TERM).map_err(|error| error.to_string())
}

fn repeats(scene: &Scene<'_>) -> Result<(), String> {
    if scene.options.is_hosted() {
        return Ok(());
    }
    scene.traced_calls(100, &["--icount"], "first.json")?;
    scene.traced_calls(100, &["--icount"], "second.json")?;
    let read = |name: &str| fs::read(scene.file(name)).map_err(|error| error.to_string());
    if read("first.json")? == read("second.json")? { Ok(()) } else { Err("two counted runs differ".into()) }
}

fn none_and_several(scene: &Scene<'_>) -> Result<(), String> {
    scene.refused(&["ps"], UNAVAILABLE, "no system runs")?;
    scene.refused(&["ps", "--of", "1"], UNAVAILABLE, "process 1 runs no system")?;
    let (first, _second) = (scene.waiting()?, scene.waiting()?);
    scene.refused(&["ps"], TOOL, "several systems run")?;
    let pid = first.running.as_ref().map_or(0, Running::id).to_string();
    expect(&first.shown(&["ps", "--of", &pid])?, &["read fd 5"])
}

fn end_in_the_middle(scene: &Scene<'_>) -> Result<(), String> {
    let mut system = scene.waiting()?;
    let mut command = Command::new(&scene.options.runner[0]);
    command.args(["top", "--every", "0.1"]).env("XDG_RUNTIME_DIR", &scene.folder);
    let mut looker = Running::start(command, Vec::new())?;
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut text = String::new();
    loop {
        match looker.next(deadline) {
            // It has looked once; the second look finds nothing.
            Ok(Event::Stdout(_)) => drop(system.running.take().map(Running::kill)),
            Ok(Event::Stderr(bytes)) => text += &String::from_utf8_lossy(&bytes),
            Ok(Event::StreamEnd) => {}
            Err(Silence::Ended) => break,
            Err(Silence::TimedOut) => return Err(format!("top did not end: status {}\n{text}", looker.kill())),
        }
    }
    match looker.wait() {
        UNAVAILABLE if text.contains("has ended") => Ok(()),
        status => Err(format!("status {status}\n{text}")),
    }
}
