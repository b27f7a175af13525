//! `synth`, the host tool: packs Linux programs, boots Synthesis in a virtual machine, and stands between the two.

mod bench;
mod checkout;
mod commands;
mod failure;
mod machine;
mod options;
mod pack;
mod see;

use std::process::ExitCode;

use options::{Command, Options};

fn main() -> ExitCode {
    machine::clock::begin();
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        machine::terminal::restore();
        report(panic);
    }));
    let result = match Options::of_process().command {
        Command::Run(options) => commands::run::run(&options),
        Command::Boot(options) => commands::boot::boot(&options),
        Command::Layers(options) => commands::layers::layers(&options),
        Command::Demo(options) => commands::demo::demo(&options),
        Command::Bench(arguments) => return run_bench(arguments),
        Command::See(command) => see::see(&command),
    };
    machine::terminal::restore();
    see::stop_listening();
    match result {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            eprint!("{failure}");
            ExitCode::from(failure.status)
        }
    }
}

fn run_bench(arguments: bench::BenchArgs) -> ExitCode {
    bench::bench(arguments).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        eprintln!("help: {}", error.help());
        ExitCode::FAILURE
    })
}
