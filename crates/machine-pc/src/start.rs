//! Bringing the pc up, and taking it down.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::sync::atomic::Ordering;

use machine::{
    Channel, Channels, Claimed, Entered, Frames, KernelCell, KernelOnce, Line, PAGE_BYTES, Processor as _,
    ProcessorNumber, Registers,
};
use machine_x86::{EpitaphText, THREAD_AREA_BYTES, access_sites, restrict_sites, upcalls};
use quaject::{Makers, create};
use virtio::StartError;

use crate::cpu::{Cpu, enable_features};
use crate::devices::{self, Device};
use crate::frames::FRAMES;
use crate::layout::{IMAGE_WINDOW, direct, image};
use crate::pvh::{BootInfo, StartInfo};
use crate::registers::{in8, out8, out32};
use crate::thread_code::{Processor, ProcessorCallouts};
use crate::virtio_console::Console;
use crate::{MACHINE, PcMachine, STORE, acpi, apic, clock, entropy, handover, net, paging, ram, shares, the, trap};

/// What boot hands to the kernel.
pub struct Booted {
    /// Boot runs as the kernel does, under its lock.
    pub entered: Entered,
    pub machine: &'static PcMachine,
    pub info: BootInfo,
    /// Memory that nobody uses.
    pub free_frames: Vec<Frames>,
    /// The frames that the boot archive lies in.
    pub archive_frames: Frames,
    /// Processor counter at the first kernel instruction.
    pub entry_tsc: u64,
}

/// Brings the machine up: memory, heap, processor, APIC, clock, console.
///
/// # Safety
/// Called once, by the boot code, with what the loader left.
pub unsafe fn boot(start_info: u64, entry_tsc: u64) -> Booted {
    // SAFETY: the caller passes the loader's pointer.
    let Some(start) = (unsafe { StartInfo::new(start_info) }) else { fatal("the start information of a PVH loader") };
    if was_reset() {
        say_early(format_args!("synthesis has ended, and this machine cannot be switched off: it stands still"));
        stand_still();
    }
    let [image_start, text_end, rodata_end, image_end] = image();
    let image_end_physical = image_end - IMAGE_WINDOW;
    let archive = start.archive().unwrap_or(0..0);
    let Some(range) = start.ram().find(|range| range.contains(&(image_start - IMAGE_WINDOW))) else {
        fatal("a loader that puts it into memory that it calls usable")
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
    // SAFETY: as above.
    let counter_hz = unsafe { start_clocks(start.command_line()) };
    // SAFETY: once, on the boot stack.
    let sealed = unsafe {
        paging::reserve_upper_half(&FRAMES)
            .and_then(|()| paging::seal_kernel_half([image_start, text_end, rodata_end, image_end], ram_end, &FRAMES))
    };
    if sealed.is_err() {
        fatal("more memory, for the kernel's page tables");
    }
    let info = start.copy();
    machine_x86::start_clock(entry_tsc, counter_hz);
    let machine = start_machine(&info);
    // SAFETY: once; boot used memory behind the image up to there, and all the rest is the loader's to give.
    let free_frames = unsafe { ram::free_frames(&info, FRAMES.early_end()) };
    // SAFETY: once.
    let archive_frames = unsafe { ram::archive_frames(&info) };
    machine::arm(|| Some(0));
    // SAFETY: nobody else runs; `enter_first` gives the lock back.
    let entered = unsafe { Entered::new() };
    Booted { entered, machine, info, free_frames, archive_frames, entry_tsc }
}

/// Starts the local APIC and finds out how fast its timer and the processor's counter count; returns the counter's rate.
///
/// # Safety
/// Text must still be writable.
unsafe fn start_clocks(command_line: &[u8]) -> u64 {
    apic::start();
    apic::divide_timer(1);
    let counter_hz = clock::counter_rate(number_after(command_line, b"tsc_hz=").unwrap_or(0));
    let divider = number_after(command_line, b"apic_divide=").unwrap_or(1).clamp(1, 128) as u32;
    apic::measure_timer(counter_hz, divider);
    if apic::timer_multiplier().is_some() {
        let (site, bytes) = trap::slow_timer_site();
        // SAFETY: the site is an instruction of six bytes that nobody executes now; it is written through the direct map, which
        // boot has not yet protected.
        unsafe { (direct(site - IMAGE_WINDOW) as *mut [u8; 6]).write(bytes) };
    }
    counter_hz
}

fn start_machine(info: &BootInfo) -> &'static PcMachine {
    let features = match enable_features() {
        Ok(features) => features,
        Err(feature) => fatal(feature),
    };
    // SAFETY: once, on the processor that boots.
    let cpu = unsafe { Cpu::start(ProcessorNumber::FIRST.0 as usize, &features, 0) };
    let dispatch = (&raw const cpu.slots.dispatch) as u64;
    if let Some(bytes) = number_after(&info.command_line, b"code_bytes=") {
        STORE.limit(bytes as usize);
    }
    machine_x86::start_gauge(&mut cpu.slots);
    // Asked for by whoever does not trust the machine's interrupts.
    let polls = info.command_line.split(|byte| *byte == b' ').any(|word| word == b"poll");
    if info.command_line.split(|byte| *byte == b' ').any(|word| word == b"nest") {
        crate::nesting::always();
    }
    let firmware = acpi::read(info.acpi_root);
    let mut found = devices::find(windows(&info.command_line, &firmware.windows), &firmware, polls);
    let Some((console, console_line)) = find_console(&mut found, polls) else { fatal(CONSOLE) };
    if let Some(device) = devices::take(&mut found, virtio::id::ENTROPY) {
        entropy::start(device, polls);
    }
    shares::keep(&mut found);
    net::keep(&mut found);
    let console = KernelCell::new(Some(console));
    let access_space = number_after(&info.command_line, b"space=").unwrap_or(0).min(ACCESS_SPACE_MOST) as u32;
    let random = KernelCell::new(0);
    let handover = KernelOnce::new();
    let machine =
        Box::leak(Box::new(PcMachine { features, console, console_line, random, polls, access_space, handover }));
    MACHINE.store((&raw const *machine) as u64, Ordering::Release);
    let processor = Processor { dispatch };
    let Some(entry) = create::create(&processor, Makers::new(machine, &STORE), &ProcessorCallouts {}).entry else {
        fatal("more memory, for the entry code")
    };
    // SAFETY: the entry jumps through the processor's dispatch slot, bound before any program runs.
    unsafe { crate::registers::write_msr(crate::registers::LSTAR, entry.entry().address()) };
    core::mem::forget(entry);
    let slow = machine.slow_call().address();
    let Some(codes) = handover::synthesize(Makers::new(machine, &STORE), dispatch, slow) else {
        fatal("more memory, for the code of sleeping threads")
    };
    assert!(machine.handover.set(codes).is_ok(), "a machine starts once");
    machine
}

