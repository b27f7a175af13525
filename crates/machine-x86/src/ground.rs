//! What differs between the machines under a thread.

use machine::{Entry, FileEntry, FrameNumber, FrameSource, NoFrames, VirtAddr};
use quaject::Makers;
use synth::Draft;

use crate::USER_LIMIT;
use crate::slots::Slots;
use crate::thread::TteRecord;

/// The machine under thread table entries and user copies: where areas are, how they are mapped, how a thread takes
/// the processor and how it leaves the kernel. Implemented by a type without values, so all of it is resolved when
/// the machine is compiled.
///
/// # Safety
/// 1. `map_area` makes a whole area but its guard page readable and writable. 2. `slots` and `current` name live records.
/// 3. `frame` names the frame's bytes for as long as the caller keeps the frame. 4. `clip` lets no address of the
///    kernel pass.
pub unsafe trait Ground: 'static {
    /// First thread area, and how many there are.
    const THREADS: u64;
    const THREAD_AREAS: u64;
    /// Frames that an area takes from the kernel's pool.
    const AREA_FRAMES: usize;
    /// Bytes in front of `sw_in` that only `sw_in_mmu` executes.
    const MMU_BYTES: u64;

    fn map_area(area: u64) -> Result<(), NoFrames>;
    /// # Safety
    /// The thread has gone.
    unsafe fn unmap_area(area: u64);

    /// The processor's words.
    fn slots() -> *mut Slots;
    /// The running thread's record.
    fn current() -> *mut TteRecord;
    /// An area of a thread that does not exist: a save of vector state may scribble on it.
    fn dummy_area() -> u64;

    /// Who makes threads' code.
    fn makers() -> Makers;
    /// Appends sw_in_mmu and sw_in of the thread with this area and this dispatch.
    fn switch_in(area: u64, dispatch: u64, draft: &mut Draft);
    /// Appends a whole call that answers with `value`.
    fn constant(value: u32, draft: &mut Draft);
    /// Where a call goes to be done in Rust, on the kernel stack.
    fn slow_call() -> Entry<FileEntry>;
    /// Where a new thread goes that has its program's registers on the stack; the kernel is asked first.
    fn first_return() -> u64;

    /// The longest prefix of the range that a program could have, ready to be touched.
    fn clip(address: VirtAddr, bytes: usize) -> usize;
    /// The range is a program's, all of it (S-87); `bytes` counts from a valid start.
    fn allows(address: VirtAddr, bytes: usize) -> bool {
        address.0 <= USER_LIMIT && Self::clip(address, bytes) == bytes
    }
    /// The frame is lent from outside of the machine, where its page may be taken away at any time.
    fn may_be_lost(frame: FrameNumber) -> bool {
        let _ = frame;
        false
    }
    /// Who gives the machine frames of its own; `None` until it is known.
    fn frame_source() -> Option<&'static dyn FrameSource>;
    /// A frame's bytes.
    fn frame(frame: FrameNumber) -> *mut u8;
}
