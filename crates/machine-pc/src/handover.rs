//! Threads that sleep and wake by code: what the pc does about vector registers between two programs, and where it all is made.
//!
//! Between two threads that both sleep by code no Rust runs, so the registers stay in the processor, and only another program than
//! the one that left them there exchanges them (S-59). Where Rust runs next, the legacy part is saved as at any entry of the kernel;
//! `vectors_live` tells the two apart.

use core::mem::offset_of;

use codestore::Code;
use machine::Sleeping;
use machine_x86::{Handing, Handover, HandoverCallouts, HandoverCode, Slots, VECTOR_OFFSET};
use quaject::Makers;
use synth::{Draft, Target, Template, template};

use crate::call::Leave;
use crate::thread_code::MMU_BYTES;

template! {
    /// In: the flags are equal if the successor does not come back from a sleep by code; rbx = the thread, which owns the registers,
    /// r12 = its processor. Cost: 3 instructions between two programs, 2 to Rust.
    pub struct LeaveVectors {}
    where { LIVE = offset_of!(Slots, vectors_live), VECTOR = VECTOR_OFFSET }
    "je 74f",
    "mov qword ptr [r12 + {LIVE}], 1",
    "jmp 75f",
    "74:",
    "fxsave64 [rbx + {VECTOR}]",
    "75:",
}

template! {
    /// In: rbx = the thread, r12 = its processor. Clobbers rax, rcx. Cost: 6 instructions if the registers are still the thread's or
    /// after Rust, 14 after another program, 10 after another program and Rust.
    pub struct TakeVectors {}
    where {
        OWNER = offset_of!(Slots, vector_owner), LIVE = offset_of!(Slots, vectors_live), WIDE = offset_of!(Slots, vector_wide),
        VECTOR = VECTOR_OFFSET
    }
    "cmp qword ptr [r12 + {LIVE}], 0",
    "mov rcx, qword ptr [r12 + {OWNER}]",
    "je 74f",
    "mov qword ptr [r12 + {LIVE}], 0",
    "cmp rbx, rcx",
    "je 76f",
    "fxsave64 [rcx + {VECTOR}]",
    "74:",
    "cmp rbx, rcx",
    "je 75f",
    "mov eax, dword ptr [r12 + {WIDE}]",    // of edx XCR0 holds nothing
    "xsave64 [rcx + {VECTOR}]",
    "xrstor64 [rbx + {VECTOR}]",
    "mov qword ptr [r12 + {OWNER}], rbx",
    "75:",
    "fxrstor64 [rbx + {VECTOR}]",
    "76:",
}

/// The code, which stays as long as the machine.
pub struct HandoverCodes {
    refused: Code<Handing>,
    woken: Code<Handing>,
    sleep: Code<Handing>,
    wake: Code<Handing>,
    answered: Code<Handing>,
    rest: Code<Handing>,
    rouse: Code<Handing>,
}

impl HandoverCodes {
    /// The routines, for the golden listings.
    pub fn all(&self) -> [(&'static str, u64); 7] {
        let named = [
            ("cpu.refused", &self.refused),
            ("cpu.woken", &self.woken),
            ("cpu.sleep", &self.sleep),
            ("cpu.wake", &self.wake),
            ("cpu.answered", &self.answered),
            ("cpu.rest", &self.rest),
            ("cpu.rouse", &self.rouse),
        ];
        named.map(|(name, code)| (name, code.entry().address()))
    }

    pub fn entries(&self) -> Sleeping {
        let [sleep, wake, rest, rouse] =
            [&self.sleep, &self.wake, &self.rest, &self.rouse].map(|code| code.entry().under());
        Sleeping { sleep, wake, rest, rouse }
    }
}

/// Makes the code for the processor whose dispatch slot is at `dispatch`. `None`: no room.
pub fn synthesize(makers: Makers, dispatch: u64, slow: u64) -> Option<HandoverCodes> {
    let handover = Handover { dispatch, mmu_bytes: MMU_BYTES };
    let leave = |draft: &mut Draft| LeaveVectors {}.append_to(draft);
    let take = |draft: &mut Draft| TakeVectors {}.append_to(draft);
    let leave_kernel = |draft: &mut Draft| Leave {}.append_to(draft);
    let mut callouts = HandoverCallouts {
        rust: Some(Target::Address(slow)),
        leave_vectors: Some(&leave),
        take_vectors: Some(&take),
        leave: Some(&leave_kernel),
        ..Default::default()
    };
    let refused = HandoverCode::refused(&handover, makers, &callouts).create(makers)?;
    let woken = HandoverCode::woken(&handover, makers, &callouts).create(makers)?;
    callouts.down = Some(Target::Address(refused.entry().address()));
    callouts.back = Some(woken.entry().address());
    let sleep = HandoverCode::sleep(&handover, makers, &callouts).create(makers)?;
    let wake = HandoverCode::wake(&handover, makers, &callouts).create(makers)?;
    let answered = HandoverCode::answered(&handover, makers, &callouts).create(makers)?;
    callouts.answered = Some(answered.entry().address());
    let rest = HandoverCode::rest(&handover, makers, &callouts).create(makers)?;
    let rouse = HandoverCode::rouse(&handover, makers, &callouts).create(makers)?;
    Some(HandoverCodes { refused, woken, sleep, wake, answered, rest, rouse })
}

/// For the golden listings.
pub fn templates() -> [Template; 2] {
    [LeaveVectors::template(), TakeVectors::template()]
}
