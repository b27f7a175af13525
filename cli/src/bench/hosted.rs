//! `synth bench --hosted`: the same executables on this machine's Linux and on the hosted machine, in turn, in time.
//!
//! Each program runs A B A B … in one session, so that a machine that slows down or speeds up does so for both. A
//! figure is the median over the rounds of (long run - short run) / iterations, by the time-stamp counter that the
//! program reads around its own loop; the spread is the distance between the quartiles. The two sides loop
//! differently often, each about [`LOOP_NS`], because their speeds differ by up to a factor of a hundred.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde::Serialize;

use super::chart::{self, Group};
use super::compile::{self, Built, Linkage};
use super::error::at;
use super::report::{self, aligned};
use super::suite::{self, Bar, Program, Run};
use super::ticks::{Outcome, per_iteration};
use super::{BenchArgs, BenchError, project_root};

/// How long a long run loops.
const LOOP_NS: f64 = 12e6;
const ROUNDS: usize = 15;
/// Also where one takes a millisecond, so that what a loop's first round costs more does not weigh.
const ITERATIONS_MIN: f64 = 24.0;
const ITERATIONS_MAX: f64 = 20e6;
const TIMEOUT_SECONDS: u32 = 60;

/// Who runs the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Linux,
    Synthesized,
    Generic,
    /// Synthesized, but no call site is patched.
    TrapOnly,
}

/// What one side needs an iteration for, in nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Figure {
    median_ns: Option<f64>,
    /// Distance between the quartiles.
    spread_ns: Option<f64>,
    /// The fastest round: what is left when the machine does nothing else.
    best_ns: Option<f64>,
    missing: Option<String>,
    stdout: String,
}

