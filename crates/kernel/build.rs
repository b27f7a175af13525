//! Joins the state machines of terminals (S-11): their tables are constants, so what they become together is one (S-6).
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "not in the kernel: it may take what it likes"
)]

use std::path::Path;
use std::{env, fs};

use statemachine::Graph;
use statemachine::terminal::{VT100, cook_vt100, edit_cook, edit_unseen};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let window = cook_vt100();
    let files = [
        ("vt100", Graph::of(&VT100).packed()),
        ("cook_vt100", window.graph.packed()),
        ("cook_vt100.pairs", window.packed_pairs()),
        ("edit_cook", edit_cook().packed()),
        ("edit_unseen", edit_unseen().packed()),
    ];
    for (name, packed) in files {
        fs::write(Path::new(&out).join(name), packed).expect("OUT_DIR is writable");
    }
}
