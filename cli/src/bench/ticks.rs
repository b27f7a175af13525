//! From what a program printed to instructions per iteration.

use serde::{Deserialize, Serialize};

/// How one run of a program ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    Ended {
        status: i32,
        stdout: Vec<u8>,
        stderr: Vec<u8>,
    },
    /// It could not be started, or its system died.
    NotRun {
        reason: String,
    },
}

impl Outcome {
    /// The counter's advance over the program's loop.
    ///
    /// # Errors
    /// One line that says why there is none.
    pub fn ticks(&self) -> Result<u64, String> {
        match self {
            Self::NotRun { reason } => Err(reason.clone()),
            Self::Ended { status: 0, stderr, .. } => {
                parse(stderr).ok_or_else(|| format!("printed no ticks{}", quote(stderr)))
            }
            Self::Ended { status, stderr, .. } => Err(format!("exit status {status}{}", quote(stderr))),
        }
    }

    pub fn stdout(&self) -> &[u8] {
        match self {
            Self::Ended { stdout, .. } => stdout,
            Self::NotRun { .. } => &[],
        }
    }
}

fn parse(stderr: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(stderr);
    text.lines().find_map(|line| line.strip_prefix("ticks ")?.trim().parse().ok())
}

/// What a failed program said, after a colon: its first `error: ...`, or else its last line.
fn quote(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines.clone().find(|line| line.starts_with("error: "));
    error.or(lines.next_back()).map_or(String::new(), |line| format!(": {}", line.trim_start_matches("error: ")))
}

/// Instructions per iteration, from the ticks of a short and a long run. Start-up, first-touch page
/// faults and the counter's own cost are in both and vanish.
pub fn per_iteration(iterations: [u32; 2], ticks: [u64; 2]) -> f64 {
    (ticks[1] as f64 - ticks[0] as f64) / (f64::from(iterations[1]) - f64::from(iterations[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: i32, stderr: &str) -> Outcome {
        Outcome::Ended { status, stdout: vec![], stderr: stderr.into() }
    }

    #[test]
    fn ticks_are_found_among_other_lines() {
        assert_eq!(ended(0, "warning: x\nticks 123\n").ticks(), Ok(123));
    }

    #[test]
    fn a_failed_program_gives_its_last_line_as_the_reason() {
        assert_eq!(
            ended(1, "ticks 5\nwrong result: pipe\n\n").ticks(),
            Err("exit status 1: wrong result: pipe".into())
        );
    }

    #[test]
    fn an_error_is_quoted_rather_than_the_help_after_it() {
        assert_eq!(ended(2, "error: no kernel\nhelp: build it\n").ticks(), Err("exit status 2: no kernel".into()));
    }

    #[test]
    fn start_up_vanishes_in_the_difference() {
        assert_eq!(per_iteration([10, 110], [1_000 + 10 * 7, 1_000 + 110 * 7]), 7.0);
    }
}
