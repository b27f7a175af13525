//! The synthesized `pread` and `pwrite` of an open file (S-89). A file gets them when it has been read or written so several times.

use alloc::boxed::Box;
use core::convert::Infallible;

use abi::nr;
use quaject::{Made, Makers, Quaject, create, quaject};
use synth::template;

use super::content::Content;
use super::window::{BufferBegins, BufferBelow, BufferKnown, FromFile, FromOnePage, Served, ToFile, ToOnePage};
use crate::call::FileCall;
use crate::call::fragments::{AllDone, GiveBack};

template! {
    /// The position is an argument; a negative one is an error. In: r10. Out: rax = position. Cost: 3 instructions.
    pub struct Offset { slow_many: Target }
    "mov rax, r10",
    "test rax, rax",
    ".byte 0x0f, 0x88",                     // js slow
    ".long {slow_many}",
}

template! {
    /// What was moved is the result. In: rax = position behind the last byte. Cost: 1 instruction.
    pub struct FromOffset {}
    "sub rax, r10",
}

quaject! {
    /// What an open file's `pread` and `pwrite` work with.
    pub quaject Positioned ("file places", made by "pread", at most 16 inactive)
    facts(super::window::FACTS)
    data { served: Served }
    factors(positioned) {
        let words = positioned.served.place();
    }
    callouts PositionedCallouts {}
    callbacks {
        /// Rust finds the page, and the file's map has it from then on.
        absent: slow_pages,
        /// Rust says that nothing is left, or makes a hole.
        ended: slow_many,
    }
    callentries PositionedCode {
        read: FileCall(nr::PREAD64) named "file.pread" uses(user_limit, slow, slow_many, slow_pages, many) {
            include BufferBegins { user_limit, slow };
            paste Offset { slow_many };
            include FromOnePage { words, many };
            paste AllDone {};
            leave;
            begin_many;
            paste BufferBelow { user_limit, slow: slow_many };
            paste Offset { slow_many };
            include FromFile { words, ended, absent };
            paste FromOffset {};
            paste GiveBack {};
            leave;
        }
        write: FileCall(nr::PWRITE64) named "file.pwrite" uses(user_limit, slow, slow_many, slow_pages, many) {
            include BufferKnown { user_limit, slow };
            paste Offset { slow_many };
            include ToOnePage { words, many };
            paste AllDone {};
            leave;
            begin_many;
            paste Offset { slow_many };
            include ToFile { words, ended, absent };
            paste FromOffset {};
            paste GiveBack {};
            leave;
        }
    }
}

impl Positioned {
    /// For a file that is open, from the inactive list or new.
    pub fn open(content: &Content, makers: Makers) -> Box<Made<Positioned>> {
        let Ok(positioned) = create::allocate(|| Ok::<_, Infallible>(Positioned { served: Served::none() }));
        positioned.synthesize(makers, &PositionedCallouts {});
        positioned.served.open(content);
        positioned
    }

    /// The file is closed.
    pub fn close(positioned: Box<Made<Positioned>>) {
        positioned.served.close();
        Positioned::inactive().give(positioned);
    }
}
