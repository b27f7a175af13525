//! The synthesized `pread` and `pwrite` of an open file (S-89). They have a window of their own, so that reading here and there does
//! not drive out the pages that reading in order uses. A file gets them when it has been read or written so several times.

use alloc::boxed::Box;
use core::convert::Infallible;

use abi::nr;
use machine::Machine;
use quaject::{Made, Makers, Quaject, create, quaject};
use synth::template;

use super::content::Content;
use super::window::{FromPage, PagesKnown, Places, SeenPages, ToPage};
use crate::call::FileCall;
use crate::call::fragments::AllDone;

template! {
    /// The position is an argument; a negative one is an error. In: r10. Out: rax = position. Cost: 3 instructions.
    pub struct Offset { slow_many: Target }
    "mov rax, r10",
    "test rax, rax",
    ".byte 0x0f, 0x88",                     // js slow
    ".long {slow_many}",
}

quaject! {
    /// What an open file's `pread` and `pwrite` work with.
    pub quaject Positioned ("file places", made by "pread", at most 16 inactive)
    data { seen: SeenPages }
    factors(positioned) {
        let Places { words, layout, slots, addresses } = positioned.seen.places();
    }
    callouts PositionedCallouts {}
    callbacks {
        /// Rust finds the page, and it is remembered.
        absent: slow_many,
        /// Rust reads up to the end, or makes the file longer.
        beyond: slow_many,
    }
    callentries PositionedCode {
        read: FileCall(nr::PREAD64) named "file.pread" uses(user_limit, slow, slow_many) {
            include PagesKnown { user_limit, words, layout, slow, slow_many };
            paste Offset { slow_many };
            include FromPage { words, slots, addresses, absent, beyond, slow_many };
            paste AllDone {};
            leave;
        }
        write: FileCall(nr::PWRITE64) named "file.pwrite" uses(user_limit, slow, slow_many) {
            include PagesKnown { user_limit, words, layout, slow, slow_many };
            paste Offset { slow_many };
            include ToPage { user_limit, words, slots, addresses, absent, beyond, slow_many };
            paste AllDone {};
            leave;
        }
    }
}

impl Positioned {
    /// For a file that is open, from the inactive list or new.
    pub fn open(content: &Content, makers: Makers) -> Box<Made<Positioned>> {
        let Ok(positioned) = create::allocate(|| Ok::<_, Infallible>(Positioned { seen: SeenPages::new() }));
        positioned.synthesize(makers, &PositionedCallouts {});
        positioned.seen.open(content);
        positioned
    }

    /// The file is closed.
    pub fn close(positioned: Box<Made<Positioned>>) {
        positioned.seen.close();
        Positioned::inactive().give(positioned);
    }

    /// Remembers the page at `position`, which the Rust twin has just used.
    pub fn remember(&self, machine: &dyn Machine, content: &Content, position: u64) {
        self.seen.remember(machine, content, position);
    }
}

/// For the golden listings.
pub fn templates() -> [synth::Template; 1] {
    [Offset::template()]
}
