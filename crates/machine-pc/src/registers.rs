//! Control registers, MSRs, ports: one small function each.

use core::arch::asm;

pub const EFER: u32 = 0xC000_0080;
pub const STAR: u32 = 0xC000_0081;
pub const LSTAR: u32 = 0xC000_0082;
pub const FMASK: u32 = 0xC000_0084;

/// # Safety
/// The write must keep the kernel's own execution valid.
pub unsafe fn write_msr(msr: u32, value: u64) {
    // SAFETY: the caller answers for the effect.
    unsafe {
        asm!("wrmsr", in("ecx") msr, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nostack, preserves_flags));
    }
}

pub fn read_msr(msr: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: only architectural MSRs named above are read; they exist on every x86-64 processor.
    unsafe {
        asm!("rdmsr", in("ecx") msr, out("eax") low, out("edx") high, options(nostack, preserves_flags, nomem));
    }
    (high as u64) << 32 | low as u64
}

macro_rules! control_register {
    ($read:ident, $write:ident, $name:literal) => {
        pub fn $read() -> u64 {
            let value;
            // SAFETY: reading a control register has no effect.
            unsafe { asm!(concat!("mov {}, ", $name), out(reg) value, options(nostack, preserves_flags)) };
            value
        }

        /// # Safety
        /// The new value must keep the kernel's own execution valid.
        pub unsafe fn $write(value: u64) {
            // SAFETY: the caller answers for the effect.
            unsafe { asm!(concat!("mov ", $name, ", {}"), in(reg) value, options(nostack, preserves_flags)) };
        }
    };
}
control_register!(read_cr0, write_cr0, "cr0");

/// The address of the last page fault.
pub fn read_cr2() -> u64 {
    let value;
    // SAFETY: reading a control register has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) value, options(nostack, preserves_flags)) };
    value
}

control_register!(read_cr3, write_cr3, "cr3");
control_register!(read_cr4, write_cr4, "cr4");

/// Drops one page's cached translation.
pub fn invalidate_page(address: u64) {
    // SAFETY: `invlpg` only drops a cached translation.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) };
}

/// # Safety
/// The device behind the port must tolerate the write.
pub unsafe fn out8(port: u16, value: u8) {
    // SAFETY: the caller answers for the device.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack, preserves_flags)) };
}

/// # Safety
/// The device behind the port must tolerate the read.
pub unsafe fn in8(port: u16) -> u8 {
    let value;
    // SAFETY: the caller answers for the device.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nostack, preserves_flags)) };
    value
}

/// # Safety
/// The device behind the port must tolerate the write.
pub unsafe fn out32(port: u16, value: u32) {
    // SAFETY: the caller answers for the device.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack, preserves_flags)) };
}

/// # Safety
/// The device behind the port must tolerate the read.
pub unsafe fn in16(port: u16) -> u16 {
    let value;
    // SAFETY: the caller answers for the device.
    unsafe { asm!("in ax, dx", in("dx") port, out("ax") value, options(nostack, preserves_flags)) };
    value
}

/// # Safety
/// The device behind the port must tolerate the write.
pub unsafe fn out16(port: u16, value: u16) {
    // SAFETY: the caller answers for the device.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nostack, preserves_flags)) };
}

/// # Safety
/// The device behind the port must tolerate the read.
pub unsafe fn in32(port: u16) -> u32 {
    let value;
    // SAFETY: the caller answers for the device.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nostack, preserves_flags)) };
    value
}
