//! The kernel's last words: what, where, registers, stack.

use core::fmt::{self, Write};
use core::ops::Range;

use machine::Registers;

/// A fixed buffer, because a panic may not allocate.
pub struct EpitaphText {
    bytes: [u8; 2048],
    used: usize,
}

impl EpitaphText {
    /// Of a trap in the kernel. `address`: what the trap was about; `stacks`: where the kernel's stacks are.
    pub fn of_trap(
        what: fmt::Arguments<'_>,
        registers: &Registers,
        address: u64,
        stack: Range<u64>,
        text_range: Range<u64>,
    ) -> EpitaphText {
        let mut text = EpitaphText { bytes: [0; 2048], used: 0 };
        let _ = writeln!(
            text,
            "kernel panic: {what}\nvector {} error {:#x} rip {:#x} rsp {:#x} address {address:#x} rflags {:#x}\n\
             rax {:#x} rbx {:#x} rcx {:#x} rdx {:#x} rsi {:#x} rdi {:#x} rbp {:#x}\n\
             r8 {:#x} r9 {:#x} r10 {:#x} r11 {:#x} r12 {:#x} r13 {:#x} r14 {:#x} r15 {:#x}",
            registers.cause,
            registers.error,
            registers.rip,
            registers.rsp,
            registers.rflags,
            registers.rax,
            registers.rbx,
            registers.rcx,
            registers.rdx,
            registers.rsi,
            registers.rdi,
            registers.rbp,
            registers.r8,
            registers.r9,
            registers.r10,
            registers.r11,
            registers.r12,
            registers.r13,
            registers.r14,
            registers.r15
        );
        text.trace_back(stack, text_range);
        text
    }

    /// Of a panic of the kernel's Rust code.
    pub fn of_panic(info: &core::panic::PanicInfo<'_>, stack: Range<u64>, text_range: Range<u64>) -> EpitaphText {
        let mut text = EpitaphText { bytes: [0; 2048], used: 0 };
        let _ = writeln!(text, "kernel panic: {info}");
        text.trace_back(stack, text_range);
        text
    }

    /// Words of the used part of the stack that look like return addresses: they point behind a call in the image's
    /// text. Old ones that nobody has overwritten may be among them; code without frame pointers is smaller.
    fn trace_back(&mut self, stack: Range<u64>, text: Range<u64>) {
        let words = (stack.start.next_multiple_of(8)..stack.end).step_by(8);
        // SAFETY: the machine gives a mapped part of a stack.
        let found = words.map(|at| unsafe { *(at as *const u64) }).filter(|word| {
            (text.start + 7..text.end).contains(word) && {
                // SAFETY: the image's text is mapped and readable.
                let before = unsafe { core::slice::from_raw_parts((word - 7) as *const u8, 7) };
                // `call rel32`, or `call` through a register or memory (SDM vol. 2: E8, FF /2).
                before[2] == 0xE8 || (0..6).any(|at| before[at] == 0xFF && before[at + 1] & 0x38 == 0x10)
            }
        });
        for address in found.take(16) {
            let _ = writeln!(self, "  called from {address:#x}");
        }
    }

    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.used]).unwrap_or("kernel panic")
    }

    /// The header of the record in which the tool gets the text: `control::PANIC` of the boot-image crate, which the
    /// machine does not depend on, and the length.
    pub fn record_header(&self) -> [u8; 8] {
        const PANIC_RECORD: u8 = 4;
        let mut header = [0u8; 8];
        header[0] = PANIC_RECORD;
        header[4..8].copy_from_slice(&(self.used as u32).to_le_bytes());
        header
    }
}

impl Write for EpitaphText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let part = text.len().min(self.bytes.len() - self.used);
        self.bytes[self.used..self.used + part].copy_from_slice(&text.as_bytes()[..part]);
        self.used += part;
        Ok(())
    }
}
