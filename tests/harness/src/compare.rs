//! Comparing what the host did with what Synthesis did.

use std::collections::BTreeSet;
use std::path::Path;

use crate::process::Outcome;

/// Phrases that programs print for an errno or a death. Messages differ in program names and paths; these must not.
const PHRASES: &[&str] = &[
    "Operation not permitted",
    "No such file or directory",
    "No such process",
    "Interrupted system call",
    "Input/output error",
    "Argument list too long",
    "Exec format error",
    "Bad file descriptor",
    "No child processes",
    "Resource temporarily unavailable",
    "Cannot allocate memory",
    "Permission denied",
    "Bad address",
    "Device or resource busy",
    "File exists",
    "Invalid cross-device link",
    "No such device",
    "Not a directory",
    "Is a directory",
    "Invalid argument",
    "Too many open files",
    "Inappropriate ioctl for device",
    "Text file busy",
    "File too large",
    "No space left on device",
    "Illegal seek",
    "Read-only file system",
    "Too many links",
    "Broken pipe",
    "Numerical result out of range",
    "File name too long",
    "Function not implemented",
    "Directory not empty",
    "Too many levels of symbolic links",
    "Value too large",
    "Not supported",
    "not found",
    "syntax error",
    "Segmentation fault",
    "Illegal instruction",
    "Floating point exception",
    "Aborted",
    "Killed",
    "Terminated",
    "Bus error",
];

/// `Ok` when both sides agree: stdout byte for byte, status, and the class of stderr.
///
/// # Errors
/// The story of every difference. `homes` are the two sides' folders, which may appear in what is printed.
pub fn compare(expected: &Outcome, actual: &Outcome, homes: (&Path, &Path)) -> Result<(), String> {
    let expected_out = without_home(&expected.stdout, homes.0);
    let actual_out = without_home(&actual.stdout, homes.1);
    let mut story = String::new();
    if expected.status != actual.status {
        story.push_str(&format!("status: expected {}, got {}\n", expected.status, actual.status));
    }
    if expected_out != actual_out {
        story.push_str(&difference("stdout", &expected_out, &actual_out));
    }
    let classes = (class(&expected.stderr), class(&actual.stderr));
    if classes.0 != classes.1 {
        story.push_str(&format!("stderr class: expected {:?}, got {:?}\n", classes.0, classes.1));
    }
    if story.is_empty() {
        return Ok(());
    }
    if !expected.stderr.is_empty() || !actual.stderr.is_empty() {
        story.push_str(&format!("stderr expected: {}\n", shown(&expected.stderr, 0)));
        story.push_str(&format!("stderr actual:   {}\n", shown(&actual.stderr, 0)));
    }
    Err(story)
}

/// Empty, or the phrases that it has.
fn class(stderr: &[u8]) -> (&'static str, BTreeSet<&'static str>) {
    let text = String::from_utf8_lossy(stderr);
    let phrases = PHRASES.iter().copied().filter(|phrase| text.contains(phrase)).collect();
    (if stderr.is_empty() { "empty" } else { "not empty" }, phrases)
}

fn without_home(bytes: &[u8], home: &Path) -> Vec<u8> {
    let home = home.as_os_str().as_encoded_bytes();
    let mut clean = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(home.len()).position(|window| window == home) {
        clean.extend_from_slice(&rest[..at]);
        clean.extend_from_slice(b"HOME");
        rest = &rest[at + home.len()..];
    }
    clean.extend_from_slice(rest);
    clean
}

/// Where two byte strings part, with what is around that place on each side.
pub fn difference(what: &str, expected: &[u8], actual: &[u8]) -> String {
    let same = expected.iter().zip(actual).take_while(|(a, b)| a == b).count();
    let line = expected[..same].iter().filter(|&&byte| byte == b'\n').count() + 1;
    format!(
        "{what} differs at byte {same} (line {line}); lengths {} and {}\n  expected: {}\n  actual:   {}\n",
        expected.len(),
        actual.len(),
        shown(expected, same),
        shown(actual, same)
    )
}

/// A readable piece of `bytes` around `at`.
fn shown(bytes: &[u8], at: usize) -> String {
    let start = bytes[..at.min(bytes.len())].iter().rposition(|&byte| byte == b'\n').map_or(0, |line| line + 1);
    let start = start.max(at.saturating_sub(80)).min(bytes.len());
    let end = (start + 240).min(bytes.len());
    let more = if end < bytes.len() { "..." } else { "" };
    format!("\"{}\"{more}", bytes[start..end].escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(stdout: &str, stderr: &str, status: i32) -> Outcome {
        Outcome { stdout: stdout.into(), stderr: stderr.into(), status }
    }

    fn same(a: &Outcome, b: &Outcome) -> bool {
        compare(a, b, (Path::new("/host/home"), Path::new("/tmp/t"))).is_ok()
    }

    #[test]
    fn every_kind_of_difference_is_seen() {
        let base = outcome("a\n", "x: No such file or directory\n", 1);
        assert!(same(&base, &base));
        assert!(!same(&base, &outcome("b\n", "x: No such file or directory\n", 1)));
        assert!(!same(&base, &outcome("a\n", "x: No such file or directory\n", 2)));
        assert!(!same(&base, &outcome("a\n", "", 1)));
        assert!(!same(&base, &outcome("a\n", "x: Permission denied\n", 1)));
        assert!(same(&base, &outcome("a\n", "other: No such file or directory\n", 1)));
    }

    #[test]
    fn the_folder_of_each_side_is_the_same_place() {
        assert!(same(&outcome("/host/home/x\n", "", 0), &outcome("/tmp/t/x\n", "", 0)));
        assert!(!same(&outcome("/host/home/x\n", "", 0), &outcome("/tmp/t/y\n", "", 0)));
    }
}
