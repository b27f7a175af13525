//! What threads of the pc stand on: areas in the kernel half, the processor's record, the trap entries.

use machine::{Entry, FileEntry, FrameNumber, FrameSource, NoFrames, VirtAddr};
use machine_x86::{Ground, Slots, TteRecord, USER_LIMIT};
use quaject::Makers;
use synth::{Draft, Imm32};

use crate::frames::{FRAMES, number};
use crate::layout::{THREAD_AREAS, THREADS, direct};
use crate::paging::{NO_EXECUTE, WRITE, map_kernel, unmap_kernel};
use crate::thread_code::{Constant, MMU_BYTES, switch_in};
use crate::{STORE, cpu, the, trap};

/// The mapped pages of an area; the guard page is not among them.
const PAGES: [u64; 7] = [0, 1, 3, 4, 5, 6, 7];

pub enum PcGround {}

// SAFETY: 1. `map_area` maps all of `PAGES`. 2. The processor's record is never freed; every thread runs on the stack of
// its own area. 3. The direct map holds every frame. 4. The limit is the programs' end.
unsafe impl Ground for PcGround {
    const THREADS: u64 = THREADS;
    const THREAD_AREAS: u64 = THREAD_AREAS;
    const AREA_FRAMES: usize = PAGES.len();
    const MMU_BYTES: u64 = MMU_BYTES;

    fn map_area(area: u64) -> Result<(), NoFrames> {
        for (count, page) in PAGES.iter().enumerate() {
            let mapped = FRAMES.take().and_then(|frame| {
                // SAFETY: the address lies in this thread's own area; the frame is fresh.
                unsafe { map_kernel(area + page * 4096, frame.physical_address(), WRITE | NO_EXECUTE, &FRAMES) }
            });
            if mapped.is_err() {
                unmap_pages(area, count);
                return Err(NoFrames);
            }
        }
        Ok(())
    }

    unsafe fn unmap_area(area: u64) {
        unmap_pages(area, PAGES.len());
    }

    #[inline]
    fn slots() -> *mut Slots {
        cpu::this().cast()
    }

    #[inline]
    fn current() -> *mut TteRecord {
        machine_x86::current_by_stack()
    }

    fn dummy_area() -> u64 {
        cpu::dummy_owner()
    }

    fn makers() -> Makers {
        Makers::new(the(), &STORE)
    }

    fn switch_in(area: u64, dispatch: u64, draft: &mut Draft) {
        switch_in(area, dispatch, cpu::this()).append_to(draft);
    }

    fn constant(value: u32, draft: &mut Draft) {
        Constant { value: Imm32(value) }.append_to(draft);
    }

    fn slow_call() -> Entry<FileEntry> {
        // SAFETY: the slow end of a call is there as long as the machine, and is entered as a descriptor's routine is.
        unsafe { Entry::new((&raw const trap::slow_call) as u64) }
    }

    fn first_return() -> u64 {
        (&raw const trap::timer_resume) as u64
    }

    #[inline]
    fn clip(address: VirtAddr, bytes: usize) -> usize {
        if address.0 >= USER_LIMIT { 0 } else { bytes.min((USER_LIMIT - address.0) as usize) }
    }

    /// One limit comparison.
    #[inline]
    fn allows(address: VirtAddr, bytes: usize) -> bool {
        address.0 <= USER_LIMIT && bytes as u64 <= USER_LIMIT - address.0
    }

    fn frame_source() -> Option<&'static dyn FrameSource> {
        Some(&FRAMES)
    }

    #[inline]
    fn frame(frame: FrameNumber) -> *mut u8 {
        direct(frame.physical_address()) as *mut u8
    }
}

fn unmap_pages(area: u64, pages: usize) {
    for page in &PAGES[..pages] {
        if let Some(physical) = unmap_kernel(area + page * 4096) {
            // SAFETY: the frame was taken for this area, which no longer shows it.
            FRAMES.give(unsafe { FrameNumber::new(number(physical)) });
        }
    }
}
