//! Bringing the pc up, and taking it down.

use alloc::boxed::Box;
use core::fmt::{self, Write};
use core::sync::atomic::Ordering;

use machine::{Channel, KernelCell, Machine, PAGE_BYTES, Registers};
use machine_x86::{EpitaphText, THREAD_AREA_BYTES, access_sites, restrict_sites};
use quaject::{Makers, create};

use crate::cpu::{Cpu, enable_features};
use crate::frames::FRAMES;
use crate::layout::{IMAGE_WINDOW, direct, image};
use crate::pvh::{BootInfo, StartInfo};
use crate::registers::{out8, out32};
use crate::thread_code::{Processor, ProcessorCallouts};
use crate::virtio_console::{Console, is_console};
use crate::{MACHINE, PcMachine, STORE, apic, clock, dummy_owner, paging, trap};

/// What boot hands to the kernel.
pub struct Booted {
    pub machine: &'static PcMachine,
    pub info: BootInfo,
    /// Processor counter at the first kernel instruction.
    pub entry_tsc: u64,
}

/// Brings the machine up: memory, heap, processor, APIC, clock, console.
///
/// # Safety
/// Called once, by the boot code, with what the loader left.
pub unsafe fn boot(start_info: u64, entry_tsc: u64) -> Booted {
    // SAFETY: the caller passes the loader's pointer.
    let Some(start) = (unsafe { StartInfo::new(start_info) }) else {
        fatal("the loader left no PVH start information")
    };
    let [image_start, text_end, rodata_end, image_end] = image();
    let image_end_physical = image_end - IMAGE_WINDOW;
    let archive = start.archive().unwrap_or(0..0);
    let Some(range) = start.ram().find(|range| range.contains(&(image_start - IMAGE_WINDOW))) else {
        fatal("the kernel image lies outside RAM")
    };
    // The archive lies above the image (loaders put it high) or would be overwritten by boot.
    let end = if archive.start >= image_end_physical && archive.start < range.end {
        archive.start & !(PAGE_BYTES as u64 - 1)
    } else {
        range.end
    };
    let ram_end = start.ram().map(|range| range.end).max().unwrap_or(0);
    // Boot lives on a window behind the image, large enough for the first heap, the tables of the direct map and the frame
    // pool's own (8 bytes for each frame below the end of memory, holes and all); what is left of it goes to the pool.
    let window = (1 << 20) + ram_end / 256;
    FRAMES.start(image_end_physical..end.min((image_end_physical + window).next_multiple_of(PAGE_BYTES as u64)));
    let patch_smap = core::arch::x86_64::__cpuid_count(7, 0).ebx & 1 << 20 != 0;
    if patch_smap {
        // SAFETY: before the seal, text is still writable through the boot window.
        unsafe { patch_smap_sites() };
    }
    // SAFETY: once, on the boot stack.
    let sealed = unsafe {
        paging::reserve_upper_half(&FRAMES)
            .and_then(|()| paging::seal_kernel_half([image_start, text_end, rodata_end, image_end], ram_end, &FRAMES))
    };
    if sealed.is_err() {
        fatal("not enough memory for the kernel's page tables");
    }
    let info = start.copy();
    let machine = start_machine(&info, entry_tsc);
    Booted { machine, info, entry_tsc }
}

fn start_machine(info: &BootInfo, entry_tsc: u64) -> &'static PcMachine {
    let features = match enable_features() {
        Ok(features) => features,
        Err(feature) => fatal(feature),
    };
    let cpu = Cpu::start(&features, 0, dummy_owner());
    let dispatch = (&raw const cpu.slots.dispatch) as u64;
    if let Some(bytes) = number_after(&info.command_line, b"code_bytes=") {
        STORE.limit(bytes as usize);
    }
    apic::start();
    clock::start(entry_tsc, number_after(&info.command_line, b"tsc_hz=").unwrap_or(0));
    machine_x86::start_gauge(&mut cpu.slots);
    // Asked for by whoever does not trust the machine's interrupts.
    let polls = info.command_line.split(|byte| *byte == b' ').any(|word| word == b"poll");
    if info.command_line.split(|byte| *byte == b' ').any(|word| word == b"nest") {
        crate::nesting::always();
    }
    let console = KernelCell::new(find_console(&info.command_line, polls));
    let access_space = number_after(&info.command_line, b"space=").unwrap_or(0).min(ACCESS_SPACE_MOST) as u32;
    let random = KernelCell::new(0);
    let machine = Box::leak(Box::new(PcMachine { features, cpu, console, random, polls, access_space }));
    MACHINE.store((&raw const *machine) as u64, Ordering::Release);
    let processor = Processor { dispatch };
    let Some(entry) = create::create(&processor, Makers::new(machine, &STORE), &ProcessorCallouts {}).entry else {
        fatal("no memory for the entry code")
    };
    // SAFETY: the entry jumps through the processor's dispatch slot, bound before any program runs.
    unsafe { crate::registers::write_msr(crate::registers::LSTAR, entry.entry()) };
    core::mem::forget(entry);
    machine
}

/// More instructions between two accesses than any device wants; a routine must not grow without bound.
const ACCESS_SPACE_MOST: u64 = 64;

