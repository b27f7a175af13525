//! `synth bench start`: how long a small program takes from its start to its end, natively and on the hosted machine.
//!
//! The two take turns, so that what else the machine does meets both, and medians are compared. On a
//! machine that is busy with other work the fastest of all is the quieter figure.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use serde::Serialize;

use super::error::{BenchError, at};
use super::report::{self, aligned};
use super::{BenchArgs, compile, project_root};

/// Starts of each kind.
const STARTS: usize = 300;
const STARTS_QUICK: usize = 5;

#[derive(Debug, Serialize)]
struct Row {
    program: String,
    native: Times,
    hosted: Times,
    /// Of the medians.
    ratio: f64,
}

/// Microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
struct Times {
    median: f64,
    fastest: f64,
}

/// Measures and prints.
///
/// # Errors
/// When the static program cannot be built or a start fails.
pub fn bench(args: &BenchArgs) -> Result<ExitCode, BenchError> {
    let root = project_root();
    let starts = if args.quick { STARTS_QUICK } else { STARTS };
    let programs = [PathBuf::from("/bin/true"), empty_program(&root)?];
    let rows = programs.iter().map(|program| measure(program, starts)).collect::<Result<Vec<Row>, _>>()?;
    if args.json {
        let (machine, commit) = (report::machine(), report::commit(&root));
        let json = serde_json::json!({
            "bench": "start", "unit": "microseconds", "starts": starts, "rows": rows, "machine": machine, "commit": commit,
        });
        println!("{json:#}");
        return Ok(ExitCode::SUCCESS);
    }
    println!("Start to end of a program, microseconds: median of {starts} (fastest)\n");
    print!("{}", aligned(&cells(&rows)));
    println!("\n- native and hosted take turns; machine: {}; commit: {}", report::machine(), report::commit(&root));
    Ok(ExitCode::SUCCESS)
}

fn cells(rows: &[Row]) -> Vec<Vec<String>> {
    let shown = |times: Times| format!("{:.0} ({:.0})", times.median, times.fastest);
    let line = |row: &Row| vec![row.program.clone(), shown(row.native), shown(row.hosted), format!("{:.2}", row.ratio)];
    let header = ["", "native", "hosted", "ratio"].map(String::from).to_vec();
    core::iter::once(header).chain(rows.iter().map(line)).collect()
}

/// A program without libraries that does nothing.
fn empty_program(root: &Path) -> Result<PathBuf, BenchError> {
    let folder = root.join("target/bench/start");
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    let (source, program) = (folder.join("empty.c"), folder.join("empty-static"));
    std::fs::write(&source, "int main(void) { return 0; }\n").map_err(at(&source))?;
    compile::compile(&source, &program, compile::Linkage::Static)?;
    Ok(program)
}

fn measure(program: &Path, starts: usize) -> Result<Row, BenchError> {
    let tool = std::env::current_exe().map_err(at("/proc/self/exe"))?;
    let mut natively = Command::new(program);
    let mut hosted = Command::new(&tool);
    hosted.args(["run", "--hosted", "--timeout", "60"]).arg(program);
    let (mut native_samples, mut hosted_samples) = (Vec::new(), Vec::new());
    for _ in 0..starts {
        native_samples.push(start(&mut natively)?);
        hosted_samples.push(start(&mut hosted)?);
    }
    let (native, hosted) = (times(native_samples), times(hosted_samples));
    Ok(Row { program: program.display().to_string(), native, hosted, ratio: hosted.median / native.median })
}

/// The time that goes by until the program has ended, in microseconds.
fn start(command: &mut Command) -> Result<f64, BenchError> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let before = Instant::now();
    let status = command.status().map_err(at(PathBuf::from(command.get_program())))?;
    let elapsed = before.elapsed();
    if !status.success() {
        return Err(BenchError::NotMeasured { reason: format!("{}: {status}", command.get_program().display()) });
    }
    Ok(elapsed.as_nanos() as f64 / 1e3)
}

fn times(mut samples: Vec<f64>) -> Times {
    samples.sort_by(f64::total_cmp);
    Times { median: samples[samples.len() / 2], fastest: samples[0] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_of_what_was_seen() {
        let times = times(vec![5.0, 1.0, 9.0]);
        assert_eq!((times.median, times.fastest), (5.0, 1.0));
    }
}
