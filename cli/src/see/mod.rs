//! Looking at a running system: `synth ps`, `code`, `graph`, `top`, `trace`.
//!
//! ```text
//!   synth ps ──socket──► synth run ──control port──► kernel          one request
//!   synth ps ◄──socket── synth run ◄──control port── kernel          one answer
//! ```
//! A tool that runs a system listens at a socket named by its process number (`listen`); the commands find it there
//! (`client`). It reads neither requests nor answers; what they hold is in `bootimage::inspect`.

mod client;
mod listen;
mod ps;

pub use listen::{Listener, stop as stop_listening};

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use client::Client;

/// Commands for people who want to see.
#[derive(Subcommand, Debug)]
pub enum SeeCommand {
    /// List the threads of a running system: state, what they wait for, time, calls
    Ps(Which),
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
        SeeCommand::Ps(which) => ps::ps(&mut Client::connect(which.of)?),
    }
}

/// Where the sockets are: a folder of this user alone.
fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder).join("synthesis"),
        _ => PathBuf::from(format!("/tmp/synthesis-{}", rustix::process::getuid().as_raw())),
    }
}
