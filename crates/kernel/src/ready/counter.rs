//! An event counter: is something counted, could one more be?

use codestore::Code;
use quaject::{Makers, quaject};
use synth::{Abs32, Fact, template};

use super::Readiness;

template! {
    /// Something is counted or not, and it can nearly always be counted on. Cost: 4 instructions, 7 or 8 when something is counted.
    pub struct CountThere { count: Abs32 }
    "cmp qword ptr [{count}], 0",
    "mov eax, 4",                           // POLLOUT
    "je 72f",
    "cmp qword ptr [{count}], -2",          // the largest count
    "mov eax, 1",                           // POLLIN
    "je 72f",
    "mov eax, 5",
    "72: ret",
}

quaject! {
    /// Where an event counter's count is.
    pub quaject CounterReady ("counter readiness", made by "poll", at most 0 inactive)
    facts(FACTS)
    data {
        pub count: u64,
    }
    factors(counter) {
        let count = Abs32(counter.count);
    }
    callouts CounterReadyCallouts {}
    callbacks {}
    callentries CounterReadyCode {
        counter: Readiness(0) named "ready.counter" uses() {
            paste CountThere { count };
        }
    }
}

impl CounterReady {
    /// `None` without room for code.
    pub fn code(&self, makers: Makers) -> Option<Code<Readiness>> {
        CounterReadyCode::counter(self, makers, &CounterReadyCallouts {}).create(makers)
    }
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[Fact::word("count", "what is counted", "the open file is closed")];