impl Figure {
    fn text(&self) -> String {
        match (self.median_ns, self.spread_ns) {
            (Some(median), Some(spread)) => format!("{} ±{}", nanos(median), nanos(spread / 2.0)),
            _ => "n/a".into(),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
struct Row {
    number: usize,
    program: &'static str,
    linux: Figure,
    synthesis: Figure,
    #[serde(skip_serializing_if = "Option::is_none")]
    generic: Option<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trap_only: Option<Figure>,
    /// Linux over Synthesis, of the medians.
    ratio: Option<f64>,
    /// The same of the fastest rounds.
    best_ratio: Option<f64>,
    paper_ratio: Option<f64>,
    /// The paper's ratio is reached; for the program that makes no calls: between 0.95 and 1.05.
    reached: Option<bool>,
    same_output: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    suite: &'static str,
    unit: &'static str,
    rounds: usize,
    linkage: &'static str,
    machine: String,
    commit: String,
    compiler: String,
    counter_hz: u64,
    rows: Vec<Row>,
}

/// Measures and prints; the exit status is 1 when a figure is missing, outputs differ or, with `check`, a ratio is missed.
pub fn bench(args: &BenchArgs) -> Result<ExitCode, BenchError> {
    let root = project_root();
    let programs = suite::select(args.suite, &args.only)?;
    let linkage = if args.dynamic { Linkage::Dynamic } else { Linkage::Static };
    let session = Session::new(&root, compile::build(&root, &programs, linkage)?, args)?;
    let rows: Vec<Row> = programs.iter().map(|program| session.row(program)).collect();
    let report = Report {
        suite: args.suite.name(),
        unit: "nanoseconds per iteration",
        rounds: session.rounds,
        linkage: if args.dynamic { "dynamic" } else { "static" },
        machine: report::machine(),
        commit: report::commit(&root),
        compiler: report::first_line("gcc", &["--version"]).unwrap_or("gcc".into()),
        counter_hz: session.counter_hz,
        rows,
    };
    if let Some(path) = &args.svg {
        fs::write(path, report.to_svg()).map_err(at(path))?;
    }
    match () {
        () if args.json => println!("{}", serde_json::to_string_pretty(&report).expect("a report is plain data")),
        () if args.markdown => print!("{}", report.to_markdown()),
        () => print!("{}", report.to_text()),
    }
    let whole = |row: &Row| row.ratio.is_some() && row.same_output && !(args.check && row.reached == Some(false));
    Ok(if report.rows.iter().all(whole) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Session {
    built: Built,
    sides: Vec<Side>,
    rounds: usize,
    loop_ns: f64,
    counter_hz: u64,
    /// A folder in memory for the Linux side's files.
    scratch: PathBuf,
    tool: PathBuf,
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

impl Session {
    fn new(root: &Path, built: Built, args: &BenchArgs) -> Result<Session, BenchError> {
        let mut sides = vec![Side::Linux, Side::Synthesized];
        if args.generic {
            sides.extend([Side::Generic, Side::TrapOnly]);
        }
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_path_buf() } else { root.join("target") };
        let scratch = folder.join(format!("synth-bench-{}", std::process::id()));
        fs::create_dir_all(&scratch).map_err(at(&scratch))?;
        let tool = std::env::current_exe().map_err(at("/proc/self/exe"))?;
        let (rounds, loop_ns) = if args.quick { (3, LOOP_NS / 10.0) } else { (ROUNDS, LOOP_NS) };
        Ok(Session { built, sides, rounds, loop_ns, counter_hz: crate::machine::tsc_hz(false).max(1), scratch, tool })
    }

    fn row(&self, program: &Program) -> Row {
        let plans: Vec<_> = self.sides.iter().map(|side| self.plan(program, *side)).collect();
        let mut samples = vec![Vec::new(); self.sides.len()];
        let mut missing: Vec<Option<String>> = plans.iter().map(|plan| plan.clone().err()).collect();
        for _ in 0..self.rounds {
            for (index, side) in self.sides.iter().enumerate() {
                let Ok(runs) = &plans[index] else { continue };
                match self.sample(runs, *side) {
                    Ok(nanos) => samples[index].push(nanos),
                    Err(reason) => missing[index] = Some(reason),
                }
            }
        }
        let figures: Vec<Figure> = (0..self.sides.len())
            .map(|index| {
                let stdout = self.stdout_of(program, self.sides[index]);
                Figure {
                    median_ns: quantile(&mut samples[index], 0.5),
                    spread_ns: quantile(&mut samples[index], 0.75)
                        .zip(quantile(&mut samples[index], 0.25))
                        .map(|(high, low)| high - low),
                    best_ns: quantile(&mut samples[index], 0.0).filter(|best| *best > 0.0),
                    missing: missing[index].clone(),
                    stdout,
                }
            })
            .collect();
        Row::new(program, &figures)
    }

    /// Short and long run for this side, so that the long one loops for about the wanted time.
    fn plan(&self, program: &Program, side: Side) -> Result<[Run; 2], String> {
        let mut iterations = program.iterations.min(200);
        let mut nanos = self.loop_nanos(&run_of(program, iterations), side)?;
        // Twice: the first estimate contains the first faults.
        for wanted in [self.loop_ns / 20.0, self.loop_ns] {
            let each = (nanos / f64::from(iterations)).max(0.1);
            iterations = (wanted / each).clamp(ITERATIONS_MIN, ITERATIONS_MAX) as u32;
            nanos = self.loop_nanos(&run_of(program, iterations), side)?;
        }
        Ok([run_of(program, (iterations / 10).max(1)), run_of(program, iterations.max(2))])
    }

    fn loop_nanos(&self, run: &Run, side: Side) -> Result<f64, String> {
        Ok(self.nanos(self.run(run, side).ticks()? as f64))
    }

    fn nanos(&self, ticks: f64) -> f64 {
        ticks * 1e9 / self.counter_hz as f64
    }

    fn sample(&self, runs: &[Run; 2], side: Side) -> Result<f64, String> {
        let ticks = [self.run(&runs[0], side).ticks()?, self.run(&runs[1], side).ticks()?];
        Ok(self.nanos(per_iteration([runs[0].iterations, runs[1].iterations], ticks)))
    }

    /// What the program prints when it loops as often on each side.
    fn stdout_of(&self, program: &Program, side: Side) -> String {
        String::from_utf8_lossy(self.run(&run_of(program, 2), side).stdout()).into_owned()
    }

    fn run(&self, run: &Run, side: Side) -> Outcome {
        let started = match side {
            Side::Linux => self.start_linux(run),
            _ => self.start_synthesis(run, side),
        };
        match started {
            Err(error) => Outcome::NotRun { reason: format!("cannot be started: {error}") },
            Ok(output) => match output.status.code() {
                Some(status) => Outcome::Ended { status, stdout: output.stdout, stderr: output.stderr },
                None => Outcome::NotRun { reason: format!("ended by {}", output.status) },
            },
        }
    }

    /// In a session of its own with a terminal of its own, because one program opens /dev/tty.
    fn start_linux(&self, run: &Run) -> std::io::Result<std::process::Output> {
        let (_master, terminal) = terminal()?;
        let mut command = Command::new(&self.built[run.executable]);
        command.args(&run.arguments).current_dir(&self.scratch).stdin(Stdio::null());
        let terminal_fd = terminal.as_raw_fd();
        // SAFETY: between fork and exec only system calls are made: no allocation, no lock.
        unsafe {
            command.pre_exec(move || {
                rustix::process::setsid()?;
                let terminal = std::os::fd::BorrowedFd::borrow_raw(terminal_fd);
                rustix::process::ioctl_tiocsctty(terminal)?;
                Ok(())
            });
        }
        command.output()
    }

    fn start_synthesis(&self, run: &Run, side: Side) -> std::io::Result<std::process::Output> {
        let mut command = Command::new(&self.tool);
        command.args(["run", "--hosted", "--cwd", "/tmp", "--timeout", &TIMEOUT_SECONDS.to_string()]);
        match side {
            Side::Generic => command.arg("--generic"),
            Side::TrapOnly => command.args(["--kernel-arguments", "trap_only=1"]),
            _ => &mut command,
        };
        command.arg(&self.built[run.executable]).args(&run.arguments).stdin(Stdio::null()).output()
    }
}

fn run_of(program: &Program, iterations: u32) -> Run {
    let [mut run, _] = program.runs(true);
    run.arguments =
        run.arguments.into_iter().map(|word| if is_count(&word) { iterations.to_string() } else { word }).collect();
    run.iterations = iterations;
    run
}

fn is_count(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Both ends of a new pseudo-terminal.
fn terminal() -> std::io::Result<(OwnedFd, fs::File)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let terminal = fs::OpenOptions::new().read(true).write(true).open(name.to_string_lossy().as_ref())?;
    Ok((master, terminal))
}

impl Row {
    fn new(program: &Program, figures: &[Figure]) -> Row {
        let ratio = figures[0].median_ns.zip(figures[1].median_ns).map(|(theirs, ours)| theirs / ours);
        let bar = match program.paper_ratio {
            Some(_) if program.number == 1 => Bar::Between(0.95, 1.05),
            Some(paper) => Bar::AtLeast(paper),
            None => Bar::Open,
        };
        Row {
            number: program.number,
            program: program.title,
            linux: figures[0].clone(),
            synthesis: figures[1].clone(),
            generic: figures.get(2).cloned(),
            trap_only: figures.get(3).cloned(),
            ratio,
            best_ratio: figures[0].best_ns.zip(figures[1].best_ns).map(|(theirs, ours)| theirs / ours),
            paper_ratio: program.paper_ratio,
            reached: ratio.and_then(|ratio| bar.reached(ratio)),
            same_output: figures.iter().all(|figure| figure.stdout == figures[0].stdout),
        }
    }

    fn group(&self, has_generic: bool) -> Group {
        let sides = [Some(&self.linux), Some(&self.synthesis), self.generic.as_ref(), self.trap_only.as_ref()];
        let ratio = self.ratio.map_or("n/a".into(), |ratio| format!("{ratio:.2} x"));
        let paper = self.paper_ratio.map_or(String::new(), |ratio| format!("  (paper {ratio})"));
        Group {
            title: self.program.into(),
            nanos: sides[..if has_generic { 4 } else { 2 }]
                .iter()
                .map(|side| side.and_then(|side| side.median_ns))
                .collect(),
            mark: self.linux.median_ns.zip(self.paper_ratio).map(|(nanos, ratio)| nanos / ratio),
            note: format!("{ratio}{paper}"),
        }
    }

    fn cells(&self) -> Vec<String> {
        let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let reached = match (self.reached, self.same_output) {
            (_, false) => "WRONG OUTPUT",
            (Some(true), _) => "yes",
            (Some(false), _) => "no",
            (None, _) => "-",
        };
        let mut cells = vec![self.number.to_string(), self.program.into(), self.linux.text(), self.synthesis.text()];
        cells.extend(self.generic.iter().chain(&self.trap_only).map(Figure::text));
        cells.extend([ratio(self.ratio), ratio(self.best_ratio), ratio(self.paper_ratio), reached.into()]);
        cells
    }
}

impl Report {
    fn table(&self) -> Vec<Vec<String>> {
        let mut header = vec!["#", "program", "Linux", "Synthesis"];
        if self.rows.iter().any(|row| row.generic.is_some()) {
            header.extend(["generic", "trap only"]);
        }
        header.extend(["ratio", "best", "paper", "reached"]);
        let header = header.into_iter().map(String::from).collect();
        std::iter::once(header).chain(self.rows.iter().map(Row::cells)).collect()
    }

    fn facts(&self) -> Vec<String> {
        let mut facts = vec![
            format!("{}, median of {} rounds in turn ± half the distance of the quartiles", self.unit, self.rounds),
            format!("ratio = Linux / Synthesis, of medians and of best rounds; {} programs", self.linkage),
            format!("compiler: {}, -O", self.compiler),
            format!("machine: {}; commit: {}", self.machine, self.commit),
        ];
        for row in &self.rows {
            let sides =
                [("Linux", Some(&row.linux)), ("Synthesis", Some(&row.synthesis)), ("generic", row.generic.as_ref())];
            for (name, figure) in sides {
                if let Some(reason) = figure.and_then(|figure| figure.missing.as_ref()) {
                    facts.push(format!("n/a on {name}: {reason} (program {})", row.number));
                }
            }
        }
        facts
    }

    fn to_svg(&self) -> String {
        let has_generic = self.rows.iter().any(|row| row.generic.is_some());
        let series = ["Linux", "Synthesis", "generic (all in Rust)", "trap only (no site patched)"];
        let series = &series[..if has_generic { 4 } else { 2 }];
        let groups: Vec<Group> = self.rows.iter().map(|row| row.group(has_generic)).collect();
        let caption = [
            format!("{}; shorter is better; right: Linux / Synthesis and the paper's ratio", self.facts()[0]),
            format!("{}; {} programs, {} -O", self.machine, self.linkage, self.compiler),
            format!("commit {}", self.commit),
        ];
        chart::svg(&format!("Synthesis in a Linux process: the {} suite", self.suite), series, &groups, &caption)
    }

    fn to_text(&self) -> String {
        let facts: String = self.facts().iter().map(|fact| format!("{fact}\n")).collect();
        format!("{}\n{facts}", aligned(&self.table()))
    }

    fn to_markdown(&self) -> String {
        let table = self.table();
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<String> = table[0].iter().map(|_| "---".to_string()).collect();
        let body: String = table[1..].iter().map(|row| line(row)).collect();
        let facts: String = self.facts().iter().map(|fact| format!("- {fact}\n")).collect();
        format!("{}{}{body}\n{facts}", line(&table[0]), line(&rule))
    }
}

/// The value below which this part of the samples lies; `None` without samples.
fn quantile(samples: &mut [f64], part: f64) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    let place = part * (samples.len().checked_sub(1)?) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    Some(samples[low] + (samples[high] - samples[low]) * place.fract())
}

/// Nanoseconds with three figures that mean something.
fn nanos(value: f64) -> String {
    match value.abs() {
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_samples() {
        let mut samples = [4.0, 1.0, 2.0, 3.0];
        assert_eq!(quantile(&mut samples, 0.5), Some(2.5));
        assert_eq!(quantile(&mut samples, 0.25), Some(1.75));
        assert_eq!(quantile(&mut [], 0.5), None);
    }

    #[test]
    fn only_the_count_among_the_arguments_changes() {
        let program = suite::select(super::super::Suite::Micro, &["getppid".into()]).unwrap().remove(0);
        assert_eq!(run_of(&program, 77).arguments, ["getppid", "77", "time"]);
    }
}
