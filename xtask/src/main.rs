//! Writes the documents that are made from sources.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use xtask::{calls, ratchet, sources};

fn main() -> ExitCode {
    let (path, text) = match std::env::args().nth(1).as_deref() {
        Some("calls") => (calls::DOCUMENT, calls::document()),
        Some("ratchet") => (ratchet::PATH, ratchet::document(&ratchet::found())),
        _ => {
            eprintln!("error: nothing to do\nhelp: cargo run -p xtask -- calls | ratchet");
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
