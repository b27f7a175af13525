//! The table of calls, read from the sources of the emulator.

use std::collections::BTreeMap;

use crate::sources::{files, text};

pub const DOCUMENT: &str = "docs/calls.md";
const FAMILIES: &str = "crates/unix/src/calls";

/// One call that the emulator has a function for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Implemented {
    pub number: u64,
    /// As in `crates/abi/src/nr.rs`, in lower case.
    pub name: String,
    /// The file, or the folder, whose `CALLS` lists it, below `crates/unix/src/calls`.
    pub family: String,
}

/// Numbers by constant name, from the ABI's lines such as `0 READ "read"`.
fn numbers() -> BTreeMap<String, u64> {
    let text = text("crates/abi/src/nr.rs");
    let number = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.parse().ok()?, words.next()?.to_string()))
    };
    text.lines().filter_map(number).map(|(number, name): (u64, String)| (name, number)).collect()
}

/// The names in lines such as `(nr::READ, read)` of one file.
fn names(text: &str) -> Vec<String> {
    let name = |rest: &str| {
        let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))?;
        rest[end..].starts_with(',').then(|| rest[..end].to_string())
    };
    text.split("(nr::").skip(1).filter_map(name).collect()
}

/// All calls with a function, by number.
///
/// # Panics
/// When a table names a call that the ABI does not know.
pub fn implemented() -> Vec<Implemented> {
    let numbers = numbers();
    let mut all = Vec::new();
    for path in files(FAMILIES, ".rs") {
        for name in names(&text(&path)) {
            let number = *numbers.get(&name).unwrap_or_else(|| panic!("{path}: nr::{name} is unknown"));
            let family = path
                .strip_prefix(FAMILIES)
                .unwrap_or(&path)
                .trim_start_matches('/')
                .trim_end_matches("table.rs")
                .to_string();
            all.push(Implemented { number, name: name.to_lowercase(), family });
        }
    }
    all.sort_by_key(|call| call.number);
    all.dedup_by_key(|call| call.number);
    all
}

/// How a call may be done without Rust, if it may.
fn tier(name: &str, constants: &[String]) -> &'static str {
    match name {
        "read" | "write" | "lseek" => "synthesized per open file",
        "openat" | "close" => "synthesized per path and thread, when repeated",
        _ if constants.iter().any(|constant| constant == name) => "constant per thread, from the second call on",
        _ => "Rust",
    }
}

/// The calls that become constants, from the emulator's list.
fn constants() -> Vec<String> {
    let text = text("crates/unix/src/task/bindings.rs");
    let list = text.split("CONSTANT_CALLS").nth(1).and_then(|rest| rest.split(';').nth(1)).unwrap_or("");
    list.split("nr::").skip(1).filter_map(|rest| rest.split([',', ']']).next()).map(str::to_lowercase).collect()
}

/// The whole document.
pub fn document() -> String {
    let (calls, constants) = (implemented(), constants());
    let mut text = format!(
        "# Kernel calls\n\n\
         The {} Linux x86-64 calls that have a function in the emulator. Written by `cargo run -p xtask -- calls` from the\n\
         tables `CALLS` in `{FAMILIES}`; a test keeps it current. A call that is not here returns `ENOSYS`.\n\
         That a call is here does not say that every flag of it is done: what is not done returns the error that\n\
         Linux gives for an unknown flag, and the function says so.\n\n\
         Tiers: *Rust* is the generic path, which every call has. The others are entered by the thread's own table\n\
         ([ARCHITECTURE.md](../ARCHITECTURE.md)) and fall back to Rust for anything unusual; `--generic` and `--strace`\n\
         switch them off.\n\n\
         | number | call | tier | function |\n|--:|---|---|---|\n",
        calls.len()
    );
    for Implemented { number, name, family } in &calls {
        text.push_str(&format!("| {number} | {name} | {} | `{family}` |\n", tier(name, &constants)));
    }
    text
}
