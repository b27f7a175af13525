//! How calls came to the machine, and what became of the sites that they came from: the tool shows it with `--counts`.

use alloc::string::String;
use core::fmt::Write;

/// How calls came, and what became of their sites.
#[repr(C)]
pub struct Counts {
    /// Calls that came through a stub; stubs count only when they were made with `counts=1`.
    pub by_stub: u64,
    /// Calls that came by SIGSYS.
    pub by_trap: u64,
    /// Calls of both kinds that were done in Rust and not by a synthesized routine.
    pub in_rust: u64,
    /// Sites that became jumps.
    pub patched: u64,
    /// Sites that keep the trap, by [`Refusal`].
    pub refused: [u64; Refusal::ALL.len()],
}

/// Why a site keeps the trap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// What stands in front of the call is no known shape.
    UnknownShape,
    /// A two-byte load without a long no-op nearby.
    NoNoOp,
    /// No stub region is within reach, or it is full.
    NoStub,
    /// The program can write there itself (generated code), or may not read there.
    NotText,
}

impl Counts {
    pub const fn new() -> Counts {
        Counts { by_stub: 0, by_trap: 0, in_rust: 0, patched: 0, refused: [0; Refusal::ALL.len()] }
    }

    /// Lines of `key=value`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let all = self.by_stub + self.by_trap;
        let _ = writeln!(text, "calls={all}\ncalls_by_jump={}\ncalls_by_trap={}", self.by_stub, self.by_trap);
        let by_routine = all.saturating_sub(self.in_rust);
        let _ = writeln!(text, "calls_by_routine={by_routine}\ncalls_in_rust={}", self.in_rust);
        let _ = writeln!(text, "sites_patched={}\nsites_refused={}", self.patched, self.refused.iter().sum::<u64>());
        for (refusal, count) in Refusal::ALL.into_iter().zip(self.refused) {
            let _ = writeln!(text, "sites_refused({})={count}", refusal.words());
        }
        text
    }
}

impl Refusal {
    pub const ALL: [Refusal; 4] = [Refusal::UnknownShape, Refusal::NoNoOp, Refusal::NoStub, Refusal::NotText];

    pub fn words(self) -> &'static str {
        match self {
            Refusal::UnknownShape => "unknown shape",
            Refusal::NoNoOp => "no no-op nearby",
            Refusal::NoStub => "no stub within reach",
            Refusal::NotText => "text of the program's own making",
        }
    }
}
