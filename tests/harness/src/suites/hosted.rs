//! What only the hosted machine promises: names for debuggers, counts, and that starting it leaves nothing behind.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::streams::{static_hello, tool_is_there};
use crate::options::Options;
use crate::process::{self, Outcome};
use crate::programs::{self, Linking};
use crate::report::Tally;
use crate::root::find_program;
use crate::side::runner_command;

/// Starts in the tests; `SYNTH_STARTS` asks for another number.
const STARTS: usize = 300;

/// Runs every check on the hosted machine, whichever the runner is.
///
/// # Errors
/// A sentence when the tool is not there.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    tool_is_there(options)?;
    let mut options = options.clone();
    if !options.is_hosted() {
        options.runner.push("--hosted".into());
    }
    type Check = fn(&Options) -> Result<(), String>;
    let checks: [(&str, Option<&str>, Check); 9] = [
        ("gdb_names_a_routine_and_finds_its_caller", Some("gdb"), gdb),
        ("gdb_inside_watches_what_a_thread_writes", Some("gdb"), gdb_inside),
        ("perf_map_names_routines_and_stubs", None, perf_map),
        ("calls_and_sites_are_counted", None, counts),
        ("a_trapped_machine_counts_no_jump", None, trap_only_counts),
        ("a_crash_is_told_on_request_only", None, crash),
        ("more_pages_than_the_host_keeps_mappings", None, many_mappings),
        ("starts", None, starts),
        ("kills", Some("busybox"), super::hosted_kills::run),
    ];
    for (name, needs, check) in checks {
        let name = format!("hosted/{name}");
        match needs.filter(|program| find_program(program).is_none()) {
            _ if !options.selects(&name) => {}
            Some(program) => tally.skip(&name, &format!("{program} is not on this host")),
            None => tally.record(&name, check(&options)),
        }
    }
    Ok(())
}

fn tool(options: &Options, words: &[&str]) -> Result<Outcome, String> {
    let mut command = runner_command(&options.runner);
    command.args(words);
    process::run(command, Vec::new(), options.case_timeout)
}

/// Pages that were only read are one frame, so each is a mapping of its own; a host keeps 65,530 (vm.max_map_count).
fn many_mappings(options: &Options) -> Result<(), String> {
    let program = programs::build(options, "untouched", Linking::Static)?;
    let outcome = tool(options, &[&program.display().to_string(), "300"])?;
    match (outcome.status, outcome.stdout.as_slice()) {
        (0, b"0 1\n") => Ok(()),
        (status, text) => Err(format!("status {status}, {}", text.escape_ascii())),
    }
}

fn pipe_program(options: &Options) -> Result<PathBuf, String> {
    let source = options.repo.join("bench/paper/p2_pipe_1.c");
    programs::compile(options, &source, "hosted-pipe", Linking::Static, &["-O1", "-g"])
}

/// Debian's gdb as a program: of a word that one thread writes, every store is told, and no thread stops for anything else.
fn gdb_inside(options: &Options) -> Result<(), String> {
    const STORES: usize = 5;
    let source = options.repo.join("tests/programs/watched.c");
    let program = programs::compile(options, &source, "hosted-watched", Linking::Dynamic, &["-O0", "-g", "-pthread"])?;
    let program = program.display().to_string();
    let mut words = vec!["gdb", "-q", "-nx", "-batch", "-ex", "break second", "-ex", "run", "-ex", "watch watched"];
    words.extend(["-ex", "continue"].repeat(STORES + 1));
    words.push(&program);
    let outcome = tool(options, &words)?;
    let said = String::from_utf8_lossy(&outcome.stdout);
    let hits = said.matches("hit Hardware watchpoint 2: watched").count();
    let is_over = said.contains("end 5") && said.contains("exited normally");
    if hits == STORES && is_over && !said.contains("received signal") {
        return Ok(());
    }
    Err(format!("status {}, {hits} stores:\n{said}{}", outcome.status, String::from_utf8_lossy(&outcome.stderr)))
}

