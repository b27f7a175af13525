//! The code of the vDSO. It runs in programs, in ring 3, on their stacks; it must not panic, call
//! out, or hold data of its own. `build.rs` compiles this file by itself.
#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]

use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[path = "../src/time_page.rs"]
mod time_page;
#[path = "../src/user_calls.rs"]
mod user_calls;
use time_page::{PROCESSOR_IN_TSC_AUX, TimePage};

/// `struct timespec` and, with microseconds, `struct timeval`.
#[repr(C)]
pub struct Time {
    seconds: i64,
    fraction: i64,
}

/// `struct timezone`, which Linux keeps at zero unless somebody sets it.
#[repr(C)]
pub struct Zone {
    minutes_west: i32,
    daylight_saving: i32,
}

const CLOCK_REALTIME: i32 = 0;
const CLOCK_MONOTONIC: i32 = 1;
const CLOCK_MONOTONIC_RAW: i32 = 4;
const CLOCK_REALTIME_COARSE: i32 = 5;
const CLOCK_MONOTONIC_COARSE: i32 = 6;
const CLOCK_BOOTTIME: i32 = 7;
const CLOCK_TAI: i32 = 11;

const NR_GETTIMEOFDAY: u64 = 96;
const NR_TIME: u64 = 201;
const NR_CLOCK_GETTIME: u64 = 228;
const NR_CLOCK_GETRES: u64 = 229;
const NR_GETCPU: u64 = 309;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// CLOCK_MONOTONIC and CLOCK_REALTIME, nanoseconds.
struct Now {
    monotonic: u64,
    realtime: u64,
}

/// # Safety
/// `into` points to a `timespec` or is wrong in the way that makes the program fault, as with any C
/// function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_clock_gettime(clock: i32, into: *mut Time) -> i32 {
    let wants_realtime = match clock {
        CLOCK_REALTIME | CLOCK_REALTIME_COARSE | CLOCK_TAI => true,
        CLOCK_MONOTONIC | CLOCK_MONOTONIC_RAW | CLOCK_MONOTONIC_COARSE | CLOCK_BOOTTIME => false,
        _ => return kernel_call(NR_CLOCK_GETTIME, clock as u64, into as u64, 0) as i32,
    };
    let Some(now) = now() else {
        return kernel_call(NR_CLOCK_GETTIME, clock as u64, into as u64, 0) as i32;
    };
    let nanos = if wants_realtime { now.realtime } else { now.monotonic };
    // SAFETY: the caller's promise.
    unsafe { into.write(time_of(nanos)) };
    0
}

/// # Safety
/// `into` and `zone` point to their structures or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_gettimeofday(into: *mut Time, zone: *mut Zone) -> i32 {
    let Some(now) = now() else {
        return kernel_call(NR_GETTIMEOFDAY, into as u64, zone as u64, 0) as i32;
    };
    if !into.is_null() {
        let time = time_of(now.realtime);
        // SAFETY: the caller's promise.
        unsafe { into.write(Time { seconds: time.seconds, fraction: time.fraction / 1000 }) };
    }
    if !zone.is_null() {
        // SAFETY: the caller's promise.
        unsafe { zone.write(Zone { minutes_west: 0, daylight_saving: 0 }) };
    }
    0
}

/// # Safety
/// `into` points to a `time_t` or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_time(into: *mut i64) -> i64 {
    let Some(now) = now() else { return kernel_call(NR_TIME, into as u64, 0, 0) };
    let seconds = (now.realtime / NANOS_PER_SECOND) as i64;
    if !into.is_null() {
        // SAFETY: the caller's promise.
        unsafe { into.write(seconds) };
    }
    seconds
}

/// The resolution is the kernel's to say; programs ask once, so this is a plain kernel call.
#[unsafe(no_mangle)]
pub extern "C" fn __vdso_clock_getres(clock: i32, into: *mut Time) -> i32 {
    kernel_call(NR_CLOCK_GETRES, clock as u64, into as u64, 0) as i32
}

/// # Safety
/// `processor` and `node` point to 32-bit words or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdso_getcpu(processor: *mut u32, node: *mut u32, _unused: *mut u8) -> i32 {
    if features() & PROCESSOR_IN_TSC_AUX == 0 {
        return kernel_call(NR_GETCPU, processor as u64, node as u64, 0) as i32;
    }
    let number: u32;
    // SAFETY: the feature bit says that RDTSCP exists; it touches no memory.
    unsafe { asm!("rdtscp", out("ecx") number, out("eax") _, out("edx") _, options(nomem, nostack)) };
    if !processor.is_null() {
        // SAFETY: the caller's promise.
        unsafe { processor.write(number & 0xfff) };
    }
    if !node.is_null() {
        // SAFETY: the caller's promise.
        unsafe { node.write(number >> 12) };
    }
    0
}

