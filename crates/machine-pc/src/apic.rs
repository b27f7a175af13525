//! The local APIC (SDM vol. 3A, chapter 11) and the I/O APIC (82093AA), through the direct map.

use crate::layout::direct;
use crate::trap::{CHAIN_VECTOR, CLOCK_VECTOR, DEVICE_VECTOR, SPURIOUS_VECTOR, TIMER_VECTOR};

/// Physical address of the local APIC.
pub const LOCAL: u64 = 0xFEE0_0000;
const IO: u64 = 0xFEC0_0000;

/// Register: any write ends the interrupt in service.
pub const EOI: u64 = 0xB0;
const SPURIOUS: u64 = 0xF0;
const TIMER: u64 = 0x320;
/// Register: ticks of the bus until the timer goes off.
pub const INITIAL_COUNT: u64 = 0x380;
const CURRENT_COUNT: u64 = 0x390;
const DIVIDE: u64 = 0x3E0;

fn write(base: u64, offset: u64, value: u32) {
    // SAFETY: both APICs are present at their architectural addresses inside the direct map.
    unsafe { (direct(base + offset) as *mut u32).write_volatile(value) }
}

fn read(base: u64, offset: u64) -> u32 {
    // SAFETY: as in `write`.
    unsafe { (direct(base + offset) as *const u32).read_volatile() }
}

/// Switches the local APIC on with a one-shot timer, and silences the old interrupt controllers.
pub fn start() {
    // SAFETY: the 8259s' mask registers; absent on some virtual machines, where writes go nowhere.
    unsafe {
        crate::registers::out8(0x21, 0xFF);
        crate::registers::out8(0xA1, 0xFF);
    }
    write(LOCAL, SPURIOUS, 0x100 | SPURIOUS_VECTOR as u32);
    write(LOCAL, DIVIDE, 0b1011);
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

/// Counts down from `count` bus ticks to one interrupt; 0 stops.
pub fn start_timer(count: u32) {
    write(LOCAL, INITIAL_COUNT, count);
}

pub fn timer_count() -> u32 {
    read(LOCAL, CURRENT_COUNT)
}

/// Routes a global system interrupt (edge, active high) to `vector`, or nowhere.
pub fn route_edge(line: u32, vector: Option<u8>) {
    const MASKED: u32 = 1 << 16;
    let register = 0x10 + line * 2;
    write(IO, 0, register + 1);
    write(IO, 0x10, 0);
    write(IO, 0, register);
    write(IO, 0x10, vector.map_or(MASKED, u32::from));
}

/// Routes a global system interrupt (level, active high) to this processor's device vector.
pub fn route(line: u32) {
    let register = 0x10 + line * 2;
    write(IO, 0, register + 1);
    write(IO, 0x10, 0);
    write(IO, 0, register);
    write(IO, 0x10, DEVICE_VECTOR as u32 | 1 << 15);
}
