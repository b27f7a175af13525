//! Compares with the host's own strace: one command traced twice, once raw, once decoded.
//!
//! Addresses must be the same in both runs, so address randomization is switched off. Only lines that
//! strace decodes without looking into memory are compared. Where strace is missing or may not trace,
//! nothing is.

use std::process::{Command, Stdio};
use std::string::String;
use std::vec::Vec;

use super::format_call;

/// Lines of one traced run, one per call.
fn traced(extra: &[&str], file: &str) -> Option<Vec<String>> {
    let output = std::env::temp_dir().join(format!("strace-{}-{file}", std::process::id()));
    let done = Command::new("setarch")
        .args(["-R", "strace", "-o"])
        .arg(&output)
        .args(extra)
        .args(["ls", "/"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let text = std::fs::read_to_string(&output).ok();
    let _ = std::fs::remove_file(&output);
    done.ok().filter(|status| status.success())?;
    Some(text?.lines().map(String::from).collect())
}

/// A raw line's number, arguments and result.
fn parse(line: &str) -> Option<(u64, [u64; 6], i64)> {
    let (head, tail) = line.split_once(" = ")?;
    let (name, list) = head.trim_end().strip_suffix(')')?.split_once('(')?;
    let nr = abi::nr::calls().find(|(_, known)| *known == name)?.0;
    let number = |text: &str| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
    let mut arguments = [0; 6];
    for (place, text) in arguments.iter_mut().zip(list.split(',')) {
        *place = number(text).unwrap_or(0);
    }
    let result = match tail.strip_prefix("-1 ") {
        None => number(tail)? as i64,
        Some(error) => {
            let name = error.split(' ').next()?;
            -i64::from((1..200).find(|number| abi::Errno::from_number(*number).is_some_and(|e| e.name() == name))?)
        }
    };
    Some((nr, arguments, result))
}

#[test]
fn lines_without_memory_are_those_of_the_host() {
    let (Some(raw), Some(decoded)) = (traced(&["-e", "raw=all"], "raw"), traced(&[], "decoded")) else {
        std::eprintln!("strace cannot run here: nothing compared");
        return;
    };
    let mut compared = 0;
    for (raw, decoded) in raw.iter().zip(&decoded) {
        // Strings, records and arrays need memory; thread numbers differ between the runs.
        if decoded.contains(['"', '{', '[']) || decoded.starts_with("set_tid_address") || decoded.contains("/*") {
            continue;
        }
        let Some((nr, arguments, result)) = parse(raw) else { continue };
        assert_eq!(format_call(nr, arguments, Some(result), &|_, _| false), *decoded, "raw: {raw}");
        compared += 1;
    }
    std::eprintln!("{compared} of {} lines compared", decoded.len());
}
