//! The local APIC (SDM vol. 3A, chapter 11) and the I/O APIC (82093AA), through the direct map.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use machine::{KernelCell, Trigger};
use machine_x86::read_tsc;

use crate::layout::direct;
use crate::trap::{CHAIN_VECTOR, CLOCK_VECTOR, SPURIOUS_VECTOR, TIMER_VECTOR};

/// Physical address of the local APIC.
pub const LOCAL: u64 = 0xFEE0_0000;

/// Register: any write ends the interrupt in service.
pub const EOI: u64 = 0xB0;
const SPURIOUS: u64 = 0xF0;
const TIMER: u64 = 0x320;
/// Register: ticks of the bus until the timer goes off.
pub const INITIAL_COUNT: u64 = 0x380;
const CURRENT_COUNT: u64 = 0x390;
const DIVIDE: u64 = 0x3E0;

fn write(base: u64, offset: u64, value: u32) {
    // SAFETY: the local APIC is at its architectural address, I/O APICs where every PC has one or the firmware says so; the direct
    // map has both.
    unsafe { (direct(base + offset) as *mut u32).write_volatile(value) }
}

fn read(base: u64, offset: u64) -> u32 {
    // SAFETY: as in `write`.
    unsafe { (direct(base + offset) as *const u32).read_volatile() }
}

/// Switches the local APIC on with a timer that goes off once, and silences the old interrupt controllers.
pub fn start() {
    // SAFETY: the 8259s' mask registers; absent on some virtual machines, where writes go nowhere.
    unsafe {
        crate::registers::out8(0x21, 0xFF);
        crate::registers::out8(0xA1, 0xFF);
    }
    write(LOCAL, SPURIOUS, 0x100 | SPURIOUS_VECTOR as u32);
    write(LOCAL, TIMER, CLOCK_VECTOR as u32);
}

/// Register: any write sends an interrupt.
pub const COMMAND: u64 = 0x300;
/// Sends the chaining vector to this processor itself (SDM vol. 3A, 11.6.1: shorthand self, level asserted, fixed).
pub const TO_ITSELF: u32 = 1 << 18 | 1 << 14 | CHAIN_VECTOR as u32;
/// The same for what the timer's interrupt has left to the kernel.
pub const TIMER_LATER: u32 = 1 << 18 | 1 << 14 | TIMER_VECTOR as u32;

/// Has the chaining vector come as soon as interrupts are on.
pub fn ask_for_chained() {
    write(LOCAL, COMMAND, TO_ITSELF);
}

/// Ends the interrupt in service.
pub fn end_of_interrupt() {
    write(LOCAL, EOI, 0);
}

/// Counts down from `count` ticks to one interrupt; 0 stops.
pub fn count_down(count: u32) {
    write(LOCAL, INITIAL_COUNT, count);
}

/// An interrupt in `nanos` nanoseconds; 0 stops.
pub fn start_timer(nanos: u32) {
    count_down(match timer_multiplier() {
        Some(multiplier) if nanos != 0 => ((u64::from(nanos) * u64::from(multiplier)) >> MULTIPLIER_SHIFT) as u32 + 1,
        _ => nanos,
    });
}

/// Ticks of the timer in a nanosecond, times 2^[`MULTIPLIER_SHIFT`]; 0 where a tick is a nanosecond, as hypervisors have it.
pub static MULTIPLIER: AtomicU64 = AtomicU64::new(0);
pub const MULTIPLIER_SHIFT: u32 = 31;

/// The multiplier, if there has to be one.
pub fn timer_multiplier() -> Option<u32> {
    let multiplier = MULTIPLIER.load(Ordering::Relaxed);
    (multiplier != 0).then_some(multiplier as u32)
}

/// Sets how many ticks of the bus are one of the timer: a power of two up to 128.
pub fn divide_timer(by: u32) {
    let shift = by.clamp(1, 128).ilog2();
    // 0 divides by two, 7 not at all; bit 2 of the value is bit 3 of the register (SDM vol. 3A, figure 11-10).
    let value = (shift + 7) % 8;
    write(LOCAL, DIVIDE, value & 3 | (value & 4) << 1);
}