/// Finds the console among the windows that the loader listed as `virtio_mmio.device=SIZE@BASE:IRQ`.
fn find_console(command_line: &[u8], polls: bool) -> Option<Console> {
    for word in command_line.split(|byte| *byte == b' ') {
        let Some(rest) = word.strip_prefix(b"virtio_mmio.device=") else { continue };
        let Some(at) = rest.iter().position(|byte| *byte == b'@') else { continue };
        let Some((base, rest)) = number(&rest[at + 1..]) else { continue };
        let Some((line, _)) = rest.strip_prefix(b":").and_then(number) else { continue };
        if base < 4 << 30 && line < 24 && is_console(base) {
            // First the route: a line that is raised while it leads nowhere is forgotten, and the device raises it
            // only once before it is served.
            if !polls {
                apic::route(line as u32);
            }
            return Console::start(base).ok();
        }
    }
    None
}

/// The number that follows `key` on the command line.
fn number_after(text: &[u8], key: &[u8]) -> Option<u64> {
    let word = text.split(|byte| *byte == b' ').find(|word| word.starts_with(key))?;
    number(&word[key.len()..]).map(|(value, _)| value)
}

/// A decimal or 0x-hexadecimal number at the front of `text`, and the rest.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let (radix, digits) = match text.strip_prefix(b"0x") {
        Some(rest) => (16, rest),
        None => (10, text),
    };
    let count = digits.iter().take_while(|byte| (**byte as char).is_digit(radix)).count();
    let value = core::str::from_utf8(&digits[..count]).ok()?;
    Some((u64::from_str_radix(value, radix).ok()?, &digits[count..]))
}

/// # Safety
/// Text must still be writable.
unsafe fn patch_smap_sites() {
    let stac = access_sites().map(|site| (site, [0x0F, 0x01, 0xCB]));
    let clac = restrict_sites().map(|site| (site, [0x0F, 0x01, 0xCA]));
    let trap = trap::clac_sites().map(|site| (site, [0x0F, 0x01, 0xCA]));
    let look = trap::stac_sites().map(|site| (site, [0x0F, 0x01, 0xCB]));
    for (site, bytes) in stac.into_iter().chain(clac).chain(trap).chain(look) {
        // SAFETY: each site is a three-byte no-op that nobody executes now; it is written through the
        // direct map, which boot has not yet protected.
        unsafe { (direct(site - IMAGE_WINDOW) as *mut [u8; 3]).write(bytes) };
    }
}

/// The early and last-resort console: QEMU's debug port; elsewhere the writes go nowhere.
pub struct Early;

impl Write for Early {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: port 0xE9 is unassigned on real machines.
            unsafe { out8(0xE9, byte) };
        }
        Ok(())
    }
}

/// Writes a line to the early console.
pub fn say_early(line: fmt::Arguments<'_>) {
    let _ = writeln!(Early, "{line}");
}

fn fatal(what: &str) -> ! {
    say_early(format_args!("synthesis cannot start: it needs {what}"));
    power_off()
}

/// Ends the machine: QEMU's exit device, then a triple fault, then a halt.
pub fn power_off() -> ! {
    // SAFETY: the ports of QEMU's isa-debug-exit; the keyboard controller's reset line elsewhere.
    unsafe {
        out32(0xF4, 0x10);
        out8(0x64, 0xFE);
    }
    loop {
        // SAFETY: nothing is left to run.
        unsafe { core::arch::asm!("cli", "hlt") };
    }
}

/// The kernel's last words (status 70 through the host tool): what, where, registers, stack.
pub fn epitaph(registers: &Registers, what: &str) -> ! {
    let cr2 = crate::registers::read_cr2();
    let (stack, text) = (stack_from(registers.rsp), text());
    last_words(&EpitaphText::of_trap(format_args!("{what}"), registers, cr2, stack, text))
}

/// A panic of the kernel's Rust code.
pub fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let rsp: u64;
    // SAFETY: reading rsp has no effect.
    unsafe { core::arch::asm!("mov {}, rsp", out(reg) rsp) };
    last_words(&EpitaphText::of_panic(info, stack_from(rsp), text()))
}

/// The image's text.
fn text() -> core::ops::Range<u64> {
    let [start, end, ..] = crate::layout::image();
    start..end
}

/// The used part of the stack that `rsp` is on: a thread's, or the image's own for the first steps and for traps with stacks
/// of their own. Empty if it is none.
fn stack_from(rsp: u64) -> core::ops::Range<u64> {
    let [image, .., image_end] = crate::layout::image();
    if rsp >= crate::layout::THREADS {
        rsp..(rsp | (THREAD_AREA_BYTES - 1)).saturating_sub(7)
    } else if (image..image_end).contains(&rsp) {
        rsp..image_end.min(rsp + 4096)
    } else {
        0..0
    }
}

/// Sends the epitaph without a lock or an allocation: control channel if the console exists and is not
/// in use by the code that died, and the debug port in any case.
fn last_words(text: &EpitaphText) -> ! {
    say_early(format_args!("{}", text.as_str()));
    if MACHINE.load(Ordering::Acquire) != 0 {
        let machine = crate::the();
        machine.send(Channel::Control, &text.record_header());
        machine.send(Channel::Control, text.as_str().as_bytes());
        for _ in 0..100_000_000u64 {
            if machine.is_drained(Channel::Control) {
                break;
            }
        }
    }
    power_off()
}
