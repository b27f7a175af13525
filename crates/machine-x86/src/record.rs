//! The record of the running thread.

use core::arch::asm;

use machine::SwitchOut;

use crate::area::THREAD_AREA_BYTES;
use crate::clock::read_tsc;
use crate::ground::Ground;
use crate::quantum;
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
