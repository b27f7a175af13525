//! Nesting by level (S-78): while samples come, the kernel's Rust runs with interrupts on, but the local APIC's task
//! priority lets only the classes of the sample clock, of devices and of the timer through (SDM vol. 3A, 11.8.3).
//!
//! The handlers let in are machine code that touches words of its own, calls no Rust and takes no lock; so they may run
//! between any two instructions of the kernel that have a stack. All other vectors wait, as they did with interrupts off.
//!
//! Invariant: `IS_OPEN` says that the task priority is raised. Whoever leaves for a program or for another thread has lowered
//! it before, with interrupts off.

use core::arch::asm;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::timer;
use crate::trap::{CLOCK_VECTOR, DEVICE_VECTOR, SAMPLE_VECTOR};

/// The kernel's Rust is to be open. Changed by calls only, so a call may find at its end what it did not at its start.
static IS_WANTED: AtomicBool = AtomicBool::new(false);
pub static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Lets samples in from the next entry into the kernel on, or no longer.
pub fn want(is_wanted: bool) {
    SAMPLES_COME.store(is_wanted, Ordering::Relaxed);
    settle();
}

/// Samples come, and their handler may nest; the word `nest` of the command line: devices and the timer nest even without.
static SAMPLES_COME: AtomicBool = AtomicBool::new(false);
static IS_ALWAYS: AtomicBool = AtomicBool::new(false);

/// From now on interrupts whose handlers are code nest, whether samples come or not.
pub fn always() {
    IS_ALWAYS.store(true, Ordering::Relaxed);
}

/// Whose handler is code, beside that of samples.
#[derive(Clone, Copy)]
pub enum Source {
    Devices,
    Timer,
}

static IN: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// The handler of this source is code: it nests, too. The timer does when the devices do, because it is below them.
pub fn let_in(source: Source) {
    IN[source as usize].store(true, Ordering::Relaxed);
    settle();
}

fn settle() {
    let [devices, timer] = [&IN[0], &IN[1]].map(|source| source.load(Ordering::Relaxed));
    let lowest = match (devices, timer) {
        (false, _) => SAMPLE_VECTOR,
        (true, false) => DEVICE_VECTOR,
        (true, true) => CLOCK_VECTOR,
    };
    CLASS_BELOW.store(u64::from(lowest) / 16 - 1, Ordering::Relaxed);
    let is_ready = devices && timer;
    let is_wanted = SAMPLES_COME.load(Ordering::Relaxed) || is_ready && IS_ALWAYS.load(Ordering::Relaxed);
    IS_WANTED.store(is_wanted, Ordering::Relaxed);
    // Its handler lets the levels above in only if nothing there is Rust.
    timer::choose(is_wanted && is_ready);
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

/// The class of the highest interrupts that wait.
static CLASS_BELOW: AtomicU64 = AtomicU64::new(SAMPLE_VECTOR as u64 / 16 - 1);

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
