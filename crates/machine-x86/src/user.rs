//! Copies between the kernel and the running program, and the places where they may fault.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::arch::global_asm;

use machine::{FrameNumber, PAGE_BYTES, UserFault, VirtAddr};

use crate::ground::Ground;

global_asm!(
    r#"
    .pushsection .text
    /* rdi to, rsi from, rdx bytes; out: rax = bytes not copied. Eight bytes an instruction, then
       single bytes; a fault in the first loop goes on in the second, which stops at the exact byte. */
    .globl user_copy
    user_copy:
    .globl stac_site_copy
    stac_site_copy:
        .byte 0x0f, 0x1f, 0x00
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
    .globl clac_site_copy
    clac_site_copy:
        .byte 0x0f, 0x1f, 0x00
        mov rax, rcx
        ret
    .globl user_copy_words_landing
    user_copy_words_landing:
        lea rcx, [rdx + rcx*8]
        jmp user_copy_bytes

    /* rdi to, rsi bytes; out: rax = bytes not zeroed. */
    .globl user_zero
    user_zero:
    .globl stac_site_zero
    stac_site_zero:
        .byte 0x0f, 0x1f, 0x00
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
    .globl clac_site_zero
    clac_site_zero:
        .byte 0x0f, 0x1f, 0x00
        mov rax, rcx
        ret
    .globl user_zero_words_landing
    user_zero_words_landing:
        lea rcx, [rsi + rcx*8]
        jmp user_zero_bytes

    /* rdi to, rsi an image whose legacy part is the program's, edx what to save; out: eax = 0 if it is all there. */
    .globl user_save_state
    user_save_state:
        fxrstor64 [rsi]
        mov eax, edx
        xor edx, edx
    .globl stac_site_save
    stac_site_save:
        .byte 0x0f, 0x1f, 0x00
    .globl user_save_state_at
    user_save_state_at:
        xsave64 [rdi]
        xor eax, eax
    .globl user_save_mark
    user_save_mark:
        or byte ptr [rdi + 512], 3          /* old programs change x87 and SSE without touching the header */
    .globl user_save_done
    user_save_done:
    .globl clac_site_save
    clac_site_save:
        .byte 0x0f, 0x1f, 0x00
        ret
    .globl user_save_landing
    user_save_landing:
        mov eax, 1
        jmp user_save_done
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
    fn user_save_state(to: *mut u8, image: *const u8, chosen: u64) -> u32;
    static user_save_state_at: u8;
    static user_save_mark: u8;
    static user_save_landing: u8;
    static stac_site_save: u8;
    static clac_site_save: u8;
    static user_zero_words: u8;
    static user_zero_bytes: u8;
    static user_zero_done: u8;
    static user_zero_words_landing: u8;
    static stac_site_copy: u8;
    static clac_site_copy: u8;
    static stac_site_zero: u8;
    static clac_site_zero: u8;
}

/// Where a fault at `rip` continues, if `rip` is one of the copy instructions.
pub fn landing(rip: u64) -> Option<u64> {
    let pairs = [
        (&raw const user_copy_words, &raw const user_copy_words_landing),
        (&raw const user_copy_bytes, &raw const user_copy_done),
        (&raw const user_zero_words, &raw const user_zero_words_landing),
        (&raw const user_zero_bytes, &raw const user_zero_done),
        (&raw const user_save_state_at, &raw const user_save_landing),
        (&raw const user_save_mark, &raw const user_save_landing),
    ];
    pairs.iter().find(|(at, _)| *at as u64 == rip).map(|(_, landing)| *landing as u64)
}

/// Places that hold a three-byte no-op where a machine may want `stac`: from there on programs' pages are touched.
pub fn access_sites() -> [u64; 3] {
    [&raw const stac_site_copy, &raw const stac_site_zero, &raw const stac_site_save].map(|site| site as u64)
}

/// The same for `clac`.
pub fn restrict_sites() -> [u64; 3] {
    [&raw const clac_site_copy, &raw const clac_site_zero, &raw const clac_site_save].map(|site| site as u64)
}

/// Part of a frame.
///
/// # Panics
/// When the range leaves the frame.
pub fn frame_bytes<G: Ground>(frame: FrameNumber, offset: usize, bytes: usize) -> *mut u8 {
    assert!(offset <= PAGE_BYTES && bytes <= PAGE_BYTES - offset, "range leaves its frame");
    // SAFETY: the offset stays in the frame.
    unsafe { G::frame(frame).add(offset) }
}

/// Copies from the program.
///
/// # Safety
/// `into` is writable for `bytes`.
pub unsafe fn copy_in<G: Ground>(into: *mut u8, from: VirtAddr, bytes: usize) -> Result<(), UserFault> {
    // SAFETY: 1. As the caller says. 2. The source is the program's; faults land in the copy.
    if G::allows(from, bytes) && unsafe { user_copy(into, from.0 as *const u8, bytes) } == 0 {
        Ok(())
    } else {
        Err(UserFault)
    }
}

/// Writes the processor's vector state to the program's memory, x87 and SSE as `image` has them. False: some of it could not be
/// written.
///
/// # Safety
/// 1. `to` is aligned to 64 bytes and the program's, as far as the state reaches. 2. `image` holds a legacy part, aligned to 16 bytes.
pub unsafe fn save_state(to: VirtAddr, image: *const u8, chosen: u64) -> bool {
    // SAFETY: as the caller says; Rust keeps nothing in vector registers over a call, and faults land in the routine.
    unsafe { user_save_state(to.0 as *mut u8, image, chosen) == 0 }
}

