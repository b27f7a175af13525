//! The papers' demonstrations (overview, 4.7; thesis 7.2.2) as one ordinary Linux program, which runs on Linux and on Synthesis
//! alike: `synth-demo music|cd|rhythm|fft`. `./synth demo` starts it; docs/demos.md describes it.
//!
//! Threads are the C library's, and what connects them are pipes. What a thread makes depends on what it reads alone, never on when, so
//! the samples are the same everywhere, and a checksum of them says so.

mod cd;
mod converter;
mod fft;
mod measure;
mod music;
mod options;
mod pipe;
mod rhythm;
mod tone;
mod wav;

use std::process::ExitCode;

use options::{Demo, Options};

/// Frames a second, as on a CD.
pub(crate) const RATE: usize = 44_100;

fn run() -> Result<(), String> {
    let options = Options::of_process()?;
    if options.only_check {
        return Ok(());
    }
    match options.demo {
        Demo::Music => music::run(&options),
        Demo::Cd => cd::run(&options),
        Demo::Rhythm => rhythm::run(&options),
        Demo::Fft => fft::run(&options),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
