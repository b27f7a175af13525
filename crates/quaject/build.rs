//! Makes constants of the known plans: `plans.txt` has a line for each, its routine, its signature, its bytes.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=plans.txt");
    println!("cargo::rerun-if-changed=build.rs");
    let text = fs::read_to_string("plans.txt").expect("the plans");
    let mut plans: Vec<(u64, Vec<u8>)> = text.lines().filter_map(plan).collect();
    plans.sort();
    plans.dedup();
    let plans: Vec<_> = plans.iter().map(|(signature, bytes)| format!("({signature:#x}, &{bytes:?}),\n")).collect();
    let source = format!("static KNOWN: &[(u64, &[u8])] = &[\n{}];\n", plans.concat());
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("plans.rs"), source).expect("OUT_DIR is writable");
}

fn plan(line: &str) -> Option<(u64, Vec<u8>)> {
    let [_, signature, bytes] = *line.split_whitespace().collect::<Vec<_>>() else { return None };
    let bytes = bytes.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).expect("hexadecimal"));
    let bytes = bytes.map(|two| u8::from_str_radix(two, 16).expect("hexadecimal")).collect();
    Some((u64::from_str_radix(signature, 16).expect("a signature"), bytes))
}
