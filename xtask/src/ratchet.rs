//! What is larger than it should be, and may only get smaller.

use crate::shape;
use crate::sources::{files, text};

/// Longest line of Rust, in characters.
pub const LINE_CHARS: usize = 140;
/// Most lines of a Rust file.
pub const FILE_LINES: usize = 600;
/// Most files of a crate that need each other in a circle.
pub const CIRCLE_FILES: usize = 30;
/// Where the exceptions are noted.
pub const PATH: &str = "xtask/ratchet.txt";

/// One exception: `kind path count`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exception {
    pub kind: String,
    pub path: String,
    pub count: usize,
}

/// What the sources hold: files with too long lines (and how many), and too long files (and their lines).
pub fn found() -> Vec<Exception> {
    let mut exceptions = Vec::new();
    for path in files(".", ".rs") {
        let text = text(&path);
        let mut note = |kind: &str, count| exceptions.push(Exception { kind: kind.into(), path: path.clone(), count });
        let long = text.lines().filter(|line| line.chars().count() > LINE_CHARS).count();
        if long > 0 {
            note("long-lines", long);
        }
        if text.lines().count() > FILE_LINES {
            note("file-lines", text.lines().count());
        }
    }
    for shape in shape::found().iter().filter(|shape| shape.circle > CIRCLE_FILES) {
        exceptions.push(Exception { kind: "circle".into(), path: shape.path.clone(), count: shape.circle });
    }
    exceptions
}

/// What `xtask/ratchet.txt` allows.
///
/// # Panics
/// When the file is malformed.
pub fn allowed() -> Vec<Exception> {
    let read = |line: &str| {
        let mut words = line.split_whitespace().map(String::from);
        let (kind, path, count) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
        Some(Exception { kind, path, count })
    };
    let text = text(PATH);
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| read(line).unwrap_or_else(|| panic!("{PATH}: malformed line: {line}"))).collect()
}

/// The file's text for these exceptions.
pub fn document(exceptions: &[Exception]) -> String {
    let mut text = String::from(
        "# What is too long and may only shrink: kind, path, count. `cargo run -p xtask -- ratchet` writes this.\n",
    );
    for Exception { kind, path, count } in exceptions {
        text.push_str(&format!("{kind} {path} {count}\n"));
    }
    text
}
