//! Layer 2: what both machines do alike because both are x86-64: thread table entries with their code, vector state,
//! copies to and from programs, the counter as a clock, a panic's last words.
//!
//! A machine says what is its own in [`Ground`]. This crate knows no hardware but the processor's unprivileged
//! instructions, and no host.
#![no_std]

extern crate alloc;

mod area;
mod calls;
mod clock;
mod dma;
mod entry;
mod epitaph;
mod ground;
mod handover;
mod quantum;
mod record;
mod ring;
mod serialize;
mod slots;
mod thread;
mod thread_code;
mod tte;
mod upcalls;
mod user;
mod vector;

pub use area::{GUARD_OFFSET, THREAD_AREA_BYTES, VECTOR_OFFSET, release_inactive};
pub use clock::{
    BASE as CLOCK_BASE, SCALE as CLOCK_SCALE, counter_at, duration, now, parameters, read_tsc, start as start_clock,
    time_of,
};
pub use dma::dma;
pub use epitaph::EpitaphText;
pub use ground::Ground;
pub use handover::{Handing, Handover, HandoverCallouts, HandoverCode, LeaveRing, LinkIn};
pub use quantum::start as start_gauge;
pub use record::{
    charge, current_by_stack, forget_queue, offer_call, ready_order, set_idle, sleeper, successor, switch_out,
};
pub use serialize::{serialize, serialize_in_process};
pub use slots::Slots;
pub use thread::{CALLS, Switch, TteRecord, UserCall, class};
pub use thread_code::{
    ByCall, ByDescriptor, Dispatch, LoadQuaspace, LoadTag, SlowCall, SwitchOut, ToKernelStack, templates,
};
pub use tte::X86Tte;
pub use upcalls::{set_upcalls, upcalls};
pub use user::{
    access_sites, copy_frame, copy_in, copy_in_frame, copy_out, copy_out_frame, frame_bytes, landing, restrict_sites,
    zero_out,
};
pub use vector::{MANAGED_STATE, release as release_vector_state};

/// Linux's selectors, because signal frames and debuggers show them to programs.
pub const USER_DATA: u16 = 0x2B;
pub const USER_CODE: u16 = 0x33;
/// First address a program may not use: the last page below the non-canonical hole is never mapped,
/// so that no `syscall` instruction can end at it (SDM vol. 3A, 5.8.8 and Intel's SYSRET rule). Linux's
/// TASK_SIZE_MAX with four-level tables, too.
pub const USER_LIMIT: u64 = 0x0000_7FFF_FFFF_F000;

/// The address of a word that holds [`USER_LIMIT`].
pub fn user_limit_word() -> u64 {
    static USER_LIMIT_WORD: u64 = USER_LIMIT;
    (&raw const USER_LIMIT_WORD) as u64
}
