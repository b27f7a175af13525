//! The record of the running thread.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use alloc::vec::Vec;
use core::arch::asm;
use core::mem::offset_of;

use core::sync::atomic::Ordering;

use machine::{Entry, FileEntry, Nanos, SwitchOut, Tte, TteId};

use crate::area::{THREAD_AREA_BYTES, record};
use crate::clock::read_tsc;
use crate::ground::Ground;
use crate::quantum;
use crate::ring;
use crate::thread::TteRecord;

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

/// See `Processor::offer_call`.
pub fn offer_call<G: Ground>(number: usize, entry: Entry<FileEntry>) {
    // SAFETY: the slots live as long as the machine.
    unsafe { (*G::slots()).common_calls[number].store(entry.address(), Ordering::Release) };
}

/// The queue whose words name this record goes away.
pub fn forget_queue(record: u64) {
    // SAFETY: a queue names the record of a thread that has slept in it and not run since; such a thread lives.
    unsafe { (&raw mut (*(record as *mut TteRecord)).sleeps_at).write_volatile(0) };
}

/// The thread whose record a queue's words name.
pub fn sleeper<G: Ground>(record: u64) -> TteId {
    TteId(((record - G::THREADS) / THREAD_AREA_BYTES) as u32)
}