/// Measures the timer against the processor's counter of `hertz`, and has it count as it does from then on: nanoseconds where a
/// tick is one, otherwise by a multiplier. A tick is never shorter than a nanosecond.
pub fn measure_timer(hertz: u64, divided_by: u32) {
    const NANOSECOND: core::ops::RangeInclusive<u64> = 950_000_000..=1_050_000_000;
    let mut divider = divided_by.clamp(1, 128);
    divide_timer(divider);
    let mut rate = timer_rate(hertz, 32);
    while rate > *NANOSECOND.end() && divider < 128 {
        divider *= 2;
        divide_timer(divider);
        rate = timer_rate(hertz, 32);
    }
    // No processor's bus or crystal comes near, so this is a hypervisor's, and exact.
    if NANOSECOND.contains(&rate) {
        return;
    }
    let rate = timer_rate(hertz, 2048).clamp(1, 999_999_999);
    MULTIPLIER.store(((rate << MULTIPLIER_SHIFT) / 1_000_000_000).max(1), Ordering::Relaxed);
}

/// Ticks a second of the timer, to one part in about `exactness`: the window is that many times longer than its ends are unsure,
/// and not so short that a slow timer hardly ticks.
fn timer_rate(hertz: u64, exactness: u64) -> u64 {
    count_down(u32::MAX);
    let (start, start_gap) = timer_sample();
    let least = exactness * hertz / 10_000_000;
    // However unsure: 50 ms.
    let most = hertz / 20;
    loop {
        let (end, end_gap) = timer_sample();
        let (ticks, elapsed) = (u64::from(start.1 - end.1), end.0 - start.0);
        if elapsed >= most || elapsed >= least.max(exactness * (start_gap + end_gap)) {
            count_down(0);
            return (u128::from(ticks) * u128::from(hertz) / u128::from(elapsed.max(1))) as u64;
        }
    }
}

/// The processor's counter and the timer, read as close together as three tries allow, and the time between.
fn timer_sample() -> ((u64, u32), u64) {
    let tries = [(); 3].map(|()| {
        let (before, count, after) = (read_tsc(), timer_count(), read_tsc());
        ((before + (after - before) / 2, count), after - before)
    });
    tries.into_iter().min_by_key(|(_, gap)| *gap).unwrap_or(((0, 0), 0))
}

pub fn timer_count() -> u32 {
    read(LOCAL, CURRENT_COUNT)
}

/// Windows and first lines of the I/O APICs: the one that every PC has, until the firmware's tables say more.
static IO: KernelCell<Vec<(u64, u32)>> = KernelCell::new(Vec::new());
const FIRST_IO: (u64, u32) = (0xFEC0_0000, 0);

/// There is an I/O APIC at `physical` that has the lines from `first` on.
pub fn add_io(physical: u64, first: u32) {
    IO.borrow_mut().push((physical, first));
}

const MASKED: u32 = 1 << 16;
const LEVEL: u32 = 1 << 15;
const LOW: u32 = 1 << 13;

/// The I/O APIC that has a line, and the line's register there.
fn register(number: u32) -> Option<(u64, u64)> {
    let has = |&(base, first): &(u64, u32)| {
        // The version register: the number of its last line.
        write(base, 0, 1);
        (first..=first + (read(base, 0x10) >> 16 & 0xFF)).contains(&number)
    };
    let known = IO.borrow();
    let first = [FIRST_IO];
    let (base, first) = *if known.is_empty() { first.iter() } else { known.iter() }.find(|io| has(io))?;
    Some((base, 0x10 + u64::from(number - first) * 2))
}

fn read_io(base: u64, register: u64) -> u32 {
    write(base, 0, register as u32);
    read(base, 0x10)
}

fn write_io(base: u64, register: u64, value: u32) {
    write(base, 0, register as u32);
    write(base, 0x10, value);
}

/// Routes a line to `vector` of this processor, or nowhere. False if no I/O APIC has it.
pub fn route(number: u32, trigger: Trigger, vector: Option<u8>) -> bool {
    let Some((base, register)) = register(number) else { return false };
    // Masked and by edges first: an I/O APIC forgets so that it waits for the end of an interrupt whose vector is another now.
    write_io(base, register, MASKED);
    write_io(base, register + 1, u32::from(number_of_this()) << 24);
    let kind = if trigger.is_level { LEVEL } else { 0 } | if trigger.is_low { LOW } else { 0 };
    if let Some(vector) = vector {
        write_io(base, register, u32::from(vector) | kind);
    }
    true
}

/// Keeps a routed line out, or lets it in again.
pub fn mask(number: u32, is_masked: bool) {
    let Some((base, register)) = register(number) else { return };
    let kept = read_io(base, register) & !MASKED;
    write_io(base, register, if is_masked { kept | MASKED } else { kept });
}

/// The local APIC's number of this processor (SDM vol. 3A, 11.4.6).
pub fn number_of_this() -> u8 {
    (read(LOCAL, 0x20) >> 24) as u8
}
