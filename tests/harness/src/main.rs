//! The test command: runs the same programs on the host's Linux and on Synthesis and compares what they print.
//!
//! Every suite has the host as its oracle, so an expectation is never typed in by hand where Linux can be asked.
#![forbid(unsafe_code)]

mod batch;
mod case;
mod compare;
mod inputs;
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

const USAGE: &str = "usage: synth-tests SUITE [options]

suites
  differential   command lines of tests/differential on the host and on Synthesis
  faults         wild pointers, stack overflow, fork bomb...: status as on the host, next program runs
  fuzz           random kernel calls from fixed seeds, in the machine only
  semantics      signals, memory, files, vector registers: printed results as on the host
  pointers       every call of tiers T1 and T2 with bad pointers, lengths and descriptors
  leaks          1,000 x everything, and every way to end: frames, code and heap come back
  paper          the seven programs of the paper, static and dynamic, same output
  shares         who shares the processor gets what its quantum says
  streams        100 MB through stdin and stdout, separate stderr, exit statuses
  errors         bad programs: one clear line and a useful status
  compiler       make driving cc in a root with the host's compiler
  tty            interactive programs at a pseudo-terminal
  sound          the sound device at full rate, while its interrupt handlers are replaced
  hostfiles      the host's files under the hosted machine: programs, maps and locks shared with the host
  seeing         ps, code, graph, top, trace on a running system; random requests
  monitor        expressions, quajects, threads that stop and step; 20,000 random lines
  machines       other machines of the monitor: ACPI, PCI, no exit device, no stack, memory above 4 GB
  kvm            a choice of the suites on a machine that KVM runs; skipped where the processor backs none
  hosted         the hosted machine: debuggers, counts, crash reports, many starts
  all            everything above

  list           the names of all cases of the differential, faults, semantics and pointers suites
  reference      stands in for `synth run` on this host (needs root): tests the tests

options
  --runner CMD         how to run a program on Synthesis (default: target/release/synth run)
  --filter S           only cases whose name contains S
  --jobs N             boots at the same time (default 2)
  --own-boot           a boot of its own for each case
  --case-timeout SEC   the longest a case may take (default 60)
  --mem SIZE           guest memory (default 512M)
  --scratch DIR        where the host side runs (default /dev/shm or /tmp)
  --keep               keep the scratch folders
  --verbose            name each case as it passes";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((suite, rest)) = args.split_first() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if suite == "reference" {
        return reference::main(rest);
    }
    if matches!(suite.as_str(), "help" | "--help" | "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(rest) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("error: {message}\n\n{USAGE}");
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
