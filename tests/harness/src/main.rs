//! The test command: runs the same programs on the host's Linux and on Synthesis and compares what they print.
//!
//! Every suite has the host as its oracle, so an expectation is never typed in by hand where Linux can be asked.
#![forbid(unsafe_code)]

mod batch;
mod case;
mod compare;
mod inputs;
mod kernels;
mod options;
mod process;
mod programs;
mod reference;
mod report;
mod root;
mod side;
mod suites;
mod terminal;

use std::process::ExitCode;

use options::Options;
use report::Tally;

/// What the command understands; `./synth test --help` shows it, too.
const USAGE: &str = include_str!("../usage.txt");

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((suite, rest)) = args.split_first() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    if suite == "reference" {
        return reference::main(rest);
    }
    let asks = |word: &String| matches!(word.as_str(), "help" | "--help" | "-h");
    if args.iter().any(asks) {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(rest) {
        Ok(options) => options,
        Err(message) => {
            eprint!("error: {message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut tally = Tally::new(options.verbose);
    match suites::run(suite, &options, &mut tally) {
        Ok(()) => tally.finish(),
        Err(message) => {
            eprintln!("error: {message}");
            tally.finish();
            ExitCode::from(1)
        }
    }
}
