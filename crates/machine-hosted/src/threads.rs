//! What threads of the hosted machine stand on: mapped areas, the processor's record, the entries.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::sync::atomic::{AtomicU64, Ordering};

use machine::{Entry, FileEntry, FrameNumber, FrameSource, NoFrames, Registers, VirtAddr};
use machine_x86::{Ground, Slots, THREAD_AREA_BYTES, TteRecord, USER_LIMIT};
use quaject::Makers;
use synth::{Draft, Imm32};

use crate::cpu::cpu;
use crate::entry::{hosted_first_return, hosted_slow_call};
use crate::frames::prepare;
use crate::host;
use crate::host::HostError;
use crate::layout::{RESERVED, THREAD_AREAS, THREADS, THREADS_ALIAS, direct};
use crate::thread_code::{Constant, MMU_BYTES, switch_in};
use crate::translation::flush;
use crate::{STORE, the};

/// Bytes below the guard page.
const LOW_BYTES: u64 = 0x2000;
/// Where the kernel stack begins, above the guard page.
const STACK_OFFSET: u64 = 0x3000;

pub enum HostedGround {}

// SAFETY: 1. `map_area` maps both sides of the guard page. 2. The processor's record is static, and its slot names the
// running thread's area. 3. The direct map holds every frame. 4. What is reserved is clipped.
unsafe impl Ground for HostedGround {
    const THREADS: u64 = THREADS;
    const THREAD_AREAS: u64 = THREAD_AREAS;
    const AREA_FRAMES: usize = 0;
    const MMU_BYTES: u64 = MMU_BYTES;

    fn map_area(area: u64) -> Result<(), NoFrames> {
        mark_area(area, true);
        if open_area(area) { Ok(()) } else { Err(NoFrames) }
    }

    unsafe fn unmap_area(area: u64) {
        mark_area(area, false);
        // SAFETY: the thread has gone.
        unsafe { host::forget_content(alias(area), THREAD_AREA_BYTES) };
    }

    fn slots() -> *mut Slots {
        cpu().cast()
    }

    fn current() -> *mut TteRecord {
        current()
    }

    fn dummy_area() -> u64 {
        crate::cpu::dummy_area()
    }

    fn makers() -> Makers {
        Makers::new(the(), &STORE)
    }

    fn switch_in(area: u64, dispatch: u64, draft: &mut Draft) {
        switch_in(area, dispatch).append_to(draft);
    }

    fn constant(value: u32, draft: &mut Draft) {
        Constant { value: Imm32(value) }.append_to(draft);
    }

    fn slow_call() -> Entry<FileEntry> {
        // SAFETY: the slow end of a call is there as long as the machine, and is entered as a descriptor's routine is.
        unsafe { Entry::new((&raw const hosted_slow_call) as u64) }
    }

    fn first_return() -> u64 {
        (&raw const hosted_first_return) as u64
    }

    fn clip(address: VirtAddr, bytes: usize) -> usize {
        flush();
        let start = address.0;
        if start >= USER_LIMIT {
            return 0;
        }
        let end = start.saturating_add(bytes as u64).min(USER_LIMIT);
        let end = RESERVED.iter().fold(end, |end, range| {
            if range.end <= start || range.start >= end { end } else { range.start.max(start) }
        });
        (end - start) as usize
    }

    fn may_be_lost(frame: FrameNumber) -> bool {
        crate::windows::index_of(frame).is_some()
    }

    fn frame_source() -> Option<&'static dyn FrameSource> {
        crate::frames::source()
    }

    fn frame(frame: FrameNumber) -> *mut u8 {
        prepare(frame);
        direct(frame.physical_address()) as *mut u8
    }
}

/// A bit for each area: there is a thread's. Its pages may be used in each host process, which opens them at the first touch.
static AREAS: [AtomicU64; THREAD_AREAS as usize / 64] = [const { AtomicU64::new(0) }; THREAD_AREAS as usize / 64];

fn place_of(area: u64) -> (&'static AtomicU64, u64) {
    let number = (area - THREADS) / THREAD_AREA_BYTES;
    (&AREAS[number as usize / 64], 1 << (number % 64))
}

fn mark_area(area: u64, is_used: bool) {
    let (word, bit) = place_of(area);
    let bits = word.load(Ordering::Relaxed);
    word.store(if is_used { bits | bit } else { bits & !bit }, Ordering::Relaxed);
}

/// Maps the threads' window whole, without rights. Each host process opens the areas that it touches: had it those of the one that made
/// it, too, the host would keep the square of so many mappings.
///
/// # Errors
/// The host has no memory.
pub fn map_window() -> Result<(), HostError> {
    const BYTES: u64 = THREAD_AREAS * THREAD_AREA_BYTES;
    // SAFETY: the window is the kernel's own, and nothing in it is open in this process.
    unsafe {
        host::map_again(THREADS_ALIAS, BYTES, THREADS, 0)?;
        host::keep_from_clones(THREADS, BYTES)
    }
}

/// Where all host processes may look at an area.
fn alias(area: u64) -> u64 {
    THREADS_ALIAS + (area - THREADS)
}

/// Threads that are looked at; with more of them the answer is yes.
const LOOKED_AT: usize = 64;

/// Some thread may be of the quaspace with this root word.
pub fn may_be_in(root: u64) -> bool {
    let mut left = LOOKED_AT;
    for (index, word) in AREAS.iter().enumerate() {
        let mut bits = word.load(Ordering::Relaxed);
        while bits != 0 {
            let area = THREADS + (index as u64 * 64 + u64::from(bits.trailing_zeros())) * THREAD_AREA_BYTES;
            bits &= bits - 1;
            // SAFETY: the alias shows all areas; a root is a word.
            let theirs = unsafe { (&raw const (*(alias(area) as *const TteRecord)).root).read_volatile() };
            left -= 1;
            if theirs == root || left == 0 {
                return true;
            }
        }
    }
    false
}

/// Makes both sides of the guard page usable in this host process.
fn open_area(area: u64) -> bool {
    let rights = host::PROT_READ | host::PROT_WRITE;
    // SAFETY: the range is a thread's own.
    let is_open = |start, bytes| unsafe { host::protect(start, bytes, rights) }.is_ok();
    is_open(area, LOW_BYTES) && is_open(area + STACK_OFFSET, THREAD_AREA_BYTES - STACK_OFFSET)
}

/// Opens the area that the address is in, if there is a thread's and it is not the guard page.
pub fn show_area(address: u64) -> bool {
    if !(THREADS..THREADS + THREAD_AREAS * THREAD_AREA_BYTES).contains(&address) {
        return false;
    }
    let area = address & !(THREAD_AREA_BYTES - 1);
    let (word, bit) = place_of(area);
    let is_guard = (LOW_BYTES..STACK_OFFSET).contains(&(address - area));
    !is_guard && word.load(Ordering::Relaxed) & bit != 0 && open_area(area)
}

/// The running thread's record. Signal handlers have a stack of their own, so the stack does not tell.
pub fn current() -> *mut TteRecord {
    // SAFETY: the slot is a word that switches store.
    unsafe { ((*cpu()).stack_top - THREAD_AREA_BYTES) as *mut TteRecord }
}

/// Where the running thread's record of its program's registers lies.
pub fn user_registers() -> *mut Registers {
    (current() as u64 + THREAD_AREA_BYTES - size_of::<Registers>() as u64) as *mut Registers
}
