//! Bringing the hosted machine up inside a fresh Linux process, and taking it down.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

#[cfg(not(test))]
use core::arch::global_asm;
use core::ffi::CStr;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicI32, Ordering};

use machine::{Entered, Frames, PAGE_BYTES, Registers};
use machine_x86::{EpitaphText, THREAD_AREA_BYTES, USER_LIMIT, read_tsc};

use crate::channels::{STANDARD_ERROR, send_all};
use crate::cpu::{self, cpu};
use crate::host::{self, PROT_EXEC, PROT_READ, PROT_WRITE};
use crate::layout::{
    CODE, CODE_ALIAS, CODE_BYTES, DIRECT_MAP, HEAP, HEAP_BYTES, HIGH, KERNEL, STUB_ALIAS, STUB_BYTES, STUBS,
    THREAD_AREAS, THREADS, THREADS_ALIAS, USER_START, data, text,
};
use crate::{HostedMachine, clock, debug, frames, hosts, signals};

// A test has a start of its own.
#[cfg(not(test))]
global_asm!(
    r#"
    .pushsection .text
    .globl _start
    _start:
        mov rbx, rsp
        and rsp, -16
        call hosted_share_data
        mov rdi, rbx
        lea rsp, [rip + hosted_boot_stack_top]
        xor ebp, ebp
        call boot_rust
        ud2
    .popsection
    .pushsection .bss
        .balign 4096
    hosted_boot_stack: .skip 262144
    hosted_boot_stack_top:
    .popsection
"#
);

/// What the tool says on the image's command line, as `key=number` words.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// Descriptor of the memory file that begins with the boot archive; it becomes the physical memory.
    pub archive_fd: i32,
    /// Descriptor that takes records for the tool.
    pub control_fd: i32,
    /// Bytes of memory behind the archive.
    pub memory_bytes: u64,
    /// Ticks of the counter a second; 0: to be measured.
    pub tsc_hz: u64,
    /// Sites are not patched: every call comes by a signal.
    pub trap_only: bool,
    /// Calls and sites are counted, and told at the end.
    pub counts: bool,
    /// Tools of the host that want names for code.
    pub debuggers: debug::Wishes,
    /// The kernel panics when the first program starts, to show how that looks.
    pub panic: bool,
}

impl Parameters {
    /// # Safety
    /// `stack` is what the host left in rsp at the first instruction.
    unsafe fn read(stack: *const u64) -> Parameters {
        let mut parameters = Parameters {
            archive_fd: -1,
            control_fd: STANDARD_ERROR,
            memory_bytes: 256 << 20,
            tsc_hz: 0,
            trap_only: false,
            counts: false,
            debuggers: debug::Wishes::default(),
            panic: false,
        };
        // SAFETY: the count of arguments, then a pointer to each (System V ABI, AMD64 supplement, 3.4.1).
        let count = unsafe { *stack } as usize;
        for index in 1..=count {
            // SAFETY: as above; the list ends with a null pointer.
            let pointer = unsafe { *stack.add(1 + index) } as *const i8;
            if pointer.is_null() {
                break;
            }
            // SAFETY: arguments end with a NUL.
            parameters.take(unsafe { CStr::from_ptr(pointer) }.to_bytes());
        }
        parameters
    }

    fn take(&mut self, word: &[u8]) {
        self.panic |= word == b"panic";
        let Some(at) = word.iter().position(|byte| *byte == b'=') else { return };
        let digits = word[at + 1..].iter().filter(|byte| byte.is_ascii_digit());
        let value = digits.fold(0u64, |value, digit| value.wrapping_mul(10).wrapping_add((digit - b'0') as u64));
        match &word[..at] {
            b"archive" => self.archive_fd = value as i32,
            b"control" => self.control_fd = value as i32,
            b"memory_mib" => self.memory_bytes = value << 20,
            b"tsc_hz" => self.tsc_hz = value,
            b"tool" => end_with(value),
            b"tree" => crate::foreign::add_tree(value as i32),
            b"perf_map" => self.debuggers.perf_map = value != 0,
            b"gdb" => self.debuggers.gdb = value != 0,
            b"one_process" if value != 0 => hosts::use_one_only(),
            b"code_bytes" => crate::STORE.limit(value as usize),
            b"counts" => self.counts = value != 0,
            b"trap_only" => self.trap_only = value != 0,
            _ => {}
        }
    }
}

/// What boot hands to the kernel.
pub struct Booted {
    /// Boot runs as the kernel does, under its lock.
    pub entered: Entered,
    pub machine: &'static HostedMachine,
    pub archive_bytes: u64,
    /// The frames that the archive lies in, and all behind them.
    pub archive_frames: Frames,
    pub free_frames: Frames,
    pub parameters: Parameters,
}

