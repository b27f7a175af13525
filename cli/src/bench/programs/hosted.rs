//! `synth bench programs --hosted`: whole programs and hand-overs on this machine's Linux and on the hosted machine, in time.
//!
//! Both sides start the same launcher in the same folder of the host, in turn, row by row, on the same cores. The first run of a row on
//! each side is left out: it brings files and code in. A figure is the median of the other runs, and the fastest of them: on a machine that
//! does other work beside, the fastest says more, and the time that the host's processors worked for it more still: of a boot with so many
//! runs that of a boot with one later run is taken off, and what remains divided by the runs that it has more.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;

use super::super::compile::{Linkage, compile};
use super::super::error::{BenchError, at};
use super::super::report::{self, aligned};
use super::super::{BenchArgs, project_root};
use super::timed::{TIMED, Timed};
use super::{Figure, figures, on_host};

/// Boots of each side, and runs in each after the first.
const BOOTS: usize = 3;
const RUNS: usize = 3;
const TIMEOUT_SECONDS: &str = "300";

/// What one side took for a row, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Times {
    median_ms: f64,
    fastest_ms: f64,
    /// What the processors worked for a run, at least.
    worked_ms: f64,
    runs: usize,
}

#[derive(Serialize)]
struct Line {
    program: &'static str,
    command: String,
    linux: Option<Times>,
    synthesis: Option<Times>,
    /// Linux over Synthesis, of the fastest runs and of the medians.
    ratio: Option<f64>,
    ratio_of_medians: Option<f64>,
    /// The same of the time that the processors worked.
    ratio_of_work: Option<f64>,
    wanted: f64,
    /// Why there is no figure, or what is wrong.
    remark: Option<String>,
}

/// Measures and prints. With `--check` the exit status is 1 where a wanted ratio is missed; a figure that is missing, or another output,
/// always fails.
///
/// # Errors
/// When a program of the bench cannot be built.
pub fn bench(args: &BenchArgs) -> Result<ExitCode, BenchError> {
    let cores = pin(args.cores);
    let session = Session::new(args)?;
    let lines: Vec<Line> = choose(&args.only)?.iter().map(|row| session.line(row)).collect();
    let facts = format!(
        "milliseconds from fork to end: median (fastest) of {} runs, both sides in turn on {cores} of the host's cores\nratio = Linux / \
         Synthesis, of the fastest runs, of the medians, and of the time that the processors worked\nmachine: {}; commit: {}\n",
        session.boots * session.runs,
        report::machine(),
        report::commit(&session.root)
    );
    if args.json {
        let json = serde_json::json!({
            "bench": "programs --hosted", "unit": "milliseconds", "cores": cores, "rows": lines, "machine": report::machine(),
            "commit": report::commit(&session.root),
        });
        println!("{json:#}");
    } else {
        let table = table(&lines);
        let body = if args.markdown { report::markdown(&table) } else { aligned(&table) };
        let remarks: String =
            lines.iter().filter_map(|line| Some(format!("{}: {}\n", line.program, line.remark.as_ref()?))).collect();
        print!("{body}\n{facts}{remarks}");
    }
    let is_bad = |line: &Line| {
        line.remark.is_some() && line.linux.is_some()
            || args.check && line.ratio.is_some_and(|ratio| ratio < line.wanted)
    };
    Ok(if lines.iter().any(is_bad) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// This process, and so all that it starts, stays on the first `count` cores it may use. Returns how many these are.
fn pin(count: usize) -> usize {
    let Ok(allowed) = sched_getaffinity(None) else { return 0 };
    let mut chosen = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).take(count.max(1)).for_each(|core| chosen.set(core));
    let set = if sched_setaffinity(None, &chosen).is_ok() { chosen } else { allowed };
    set.count() as usize
}

fn choose(only: &[String]) -> Result<Vec<&'static Timed>, BenchError> {
    let is_named = |(number, row): &(usize, &Timed)| {
        only.is_empty() || only.iter().any(|name| *name == (number + 1).to_string() || row.name.contains(name.as_str()))
    };
    let chosen: Vec<&Timed> = TIMED.iter().enumerate().filter(is_named).map(|(_, row)| row).collect();
    if chosen.is_empty() {
        let known = TIMED.iter().enumerate().map(|(number, row)| format!("{} ({})", number + 1, row.name));
        return Err(BenchError::UnknownProgram { asked: only.join(", "), known: known.collect::<Vec<_>>().join(", ") });
    }
    Ok(chosen)
}

