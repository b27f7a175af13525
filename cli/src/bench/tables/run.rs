//! Runs the operations of a table: in guest instructions on the pc machine, in nanoseconds on this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::compile;
use super::super::error::{BenchError, at};
use super::super::ticks::{Outcome, per_iteration};
use super::catalog::{Row, STDIO, Table, Who};

/// How long the long run of an operation loops on this machine.
const LOOP_NS: f64 = 20e6;
const ROUNDS: usize = 9;
/// Iterations of the two runs whose difference is counted in guest instructions.
const COUNTED: [u32; 2] = [20_000, 200_000];
const TIMEOUT_SECONDS: &str = "300";

/// Who runs an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Pc,
    Linux,
    Hosted,
}

/// What a row came to.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Guest instructions an operation, on the pc machine.
    pub instructions: Option<f64>,
    /// Nanoseconds an operation on this machine's Linux: median of the rounds.
    pub linux_ns: Option<f64>,
    /// The same on the hosted machine.
    pub hosted_ns: Option<f64>,
    /// Bytes of code that a use of the operation costs in a program.
    pub bytes: Option<u64>,
    /// Why a figure is missing.
    pub missing: Vec<String>,
}

/// Builds the programs of the tables and what they are linked with.
pub struct Bench {
    programs: BTreeMap<&'static str, PathBuf>,
    folder: PathBuf,
    include: PathBuf,
    tool: PathBuf,
    counter_hz: u64,
    rounds: usize,
}

impl Bench {
    /// # Errors
    /// When the programs cannot be built.
    pub fn new(root: &Path, tables: &[&Table], quick: bool) -> Result<Bench, BenchError> {
        let folder = root.join("target/bench/tables");
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let library = build_library(root)?;
        let generic = build_generic(root, &folder)?.display().to_string();
        let mut programs = BTreeMap::new();
        for row in tables.iter().flat_map(|table| table.rows) {
            if !programs.contains_key(row.executable) {
                let source = root.join("bench/tables").join(row.executable).with_extension("c");
                let output = folder.join(row.executable);
                let include = format!("-I{}", library.display());
                let archive = library.join("libsynthio.a").display().to_string();
                let libraries: &[&str] = if row.executable == STDIO { &[&generic, &archive] } else { &[&archive] };
                compile::compile_with(&source, &output, &["-static", &include], libraries)?;
                programs.insert(row.executable, output);
            }
        }
        let tool = std::env::current_exe().map_err(at("/proc/self/exe"))?;
        let counter_hz = crate::machine::tsc_hz(false).max(1);
        Ok(Bench { programs, folder, include: library, tool, counter_hz, rounds: if quick { 1 } else { ROUNDS } })
    }

    /// Measures the rows of a table. On this machine they take turns, so that a change of its speed meets all of them.
    pub fn measure(&self, table: &Table) -> Vec<Measured> {
        let mut measured: Vec<Measured> = table.rows.iter().map(|row| self.counted(row)).collect();
        for side in [Side::Linux, Side::Hosted] {
            let has = |row: &Row| row.who == Who::Everybody || side == Side::Linux && row.who == Who::LinuxAlone;
            let rows: Vec<(usize, &Row)> = table.rows.iter().enumerate().filter(|(_, row)| has(row)).collect();
            let plans: Vec<_> = rows.iter().map(|(_, row)| self.plan(row, side)).collect();
            let mut samples = vec![Vec::new(); table.rows.len()];
            for _ in 0..self.rounds {
                for ((at, row), plan) in rows.iter().copied().zip(&plans) {
                    let sample = plan.clone().and_then(|iterations| self.nanos(row, side, iterations));
                    match sample {
                        Ok(nanos) => samples[at].push(nanos),
                        Err(reason) => measured[at].missing.push(format!("{side:?}: {reason}")),
                    }
                }
            }
            for (measured, samples) in measured.iter_mut().zip(&mut samples) {
                let figure = if side == Side::Linux { &mut measured.linux_ns } else { &mut measured.hosted_ns };
                *figure = median(samples);
            }
        }
        measured
    }

    fn counted(&self, row: &Row) -> Measured {
        let mut measured = Measured { bytes: row.one_use.and_then(|text| self.bytes_of(text)), ..Measured::default() };
        if matches!(row.who, Who::LinuxAlone | Who::Nobody) {
            return measured;
        }
        match self.difference(row, Side::Pc, row.iterations.unwrap_or(COUNTED)) {
            Ok(instructions) => measured.instructions = Some(instructions),
            Err(reason) => measured.missing.push(format!("pc: {reason}")),
        }
        measured
    }

    /// Iterations of the short and the long run.
    fn plan(&self, row: &Row, side: Side) -> Result<[u32; 2], String> {
        if let Some(iterations) = row.iterations {
            return Ok(iterations);
        }
        let first = [1_000, 101_000];
        let each = self.nanos(row, side, first)?.max(0.1);
        let long = (LOOP_NS / each).clamp(10_000.0, 1e9) as u32;
        Ok([long / 10, long])
    }

