//! Writes the documents that are made from sources, and shows what the crates look like.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use xtask::{calls, ratchet, shape, sources};

fn main() -> ExitCode {
    let (path, text) = match std::env::args().nth(1).as_deref() {
        Some("calls") => (calls::DOCUMENT, calls::document()),
        Some("ratchet") => (ratchet::PATH, ratchet::document(&ratchet::found())),
        Some("shape") => {
            print!("{}", shape::table(&shape::found()));
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("error: nothing to do\nhelp: cargo run -p xtask -- calls | ratchet | shape");
            return ExitCode::from(2);
        }
    };
    match std::fs::write(sources::root().join(path), text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {path}: {error}");
            ExitCode::FAILURE
        }
    }
}
