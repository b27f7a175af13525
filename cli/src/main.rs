//! `synth`, the host tool.

mod bench;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "synth", about = "Runs and measures the Synthesis kernel")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure Linux and Synthesis side by side, in guest instructions.
    Bench(bench::BenchArgs),
}

fn main() -> ExitCode {
    let Command::Bench(args) = Cli::parse().command;
    bench::bench(args).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        eprintln!("help: {}", error.help());
        ExitCode::FAILURE
    })
}
