//! Looking at a running system: `synth ps`, `code`, `graph`, `top`, `trace`.
//!
//! ```text
//!   synth ps ──socket──► synth run ──control port──► kernel          one request
//!   synth ps ◄──socket── synth run ◄──control port── kernel          one answer
//! ```
//! A tool that runs a system listens at a socket named by its process number (`listen`); the commands find it there
//! (`client`). It reads neither requests nor answers; what they hold is in `bootimage::inspect`.

mod client;
mod code;
mod graph;
mod layout;
mod listen;
mod listing;
mod monitor;
mod perfetto;
mod ps;
mod svg;
mod top;
mod trace;

pub use listen::{Door, Listener, stop as stop_listening};

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use clap::{Args, Subcommand};

use crate::failure::{Failure, SIGNALLED};
use client::Client;

/// Commands for people who want to see.
#[derive(Subcommand, Debug)]
pub enum SeeCommand {
    /// List the threads of a running system: state, what they wait for, time, calls
    Ps(ps::PsOptions),
    /// Record calls, switches, interrupts and syntheses for a while
    Trace(trace::TraceOptions),
    /// Show gauges live: calls, switches, syntheses, memory, threads
    Top(top::TopOptions),
    /// Draw the stream graph: quaspaces with their threads, and the streams between them
    Graph(graph::GraphOptions),
    /// C expressions and commands at a prompt, compiled and done by the kernel
    Monitor(monitor::MonitorOptions),
    /// Disassemble live synthesized code, with its birth certificate
    Code(code::CodeOptions),
}

/// Which running system.
#[derive(Args, Debug, Clone, Copy)]
pub struct Which {
    /// The process number of the `synth run` that runs it; not needed while only one runs
    #[arg(long, value_name = "PID")]
    pub of: Option<u32>,
}

/// Does one of the commands; the exit status.
pub fn see(command: &SeeCommand) -> Result<u8, Failure> {
    match command {
        SeeCommand::Code(options) => code::code(&mut Client::connect(options.which.of)?, options),
        SeeCommand::Trace(options) => trace::trace(&mut Client::connect(options.which.of)?, options),
        SeeCommand::Top(options) => top::top(&mut Client::connect(options.which.of)?, options),
        SeeCommand::Graph(options) => graph::graph(&mut Client::connect(options.which.of)?, options),
        SeeCommand::Monitor(options) => monitor::monitor(options),
        SeeCommand::Ps(options) => ps::ps(&mut Client::connect(options.which.of)?, options),
    }
}

/// Where the trace of a traced run goes: opened before the run, so that nobody runs for hours in vain.
#[derive(Clone, Debug)]
pub struct TraceFile {
    path: PathBuf,
    /// What the system was asked for before the run was cut short; it says nothing itself then.
    rescued: Arc<Mutex<Option<trace::Recorded>>>,
}

impl TraceFile {
    /// # Errors
    /// The file cannot be written.
    pub fn open(path: &Path) -> Result<TraceFile, Failure> {
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
        opened.map_err(|error| trace::unwritable(path, &error))?;
        Ok(TraceFile { path: path.to_path_buf(), rescued: Arc::default() })
    }

    /// Asks this tool's own system for its records, because it is about to be ended. Takes as long as a few answers.
    pub fn rescue(&self) {
        let recorded = Client::connect(Some(std::process::id())).and_then(|mut client| trace::all_so_far(&mut client));
        if let (Ok(recorded), Ok(mut rescued)) = (recorded, self.rescued.lock()) {
            *rescued = Some(recorded);
        }
    }

    /// Writes what the system sent at its end, or else what was rescued.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, pieces: &[Vec<u8>]) -> Result<(), Failure> {
        let rescued = self.rescued.lock().ok().and_then(|mut rescued| rescued.take());
        let recorded = match rescued {
            Some(rescued) if pieces.is_empty() => rescued,
            _ => trace::Recorded::of_run(pieces),
        };
        trace::write(&recorded, &self.path)
    }
}

/// Prints; ends quietly when nobody reads any more.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(i32::from(SIGNALLED) + signal_hook::consts::SIGPIPE);
    }
}

/// The same for programs: a value and a line end.
fn print_json(value: &serde_json::Value) {
    print(&format!("{value:#}\n"));
}

/// The folder of this user alone, made if it is not there.
pub fn own_folder() -> std::io::Result<PathBuf> {
    let folder = folder();
    listen::make_private(&folder)?;
    Ok(folder)
}

/// Where the sockets are: a folder of this user alone.
fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder).join("synthesis"),
        _ => PathBuf::from(format!("/tmp/synthesis-{}", rustix::process::getuid().as_raw())),
    }
}
