//! Frames are pages of a memory file, which the host supplies when they are touched first; many at once cost little
//! more than one.

use core::sync::atomic::{AtomicU32, Ordering};

use machine::{FrameNumber, FrameSource, KernelCell, PAGE_BYTES};

use crate::host;
use crate::layout::direct;

/// Frames that are made present at once.
const BATCH: u32 = 16;

/// Frames below this are present.
static PRESENT: AtomicU32 = AtomicU32::new(0);
static END: AtomicU32 = AtomicU32::new(0);

/// The kernel's pool, for what devices get.
static POOL: KernelCell<Option<&'static dyn FrameSource>> = KernelCell::new(None);

pub fn use_pool(pool: &'static dyn FrameSource) {
    *POOL.borrow_mut() = Some(pool);
}

pub fn source() -> Option<&'static dyn FrameSource> {
    *POOL.borrow()
}

/// Frames below `present` hold the archive; memory ends at `end`.
pub fn start(present: u32, end: u32) {
    PRESENT.store(present, Ordering::Relaxed);
    END.store(end, Ordering::Relaxed);
}

/// Frames of memory, archive included.
pub fn end() -> u32 {
    END.load(Ordering::Relaxed)
}

/// Sees that a frame is present before it is touched. The pool gives low frames first, so one mark is enough.
pub fn prepare(frame: FrameNumber) {
    let present = PRESENT.load(Ordering::Relaxed);
    if frame.number() < present {
        return;
    }
    let to = frame.number().saturating_add(BATCH).min(END.load(Ordering::Relaxed));
    if frame.number() - present < BATCH && to > present {
        let bytes = (to - present) as u64 * PAGE_BYTES as u64;
        // SAFETY: the range lies in the direct map; hosts without the call supply pages one by one.
        unsafe { host::populate(direct(present as u64 * PAGE_BYTES as u64), bytes) };
        PRESENT.store(to, Ordering::Relaxed);
    }
}
