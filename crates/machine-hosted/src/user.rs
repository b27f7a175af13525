//! Copies between the kernel and the running program, and the places where they may fault.

use core::arch::global_asm;

use machine::{FrameNumber, PAGE_BYTES, PhysicalMemory, UserFault, UserMemory, VirtAddr};

use crate::HostedMachine;
use crate::frames::prepare;
use crate::layout::{RESERVED, USER_LIMIT, direct};
use crate::translation::flush;
use crate::windows;

global_asm!(
    r#"
    .pushsection .text
    /* rdi to, rsi from, rdx bytes; out: rax = bytes not copied. Eight bytes an instruction, then
       single bytes; a fault in the first loop goes on in the second, which stops at the exact byte. */
    .globl user_copy
    user_copy:
        mov rcx, rdx
        shr rcx, 3
        and edx, 7
    .globl user_copy_words
    user_copy_words:
        rep movsq
        mov rcx, rdx
    .globl user_copy_bytes
    user_copy_bytes:
        rep movsb
    .globl user_copy_done
    user_copy_done:
        mov rax, rcx
        ret
    .globl user_copy_words_landing
    user_copy_words_landing:
        lea rcx, [rdx + rcx*8]
        jmp user_copy_bytes

    /* rdi to, rsi bytes; out: rax = bytes not zeroed. */
    .globl user_zero
    user_zero:
        xor eax, eax
        mov rcx, rsi
        shr rcx, 3
        and esi, 7
    .globl user_zero_words
    user_zero_words:
        rep stosq
        mov rcx, rsi
    .globl user_zero_bytes
    user_zero_bytes:
        rep stosb
    .globl user_zero_done
    user_zero_done:
        mov rax, rcx
        ret
    .globl user_zero_words_landing
    user_zero_words_landing:
        lea rcx, [rsi + rcx*8]
        jmp user_zero_bytes
    .popsection
"#
);

unsafe extern "C" {
    fn user_copy(to: *mut u8, from: *const u8, bytes: usize) -> usize;
    fn user_zero(to: *mut u8, bytes: usize) -> usize;
    static user_copy_words: u8;
    static user_copy_bytes: u8;
    static user_copy_done: u8;
    static user_copy_words_landing: u8;
    static user_zero_words: u8;
    static user_zero_bytes: u8;
    static user_zero_done: u8;
    static user_zero_words_landing: u8;
}

/// Where a fault at `rip` continues, if `rip` is one of the copy instructions.
pub fn landing(rip: u64) -> Option<u64> {
    let pairs = [
        (&raw const user_copy_words, &raw const user_copy_words_landing),
        (&raw const user_copy_bytes, &raw const user_copy_done),
        (&raw const user_zero_words, &raw const user_zero_words_landing),
        (&raw const user_zero_bytes, &raw const user_zero_done),
    ];
    pairs.iter().find(|(at, _)| *at as u64 == rip).map(|(_, landing)| *landing as u64)
}

/// The range lies below the limit and touches nothing that is the machine's own (S-87); `bytes` counts from a valid start.
fn allowed(address: VirtAddr, bytes: usize) -> bool {
    clip(address, bytes) == bytes && address.0 <= USER_LIMIT
}

/// The longest prefix of the range that a program could have; its mappings are up to date afterwards.
pub fn clip(address: VirtAddr, bytes: usize) -> usize {
    flush();
    let start = address.0;
    if start >= USER_LIMIT {
        return 0;
    }
    let end = start.saturating_add(bytes as u64).min(USER_LIMIT);
    let end = RESERVED
        .iter()
        .fold(end, |end, range| if range.end <= start || range.start >= end { end } else { range.start.max(start) });
    (end - start) as usize
}

fn frame_bytes(frame: FrameNumber, offset: usize, bytes: usize) -> *mut u8 {
    assert!(offset <= PAGE_BYTES && bytes <= PAGE_BYTES - offset, "range leaves its frame");
    prepare(frame);
    direct(frame.physical_address() + offset as u64) as *mut u8
}

/// Copies from the program.
///
/// # Safety
/// `into` is writable for `bytes`.
pub unsafe fn copy_in(into: *mut u8, from: VirtAddr, bytes: usize) -> Result<(), UserFault> {
    // SAFETY: 1. As the caller says. 2. The source is below the user limit; faults land in the copy.
    if allowed(from, bytes) && unsafe { user_copy(into, from.0 as *const u8, bytes) } == 0 {
        Ok(())
    } else {
        Err(UserFault)
    }
}