    fn nanos(&self, row: &Row, side: Side, iterations: [u32; 2]) -> Result<f64, String> {
        Ok(self.difference(row, side, iterations)? * 1e9 / self.counter_hz as f64)
    }

    fn difference(&self, row: &Row, side: Side, iterations: [u32; 2]) -> Result<f64, String> {
        let ticks = [self.run(row, side, iterations[0]).ticks()?, self.run(row, side, iterations[1]).ticks()?];
        Ok(per_iteration(iterations, ticks))
    }

    fn run(&self, row: &Row, side: Side, iterations: u32) -> Outcome {
        let program = &self.programs[row.executable];
        let mut command = match side {
            Side::Linux => Command::new(program),
            Side::Pc => self.synth(&["--icount"], program),
            Side::Hosted => self.synth(&["--hosted"], program),
        };
        command.args([row.operation, &iterations.to_string(), "time"]).stdin(Stdio::null());
        match command.output() {
            Err(error) => Outcome::NotRun { reason: format!("cannot be started: {error}") },
            Ok(output) => match output.status.code() {
                Some(status) => Outcome::Ended { status, stdout: output.stdout, stderr: output.stderr },
                None => Outcome::NotRun { reason: format!("ended by {}", output.status) },
            },
        }
    }

    fn synth(&self, machine: &[&str], program: &Path) -> Command {
        let mut command = Command::new(&self.tool);
        command.arg("run").args(machine).args(["--timeout", TIMEOUT_SECONDS]).arg(program);
        command
    }

    /// Bytes that one more use of `text` costs in a function.
    fn bytes_of(&self, text: &str) -> Option<u64> {
        const USES: u64 = 64;
        let few = self.text_bytes(text, 1)?;
        Some((self.text_bytes(text, 1 + USES)?.checked_sub(few)? + USES / 2) / USES)
    }

    fn text_bytes(&self, text: &str, uses: u64) -> Option<u64> {
        let source = self.folder.join(format!("use-{uses}-{}.c", std::process::id()));
        let object = source.with_extension("o");
        let body = format!("\t{text}\n").repeat(uses as usize);
        let program = format!("#define _GNU_SOURCE\n#include <synthio.h>\nvoid use(int *c)\n{{\n{body}}}\n");
        fs::write(&source, program).ok()?;
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=gnu11", "-O", "-fno-pie", "-c", "-I"]).arg(&self.include).arg("-o").arg(&object).arg(&source);
        let built = gcc.status().ok()?.success();
        let printed = Command::new("size").arg("-A").arg(&object).output().ok()?;
        let _ = (fs::remove_file(&source), fs::remove_file(&object));
        let table = String::from_utf8_lossy(&printed.stdout).into_owned();
        let text = table.lines().filter(|line| line.starts_with(".text"));
        let bytes = text.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum();
        built.then_some(bytes)
    }
}

/// The folder with `libsynthio.a` and `synthio.h`.
fn build_library(root: &Path) -> Result<PathBuf, BenchError> {
    let script = root.join("user/stdio/build.sh");
    let output = Command::new(&script).output().map_err(at(&script))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(BenchError::Compile { source: script, message });
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("user"))
}

/// The rows in plain Rust, as an object for the C compiler's linker.
fn build_generic(root: &Path, folder: &Path) -> Result<PathBuf, BenchError> {
    let (source, object) = (root.join("bench/tables/generic.rs"), folder.join("generic.o"));
    let options = ["--edition=2024", "--crate-type=lib", "--emit=obj", "-Copt-level=3", "-Cpanic=abort"];
    let output = Command::new("rustc").args(options).arg("-o").arg(&object).arg(&source).output();
    let output = output.map_err(|_| BenchError::MissingCommand { command: "rustc", package: "rustc" })?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(BenchError::Compile { source, message });
    }
    Ok(object)
}

fn median(samples: &mut [f64]) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::super::super::project_root;
    use super::super::catalog::TABLES;
    use super::*;

    /// Guards the C sources: each operation that other kernels have, tiny, on the host's own.
    #[test]
    fn every_operation_runs_on_the_host() {
        let tables: Vec<&Table> = TABLES.iter().collect();
        let bench = match Bench::new(&project_root(), &tables, true) {
            Err(BenchError::MissingCommand { .. }) => return,
            bench => bench.unwrap(),
        };
        for row in
            tables.iter().flat_map(|table| table.rows).filter(|row| !matches!(row.who, Who::KernelAlone | Who::Nobody))
        {
            let outcome = bench.run(row, Side::Linux, row.iterations.map_or(20_000, |[few, _]| few));
            assert!(outcome.ticks().is_ok(), "{}: {outcome:?}", row.operation);
        }
    }
}