/// Puts the image's data into memory that all host processes share. Runs on the host's own stack, before anything else.
#[unsafe(no_mangle)]
extern "C" fn hosted_share_data() {
    let [made, whole] = data();
    let bytes = whole.end - whole.start;
    // SAFETY: 1. The code's alias is not mapped yet, so there is room. 2. Nothing was written but what the host loaded, and nothing
    // of it is in use here.
    let shared = unsafe {
        host::map_shared(CODE_ALIAS, bytes, PROT_READ | PROT_WRITE).and_then(|()| {
            (CODE_ALIAS as *mut u8).copy_from_nonoverlapping(made.start as *const u8, (made.end - made.start) as usize);
            host::move_pages(CODE_ALIAS, bytes, whole.start)
        })
    };
    if shared.is_err() {
        host::exit_process(MACHINE_DIED);
    }
}

static CONTROL: AtomicI32 = AtomicI32::new(STANDARD_ERROR);

/// Brings the machine up: address space, memory, code store, signals, clock.
///
/// # Safety
/// Called once, at the first instruction, with what the host left in rsp.
pub unsafe fn boot(stack: *const u64) -> Booted {
    // SAFETY: the caller passes the host's pointer.
    let parameters = unsafe { Parameters::read(stack) };
    CONTROL.store(parameters.control_fd, Ordering::Relaxed);
    if parameters.debuggers.gdb {
        debug::wait_for_debugger();
    }
    if let Err(feature) = cpu::measure() {
        fatal(feature);
    }
    empty_the_address_space();
    let archive_bytes = match host::file_bytes(parameters.archive_fd) {
        Ok(bytes) if bytes > 0 => bytes,
        _ => fatal("a boot archive: it is started by the tool, with synth run --hosted"),
    };
    let memory_bytes = (archive_bytes + parameters.memory_bytes).next_multiple_of(PAGE_BYTES as u64);
    if let Err(what) = map_memory(parameters.archive_fd, memory_bytes) {
        fatal(what);
    }
    let frame = |bytes: u64| bytes.div_ceil(PAGE_BYTES as u64) as u32;
    frames::start(frame(archive_bytes), frame(memory_bytes));
    // SAFETY: the slots are words; no thread runs yet.
    unsafe {
        (*cpu()).stack_top = cpu::dummy_area() + THREAD_AREA_BYTES;
        (*cpu()).slots.vector_owner = cpu::dummy_area();
        (*cpu()).slots.since = read_tsc();
    }
    if debug::start(parameters.debuggers).is_err() {
        fatal("/tmp/perf-PID.map, which cannot be written");
    }
    clock::start(parameters.tsc_hz);
    crate::names::prepare();
    // SAFETY: no thread runs yet.
    machine_x86::start_gauge(unsafe { &mut (*cpu()).slots });
    if parameters.debuggers.gdb {
        // A debugger attaches to one process.
        hosts::use_one_only();
    }
    let machine = HostedMachine::start(&parameters);
    let (Ok(()), Ok(())) = (hosts::prepare(), signals::start(parameters.control_fd != STANDARD_ERROR)) else {
        fatal("signals and a timer")
    };
    // SAFETY: once; the memory file is the machine's own, and holds the archive and nothing else.
    let mut archive_frames = unsafe { Frames::new(0..frame(memory_bytes)) };
    let [archive_frames, free_frames] = [archive_frames.split(frame(archive_bytes)), archive_frames];
    machine::arm(|| Some(0));
    // SAFETY: nobody else runs; `enter_first` gives the lock back.
    let entered = unsafe { Entered::new() };
    Booted { entered, machine, archive_bytes, archive_frames, free_frames, parameters }
}

/// The machine goes when the process does that started it, however that ends.
fn end_with(tool: u64) {
    if host::end_with_parent().is_err() || host::parent() != Ok(tool) {
        host::exit(MACHINE_DIED);
    }
}

/// The host's stack, its vDSO and what else the loader mapped: all of it lies where programs may want to be.
fn empty_the_address_space() {
    for (start, end) in [(USER_START, KERNEL.start), (KERNEL.end, USER_LIMIT)] {
        // SAFETY: nothing of the kernel lies outside its range; the boot stack is the image's own.
        if unsafe { host::unmap(start, end - start) }.is_err() {
            empty_piece_by_piece();
        }
    }
}

/// Unmaps what may be unmapped: a host may have sealed its vDSO (mseal(2)), and then refuses a range that holds it.
#[cold]
#[inline(never)]
fn empty_piece_by_piece() {
    let Ok(fd) = host::open_to_read(c"/proc/self/maps") else { fatal("/proc") };
    let mut bytes = [0; 16 << 10];
    let mut used = 0;
    while let Ok(count) = host::read(fd, &mut bytes[used..]) {
        used += count;
        if count == 0 || used == bytes.len() {
            break;
        }
    }
    host::close(fd);
    for line in bytes[..used].split(|byte| *byte == b'\n') {
        let Some((start, rest)) = hexadecimal(line) else { continue };
        let Some((end, _)) = rest.strip_prefix(b"-").and_then(hexadecimal) else { continue };
        if start < USER_LIMIT && !KERNEL.contains(&start) {
            // SAFETY: as in `empty_the_address_space`.
            let _ = unsafe { host::unmap(start, end - start) };
        }
    }
}

