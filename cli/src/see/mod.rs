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
mod listen;
mod listing;
mod ps;

pub use listen::{Listener, stop as stop_listening};

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::failure::{Failure, SIGNALLED};
use client::Client;

/// Commands for people who want to see.
#[derive(Subcommand, Debug)]
pub enum SeeCommand {
    /// List the threads of a running system: state, what they wait for, time, calls
    Ps(Which),
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
        SeeCommand::Ps(which) => ps::ps(&mut Client::connect(which.of)?),
    }
}

/// Prints; ends quietly when nobody reads any more.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(i32::from(SIGNALLED) + signal_hook::consts::SIGPIPE);
    }
}

/// Where the sockets are: a folder of this user alone.
fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder).join("synthesis"),
        _ => PathBuf::from(format!("/tmp/synthesis-{}", rustix::process::getuid().as_raw())),
    }
}