/// Stops in the second synthesized write of a program, prints the stack, then stops in Rust below a call.
fn gdb(options: &Options) -> Result<(), String> {
    let program = pipe_program(options)?.display().to_string();
    let mut command = runner_command(&options.runner);
    let seconds = options.case_timeout.as_secs().to_string();
    command.args(["--timeout", &seconds, "--gdb", &program, "10"]);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut line = String::new();
    let read = child.stderr.take().map(|stderr| BufReader::new(stderr).read_line(&mut line));
    let words: Vec<&str> = line.strip_prefix("synth: connect with: ").unwrap_or_default().split_whitespace().collect();
    if words.first() != Some(&"gdb") {
        let _ = child.kill().and_then(|()| child.wait());
        return Err(format!("the tool says {line:?} ({read:?}), not how to connect"));
    }
    let mut debugger = Command::new("gdb");
    debugger.args(["-batch", "-nx", "-ex", "set confirm off"]).args(&words[1..]);
    let symbols = format!("add-symbol-file {program}");
    for step in [symbols.as_str(), "break pipe.write", "continue", "bt", "stepi 40", "bt", "delete"] {
        debugger.args(["-ex", step]);
    }
    for step in ["hbreak hosted_call_from_user", "continue", "bt", "kill"] {
        debugger.args(["-ex", step]);
    }
    let said = process::run(debugger, Vec::new(), options.case_timeout);
    let _ = child.kill().and_then(|()| child.wait());
    let said = String::from_utf8_lossy(&said?.stdout).into_owned();
    if said.contains("Could not insert hardware") {
        return Ok(());
    }
    let in_routine = ["in pipe.write ()", "in write ()", "in main ("];
    let in_rust = ["hosted_call_from_user", "in hosted_call_record ()", "_start ()"];
    match in_order(&said, &[in_routine, in_rust].concat()) {
        Ok(()) => Ok(()),
        Err(missing) => Err(format!("gdb does not say {missing:?} in its place:\n{said}")),
    }
}

/// The parts stand in `text` one behind the other; otherwise the first that does not.
fn in_order<'a>(mut text: &str, parts: &[&'a str]) -> Result<(), &'a str> {
    for part in parts {
        text = text.split_once(part).ok_or(*part)?.1;
    }
    Ok(())
}

fn perf_map(options: &Options) -> Result<(), String> {
    let before = perf_maps();
    let program = pipe_program(options)?.display().to_string();
    let outcome = tool(options, &["--perf-map", "--timeout", "30", &program, "10"])?;
    let new: Vec<PathBuf> = perf_maps().into_iter().filter(|path| !before.contains(path)).collect();
    let texts: Vec<String> = new.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    new.iter().for_each(|path| drop(fs::remove_file(path)));
    let is_whole = |text: &String| {
        let named = |name: &str| text.lines().any(|line| line.split(' ').nth(2) == Some(name));
        ["pipe.write", "pipe.read", "thread.dispatch", "callsite.stub"].into_iter().all(named)
    };
    match (outcome.status, texts.iter().any(is_whole)) {
        (0, true) => Ok(()),
        (status, _) => Err(format!("status {status}, maps {texts:?}")),
    }
}

fn perf_maps() -> Vec<PathBuf> {
    let is_map = |path: &Path| path.to_string_lossy().starts_with("/tmp/perf-");
    let entries = fs::read_dir("/tmp").into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).filter(|path| is_map(path)).collect()
}

/// The number behind `key=` on standard error.
fn count(outcome: &Outcome, key: &str) -> Result<u64, String> {
    let text = String::from_utf8_lossy(&outcome.stderr);
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')?.parse().ok());
    value.ok_or_else(|| format!("no {key} in {text:?}"))
}

fn counts(options: &Options) -> Result<(), String> {
    let program = pipe_program(options)?.display().to_string();
    let outcome = tool(options, &["--counts", "--timeout", "30", &program, "1000"])?;
    let of = |key: &str| count(&outcome, key);
    let (all, jumps, traps) = (of("calls")?, of("calls_by_jump")?, of("calls_by_trap")?);
    let (routines, rust) = (of("calls_by_routine")?, of("calls_in_rust")?);
    if jumps < 1990 || jumps + traps != all || routines + rust != all || routines < 1990 || of("sites_patched")? < 2 {
        return Err(String::from_utf8_lossy(&outcome.stderr).into_owned());
    }
    Ok(())
}

fn trap_only_counts(options: &Options) -> Result<(), String> {
    let program = pipe_program(options)?.display().to_string();
    let words = ["--counts", "--kernel-arguments", "trap_only=1", "--timeout", "30", &program, "1000"];
    let outcome = tool(options, &words)?;
    match (count(&outcome, "calls_by_jump")?, count(&outcome, "calls_by_trap")?) {
        (0, 2000..) => Ok(()),
        found => Err(format!("jumps and traps: {found:?}")),
    }
}