/// What is missing on a machine whose devices are elsewhere. Without it no program could be heard.
const CONSOLE: &str = "a virtio console on PCI, or in a window of memory that is named on the command line \
     (virtio_mmio.device=SIZE@BASE:LINE) or by ACPI (LNRO0005)";

/// More instructions between two accesses than any device wants; a routine must not grow without bound.
const ACCESS_SPACE_MOST: u64 = 64;

/// Windows in which a virtio device may be: those that the loader listed as `virtio_mmio.device=SIZE@BASE:LINE`, and those that
/// ACPI's tables declare.
fn windows(command_line: &[u8], declared: &[acpi::Window]) -> impl Iterator<Item = (u64, Line)> {
    let listed = command_line.split(|byte| *byte == b' ').filter_map(|word| {
        let rest = word.strip_prefix(b"virtio_mmio.device=")?;
        let at = rest.iter().position(|byte| *byte == b'@')?;
        let (base, rest) = number(&rest[at + 1..])?;
        let (line, _) = rest.strip_prefix(b":").and_then(number)?;
        Some((base, Line::level(u32::try_from(line).ok()?)))
    });
    let declared = declared.iter().map(|window| (window.physical, window.line));
    listed.chain(declared).filter(|(base, _)| *base < 4 << 30)
}

/// The first console.
fn find_console(found: &mut Vec<Device>, polls: bool) -> Option<(Console, Option<Claimed>)> {
    while let Some(device) = devices::take(found, virtio::id::CONSOLE) {
        // First the route: a line that is raised while it leads nowhere is forgotten, and the device raises it
        // only once before it is served.
        if let Ok((bus, claimed)) = device.open(polls, Arc::new(serve_console)) {
            match Console::start(bus) {
                Ok(console) => return Some((console, claimed)),
                Err(StartError::NoMemory) => fatal("more memory"),
                Err(_) => {}
            }
        }
    }
    None
}

