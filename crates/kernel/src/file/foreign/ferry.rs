//! The ferry of an open file outside of the machine: its synthesized `read`, `write` and `lseek` (S-89, S-98). The carrier
//! gives the instructions that carry bytes across; the routine knows which opening, and where in it.
//!
//! What the carrier refuses, and what it carries only up to the end of a page, is done again by the Rust twin: reading or
//! writing the same bytes at the same place twice changes nothing. Appending writes have no routine for that reason.

use alloc::boxed::Box;
use core::convert::Infallible;
use core::mem::offset_of;

use abi::nr;
use machine::{CarryCode, Fragment, KernelValue};
use quaject::{Made, Makers, Quaject, create, quaject};
use synth::{Abs32, Fact, template};

use super::super::opened::{Carrier, File};
use super::super::window::SeekSet;
use crate::call::FileCall;
use crate::call::fragments::{GiveBack, Keep, UserRange};

/// No opening has this handle.
const NOBODY: i32 = -1;

template! {
    /// The opening. Out: edi. Cost: 1 instruction.
    pub struct LoadHandle { handle: Abs32 }
    "mov edi, dword ptr [{handle}]",
}

template! {
    /// The file's position takes the place of the program's r10. Cost: 2 instructions.
    pub struct AtPosition { position: Abs32 }
    "push r10",
    "mov r10, qword ptr [{position}]",
}

template! {
    /// The end of what `AtPosition` began. Cost: 1 instruction.
    pub struct GiveBackOne {}
    "pop r10",
}

template! {
    /// All bytes were carried, or those up to the end of the file: a copy that the program's memory has cut short ends at
    /// the end of a page. In: rax = bytes, or an error below 0. Out: rdx = bytes carried, rcx lost. Cost: 4 instructions, 7 at
    /// the end of the file.
    pub struct Carried { slow_many: Target }
    "test rax, rax",
    ".byte 0x0f, 0x88",                     // js slow
    ".long {slow_many}",
    "cmp rax, rdx",
    "je 77f",
    "lea rcx, [rsi + rax]",
    "test ecx, 4095",
    ".byte 0x0f, 0x84",                     // jz slow
    ".long {slow_many}",
    "77:",
}

template! {
    /// The position moves by what was carried. Cost: 1 instruction.
    pub struct Forward { position: Abs32 }
    "add qword ptr [{position}], rax",
}

quaject! {
    /// The ferry of an open file. Invariant: `handle` is that of a live opening, or nobody's.
    pub quaject Ferry ("outside", made by "open", at most 32 inactive)
    facts(FACTS)
    data {
        /// Offset of the next read or write, in bytes.
        pub position: KernelValue<u64>,
        /// The carrier's name for the opening.
        handle: KernelValue<i32>,
    }
    factors(ferry) {
        let position = ferry.word(offset_of!(Ferry, position));
        let handle = ferry.word(offset_of!(Ferry, handle));
    }
    callouts FerryCallouts {
        /// The program's range is the program's.
        check: Fragment,
        /// Carries bytes to the program. In: edi = handle, rsi = address, rdx = bytes, r10 = offset. Out: rax. Clobbers rcx, r11.
        carry_in: Fragment,
        /// Carries bytes from the program; as `carry_in`.
        carry_out: Fragment,
    }
    callbacks {
        /// Rust supplies the program's pages, or tells the error.
        refused: slow_many,
    }
    callentries FerryCode {
        read: FileCall(nr::READ) named "outside.read" needs(check, carry_in) uses(user_limit, slow) {
            paste UserRange { user_limit, slow };
            paste Keep {};
            paste (check);
            paste LoadHandle { handle };
            paste AtPosition { position };
            paste (carry_in);
            paste GiveBackOne {};
            paste Carried { slow_many: refused };
            paste GiveBack {};
            paste Forward { position };
            leave;
        }
        write: FileCall(nr::WRITE) named "outside.write" needs(check, carry_out) uses(user_limit, slow) {
            paste UserRange { user_limit, slow };
            paste Keep {};
            paste (check);
            paste LoadHandle { handle };
            paste AtPosition { position };
            paste (carry_out);
            paste GiveBackOne {};
            paste Carried { slow_many: refused };
            paste GiveBack {};
            paste Forward { position };
            leave;
        }
        seek: FileCall(nr::LSEEK) named "outside.seek" uses(slow) {
            paste SeekSet { slow, position };
            leave_uncounted;
        }
        pread: FileCall(nr::PREAD64) named "outside.pread" needs(check, carry_in) uses(user_limit, slow) {
            paste UserRange { user_limit, slow };
            paste Keep {};
            paste (check);
            paste LoadHandle { handle };
            paste (carry_in);
            paste Carried { slow_many: refused };
            paste GiveBack {};
            leave;
        }
        pwrite: FileCall(nr::PWRITE64) named "outside.pwrite" needs(check, carry_out) uses(user_limit, slow) {
            paste UserRange { user_limit, slow };
            paste Keep {};
            paste (check);
            paste LoadHandle { handle };
            paste (carry_out);
            paste Carried { slow_many: refused };
            paste GiveBack {};
            leave;
        }
    }
}

fn callouts_of(carrier: Carrier) -> FerryCallouts {
    let CarryCode { check, carry_in, carry_out } = carrier.code;
    FerryCallouts { check: Some(check), carry_in: Some(carry_in), carry_out: Some(carry_out) }
}

impl Ferry {
    /// A ferry for an opening, from the inactive list or new; `None` if its carrier has no instructions to paste.
    pub fn open(opening: &dyn File, makers: Option<Makers>) -> Option<Box<Made<Ferry>>> {
        let (makers, carrier) = (makers?, opening.carrier()?);
        let handle = carrier.handle;
        let callouts = callouts_of(carrier);
        let make = || Ok::<_, Infallible>(Ferry { position: KernelValue::new(0), handle: KernelValue::new(NOBODY) });
        let Ok(ferry) = create::allocate(make);
        ferry.synthesize(makers, &callouts);
        ferry.handle.set(handle);
        Some(ferry)
    }

    /// What the carrier of an opening offers.
    pub fn callouts(opening: &dyn File) -> Option<FerryCallouts> {
        opening.carrier().map(callouts_of)
    }

    /// Gives the ferry back; the file is closed.
    pub fn close(ferry: Box<Made<Ferry>>) {
        ferry.handle.set(NOBODY);
        ferry.position.set(0);
        Ferry::inactive().give(ferry);
    }

    fn word(&self, offset: usize) -> Abs32 {
        Abs32(&raw const *self as u64 + offset as u64)
    }
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word("handle", "the carrier's name for the opening", "the open file is closed: the ferry serves another"),
    Fact::word("position", "offset of the next byte", "the open file is closed"),
];
