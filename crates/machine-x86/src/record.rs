//! The record of a thread's TTE: what synthesized code, the entries and Rust share of a thread.

use alloc::vec::Vec;
use core::arch::asm;
use core::mem::offset_of;

use machine::{Nanos, SwitchOut, Tte, TteId};

use crate::area::{THREAD_AREA_BYTES, record};
use crate::clock::read_tsc;
use crate::ground::Ground;
use crate::quantum;
use crate::ring;
use crate::slots::Slots;

/// System calls a thread's table covers; larger numbers take the slow end.
pub const CALLS: usize = 464;

/// The first page of a thread area. Synthesized code has the addresses of these fields folded in.
#[repr(C)]
pub struct TteRecord {
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
    /// Not 0: a debugger looks; no routine is bound, and no text rewritten.
    pub debugged: u64,
}

/// The record of the thread on whose kernel stack this is called.
pub fn current_by_stack() -> *mut TteRecord {
    let sp: u64;
    // SAFETY: reading the stack pointer has no effect.
    unsafe { asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    (sp & !(THREAD_AREA_BYTES - 1)) as *mut TteRecord
}

/// Puts the time since the last switch on the running thread's account; the counter's value. The pc's timer does the
/// same by itself.
pub fn charge<G: Ground>() -> u64 {
    let now = read_tsc();
    // SAFETY: 1. The record is the running thread's and its processor's is never freed. 2. Interrupts are off.
    unsafe {
        let (tte, cpu) = (G::current(), G::slots());
        (*tte).ran = (*tte).ran.wrapping_add(now.wrapping_sub((*cpu).since));
        (*cpu).since = now;
        quantum::take_gauge(tte, cpu);
    }
    now
}

/// The running thread's synthesized `sw_out`.
///
/// # Panics
/// When nobody is linked behind the thread.
pub fn switch_out<G: Ground>() -> SwitchOut {
    // SAFETY: 1. The record is the running thread's. 2. `switch_out` is its `sw_out`, which keeps the stack pointer.
    unsafe {
        let record = &*G::current();
        assert!(record.next != 0, "thread {} has no successor", record.id);
        SwitchOut::new(record.switch_out)
    }
}

/// `idle` runs while nobody is ready.
pub fn set_idle<G: Ground>(idle: &dyn Tte) {
    let record = record(G::THREADS + u64::from(idle.id().0) * THREAD_AREA_BYTES);
    // SAFETY: the record is the thread's, which is never dropped.
    unsafe { ring::set_idle(G::slots(), record, G::MMU_BYTES) };
}

/// Who is ready, from the first on.
pub fn ready_order<G: Ground>() -> Vec<TteId> {
    // SAFETY: records of threads are mapped while they are in the ring, and interrupts that change it are off.
    unsafe { ring::members(G::slots()).map(|tte| TteId((*tte).id as u32)).collect() }
}

/// Whom leaving the running thread leads to, and that one's quantum.
pub fn successor<G: Ground>() -> (TteId, Nanos) {
    // SAFETY: `next_quantum` names a field of the record of a thread that is ready, or idle.
    unsafe {
        let quantum = (*G::current()).next_quantum;
        let tte = (quantum - offset_of!(TteRecord, quantum) as u64) as *const TteRecord;
        (TteId((*tte).id as u32), Nanos((*tte).quantum))
    }
}
