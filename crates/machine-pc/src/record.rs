//! The record of a thread's TTE: what synthesized code, the trap stubs and Rust share of a thread.

use core::arch::asm;

use crate::cpu::Cpu;
use crate::layout::THREAD_AREA_BYTES;
use crate::registers::read_tsc;

/// System calls a thread's table covers; larger numbers take the slow end.
pub const CALLS: usize = 464;

/// The first page of a thread area. Synthesized code has the addresses of these fields folded in.
#[repr(C)]
pub struct TteRecord {
    /// Where the thread's kernel stack stands while it is switched out.
    pub kernel_sp: u64,
    /// Slot: where `sw_out` jumps, the successor's `sw_in` or `sw_in_mmu`.
    pub next: u64,
    /// CR3 of the thread's quaspace.
    pub root: u64,
    pub fs_base: u64,
    pub gs_base: u64,
    pub cpu: *mut Cpu,
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
    /// Longest turn while others are ready, in ticks of the timer (ns).
    pub quantum: u64,
    /// Address of the successor's quantum.
    pub next_quantum: u64,
    /// Ticks of the counter as the running thread, up to `Cpu::since`.
    pub ran: u64,
    /// Address of a byte: not zero when the kernel must look before the thread goes back to its program.
    pub attention: u64,
    /// Not 0: a debugger looks; no routine is bound.
    pub debugged: u64,
}

/// The running thread's record.
pub fn current() -> *mut TteRecord {
    let sp: u64;
    // SAFETY: reading the stack pointer has no effect.
    unsafe { asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    (sp & !(THREAD_AREA_BYTES - 1)) as *mut TteRecord
}

/// Puts the time since the last switch on the running thread's account; the counter's value. The timer's stub does the
/// same by itself.
pub fn charge() -> u64 {
    let now = read_tsc();
    // SAFETY: 1. The record is the running thread's and its processor's is never freed. 2. Interrupts are off.
    unsafe {
        let tte = current();
        let cpu = (*tte).cpu;
        (*tte).ran = (*tte).ran.wrapping_add(now.wrapping_sub((*cpu).since));
        (*cpu).since = now;
    }
    now
}

/// Leaves the running thread through its synthesized `sw_out`.
pub fn switch_away() {
    // SAFETY: 1. The record is the running thread's. 2. `out` is its `sw_out`, which follows the C convention.
    unsafe {
        let record = &*current();
        assert!(record.next != 0, "thread {} has no successor", record.id);
        let out: extern "C" fn() = core::mem::transmute(record.switch_out);
        out();
    }
}