/// Each way to crash: the status, the line with what it is about, and silence where nobody asked.
fn crash(options: &Options) -> Result<(), String> {
    let program = programs::build(options, "crash", Linking::Static)?.display().to_string();
    let crashes =
        [("segv", 11, "SIGSEGV, address 0x8,"), ("ill", 4, "SIGILL"), ("fpe", 8, "SIGFPE"), ("abort", 6, "SIGABRT")];
    for (how, signal, named) in crashes {
        let quiet = tool(options, &["--timeout", "30", &program, how])?;
        let told = tool(options, &["--crash-report", "--timeout", "30", &program, how])?;
        let all = tool(options, &["--verbose", "--timeout", "30", &program, how])?;
        let text = |outcome: &Outcome| String::from_utf8_lossy(&outcome.stderr).into_owned();
        let (line, report) = (text(&told), text(&all));
        let place = format!("({program}+0x");
        let is_told = line.starts_with("synth: process 1 (crash) crashed: ") && line.lines().count() == 1;
        let is_named = [&line, &report].iter().all(|text| text.contains(named) && text.contains(&place));
        let statuses = [&quiet, &told, &all].map(|outcome| outcome.status);
        let is_right = statuses == [128 + signal; 3] && quiet.stderr.is_empty();
        if !is_right || !is_told || !is_named || !report.contains("  rip 0000") {
            return Err(format!("{how}: statuses {statuses:?}, quiet {:?}\n{line}{report}", text(&quiet)));
        }
    }
    Ok(())
}

/// Many starts and stops: no process, file, memory file or descriptor is left. Every tenth is killed by its time limit.
fn starts(options: &Options) -> Result<(), String> {
    let number = std::env::var("SYNTH_STARTS").ok().and_then(|text| text.parse().ok()).unwrap_or(STARTS);
    let hello = static_hello(options)?;
    tool(options, &[&hello])?;
    let before = Left::now();
    for index in 0..number {
        let hangs = ["--timeout", "0.02", "/bin/busybox", "sleep", "9"];
        let (words, status): (&[&str], i32) = if index % 10 == 9 { (&hangs, 124) } else { (&[&hello], 0) };
        let outcome = tool(options, words)?;
        if outcome.status != status {
            return Err(format!("start {index}: status {}", outcome.status));
        }
    }
    // A machine that was killed may need a moment to be gone.
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let after = Left::now();
        match after.is_within(&before) {
            true => return Ok(()),
            false if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
            false => return Err(format!("before {before:?}, ten seconds after {after:?}")),
        }
    }
}

/// What a run could leave behind.
#[derive(Debug)]
struct Left {
    machines: usize,
    zombies: usize,
    descriptors: usize,
    files: BTreeSet<PathBuf>,
}

impl Left {
    fn now() -> Left {
        let descriptors = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count());
        let files = ["/dev/shm", "/tmp"].into_iter().flat_map(files_of_the_tool).collect();
        let mut left = Left { machines: 0, zombies: 0, descriptors, files };
        let own = std::process::id().to_string();
        for process in fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok) {
            let mut stat = String::new();
            let opened = fs::File::open(process.path().join("stat"));
            if opened.and_then(|mut file| file.read_to_string(&mut stat)).is_err() {
                continue;
            }
            let Some((name, rest)) = stat.split_once(')') else { continue };
            let mut fields = rest.split_whitespace();
            let (state, parent) = (fields.next(), fields.next());
            left.zombies += usize::from(state == Some("Z") && parent == Some(&own));
            // Machines of others run here too; one whose tool has gone belongs to nobody.
            left.machines += usize::from(name.ends_with("(synthesis-hoste") && parent == Some("1"));
        }
        left
    }

    /// Nothing is left that was not there before.
    fn is_within(&self, before: &Left) -> bool {
        self.machines <= before.machines
            && self.zombies <= before.zombies
            && self.descriptors <= before.descriptors
            && self.files.is_subset(&before.files)
    }
}

/// What bears the tool's name in a folder; folders of the tests and of benches, which run beside, do not count.
fn files_of_the_tool(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let is_ours = |name: &str| {
        name.starts_with("synth") && !["synth-tests-", "synth-bench-"].iter().any(|other| name.starts_with(other))
    };
    entries.filter(|entry| is_ours(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect()
}
