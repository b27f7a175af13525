//! Nesting by level (S-78): while samples come, the kernel's Rust runs with interrupts on, but the local APIC's task
//! priority lets only the classes of the sample clock, of devices and of the timer through (SDM vol. 3A, 11.8.3).
//!
//! The handlers let in are machine code that touches words of its own, calls no Rust and takes no lock; so they may run
//! between any two instructions of the kernel that have a stack. All other vectors wait, as they did with interrupts off.
//!
//! Invariant: `Words::is_open` says that the task priority is raised. Whoever leaves for a program or for another thread has lowered
//! it before, with interrupts off.

use core::arch::asm;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::trap::{CLOCK_VECTOR, DEVICE_VECTOR, SAMPLE_VECTOR};
use crate::{cpu, timer};

/// What a processor has of it.
#[repr(C)]
pub struct Words {
    /// The kernel's Rust is to be open. Changed by calls only, so a call may find at its end what it did not at its start.
    is_wanted: AtomicBool,
    pub is_open: AtomicBool,
    /// Samples come, and their handler may nest.
    samples_come: AtomicBool,
    /// The handlers of devices and timer are code.
    lets_in: [AtomicBool; 2],
    /// The class of the highest interrupts that wait.
    class_below: AtomicU64,
}

impl Words {
    pub const fn new() -> Words {
        Words {
            is_wanted: AtomicBool::new(false),
            is_open: AtomicBool::new(false),
            samples_come: AtomicBool::new(false),
            lets_in: [const { AtomicBool::new(false) }; 2],
            class_below: AtomicU64::new(SAMPLE_VECTOR as u64 / 16 - 1),
        }
    }
}

#[inline(always)]
fn words() -> &'static Words {
    // SAFETY: the record is never freed, and these are words.
    unsafe { &(*cpu::this()).nesting }
}

/// Lets samples in from the next entry into the kernel on, or no longer.
pub fn want(is_wanted: bool) {
    words().samples_come.store(is_wanted, Ordering::Relaxed);
    settle();
}

/// The word `nest` of the command line: devices and timers nest even while no samples come, on every processor.
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

/// The handler of this source is code: it nests, too. The timer does when the devices do, because it is below them.
pub fn let_in(source: Source) {
    words().lets_in[source as usize].store(true, Ordering::Relaxed);
    settle();
}

fn settle() {
    let words = words();
    let [devices, timer] = words.lets_in.each_ref().map(|source| source.load(Ordering::Relaxed));
    let lowest = match (devices, timer) {
        (false, _) => SAMPLE_VECTOR,
        (true, false) => DEVICE_VECTOR,
        (true, true) => CLOCK_VECTOR,
    };
    words.class_below.store(u64::from(lowest) / 16 - 1, Ordering::Relaxed);
    let is_ready = devices && timer;
    let is_wanted = words.samples_come.load(Ordering::Relaxed) || is_ready && IS_ALWAYS.load(Ordering::Relaxed);
    words.is_wanted.store(is_wanted, Ordering::Relaxed);
    // Its handler lets the levels above in only if nothing there is Rust.
    timer::choose(is_wanted && is_ready);
}

/// Whether the kernel's Rust, which begins, has to [`open`]. If not, it ends as it began: nobody else opens for it.
#[inline(always)]
pub fn is_wanted() -> bool {
    words().is_wanted.load(Ordering::Relaxed)
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
    if words().is_open.load(Ordering::Relaxed) {
        lower();
    }
}

/// Interrupts off for a fault inside the kernel, which may sleep; true if they were on.
pub fn suspend() -> bool {
    let was_open = words().is_open.load(Ordering::Relaxed);
    close();
    was_open
}

/// The fault goes back to code with interrupts on: IRET sets the flag, this the priority.
pub fn resume(was_open: bool) {
    if was_open {
        words().is_open.store(true, Ordering::Relaxed);
        set_priority(words().class_below.load(Ordering::Relaxed));
    }
}

/// Does `act` with interrupts off, even if they nest now.
pub fn between_interrupts(act: &mut dyn FnMut()) {
    let was_open = words().is_open.load(Ordering::Relaxed);
    // SAFETY: interrupts are only delayed.
    unsafe { asm!("cli", options(nostack)) };
    act();
    if was_open {
        // SAFETY: as they were; the priority has not changed.
        unsafe { asm!("sti", options(nostack)) };
    }
}

#[cold]
fn raise() {
    words().is_open.store(true, Ordering::Relaxed);
    set_priority(words().class_below.load(Ordering::Relaxed));
    // SAFETY: only handlers that keep all registers and touch no state of the kernel's Rust can come in.
    unsafe { asm!("sti", options(nostack)) };
}

#[cold]
fn lower() {
    // SAFETY: interrupts off is what all callers go on with.
    unsafe { asm!("cli", options(nostack)) };
    words().is_open.store(false, Ordering::Relaxed);
    set_priority(0);
}

fn set_priority(class: u64) {
    // SAFETY: the task priority only delays interrupts.
    unsafe { asm!("mov cr8, {}", in(reg) class, options(nostack, preserves_flags)) };
}
