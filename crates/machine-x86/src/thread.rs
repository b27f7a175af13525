//! The quaject of a thread (S-25, S-50; thesis 3.3.1, 4.1): its data are the thread table entry, its callentries what the ring,
//! its successor and its program's `syscall` jump to.
//!
//! Each callentry is one template, so there is nothing between fragments for the optimizer.

use core::mem::offset_of;

use codestore::Code;
use machine::stages::{self, Stage};
use machine::{CallEntry, Keeps, NoFrames, TteId};
use quaject::{Class, Contract, Quaject, Straight, quaject};
use synth::{Abs32, Draft, Imm32, Target};

use crate::area::THREAD_AREA_BYTES;
use crate::ground::Ground;
use crate::slots::Slots;
use crate::thread_code::{ByCall, ByDescriptor, Dispatch, SlowCall, SwitchOut};

/// Register contract of switch code: entered by `jmp`, with no register but rsp meaningful.
pub enum Switch {}

impl Contract for Switch {
    const NAME: &'static str = "switch";
    const PEEPHOLES: bool = false;
    type Routine = Straight;
}

/// Register contract of call code: entered by `jmp` from a program's `syscall`, or from what stands in for it, registers
/// as the program left them, rcx = return address, rax = call number; after a `syscall` r11 = flags.
pub enum UserCall {}

impl Contract for UserCall {
    const NAME: &'static str = "user call";
    const PEEPHOLES: bool = false;
    type Routine = Straight;
}

impl Keeps<CallEntry> for UserCall {}

/// System calls a thread's table covers; larger numbers take the slow end.
pub const CALLS: usize = 464;

/// A thread's way through descriptors: the entries of one call, and how many there are.
#[derive(Clone, Copy)]
pub struct Descriptors {
    pub entries: Abs32,
    pub count: Imm32,
}

quaject! {
    /// A thread (TTE): the first page of its area. Synthesized code has the addresses of these fields folded in.
    pub quaject TteRecord ("thread", made by "creation", at most 8 inactive)
    data {
        /// Where the thread's kernel stack stands while it is switched out.
        pub kernel_sp: u64,
        /// Slot: where `sw_out` jumps, the successor's `sw_in` or `sw_in_mmu`.
        pub next: u64,
        /// Root word of the thread's quaspace.
        pub root: u64,
        /// Neighbours in the ready ring; `after` null: not in it.
        pub after: *mut TteRecord,
        pub before: *mut TteRecord,
        pub fs_base: u64,
        pub gs_base: u64,
        pub cpu: *mut Slots,
        pub id: u64,
        pub start: u64,
        /// Entry of the thread's `sw_out`.
        pub switch_out: u64,
        /// What the kernel wants routines to know of the thread.
        pub tag: u64,
        /// The thread's call table (vector table, S-55): an entry point per system call.
        pub calls: [u64; CALLS],
        /// The words of the queue in which the thread sleeps by code, until it runs again; 0: it does not.
        pub sleeps_at: u64,
        /// Entry of the thread's `sw_in`: in `next` when nobody else is ready.
        pub switch_in: u64,
        /// Longest turn while others are ready, in nanoseconds.
        pub quantum: u64,
        /// Address of the successor's quantum.
        pub next_quantum: u64,
        /// Ticks of the counter as the running thread, up to `Slots::since`.
        pub ran: u64,
        /// Operations on streams since the quantum was last adjusted, and `ran` at that time.
        pub moved: u64,
        pub adjusted_at: u64,
        /// Address of a byte: not zero when the kernel must look before the thread goes back to its program.
        pub attention: u64,
        /// Address of a word, mostly the program's: not zero when the kernel must look after the machine has pre-empted the thread.
        pub preemption_word: u64,
        /// What the last trap was about (CR2 of a page fault), where the machine does not find it in a register.
        pub fault_address: u64,
        /// Not 0: the call in which the thread rests by code is done.
        pub answer: u64,
        /// Not 0: a debugger looks; no routine is bound, and no text rewritten.
        pub debugged: u64,
    }
    factors(thread) {
        let user_sp = thread.user_sp();
        let calls = thread.field(offset_of!(TteRecord, calls));
        let kernel_sp = thread.field(offset_of!(TteRecord, kernel_sp));
        let next = thread.field(offset_of!(TteRecord, next));
        let fs_base = thread.field(offset_of!(TteRecord, fs_base));
        let gs_base = thread.field(offset_of!(TteRecord, gs_base));
    }
    callouts ThreadCallouts<'a> {
        /// Does a call in Rust, on the kernel stack.
        rust: Target,
        /// The thread's own `slow_call`, for its dispatch.
        slow: Target,
        /// The machine's instructions that give the processor to this thread, its dispatch included.
        take: &'a dyn Fn(&mut Draft),
        /// The process's descriptors.
        descriptors: Descriptors,
        /// The routines that all threads have, by call number.
        common_calls: Abs32,
        /// The machine's instructions of a call that is answered at once.
        answer: &'a dyn Fn(&mut Draft),
    }
    callbacks {}
    callentries ThreadCode {
        /// To the kernel stack and to Rust.
        slow_call: UserCall(0) named "thread.slow_call" needs(rust) uses() {
            paste SlowCall { user_sp, common: *rust };
        }
        /// Where `syscall` leads while the thread runs.
        dispatch: UserCall(0) named "thread.dispatch" needs(slow) uses() {
            paste Dispatch { calls, slow: *slow };
        }
        /// `sw_in_mmu`, and behind it `sw_in`.
        sw_in: Switch(0) named "thread.sw_in" needs(take) uses() {
            paste (*take);
        }
        sw_out: Switch(0) named "thread.sw_out" uses() {
            paste SwitchOut { kernel_sp, next, fs_base, gs_base };
        }
        /// To the kernel stack and to the routine that all threads have for the call.
        by_call: UserCall(0) named "thread.by_call" needs(common_calls) uses() {
            paste ByCall { user_sp, common_calls: *common_calls };
        }
        /// One for each call on descriptors that the thread makes.
        by_descriptor: UserCall(0) named "thread.by_descriptor" needs(rust, descriptors) uses() {
            paste ByDescriptor { user_sp, count: descriptors.count, entries: descriptors.entries, slow: *rust };
        }
        /// One for each call whose answer is known.
        constant: UserCall(0) named "thread.constant" needs(answer) uses() {
            paste (*answer);
        }
    }
}