/// A hexadecimal number at the front of `text`, and the rest.
fn hexadecimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let count = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let value = core::str::from_utf8(&text[..count]).ok().and_then(|digits| u64::from_str_radix(digits, 16).ok())?;
    Some((value, &text[count..]))
}

/// The direct map, the heap's window, and the two views of code.
fn map_memory(fd: i32, memory_bytes: u64) -> Result<(), &'static str> {
    if memory_bytes > HIGH.end - DIRECT_MAP {
        return Err("less memory than that");
    }
    crate::set_memory_fd(fd);
    let read_write = PROT_READ | PROT_WRITE;
    // SAFETY: the ranges are the kernel's own (see `layout`), and nothing is mapped there yet.
    let mapped = unsafe {
        host::resize(fd, memory_bytes)
            .and_then(|()| host::map_file(DIRECT_MAP, memory_bytes, read_write, fd, 0, false))
            .and_then(|()| host::map_shared(HEAP, HEAP_BYTES, read_write))
            .and_then(|()| host::map_shared(THREADS_ALIAS, THREAD_AREAS * THREAD_AREA_BYTES, read_write))
            .and_then(|()| crate::threads::map_window())
            .and_then(|()| host::map_shared(CODE_ALIAS, CODE_BYTES, read_write))
            .and_then(|()| host::map_again(CODE_ALIAS, CODE_BYTES, CODE, PROT_READ | PROT_EXEC))
            .and_then(|()| host::map_shared(STUB_ALIAS, 3 * STUB_BYTES, read_write))
    };
    mapped.map_err(|_| "memory for the kernel")?;
    for (index, stubs) in STUBS.into_iter().enumerate() {
        let alias = STUB_ALIAS + index as u64 * STUB_BYTES;
        // SAFETY: as above.
        unsafe { host::map_again(alias, STUB_BYTES, stubs, PROT_READ | PROT_EXEC) }.map_err(|_| "memory for stubs")?;
    }
    Ok(())
}

/// From now on every call from outside the image's text is caught.
pub fn catch_calls() {
    static SELECTOR: u8 = 1;
    let text = text();
    // SAFETY: the handler is set; the selector is static.
    let caught = unsafe { host::dispatch_calls(text.start, text.end - text.start, &raw const SELECTOR) };
    if caught.is_err() {
        fatal("syscall user dispatch (Linux 5.11 or newer)");
    }
}

/// Standard error, for what cannot go another way.
struct Early;

impl Write for Early {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        send_all(2, text.as_bytes());
        Ok(())
    }
}

pub const MACHINE_DIED: i32 = 70;

fn fatal(what: &str) -> ! {
    let _ = writeln!(Early, "error: synthesis-hosted cannot start: it needs {what}");
    host::exit(MACHINE_DIED)
}

/// The kernel's last words: what, where, registers, stack.
pub fn epitaph(registers: &Registers, signal: i32, address: u64) -> ! {
    let (stack, text) = (stack_from(registers.rsp), crate::layout::text());
    last_words(&EpitaphText::of_trap(format_args!("signal {signal} in the kernel"), registers, address, stack, text))
}

/// A panic of the kernel's Rust code.
pub fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let rsp: u64;
    // SAFETY: reading rsp has no effect.
    unsafe { core::arch::asm!("mov {}, rsp", out(reg) rsp) };
    last_words(&EpitaphText::of_panic(info, stack_from(rsp), crate::layout::text()))
}

/// The used part of the thread's stack that `rsp` is on; empty if it is on none.
fn stack_from(rsp: u64) -> core::ops::Range<u64> {
    let threads = THREADS..THREADS + THREAD_AREAS * THREAD_AREA_BYTES;
    if threads.contains(&rsp) { rsp..(rsp | (THREAD_AREA_BYTES - 1)) - 7 } else { 0..0 }
}

/// Sends the epitaph without a lock or an allocation.
fn last_words(text: &EpitaphText) -> ! {
    machine::abandon();
    send_record(text.record_header(), text.as_str().as_bytes());
    host::exit(MACHINE_DIED)
}

/// Tells how calls came and what became of their sites.
pub fn tell_counts() {
    /// `control::STATS` of the boot-image crate, which the machine does not depend on.
    const STATS_RECORD: u8 = 5;
    // SAFETY: the slots are words; no other kernel code is under way.
    let text = unsafe { &(*cpu()).counts }.text();
    let mut header = [STATS_RECORD, 0, 0, 0, 0, 0, 0, 0];
    header[4..].copy_from_slice(&(text.len() as u32).to_le_bytes());
    send_record(header, text.as_bytes());
}

fn send_record(header: [u8; 8], bytes: &[u8]) {
    let control = CONTROL.load(Ordering::Relaxed);
    if control != STANDARD_ERROR {
        send_all(control, &header);
    }
    send_all(control, bytes);
}
