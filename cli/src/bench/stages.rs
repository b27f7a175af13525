//! `synth bench synthesis`: what it costs to write code, by quaject and stage, and what a program pays for it.
//!
//! Two programs. `tests/golden/examples/synthesis.rs` is the kernel's own creator as a program, run on the pc and by itself: it times
//! its stages with the clock, which under `-icount` counts instructions. `bench/synthesis/opens.c` opens, on either machine ([`opens`]).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Value, json};

use super::compile::{self, Linkage};
use super::error::at;
use super::opens::{self, Both};
use super::report::{self, aligned};
use super::{BenchArgs, BenchError, project_root};

const TIMEOUT_SECONDS: &str = "240";

/// What the paper says of a row: microseconds on a 68030 at 16 MHz (thesis, table 7.5; SOSP'89, tables 2 and 3).
const PAPER: [(&str, &str); 8] = [
    ("TTY-cooker", "create 27 µs; 2.3 + 2.1 µs a character"),
    ("VT-100", "create 532 µs; 14.2 + 1.3 µs a character"),
    ("TTY-cooker and VT-100, one machine", "(create 559 µs; 3.4 µs a character)"),
    ("text window", "create 71 µs; 23.9 + 27.7 µs a character"),
    ("null", "SOSP'89: open 43 µs, close 18 µs"),
    ("tty", "SOSP'89: open 62 µs, close 18 µs"),
    ("file", "SOSP'89: open 73 µs, close 18 µs"),
    ("thread", "create 142 µs; with a shared vector table 19.2 µs"),
];

/// By name and key.
pub(super) type Figures = BTreeMap<String, BTreeMap<String, f64>>;

/// The creator's rows and columns.
struct Creator {
    /// In the order of the program.
    names: Vec<String>,
    instructions: Figures,
    nanos: Figures,
}

const CREATOR: &[&str] =
    &["routines", "bytes", "join", "factor", "optimize", "publish", "create", "plan", "revive", "character"];

/// Measures and prints; the exit status is 1 when, with `check`, the open of a known kind takes too long, or parts of an open are
/// not the whole.
pub fn bench(args: &BenchArgs) -> Result<ExitCode, BenchError> {
    let root = project_root();
    let creator = build_creator(&root)?;
    opens::build(&root)?;
    let program = root.join("target/bench/static");
    std::fs::create_dir_all(&program).map_err(at(&program))?;
    let program = program.join("opens");
    compile::compile(&root.join("bench/synthesis/opens.c"), &program, Linkage::Static)?;
    let (loops, times) = if args.quick { ("100", 1) } else { ("20000", 5) };
    let hz = crate::machine::tsc_hz(false).max(1) as f64;
    let (names, instructions) = figures_of(&creator, &["--icount"], &["lines"], 1.0)?;
    let (_, nanos) = figures_of(&creator, &[], &["lines"], 1.0)?;
    let creator = Creator { names, instructions, nanos };
    let (pc, hosted) = (opens::on_pc(&root, &program)?, opens::hosted(&root, &program, loops, times, 1e9 / hz)?);
    let opens = Both { pc, hosted };
    match () {
        () if args.json => println!("{:#}", to_json(&creator, &opens, &root)),
        () if args.markdown => print!("{}", to_text(&creator, &opens, &root, super::tables::markdown)),
        () => print!("{}", to_text(&creator, &opens, &root, aligned)),
    }
    let faults = opens.faults();
    faults.iter().for_each(|fault| eprintln!("error: {fault}"));
    Ok(if faults.is_empty() || !args.check { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn build_creator(root: &Path) -> Result<PathBuf, BenchError> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "-p", "golden", "--example", "synthesis"]).current_dir(root);
    let output = cargo.output().map_err(|_| BenchError::MissingCommand { command: "cargo", package: "cargo" })?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(BenchError::Compile { source: root.join("tests/golden/examples/synthesis.rs"), message });
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release/examples/synthesis"))
}

/// Runs a program on Synthesis, or without a machine by itself; its lines are figures, in units of which `scale` make a tick.
pub(super) fn figures_of(
    program: &Path,
    machine: &[&str],
    arguments: &[&str],
    scale: f64,
) -> Result<(Vec<String>, Figures), BenchError> {
    let tool = std::env::current_exe().map_err(at("/proc/self/exe"))?;
    let mut command = Command::new(if machine.is_empty() { program } else { &tool });
    if !machine.is_empty() {
        command.arg("run").args(machine).args(["--timeout", TIMEOUT_SECONDS]).arg(program);
    }
    let output = command.args(arguments).stdin(Stdio::null()).output().map_err(at(program))?;
    if !output.status.success() {
        let reason =
            format!("{} on {machine:?}: {}", program.display(), String::from_utf8_lossy(&output.stderr).trim());
        return Err(BenchError::Guest { reason });
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout), scale))
}

