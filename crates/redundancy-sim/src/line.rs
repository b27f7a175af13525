//! A queue with one server: a line of the network, a disk.

use redundancy::mutant;

/// First come, first served (Lindley's recursion). Requests must come in order of time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Line {
    /// When all that has come so far is done.
    free_at: f64,
}

impl Line {
    /// How long one that comes now would wait.
    pub fn wait(&self, now: f64) -> f64 {
        if mutant::is("line.wait") { 0.0 } else { (self.free_at - now).max(0.0) }
    }

    /// One comes that needs `service` seconds. Returns how long it waits.
    pub fn take(&mut self, now: f64, service: f64) -> f64 {
        let wait = self.wait(now);
        self.free_at = now + wait + service;
        wait
    }
}