struct Session {
    root: PathBuf,
    /// Where the launcher, its files and the programs of the bench are.
    folder: PathBuf,
    tool: PathBuf,
    boots: usize,
    runs: usize,
}

impl Session {
    fn new(args: &BenchArgs) -> Result<Session, BenchError> {
        let root = project_root();
        let folder = root.join("target/bench/programs");
        let files = folder.join("files");
        fs::create_dir_all(&files).map_err(at(&files))?;
        for (name, linkage) in [("launch", Linkage::Static), ("handing", Linkage::Static), ("nothing", Linkage::Static)]
        {
            compile(&root.join("bench/programs").join(name).with_extension("c"), &folder.join(name), linkage)?;
        }
        compile(&root.join("bench/programs/nothing.c"), &folder.join("nothing-dynamic"), Linkage::Dynamic)?;
        let tool = std::env::current_exe().map_err(at("/proc/self/exe"))?;
        let (boots, runs) = if args.quick { (1, 1) } else { (BOOTS, RUNS) };
        Ok(Session { root, folder, tool, boots, runs })
    }

    fn line(&self, row: &'static Timed) -> Line {
        let command = row.command.replace("BENCH", &self.folder.display().to_string());
        let mut line = Line {
            program: row.name,
            command,
            linux: None,
            synthesis: None,
            ratio: None,
            ratio_of_medians: None,
            ratio_of_work: None,
            wanted: row.wanted,
            remark: None,
        };
        if let Some(program) = row.needs.iter().copied().find(|program| on_host(program).is_none()) {
            line.remark = Some(format!("{program} is not on this host"));
            return line;
        }
        eprintln!("{}", row.name);
        match self.measure(row, &line.command) {
            Ok([linux, synthesis]) => {
                line.ratio = Some(linux.fastest_ms / synthesis.fastest_ms);
                line.ratio_of_medians = Some(linux.median_ms / synthesis.median_ms);
                line.ratio_of_work = Some(linux.worked_ms / synthesis.worked_ms).filter(|ratio| ratio.is_finite());
                (line.linux, line.synthesis) = (Some(linux), Some(synthesis));
            }
            Err(reason) => line.remark = Some(reason),
        }
        if let (None, Some(linux), Some(synthesis)) = (&line.remark, line.linux, line.synthesis)
            && linux.runs != synthesis.runs
        {
            line.remark = Some("runs are missing".into());
        }
        line
    }

    fn measure(&self, row: &Timed, command: &str) -> Result<[Times; 2], String> {
        let list = self.folder.join("row");
        fs::write(&list, format!("row\t{command}\n")).map_err(|error| format!("{}: {error}", list.display()))?;
        let (boots, runs) = if row.is_long { (1, self.runs) } else { (self.boots, self.runs) };
        let mut samples = [Vec::new(), Vec::new()];
        // Of each side: with one later run, and with all of them.
        let mut worked = [[f64::INFINITY; 2]; 2];
        let mut ends = [None; 2];
        for _ in 0..boots {
            for (side, is_hosted) in [false, true].into_iter().enumerate() {
                let (_, short_ms) = self.launch(&list, 1, is_hosted)?;
                let (figure, long_ms) = self.launch(&list, runs, is_hosted)?;
                let [short, long] = &mut worked[side];
                (*short, *long) = (short.min(short_ms), long.min(long_ms));
                samples[side].extend(figure.ticks.iter().map(|ticks| *ticks as f64));
                ends[side] = Some((figure.status, figure.hash));
            }
        }
        let [linux, synthesis] = ends.map(Option::unwrap_or_default);
        if linux.0 != synthesis.0 {
            return Err(format!("status {} on Linux, {} here", linux.0, synthesis.0));
        }
        if row.is_compared && linux.1 != synthesis.1 {
            return Err("another output".into());
        }
        let hz = crate::machine::tsc_hz(false).max(1);
        let [linux, synthesis] = samples;
        let for_one = |[short, long]: [f64; 2]| if runs > 1 { (long - short) / (runs - 1) as f64 } else { long };
        Ok([times(linux, for_one(worked[0]), hz), times(synthesis, for_one(worked[1]), hz)])
    }