/// Copies to the program.
///
/// # Safety
/// `from` is readable for `bytes`.
pub unsafe fn copy_out(to: VirtAddr, from: *const u8, bytes: usize) -> Result<(), UserFault> {
    // SAFETY: as in `copy_in`, the other way.
    if allowed(to, bytes) && unsafe { user_copy(to.0 as *mut u8, from, bytes) } == 0 { Ok(()) } else { Err(UserFault) }
}

impl UserMemory for HostedMachine {
    fn copy_in(&self, from: VirtAddr, into: &mut [u8]) -> Result<(), UserFault> {
        // SAFETY: `into` is ours.
        unsafe { copy_in(into.as_mut_ptr(), from, into.len()) }
    }

    fn copy_out(&self, to: VirtAddr, from: &[u8]) -> Result<(), UserFault> {
        // SAFETY: `from` is readable.
        unsafe { copy_out(to, from.as_ptr(), from.len()) }
    }

    fn copy_in_frame(&self, from: VirtAddr, frame: FrameNumber, offset: usize, bytes: usize) -> usize {
        let bytes = clip(from, bytes);
        // SAFETY: 1. `frame_bytes` checks the destination. 2. The source is below the user limit.
        bytes - unsafe { user_copy(frame_bytes(frame, offset, bytes), from.0 as *const u8, bytes) }
    }

    fn copy_out_frame(&self, to: VirtAddr, frame: FrameNumber, offset: usize, bytes: usize) -> usize {
        let bytes = clip(to, bytes);
        // SAFETY: as in `copy_in_frame`, the other way.
        bytes - unsafe { user_copy(to.0 as *mut u8, frame_bytes(frame, offset, bytes), bytes) }
    }

    fn zero_out(&self, to: VirtAddr, bytes: usize) -> usize {
        let bytes = clip(to, bytes);
        // SAFETY: the destination is below the user limit; faults land in the loop.
        bytes - unsafe { user_zero(to.0 as *mut u8, bytes) }
    }
}

/// Copies between kernel memory and a frame. A window's frame may lose its page at any time, when somebody on the host
/// shortens the file: the copy then ends, and zeros stand for what is gone.
///
/// # Safety
/// `to` is writable and `from` readable for `bytes`, but for pages that a window has lost.
unsafe fn copy_frame(frame: FrameNumber, to: *mut u8, from: *const u8, bytes: usize) {
    if windows::index_of(frame).is_none() {
        // SAFETY: as the caller says.
        unsafe { to.copy_from(from, bytes) };
        return;
    }
    // SAFETY: as the caller says; faults land in the copy, and zeroing lands too.
    unsafe {
        let left = user_copy(to, from, bytes);
        user_zero(to.add(bytes - left), left);
    }
}

impl PhysicalMemory for HostedMachine {
    fn read(&self, frame: FrameNumber, offset: usize, into: &mut [u8]) {
        let from = frame_bytes(frame, offset, into.len());
        // SAFETY: `frame_bytes` checked the range; programs may write the frame, so bytes may be mixed,
        // which plain bytes tolerate.
        unsafe { copy_frame(frame, into.as_mut_ptr(), from, into.len()) };
    }

    fn write(&self, frame: FrameNumber, offset: usize, from: &[u8]) {
        let to = frame_bytes(frame, offset, from.len());
        // SAFETY: as in `read`.
        unsafe { copy_frame(frame, to, from.as_ptr(), from.len()) };
    }

    fn fill(&self, frame: FrameNumber, offset: usize, bytes: usize, value: u8) {
        // SAFETY: as in `read`.
        unsafe { frame_bytes(frame, offset, bytes).write_bytes(value, bytes) };
    }

    fn copy(&self, from: FrameNumber, to: FrameNumber) {
        let (source, target) = (frame_bytes(from, 0, PAGE_BYTES), frame_bytes(to, 0, PAGE_BYTES));
        // SAFETY: both are whole frames in the direct map.
        unsafe { copy_frame(from, target, source, PAGE_BYTES) };
    }

    fn read_u64(&self, frame: FrameNumber, offset: usize) -> u64 {
        let mut word = [0; 8];
        self.read(frame, offset, &mut word);
        u64::from_le_bytes(word)
    }

    fn write_u64(&self, frame: FrameNumber, offset: usize, value: u64) {
        self.write(frame, offset, &value.to_le_bytes());
    }
}
