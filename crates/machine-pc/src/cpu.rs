//! A processor: its record, its descriptor tables, its features.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::arch::asm;
use core::cell::UnsafeCell;
use core::mem::{MaybeUninit, offset_of};
use core::sync::atomic::AtomicU64;

use machine::{LINES_MAX, PROCESSORS_MAX, ProcessorNumber};
use machine_x86::{MANAGED_STATE, Slots, VECTOR_OFFSET, current_by_stack, read_tsc};

use crate::layout::{KERNEL_CODE, KERNEL_DATA, TSS_SELECTOR};
use crate::registers::{EFER, FMASK, LSTAR, STAR, read_cr0, read_cr4, read_msr, write_cr0, write_cr4, write_msr};
use crate::{lines, nesting, sample_clock, timer, trap};

/// Task-state segment (SDM vol. 3A, 8.7): stacks for traps.
#[repr(C, packed(4))]
pub struct Tss {
    reserved: u32,
    /// The kernel stack for traps from programs; each thread's `sw_in` stores its own top here.
    pub rsp0: u64,
    unused: [u64; 3],
    ist: [u64; 7],
    tail: [u16; 6],
}

/// Everything that belongs to one processor, which alone reaches it, without a lock. Synthesized code has the addresses of its fields
/// folded in, so no segment base is needed to find them, and GS stays the program's.
#[repr(C)]
pub struct Cpu {
    pub slots: Slots,
    pub nesting: nesting::Words,
    pub timer: timer::Words,
    pub samples: sample_clock::Words,
    /// Slots: where the interrupts lead whose lines have handlers that are code.
    pub lines: [AtomicU64; LINES_MAX],
    pub tss: Tss,
    gdt: [u64; 10],
    idt: [[u64; 2]; 256],
    trap_stacks: [[u8; 8192]; 2],
    dummy_owner: DummyOwner,
}

/// Stands in as vector owner when the real one has gone: an area that a save may scribble on.
#[repr(C, align(4096))]
struct DummyOwner([u8; VECTOR_OFFSET + XSAVE_ROOM]);

/// The records of the processors, zeros until each starts.
#[repr(transparent)]
pub struct Processors([UnsafeCell<MaybeUninit<Cpu>>; PROCESSORS_MAX]);

// SAFETY: each record is reached by its own processor alone, and what interrupts reach in it are words.
unsafe impl Sync for Processors {}

pub static PROCESSORS: Processors = Processors([const { UnsafeCell::new(MaybeUninit::zeroed()) }; PROCESSORS_MAX]);

/// The record of a processor.
fn record(number: usize) -> *mut Cpu {
    PROCESSORS.0[number].get().cast()
}

/// The record of the processor that runs this.
#[inline(always)]
pub fn this() -> *mut Cpu {
    if PROCESSORS_MAX == 1 {
        return record(0);
    }
    // SAFETY: every thread runs on the stack of its own area, whose record names the record of its processor.
    unsafe { (*current_by_stack()).cpu.cast() }
}

/// Which one that is.
pub fn number() -> ProcessorNumber {
    let before = this() as usize - record(0) as usize;
    ProcessorNumber((before / size_of::<Cpu>()) as u32)
}

/// The area that stands in as vector owner.
pub fn dummy_owner() -> u64 {
    this() as u64 + offset_of!(Cpu, dummy_owner) as u64
}

/// What the processor offers, asked once.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    pub smap: bool,
    pub xsave_bytes: usize,
    pub xcr0: u64,
    pub rdrand: bool,
}

fn cpuid(leaf: u32, subleaf: u32) -> core::arch::x86_64::CpuidResult {
    core::arch::x86_64::__cpuid_count(leaf, subleaf)
}

/// Room for the XSAVE image in a thread area.
const XSAVE_ROOM: usize = 4096;

/// Switches the processor's protections and vector extensions on.
///
/// # Errors
/// The name of a feature that the kernel cannot do without.
pub fn enable_features() -> Result<Features, &'static str> {
    let one = cpuid(1, 0);
    let seven = cpuid(7, 0);
    if one.ecx & 1 << 26 == 0 {
        return Err("XSAVE");
    }
    if seven.ebx & 1 == 0 {
        return Err("FSGSBASE");
    }
    let (smep, smap, umip) = (seven.ebx & 1 << 7 != 0, seven.ebx & 1 << 20 != 0, seven.ecx & 1 << 2 != 0);
    let mut cr4 = read_cr4() | 1 << 9 | 1 << 10 | 1 << 16 | 1 << 18;
    for (present, bit) in [(smep, 20), (smap, 21), (umip, 11)] {
        if present {
            cr4 |= 1 << bit;
        }
    }
    // SAFETY: only features that CPUID reports are switched on; the kernel runs on its own pages and
    // touches user pages only in code that sets AC.
    unsafe { write_cr4(cr4) };
    let mut xcr0 = (cpuid(13, 0).eax as u64 | (cpuid(13, 0).edx as u64) << 32) & MANAGED_STATE;
    if xcr0 & 0xE0 != 0xE0 {
        xcr0 &= 0b111;
    }
    // SAFETY: `xcr0` holds x87, SSE and only further parts that CPUID reports, complete.
    unsafe { asm!("xsetbv", in("ecx") 0, in("eax") xcr0 as u32, in("edx") (xcr0 >> 32) as u32) };
    let xsave_bytes = cpuid(13, 0).ebx as usize;
    if xsave_bytes > XSAVE_ROOM {
        return Err("a vector state of at most 4096 bytes");
    }
    // SAFETY: write protection in kernel mode, TS clear: nothing ever sets it.
    unsafe { write_cr0((read_cr0() | 1 << 16) & !(1 << 3)) };
    Ok(Features { smap, xsave_bytes, xcr0, rdrand: one.ecx & 1 << 30 != 0 })
}

