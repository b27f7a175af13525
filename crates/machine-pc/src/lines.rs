//! Lines of the I/O APICs, and messages (MSI): each claimed one has two vectors, one for the default and one for code, and a slot.
//!
//! ```text
//!   0x30 + place   a trap stub, Rust: masks, queues; the procedure is called at the end of the trap. Never in the midst of Rust
//!   0xD0 + place   jmp [slot + 8·place]: a handler of its own, above the kernel's Rust (nesting.rs)
//! ```
//! A line is routed to one of both. What comes by the other, because it was under way when the route changed, is only ended.

use core::arch::global_asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};

use machine::{
    Claimed, DeviceEntry, Entry, LINES_MAX, Line, LineControl, LineError, LineTable, Message, PROCESSORS_MAX,
    Procedure, ProcessorNumber,
};

use crate::apic;
use crate::cpu::{self, Cpu, PROCESSORS};
use crate::layout::direct;
use crate::nesting;
use crate::trap::{DEVICE_VECTOR, LINE_VECTOR};

global_asm!(
    r#"
    /* For each processor and place: through the slot in its record. */
    .pushsection .text
    .balign 16
    .globl line_entries
    line_entries:
        .set line_of, 0
        .rept {count}
        .set line_place, 0
        .rept {lines}
        .balign 8
        jmp qword ptr [rip + {processors} + line_of * {bytes} + {slots} + line_place * 8]
        .set line_place, line_place + 1
        .endr
        .set line_of, line_of + 1
        .endr

    /* Nobody's handler: the interrupt only ends. */
    .globl line_ended
    line_ended:
        push rax
        mov rax, {apic}
        mov dword ptr [rax + {eoi}], 0
        pop rax
        iretq
    .popsection
"#,
    processors = sym PROCESSORS,
    count = const PROCESSORS_MAX,
    bytes = const size_of::<Cpu>(),
    slots = const offset_of!(Cpu, lines),
    lines = const LINES_MAX,
    apic = const direct(apic::LOCAL),
    eoi = const apic::EOI,
);

unsafe extern "C" {
    static line_entries: u8;
    static line_ended: u8;
}

/// What the interrupt gate of a processor for `DEVICE_VECTOR + place` leads to.
pub fn entry(processor: usize, place: usize) -> u64 {
    (&raw const line_entries) as u64 + 8 * (processor * LINES_MAX + place) as u64
}

/// The slots of a processor that starts.
pub fn slots() -> [AtomicU64; LINES_MAX] {
    [(); LINES_MAX].map(|()| AtomicU64::new(nobody()))
}

/// All lines come to the first processor so far (`claim`), which runs this.
fn slot(place: usize) -> &'static AtomicU64 {
    // SAFETY: aligned words that live forever; they are only reached as atomics, and by the jumps.
    unsafe { &(*cpu::this()).lines[place] }
}

/// Stores another handler for a moment; returns the one before.
pub fn swap(place: usize, entry: u64) -> u64 {
    slot(place).swap(entry, Ordering::Release)
}

static TABLE: LineTable = LineTable::new();

/// The place of `vector`, if it is the default of one.
pub fn place_of(vector: u64) -> Option<usize> {
    let place = vector.checked_sub(LINE_VECTOR.into())? as usize;
    (place < LINES_MAX).then_some(place)
}

/// The default handler: masks the line and queues it; the interrupt is ended. [`serve`] is what it chains to.
pub fn came(place: usize) {
    if is_by_code(place) || !TABLE.came(place) {
        apic::end_of_interrupt();
        return;
    }
    if let Some(Line::Wired { number, .. }) = TABLE.line(place) {
        apic::mask(number, true);
    }
    apic::end_of_interrupt();
}

/// Calls the procedures of the lines that have come, and lets each in again.
pub fn serve() {
    TABLE.serve(|place, line| {
        if let Line::Wired { number, .. } = line
            && !is_by_code(place)
        {
            apic::mask(number, false);
        }
    });
}

fn is_by_code(place: usize) -> bool {
    slot(place).load(Ordering::Relaxed) != nobody()
}

fn nobody() -> u64 {
    (&raw const line_ended) as u64
}

struct Control;

/// Has `line` come to `processor`, by the default.
pub fn claim(line: Line, processor: ProcessorNumber, procedure: Procedure) -> Result<Claimed, LineError> {
    if processor != ProcessorNumber::FIRST {
        return Err(LineError::NoProcessor);
    }
    let place = TABLE.claim(line, procedure)?;
    let claimed = Claimed::new(place, &Control);
    route(line, Some(LINE_VECTOR + place as u8))?;
    Ok(claimed)
}

fn route(line: Line, vector: Option<u8>) -> Result<(), LineError> {
    match line {
        Line::Message => Ok(()),
        Line::Wired { number, trigger } if apic::route(number, trigger, vector) => Ok(()),
        Line::Wired { .. } => Err(LineError::Absent),
    }
}

impl LineControl for Control {
    fn lead(&self, place: usize, entry: Option<Entry<DeviceEntry>>) -> Result<(), LineError> {
        let line = TABLE.line(place).ok_or(LineError::Absent)?;
        let (handler, vector) = match entry {
            Some(entry) => (entry.address(), DEVICE_VECTOR),
            None => (nobody(), LINE_VECTOR),
        };
        slot(place).store(handler, Ordering::Release);
        if entry.is_some() {
            nesting::let_in(nesting::Source::Devices);
        }
        route(line, Some(vector + place as u8))
    }

    fn message(&self, place: usize) -> Option<Message> {
        /// Where the processors' APICs listen to messages (SDM vol. 3A, 11.11.1).
        const MESSAGES: u64 = 0xFEE0_0000;
        let vector = if is_by_code(place) { DEVICE_VECTOR } else { LINE_VECTOR } + place as u8;
        (TABLE.line(place)? == Line::Message)
            .then(|| Message { address: MESSAGES | u64::from(apic::number_of_this()) << 12, data: vector.into() })
    }

    fn give_back(&self, place: usize) {
        if let Some(line) = TABLE.line(place) {
            // It was routed before, so there is such a line.
            let _ = route(line, None);
        }
        slot(place).store(nobody(), Ordering::Release);
        TABLE.release(place);
    }
}
