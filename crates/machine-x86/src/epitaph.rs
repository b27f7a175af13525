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
    pub fn of_trap(what: fmt::Arguments<'_>, registers: &Registers, address: u64, stacks: Range<u64>) -> EpitaphText {
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
        text.trace_back(registers.rbp, stacks);
        text
    }

    /// Of a panic of the kernel's Rust code.
    pub fn of_panic(info: &core::panic::PanicInfo<'_>, stacks: Range<u64>) -> EpitaphText {
        let mut text = EpitaphText { bytes: [0; 2048], used: 0 };
        let _ = writeln!(text, "kernel panic: {info}");
        let frame: u64;
        // SAFETY: reading rbp has no effect.
        unsafe { core::arch::asm!("mov {}, rbp", out(reg) frame) };
        text.trace_back(frame, stacks);
        text
    }

    /// Return addresses by frame pointers, while they stay in kernel memory.
    fn trace_back(&mut self, mut frame: u64, stacks: Range<u64>) {
        for _ in 0..16 {
            if !stacks.contains(&frame) || !frame.is_multiple_of(8) {
                break;
            }
            // SAFETY: frame pointers of kernel code point into mapped kernel stacks; a wrong one ends in another
            // trap, which prints what there is.
            let (next, address) = unsafe { (*(frame as *const u64), *((frame + 8) as *const u64)) };
            let _ = writeln!(self, "  called from {address:#x}");
            if next <= frame {
                break;
            }
            frame = next;
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