// SAFETY: 1. The pointers name records of the same kind and the processor's slots, which stay where they are and belong to no thread
// of whoever looks. 2. They are followed only with interrupts off on the processor that they are of.
unsafe impl Send for TteRecord {}

impl TteRecord {
    fn area(&self) -> u64 {
        core::ptr::from_ref(self) as u64
    }

    fn field(&self, offset: usize) -> Abs32 {
        Abs32(self.area() + offset as u64)
    }

    /// The word that holds the program's stack pointer while the thread is on its kernel stack.
    pub fn user_sp(&self) -> Abs32 {
        Abs32(self.area() + THREAD_AREA_BYTES - 8)
    }
}

/// The class of threads.
pub fn class() -> &'static Class {
    TteRecord::class()
}

/// The callentries that every thread has.
pub struct Codes {
    pub switch_in: Code<Switch>,
    pub switch_out: Code<Switch>,
    pub dispatch: Code<UserCall>,
    pub slow: Code<UserCall>,
    pub by_call: Code<UserCall>,
}

impl Codes {
    /// Creates the thread's code: each callentry with the addresses of those before it.
    pub fn synthesize<G: Ground>(id: TteId, thread: &TteRecord) -> Result<Codes, NoFrames> {
        let _stage = stages::enter(Stage::Factor);
        let makers = G::makers().of_thread(id);
        let mut callouts =
            ThreadCallouts { rust: Some(Target::Address(G::slow_call().address())), ..Default::default() };
        let slow = ThreadCode::slow_call(thread, makers, &callouts).create(makers).ok_or(NoFrames)?;
        callouts.slow = Some(Target::Address(slow.entry().address()));
        let dispatch = ThreadCode::dispatch(thread, makers, &callouts).create(makers).ok_or(NoFrames)?;
        let take = |draft: &mut Draft| G::switch_in(thread.area(), dispatch.entry().address(), draft);
        let common_calls = Abs32(G::slots() as u64 + offset_of!(Slots, common_calls) as u64);
        let callouts = ThreadCallouts { take: Some(&take), common_calls: Some(common_calls), ..Default::default() };
        let switch_in = ThreadCode::sw_in(thread, makers, &callouts).create(makers).ok_or(NoFrames)?;
        let switch_out = ThreadCode::sw_out(thread, makers, &callouts).create(makers).ok_or(NoFrames)?;
        let by_call = ThreadCode::by_call(thread, makers, &callouts).create(makers).ok_or(NoFrames)?;
        Ok(Codes { switch_in, switch_out, dispatch, slow, by_call })
    }
}