/// Names in their order, and figures. Sizes are no ticks.
fn parse(text: &str, scale: f64) -> (Vec<String>, Figures) {
    let (mut names, mut figures) = (Vec::new(), Figures::new());
    for line in text.lines() {
        let mut words = line.split('\t');
        let (Some(name), Some(key), Some(value)) = (words.next(), words.next(), words.next()) else { continue };
        let Ok(value) = value.trim().parse::<f64>() else { continue };
        if key == "loops" {
            continue;
        }
        let is_size = ["routines", "bytes", "stage.routines", "stage.bytes", "stage.call"].contains(&key);
        let value = if is_size { value } else { value * scale };
        if !names.iter().any(|known| known == name) {
            names.push(name.to_string());
        }
        figures.entry(name.into()).or_default().insert(key.into(), value);
    }
    (names, figures)
}

pub(super) fn cell(figures: &Figures, name: &str, key: &str) -> String {
    let value = figures.get(name).and_then(|row| row.get(key));
    value.map_or("-".into(), |value| {
        if *value < 100.0 && value.fract() != 0.0 { format!("{value:.1}") } else { format!("{value:.0}") }
    })
}

pub(super) fn paper(name: &str) -> &'static str {
    PAPER.iter().find(|(row, _)| *row == name).map_or("-", |(_, text)| text)
}

impl Creator {
    fn cells(&self, figures: &Figures) -> Vec<Vec<String>> {
        let header = [""].into_iter().chain(CREATOR.iter().copied()).chain(["paper"]);
        let mut cells = vec![header.map(String::from).collect::<Vec<_>>()];
        for name in &self.names {
            let values = CREATOR.iter().map(|key| cell(figures, name, key));
            cells.push([name.clone()].into_iter().chain(values).chain([paper(name).to_string()]).collect());
        }
        cells
    }
}

fn facts(root: &Path) -> [String; 5] {
    [
        "create is factor + optimize + publish; plan is the optimizer's own work, for the first of a class; revive a closed quaject \
         opened again; character: of a state machine, a character through it; join: what is done when a kernel is built, so no \
         program pays for it"
            .into(),
        "the creator runs as a program, ns by itself on this machine, with an allocator of its own: the same Rust, not the \
         kernel's image; what a program pays is on the hosted machine"
            .into(),
        "an open: lookup (path to node), creation (allocate + factor + optimize), publication, rest (descriptor, open file) as an image \
         counts them that is built to (`bin/*/build.sh --stages`), entry from the program to Rust and back; sum is these five, whole \
         the same open on the usual image"
            .into(),
        "second has the code already; known is open and close, with the call itself synthesized where opening leaves no trace (null, zero, \
         full, random, tty); cached open is the second open of null, which makes that; a thread is a process that shares memory; hosted, \
         the first call from a place in a program is caught by a signal, which is in its entry"
            .into(),
        format!("machine: {}; commit: {}", report::machine(), report::commit(root)),
    ]
}

fn to_text(creator: &Creator, opens: &Both, root: &Path, table: fn(&[Vec<String>]) -> String) -> String {
    let mut text = String::new();
    for (unit, figures) in [("guest instructions, pc", &creator.instructions), ("ns", &creator.nanos)] {
        text += &format!("{TITLE} ({unit})\n\n{}\n", table(&creator.cells(figures)));
    }
    text.extend(opens.tables().iter().map(|(title, cells)| format!("{title}\n\n{}\n", table(cells))));
    text.extend(facts(root).iter().map(|fact| format!("- {fact}\n")));
    text
}

const TITLE: &str = "The creator: routines, bytes, and each stage";

fn to_json(creator: &Creator, opens: &Both, root: &Path) -> Value {
    let row = |name: &String| {
        let (instructions, nanos) = (creator.instructions.get(name), creator.nanos.get(name));
        json!({ "name": name, "instructions": instructions, "ns": nanos, "paper": paper(name) })
    };
    let rows: Vec<Value> = creator.names.iter().map(row).collect();
    let tables = [json!({ "title": TITLE, "rows": rows }), opens.to_json()];
    json!({ "suite": "synthesis", "tables": tables, "machine": report::machine(), "commit": report::commit(root) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_figures() {
        let (names, figures) = parse("pipe\tbytes\t494\npipe\tfactor\t100\nfile\tfactor\t5.5\nno figure\n", 2.0);
        assert_eq!(names, ["pipe", "file"]);
        assert_eq!(figures["pipe"], BTreeMap::from([("bytes".into(), 494.0), ("factor".into(), 200.0)]));
        assert_eq!([cell(&figures, "file", "factor"), cell(&figures, "file", "bytes")], ["11", "-"]);
    }

    /// Guards the C source: each object that a host lets a test open.
    #[test]
    fn opens_run_on_the_host() {
        let root = project_root();
        let program = root.join("target/bench/scratch");
        std::fs::create_dir_all(&program).unwrap();
        let program = program.join("opens");
        match compile::compile(&root.join("bench/synthesis/opens.c"), &program, Linkage::Static) {
            Err(BenchError::MissingCommand { .. }) => return,
            built => built.unwrap(),
        }
        let output = Command::new(&program).arg("10").output().unwrap();
        let (_, figures) = parse(&String::from_utf8_lossy(&output.stdout), 1.0);
        for name in ["null", "zero", "pipe", "fifo", "file", "eventfd", "timerfd"] {
            let keys: Vec<_> = figures[name].keys().map(String::as_str).collect();
            assert_eq!(keys, ["first", "first_run", "known", "later_run", "second"], "{name}");
        }
        assert_eq!(figures["thread"].len(), 2);
    }
}