/// What the console's line chains to while its handler is not code. The device lets go of the line before it is opened again.
fn serve_console() {
    the().with_console(false, |console| console.interrupt());
    upcalls().device();
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

/// The early and last-resort console: QEMU's debug port, and the first serial port. Where they are not, the writes go nowhere.
pub struct Early;

/// The first serial port (16550): its data, line control and line status registers.
const COM1: u16 = 0x3F8;
const LINE_CONTROL: u16 = COM1 + 3;
const LINE_STATUS: u16 = COM1 + 5;
const CAN_TAKE: u8 = 1 << 5;

impl Write for Early {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // SAFETY: port 0xE9 is unassigned on real machines, 0x3F8 the first serial port on all: 8 bits, no parity, one stop; the
        // rate is the firmware's.
        unsafe { out8(LINE_CONTROL, 3) };
        for byte in text.bytes() {
            // SAFETY: as above.
            unsafe { out8(0xE9, byte) };
            if byte == b'\n' {
                send_serial(b'\r');
            }
            send_serial(byte);
        }
        Ok(())
    }
}

/// Waits for room, but not forever: nobody may be there. A port that is not there has room always.
fn send_serial(byte: u8) {
    for _ in 0..100_000 {
        // SAFETY: reading the status has no effect.
        if unsafe { in8(LINE_STATUS) } & CAN_TAKE != 0 {
            break;
        }
    }
    // SAFETY: the serial port's data register.
    unsafe { out8(COM1, byte) };
}

/// Writes a line to the early console.
pub fn say_early(line: fmt::Arguments<'_>) {
    let _ = writeln!(Early, "{line}");
}

fn fatal(what: &str) -> ! {
    say_early(format_args!("synthesis cannot start: it needs {what}"));
    power_off()
}

/// Ends the machine: by QEMU's exit device; as ACPI says; by a reset, which ends small virtual machines and starts others
/// again: those stop at once ([`was_reset`]). Then it stands still.
pub fn power_off() -> ! {
    // SAFETY: the port of QEMU's isa-debug-exit, unassigned on real machines.
    unsafe { out32(0xF4, 0x10) };
    acpi::power_off();
    mark_reset(RESET);
    // SAFETY: the keyboard controller's pulse on the reset line.
    unsafe { out8(0x64, 0xFE) };
    stand_still()
}

fn stand_still() -> ! {
    loop {
        // SAFETY: nothing is left to run.
        unsafe { core::arch::asm!("cli", "hlt") };
    }
}

/// In the page below the image, which neither loaders nor the kernel use, and firmware does not clear: survives a reset, because
/// memory keeps what it holds.
const MARK: u64 = 0x1F_F000;
const RESET: u64 = u64::from_le_bytes(*b"SYN.HALT");

fn mark_reset(value: u64) {
    // SAFETY: an aligned word in the direct map that nobody else uses.
    unsafe { (direct(MARK) as *mut u64).write_volatile(value) };
}

/// This start is the work of our own [`power_off`]. Asked once; the next start is a new one.
fn was_reset() -> bool {
    // SAFETY: as above.
    let found = unsafe { (direct(MARK) as *const u64).read_volatile() } == RESET;
    mark_reset(0);
    found
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
    // One that has overflowed begins behind the page that is not there.
    let behind = |guard: core::ops::Range<u64>| if guard.contains(&rsp) { guard.end } else { rsp };
    if rsp >= crate::layout::THREADS {
        behind(crate::layout::thread_guard(rsp))..(rsp | (THREAD_AREA_BYTES - 1)).saturating_sub(7)
    } else if (image..image_end).contains(&rsp) {
        let start = behind(crate::layout::boot_guard());
        start..image_end.min(start + 4096)
    } else {
        0..0
    }
}

/// Sends the epitaph without a lock or an allocation: control channel if the console exists and is not
/// in use by the code that died, and the debug port in any case.
fn last_words(text: &EpitaphText) -> ! {
    machine::abandon();
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
