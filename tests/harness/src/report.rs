//! Counting and telling what passed and what failed.

use std::process::ExitCode;
use std::time::Instant;

/// The result of all suites so far.
pub struct Tally {
    passed: usize,
    failed: Vec<String>,
    skipped: usize,
    verbose: bool,
    started: Instant,
}

impl Tally {
    /// Nothing counted yet. `verbose` names each case that passes.
    pub fn new(verbose: bool) -> Tally {
        Tally { passed: 0, failed: Vec::new(), skipped: 0, verbose, started: Instant::now() }
    }

    /// One case did what it should.
    pub fn pass(&mut self, name: &str) {
        self.passed += 1;
        if self.verbose {
            println!("ok   {name}");
        }
    }

    /// One case did not; `story` says what was expected and what came.
    pub fn fail(&mut self, name: &str, story: &str) {
        println!("FAIL {name}");
        for line in story.lines() {
            println!("     {line}");
        }
        self.failed.push(name.into());
    }

    /// One case could not be tried here.
    pub fn skip(&mut self, name: &str, reason: &str) {
        println!("skip {name}: {reason}");
        self.skipped += 1;
    }

    /// Passes or fails by a result.
    pub fn record(&mut self, name: &str, result: Result<(), String>) {
        match result {
            Ok(()) => self.pass(name),
            Err(story) => self.fail(name, &story),
        }
    }

    /// A heading with the time since the start.
    pub fn progress(&self, text: &str) {
        println!("[{:>4}s] {text}", self.started.elapsed().as_secs());
    }

    /// Names the failures again, prints the summary line, and gives the exit status.
    pub fn finish(&self) -> ExitCode {
        if !self.failed.is_empty() {
            println!("failed: {}", self.failed.join(" "));
        }
        let skipped = if self.skipped > 0 { format!(", {} skipped", self.skipped) } else { String::new() };
        println!("{} passed, {} failed{skipped}", self.passed, self.failed.len());
        // A run in which nothing was tried has shown nothing.
        ExitCode::from(u8::from(!self.failed.is_empty() || self.passed == 0))
    }
}
