//! Program output in code where no device has instructions to paste (pseudo terminals): the filter of `tty.write` as a
//! procedure, from bytes that Rust holds to the ring of output.

use core::mem::offset_of;

use codestore::{Code, WordCall};
use quaject::{Makers, quaject};
use synth::{Abs32, template};

use super::Tty;
use super::output::{OutputWords, converts_line_ends_alone};
use super::template::{Filter, FilterEnd, FilterLeave, FilterReady};

template! {
    /// In: edx = bytes in the ring. Out: eax = the same. Cost: 1 instruction.
    pub struct FilterResult {}
    "mov eax, edx",
}

template! {
    /// Back to Rust. Cost: 1 instruction.
    pub struct FilterReturn {}
    "ret",
}

quaject! {
    /// The filter of a tty's output, as Rust calls it: `cook(to, bytes, count)`, C's calling convention.
    pub quaject OutputFilter ("tty filter", made by "write", at most 0 inactive)
    facts(super::template::FACTS)
    data { output: u64 }
    factors(filter) {
        let output = |offset: usize| Abs32(filter.output + offset as u64);
        let column = output(offset_of!(OutputWords, column));
        let line_column = output(offset_of!(OutputWords, line_column));
        let continuation = output(offset_of!(OutputWords, continuation));
    }
    callouts FilterCallouts {}
    callbacks {}
    callentries FilterCode {
        /// Returns how many bytes it has stored.
        cook: WordCall(0) named "tty.cook" uses() {
            paste FilterReady { column, line_column };
            paste Filter { continuation };
            paste FilterEnd { column, line_column };
            paste FilterResult {};
            paste FilterLeave {};
            paste FilterReturn {};
        }
    }
}

/// Bytes of a write for which the routine is made.
const WORTH_BYTES: usize = 32;

/// The filter as a procedure, once it is worth one.
#[derive(Default)]
pub(super) struct Cooker {
    code: Option<Code<WordCall>>,
    has_failed: bool,
}

impl Cooker {
    fn make(&mut self, words: &OutputWords, makers: Makers) {
        let filter = OutputFilter { output: core::ptr::from_ref(words) as u64 };
        self.code = FilterCode::cook(&filter, makers, &FilterCallouts {}).create(makers);
        self.has_failed = self.code.is_none();
    }
}

impl Tty {
    /// Has code filter as much of `bytes` as it does; returns how many. What it leaves is for Rust: other settings, echo that
    /// waits, little room.
    pub(super) fn cook(&mut self, bytes: &[u8]) -> usize {
        let Some(makers) = self.makers else { return 0 };
        if !converts_line_ends_alone(&self.termios) || self.echo.waits() {
            return 0;
        }
        if self.cooker.code.is_none() {
            if bytes.len() < WORTH_BYTES || self.cooker.has_failed {
                return 0;
            }
            self.cooker.make(self.output.words(), makers);
        }
        let Some(code) = &self.cooker.code else { return 0 };
        let mut done = 0;
        while done < bytes.len() {
            // Each byte can become two.
            let (to, room) = self.output.open_room();
            let count = (room / 2).min(bytes.len() - done);
            if count == 0 {
                break;
            }
            let stored = code.call([to, bytes[done..].as_ptr() as u64, count as u64, 0, 0, 0]);
            self.output.stored(stored as usize);
            done += count;
        }
        done
    }

    /// Where the routine begins, if there is one.
    pub fn cooker(&self) -> Option<u64> {
        self.cooker.code.as_ref().map(|code| code.entry().address())
    }
}