// Calls whose object, the process's identity, the kernel writes into the caller's quaspace (S-88). A call is its first
// eight bytes; `src/user_calls.rs` says how the kernel replaces them.
global_asm!(
    ".macro user_call name, number",
    ".pushsection .text",
    ".balign 32, 0xCC",
    ".globl \\name",
    ".type \\name, @function",
    "\\name:",
    ".byte 0xEB, 0x06, 0xCC, 0xCC, 0xCC, 0xC3, 0xCC, 0xCC",
    "mov edi, {ask}",
    "mov esi, \\number",
    "mov eax, 157",
    "syscall",
    "ret",
    ".size \\name, . - \\name",
    ".popsection",
    ".endm",
    "user_call __synthesis_getpid, 39",
    "user_call __synthesis_getuid, 102",
    "user_call __synthesis_geteuid, 107",
    "user_call __synthesis_getgid, 104",
    "user_call __synthesis_getegid, 108",
    ask = const user_calls::PR_SYNTHESIS_USER_CALL,
);

/// The page before the image. `vdso.lds` gives it its name.
fn time_page() -> *const TimePage {
    let page: *const TimePage;
    // SAFETY: computes an address.
    unsafe {
        asm!(".hidden vdso_time_page", "lea {page}, [rip + vdso_time_page]", page = out(reg) page,
             options(nomem, nostack, preserves_flags, pure))
    };
    page
}

fn features() -> u32 {
    // SAFETY: the kernel maps the page as long as the image.
    unsafe { word(&raw const (*time_page()).features) }.load(Ordering::Relaxed)
}

/// A word that the kernel may be writing.
///
/// # Safety
/// `field` lies in the time page.
unsafe fn word(field: *const u32) -> &'static AtomicU32 {
    // SAFETY: mapped and aligned by the caller's promise; only loads follow, so read-only is enough.
    unsafe { AtomicU32::from_ptr(field.cast_mut()) }
}

/// As [`word`], for 64 bits.
///
/// # Safety
/// `field` lies in the time page.
unsafe fn long(field: *const u64) -> u64 {
    // SAFETY: as in `word`.
    unsafe { AtomicU64::from_ptr(field.cast_mut()) }.load(Ordering::Relaxed)
}

/// The time, or `None` when only the kernel knows it.
fn now() -> Option<Now> {
    let page = time_page();
    loop {
        // SAFETY: the fields lie in the time page.
        let sequence = unsafe { word(&raw const (*page).seq) };
        // Pairs with the kernel's last store in `publish`.
        let before = sequence.load(Ordering::Acquire);
        if before & 1 == 0 {
            // SAFETY: the fields lie in the time page.
            let copy = unsafe {
                TimePage {
                    seq: before,
                    features: 0,
                    tsc_base: long(&raw const (*page).tsc_base),
                    mult: long(&raw const (*page).mult),
                    mono_base_ns: long(&raw const (*page).mono_base_ns),
                    realtime_offset_ns: long(&raw const (*page).realtime_offset_ns),
                }
            };
            if copy.mult == 0 {
                return None;
            }
            let monotonic = copy.monotonic_ns(counter());
            // Pairs with the kernel's first store in `publish`: had any field been new, so is `seq`.
            fence(Ordering::Acquire);
            if sequence.load(Ordering::Relaxed) == before {
                return Some(Now { monotonic, realtime: monotonic.wrapping_add(copy.realtime_offset_ns) });
            }
        }
        core::hint::spin_loop();
    }
}

/// The time stamp counter. LFENCE keeps it behind the loads before it (SDM vol. 2B, RDTSC).
fn counter() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: touches no memory. Not `nomem`, so that the compiler keeps it between the loads.
    unsafe { asm!("lfence", "rdtsc", out("eax") low, out("edx") high, options(nostack, preserves_flags)) };
    low as u64 | (high as u64) << 32
}

fn time_of(nanos: u64) -> Time {
    Time { seconds: (nanos / NANOS_PER_SECOND) as i64, fraction: (nanos % NANOS_PER_SECOND) as i64 }
}

fn kernel_call(number: u64, first: u64, second: u64, third: u64) -> i64 {
    let result: i64;
    // SAFETY: a kernel call writes only where its arguments say, as the program asked.
    unsafe {
        asm!("syscall", inlateout("rax") number as i64 => result, in("rdi") first, in("rsi") second,
             in("rdx") third, out("rcx") _, out("r11") _, options(nostack))
    };
    result
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // Nothing above can panic, and the linker drops this.
    loop {}
}