impl Cpu {
    /// Makes the tables of processor `number`, which runs this, and loads them.
    ///
    /// # Safety
    /// Once for each processor, before it takes an interrupt.
    pub unsafe fn start(number: usize, features: &Features, entry_stub: u64) -> &'static mut Cpu {
        // SAFETY: 1. Nobody else has the record. 2. All-zero is a valid value of every field (integers and arrays of them).
        let cpu = unsafe { &mut *record(number) };
        cpu.nesting = nesting::Words::new();
        cpu.timer = timer::Words::new();
        cpu.samples = sample_clock::Words::new();
        cpu.lines = lines::slots();
        cpu.slots.manage_vectors(features.xcr0, features.xsave_bytes);
        cpu.slots.vector_owner = (&raw const cpu.dummy_owner) as u64;
        cpu.slots.since = read_tsc();
        for stack in 0..2 {
            cpu.tss.ist[stack] = (&raw const cpu.trap_stacks[stack]) as u64 + 8192;
        }
        cpu.tss.tail[5] = size_of::<Tss>() as u16;
        cpu.fill_gdt();
        for (vector, gate) in cpu.idt.iter_mut().enumerate() {
            *gate = trap::gate(vector, number);
        }
        cpu.load();
        // SAFETY: STAR names the descriptors loaded above; LSTAR is kernel code; FMASK clears
        // TF, IF, DF, AC, NT and IOPL at entry.
        unsafe {
            write_msr(EFER, read_msr(EFER) | 1);
            write_msr(STAR, (KERNEL_CODE as u64) << 32 | 0x23 << 48);
            write_msr(LSTAR, entry_stub);
            write_msr(FMASK, 0x4_7700);
        }
        cpu
    }

    fn fill_gdt(&mut self) {
        let tss = (&raw const self.tss) as u64;
        self.gdt = [
            0,
            0,
            0x00AF_9B00_0000_FFFF, // 0x10 kernel code
            0x00CF_9300_0000_FFFF, // 0x18 kernel data
            0,                     // 0x23 SYSRET's base: 32-bit code, whose SYSCALL would lead nowhere, is not there
            0x00CF_F300_0000_FFFF, // 0x2b user data
            0x00AF_FB00_0000_FFFF, // 0x33 user code
            0,
            0x0000_8900_0000_0000 | (size_of::<Tss>() as u64 - 1) | (tss & 0xFF_FFFF) << 16 | (tss >> 24 & 0xFF) << 56,
            tss >> 32,
        ];
    }

    /// Loads the tables. There is no local one: what a reset or a loader leaves in its register is often present, at address 0,
    /// so that a program could write descriptors into its own first page and use them.
    fn load(&self) {
        #[repr(C, packed)]
        struct Pointer(u16, u64);
        let gdt = Pointer(size_of_val(&self.gdt) as u16 - 1, (&raw const self.gdt) as u64);
        let idt = Pointer(size_of_val(&self.idt) as u16 - 1, (&raw const self.idt) as u64);
        // SAFETY: 1. The tables live forever. 2. They hold the selectors that the code below loads
        // and gates that lead to the stubs of `trap`.
        unsafe {
            asm!(
                "lgdt [{gdt}]",
                "lidt [{idt}]",
                "mov ss, {data:x}",
                "mov ds, {data:x}",
                "mov es, {data:x}",
                "push {code}",
                "lea {scratch}, [rip + 2f]",
                "push {scratch}",
                "retfq",
                "2:",
                "ltr {tss:x}",
                "lldt {none:x}",
                gdt = in(reg) &gdt,
                idt = in(reg) &idt,
                data = in(reg) KERNEL_DATA as u64,
                code = in(reg) KERNEL_CODE as u64,
                tss = in(reg) TSS_SELECTOR as u64,
                none = in(reg) 0u64,
                scratch = out(reg) _,
            );
        }
    }
}
