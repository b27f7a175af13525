//! `synth bench`: the same executables in a Linux guest and in Synthesis, counted in guest instructions.
//!
//! How and why it is measured this way: `docs/bench.md`. A suite is compiled (`compile`), run in a Linux
//! guest (`linux`) and through `synth run` (`synthesis`), and the difference between two runs of each
//! program, one short and one long, becomes a row of the table (`report`).

mod chart;
mod compile;
mod cpio;
mod error;
mod hosted;
mod linux;
mod linux_kernel;
mod opens;
mod programs;
mod redundancy;
mod report;
mod size;
mod sound;
mod stages;
mod start;
mod suite;
mod synthesis;
mod tables;
mod ticks;

pub use error::BenchError;

use crate::checkout::project_root;
use clap::{Args, ValueEnum};
use compile::Linkage;
use report::{Measured, Report, Row};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use suite::{Program, Run};
use synthesis::Maker;

/// What to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Suite {
    /// The seven programs of the SOSP'89 paper, and getppid
    Paper,
    /// Single operations: one kernel call, fault, signal, switch or process each
    Micro,
    /// The interrupt of the sound device, with handlers by three makers (table 3.4)
    Sound,
    /// The thesis's tables of single operations; --only takes their numbers
    Tables,
    /// What threads cost: SOSP'89 tables 3 and 4
    Threads,
    /// What it costs that one waits for another: pipes, event counters, sockets, futexes, from end to end
    Wakes,
    /// The calls that programs make most
    Calls,
    /// Whole programs: Linux, Synthesis, and Synthesis without routines
    Programs,
    /// What the kernel needs of memory: the thesis's table 3.6
    Size,
    /// A small program from its start to its end, natively and on the hosted machine, in microseconds
    Start,
    /// Valued redundancy beside caches and replication protocols, simulated; --only forms,small,cells,scale,today,1989
    Redundancy,
    /// What it costs to write code, by quaject and stage; table 7.5's creation costs
    Synthesis,
}

impl Suite {
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Sound => "sound",
            Self::Micro => "micro",
            Self::Threads => "threads",
            Self::Wakes => "wakes",
            Self::Calls => "calls",
            Self::Tables => "tables",
            Self::Programs => "programs",
            Self::Size => "size",
            Self::Redundancy => "redundancy",
            Self::Start => "start",
            Self::Synthesis => "synthesis",
        }
    }
}

/// Arguments of `synth bench`.
#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    /// What to measure
    #[arg(value_enum)]
    pub suite: Suite,
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print a Markdown table
    #[arg(long)]
    pub markdown: bool,
    /// With --hosted: also write a chart to this file
    #[arg(long, value_name = "FILE", requires = "hosted")]
    pub svg: Option<PathBuf>,
    /// With redundancy: also write charts to this folder
    #[arg(long, value_name = "FOLDER")]
    pub plots: Option<PathBuf>,
    /// Add a column: Synthesis with its generic (not synthesized) routines
    #[arg(long)]
    pub generic: bool,
    /// Compare the hosted machine with this machine's own Linux, in nanoseconds
    #[arg(long, conflicts_with_all = ["linux", "fresh"])]
    pub hosted: bool,
    /// With programs --hosted: both sides stay on so many of the host's cores
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "hosted")]
    pub cores: usize,
    /// Boot this Linux kernel instead of Debian's cloud kernel
    #[arg(long, value_name = "VMLINUZ")]
    pub linux: Option<PathBuf>,
    /// Measure Linux again, even if an earlier result is kept
    #[arg(long)]
    pub fresh: bool,
    /// Only these programs, by number or name (repeat or separate by commas)
    #[arg(long, value_name = "PROGRAM", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Link the programs dynamically
    #[arg(long)]
    pub dynamic: bool,
    /// A few iterations only: shows that everything runs, the figures mean little
    #[arg(long)]
    pub quick: bool,
    /// Exit with status 1 when a bar is missed
    #[arg(long)]
    pub check: bool,
}

/// Measures and prints. The exit status is 1 when a figure is missing, when the two systems' outputs
/// differ or, with `check`, when a bar is missed.
///
/// # Errors
/// When the programs cannot be built or the Linux guest cannot be run; a Synthesis side that does not
/// run is not an error but "n/a" with its reason.
pub fn bench(args: BenchArgs) -> Result<ExitCode, BenchError> {
    if args.suite == Suite::Sound {
        return sound::bench(&args);
    }
    if args.plots.is_some() && args.suite != Suite::Redundancy {
        return Err(BenchError::NotInSuite { option: "plots", suite: args.suite.name() });
    }
    if args.suite == Suite::Redundancy {
        return redundancy::bench(&args);
    }
    if args.suite == Suite::Tables {
        return tables::bench(&args);
    }
    if args.suite == Suite::Programs {
        return programs::bench(&args);
    }
    if args.suite == Suite::Size {
        return size::bench(&args);
    }
    if args.suite == Suite::Start {
        return start::bench(&args);
    }
    if args.suite == Suite::Synthesis {
        return stages::bench(&args);
    }
    if args.hosted {
        return hosted::bench(&args);
    }
    let report = measure(&args, &project_root())?;
    match () {
        () if args.json => println!("{}", report.to_json()),
        () if args.markdown => print!("{}", report.to_markdown()),
        () => print!("{}", report.to_text()),
    }
    let failed = !report.complete() || !report.same_outputs() || (args.check && !report.bars_reached());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn measure(args: &BenchArgs, root: &Path) -> Result<Report, BenchError> {
    let programs = suite::select(args.suite, &args.only)?;
    let linkage = if args.dynamic { Linkage::Dynamic } else { Linkage::Static };
    let built = compile::build(root, &programs, linkage)?;
    let runs: Vec<Run> = programs.iter().flat_map(|program| program.runs(args.quick)).collect();

    let guest = linux::Guest::prepare(root, args.linux.as_deref())?;
    let linux = guest.run(&built, &runs, linkage, args.fresh)?;
    let synthesis = synthesis::run(&built, &runs, Maker::Synthesized);
    let generic = args.generic.then(|| synthesis::run(&built, &runs, Maker::Generic));

    let column = |outcomes: &[ticks::Outcome]| -> Vec<Measured> {
        programs
            .iter()
            .zip(outcomes.chunks(2))
            .map(|(program, pair)| Measured::from_runs(&program.runs(args.quick), pair))
            .collect()
    };
    let (linux, synthesis) = (column(&linux), column(&synthesis));
    let generic = generic.map(|outcomes| column(&outcomes));
    let rows = programs.iter().enumerate().map(|(i, program)| row(program, i, &linux, &synthesis, generic.as_deref()));
    Ok(Report::new(args, root, &guest, rows.collect()))
}

fn row(program: &Program, i: usize, linux: &[Measured], synthesis: &[Measured], generic: Option<&[Measured]>) -> Row {
    Row::new(program, linux[i].clone(), synthesis[i].clone(), generic.map(|column| column[i].clone()))
}