    /// What the launcher says, and how many milliseconds the processors worked for it.
    fn launch(&self, list: &Path, runs: usize, is_hosted: bool) -> Result<(Figure, f64), String> {
        let launcher = self.folder.join("launch");
        let mut command = if is_hosted {
            let mut command = Command::new(&self.tool);
            command.args(["run", "--hosted", "--timeout", TIMEOUT_SECONDS, "--mem", "1G"]).arg(&launcher);
            command
        } else {
            Command::new(&launcher)
        };
        command.arg(list).arg(runs.to_string()).arg(self.folder.join("files")).stdin(Stdio::null());
        let side = if is_hosted { "Synthesis" } else { "Linux" };
        let before = worked_ms();
        let output = command.output().map_err(|error| format!("{side}: {error}"))?;
        let worked = worked_ms() - before;
        figures(&output.stdout).remove("row").map(|figure| (figure, worked)).ok_or_else(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            format!("{side}: {}; {}", output.status, said.lines().last().unwrap_or("no word"))
        })
    }
}

/// What the processors worked for the processes that have been waited for, and for those that these waited for.
fn worked_ms() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN);
    usage.map_or(0.0, |usage| (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e3)
}

fn times(mut ticks: Vec<f64>, worked_ms: f64, counter_hz: u64) -> Times {
    ticks.sort_by(f64::total_cmp);
    let milliseconds = |ticks: f64| ticks * 1e3 / counter_hz as f64;
    Times {
        median_ms: milliseconds(ticks[ticks.len() / 2]),
        fastest_ms: milliseconds(ticks[0]),
        worked_ms,
        runs: ticks.len(),
    }
}

fn table(lines: &[Line]) -> Vec<Vec<String>> {
    let header = ["#", "program", "Linux", "Synthesis", "ratio", "of medians", "of work", "wanted", "reached"];
    let mut table = vec![header.map(String::from).to_vec()];
    let shown = |times: Option<Times>| {
        times.map_or("n/a".into(), |times| format!("{:.1} ({:.1})", times.median_ms, times.fastest_ms))
    };
    let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
    for (number, line) in lines.iter().enumerate() {
        let reached = line.ratio.map_or("-", |ratio| if ratio >= line.wanted { "yes" } else { "no" });
        let mut cells =
            vec![(number + 1).to_string(), line.program.to_string(), shown(line.linux), shown(line.synthesis)];
        let ratios = [line.ratio, line.ratio_of_medians, line.ratio_of_work];
        cells.extend(ratios.map(ratio));
        cells.extend([format!("{:.2}", line.wanted), reached.into()]);
        table.push(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_and_the_fastest_are_milliseconds() {
        let times = times(vec![3e6, 1e6, 2e6], 0.5, 1_000_000_000);
        assert_eq!(times, Times { median_ms: 2.0, fastest_ms: 1.0, worked_ms: 0.5, runs: 3 });
    }

    #[test]
    fn rows_have_names_of_their_own_and_one_line() {
        let mut names: Vec<&str> = TIMED.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TIMED.len());
        assert!(TIMED.iter().all(|row| !row.command.contains(['\t', '\n'])));
        assert_eq!(choose(&["ls -lR".into()]).unwrap().len(), 1);
        assert!(choose(&["nothing".into()]).is_err());
    }
}
