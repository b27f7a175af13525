//! Nesting by level (S-78): while samples come, the kernel's Rust runs with interrupts on, but the local APIC's task
//! priority lets only the classes of the sample clock and of devices through (SDM vol. 3A, 11.8.3).
//!
//! The handlers let in are machine code that touches words of its own, calls no Rust and takes no lock; so they may run
//! between any two instructions of the kernel that have a stack. All other vectors wait, as they did with interrupts off.
//!
//! Invariant: `IS_OPEN` says that the task priority is raised. Whoever leaves for a program or for another thread has lowered
//! it before, with interrupts off.

use core::arch::asm;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::trap::{DEVICE_VECTOR, SAMPLE_VECTOR};

/// Samples come, and their handler may nest. Changed by calls only, so a call may find at its end what it did not at its
/// start.
static IS_WANTED: AtomicBool = AtomicBool::new(false);
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Lets samples in from the next entry into the kernel on, or no longer.
pub fn want(is_wanted: bool) {
    IS_WANTED.store(is_wanted, Ordering::Relaxed);
}

/// Whether the kernel's Rust, which begins, has to [`open`]. If not, it ends as it began: nobody else opens for it.
#[inline(always)]
pub fn is_wanted() -> bool {
    IS_WANTED.load(Ordering::Relaxed)
}

/// The kernel's Rust begins.
#[inline(always)]
pub fn open() {
    if is_wanted() {
        raise();
    }
}

/// It ends, or leaves for another thread.
#[inline(always)]
pub fn close() {
    if IS_OPEN.load(Ordering::Relaxed) {
        lower();
    }
}

/// Interrupts off for a fault inside the kernel, which may sleep; true if they were on.
pub fn suspend() -> bool {
    let was_open = IS_OPEN.load(Ordering::Relaxed);
    close();
    was_open
}

/// The fault goes back to code with interrupts on: IRET sets the flag, this the priority.
pub fn resume(was_open: bool) {
    if was_open {
        IS_OPEN.store(true, Ordering::Relaxed);
        set_priority(CLASS_BELOW.load(Ordering::Relaxed));
    }
}

/// Does `act` with interrupts off, even if they nest now.
pub fn between_interrupts(act: &mut dyn FnMut()) {
    let was_open = IS_OPEN.load(Ordering::Relaxed);
    // SAFETY: interrupts are only delayed.
    unsafe { asm!("cli", options(nostack)) };
    act();
    if was_open {
        // SAFETY: as they were; the priority has not changed.
        unsafe { asm!("sti", options(nostack)) };
    }
}

/// The class of the highest interrupts that wait: all below the sample clock, or all below the devices.
static CLASS_BELOW: AtomicU64 = AtomicU64::new(SAMPLE_VECTOR as u64 / 16 - 1);

/// The handler of devices is code: it nests, too.
pub fn let_devices_in() {
    CLASS_BELOW.store(DEVICE_VECTOR as u64 / 16 - 1, Ordering::Relaxed);
}

#[cold]
fn raise() {
    IS_OPEN.store(true, Ordering::Relaxed);
    set_priority(CLASS_BELOW.load(Ordering::Relaxed));
    // SAFETY: only handlers that keep all registers and touch no state of the kernel's Rust can come in.
    unsafe { asm!("sti", options(nostack)) };
}

#[cold]
fn lower() {
    // SAFETY: interrupts off is what all callers go on with.
    unsafe { asm!("cli", options(nostack)) };
    IS_OPEN.store(false, Ordering::Relaxed);
    set_priority(0);
}

fn set_priority(class: u64) {
    // SAFETY: the task priority only delays interrupts.
    unsafe { asm!("mov cr8, {}", in(reg) class, options(nostack, preserves_flags)) };
}
