//! Runs programs on Synthesis, through this tool's own `run`.

use super::compile::Built;
use super::suite::Run;
use super::ticks::Outcome;
use std::io::IsTerminal;
use std::process::{Command, Stdio};

/// A run that takes longer is stuck.
const TIMEOUT_SECONDS: u32 = 300;

/// Whose routines serve the calls (rule R6: every synthesized routine has a generic twin).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Maker {
    Synthesized,
    Generic,
}

/// One outcome for each run. The first run that cannot be started stands for all: without a kernel
/// nothing else is tried.
pub fn run(built: &Built, runs: &[Run], maker: Maker) -> Vec<Outcome> {
    let terminal = std::io::stderr().is_terminal();
    let mut outcomes: Vec<Outcome> = Vec::with_capacity(runs.len());
    for (i, run) in runs.iter().enumerate() {
        if terminal {
            eprint!("\rSynthesis ({maker:?}): run {} of {}", i + 1, runs.len());
        }
        let outcome = run_one(built, run, maker);
        let stop = matches!(outcome, Outcome::NotRun { .. });
        outcomes.push(outcome.clone());
        if stop {
            outcomes.resize(runs.len(), outcome);
            break;
        }
    }
    if terminal {
        eprintln!();
    }
    outcomes
}

fn run_one(built: &Built, run: &Run, maker: Maker) -> Outcome {
    match command(built, run, maker).and_then(|mut command| command.output()) {
        Err(error) => Outcome::NotRun { reason: format!("cannot start `synth run`: {error}") },
        Ok(output) => match output.status.code() {
            Some(status) => Outcome::Ended { status, stdout: output.stdout, stderr: output.stderr },
            None => Outcome::NotRun { reason: format!("`synth run` ended by {}", output.status) },
        },
    }
}

fn command(built: &Built, run: &Run, maker: Maker) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["run", "--icount", "--timeout", &TIMEOUT_SECONDS.to_string()]);
    if maker == Maker::Generic {
        command.arg("--generic");
    }
    command.arg(&built[run.executable]).args(&run.arguments).stdin(Stdio::null());
    Ok(command)
}