/// Copies to the program.
///
/// # Safety
/// `from` is readable for `bytes`.
pub unsafe fn copy_out<G: Ground>(to: VirtAddr, from: *const u8, bytes: usize) -> Result<(), UserFault> {
    // SAFETY: as in `copy_in`, the other way.
    if G::allows(to, bytes) && unsafe { user_copy(to.0 as *mut u8, from, bytes) } == 0 {
        Ok(())
    } else {
        Err(UserFault)
    }
}

/// Copies from the program into a frame; how many bytes.
pub fn copy_in_frame<G: Ground>(from: VirtAddr, frame: FrameNumber, offset: usize, bytes: usize) -> usize {
    let bytes = G::clip(from, bytes);
    // SAFETY: 1. `frame_bytes` checks the destination. 2. The source is the program's.
    bytes - unsafe { user_copy(frame_bytes::<G>(frame, offset, bytes), from.0 as *const u8, bytes) }
}

/// Copies from a frame to the program; how many bytes.
pub fn copy_out_frame<G: Ground>(to: VirtAddr, frame: FrameNumber, offset: usize, bytes: usize) -> usize {
    let bytes = G::clip(to, bytes);
    // SAFETY: as in `copy_in_frame`, the other way.
    bytes - unsafe { user_copy(to.0 as *mut u8, frame_bytes::<G>(frame, offset, bytes), bytes) }
}

/// Zeroes bytes of the program; how many.
pub fn zero_out<G: Ground>(to: VirtAddr, bytes: usize) -> usize {
    let bytes = G::clip(to, bytes);
    // SAFETY: the destination is the program's; faults land in the loop.
    bytes - unsafe { user_zero(to.0 as *mut u8, bytes) }
}

/// Copies between kernel memory and a frame. One that was lent may lose its page at any time: the copy then ends, and
/// zeros stand for what is gone.
///
/// # Safety
/// `to` is writable and `from` readable for `bytes`, but for pages that were lost.
pub unsafe fn copy_frame<G: Ground>(frame: FrameNumber, to: *mut u8, from: *const u8, bytes: usize) {
    if !G::may_be_lost(frame) {
        // SAFETY: as the caller says.
        unsafe { to.copy_from(from, bytes) };
        return;
    }
    // SAFETY: as the caller says; a fault ends the copy.
    let left = unsafe { user_copy(to, from, bytes) };
    // SAFETY: the rest of what the copy did not reach; faults land here too.
    unsafe { user_zero(to.add(bytes - left), left) };
}

/// Implements `UserMemory` and `PhysicalMemory` for a machine on its [`Ground`].
#[macro_export]
macro_rules! memory {
    ($machine:ty, $ground:ty) => {
        impl machine::UserMemory for $machine {
            fn copy_in(&self, from: machine::VirtAddr, into: &mut [u8]) -> Result<(), machine::UserFault> {
                // SAFETY: `into` is ours.
                unsafe { $crate::copy_in::<$ground>(into.as_mut_ptr(), from, into.len()) }
            }

            fn copy_out(&self, to: machine::VirtAddr, from: &[u8]) -> Result<(), machine::UserFault> {
                // SAFETY: `from` is readable.
                unsafe { $crate::copy_out::<$ground>(to, from.as_ptr(), from.len()) }
            }

            fn copy_in_frame(
                &self,
                from: machine::VirtAddr,
                frame: machine::FrameNumber,
                offset: usize,
                bytes: usize,
            ) -> usize {
                $crate::copy_in_frame::<$ground>(from, frame, offset, bytes)
            }

            fn copy_out_frame(
                &self,
                to: machine::VirtAddr,
                frame: machine::FrameNumber,
                offset: usize,
                bytes: usize,
            ) -> usize {
                $crate::copy_out_frame::<$ground>(to, frame, offset, bytes)
            }

            fn zero_out(&self, to: machine::VirtAddr, bytes: usize) -> usize {
                $crate::zero_out::<$ground>(to, bytes)
            }
        }

        impl machine::PhysicalMemory for $machine {
            fn read(&self, frame: machine::FrameNumber, offset: usize, into: &mut [u8]) {
                let from = $crate::frame_bytes::<$ground>(frame, offset, into.len());
                // SAFETY: `frame_bytes` checked the range; programs may write the frame, so bytes may be mixed,
                // which plain bytes tolerate.
                unsafe { $crate::copy_frame::<$ground>(frame, into.as_mut_ptr(), from, into.len()) };
            }

            fn write(&self, frame: machine::FrameNumber, offset: usize, from: &[u8]) {
                let to = $crate::frame_bytes::<$ground>(frame, offset, from.len());
                // SAFETY: as in `read`.
                unsafe { $crate::copy_frame::<$ground>(frame, to, from.as_ptr(), from.len()) };
            }

            fn fill(&self, frame: machine::FrameNumber, offset: usize, bytes: usize, value: u8) {
                // SAFETY: as in `read`.
                unsafe { $crate::frame_bytes::<$ground>(frame, offset, bytes).write_bytes(value, bytes) };
            }

            fn copy(&self, from: machine::FrameNumber, to: machine::FrameNumber) {
                let whole = |frame| $crate::frame_bytes::<$ground>(frame, 0, machine::PAGE_BYTES);
                // SAFETY: both are whole frames.
                unsafe { $crate::copy_frame::<$ground>(from, whole(to), whole(from), machine::PAGE_BYTES) };
            }

            fn read_u64(&self, frame: machine::FrameNumber, offset: usize) -> u64 {
                // SAFETY: as in `read`.
                unsafe { $crate::frame_bytes::<$ground>(frame, offset, 8).cast::<u64>().read_unaligned() }
            }

            fn write_u64(&self, frame: machine::FrameNumber, offset: usize, value: u64) {
                // SAFETY: as in `read`.
                unsafe { $crate::frame_bytes::<$ground>(frame, offset, 8).cast::<u64>().write_unaligned(value) }
            }
        }
    };
}
