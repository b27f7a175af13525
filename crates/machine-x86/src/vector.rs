//! A thread's vector state (S-59): an XSAVE image in the second page of its area.
//!
//! The registers belong to the thread that `Slots::vector_owner` names: to the running one, while its program runs. The legacy part is
//! saved at each entry from a program; the parts above it stay in the registers until another program runs.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::arch::asm;

use machine::{BadVectorState, FloatWords, SOFTWARE_AT, SOFTWARE_BYTES, UserFault, VirtAddr};

use crate::area::VECTOR_OFFSET;
use crate::ground::Ground;
use crate::user;

/// Vector state that the kernel manages: x87, SSE, AVX, AVX-512 (three parts), as bits of XCR0.
pub const MANAGED_STATE: u64 = 0b1110_0111;

/// x87 and SSE: the legacy part.
pub(crate) const LEGACY: u64 = 3;
const XSAVE_HEADER: usize = 512;
const XSAVE_HEADER_BYTES: usize = 64;
/// Default x87 control word and MXCSR (SDM vol. 1, 13.6).
const FCW: u16 = 0x037F;
const MXCSR: u32 = 0x1F80;

/// The first bytes of an XSAVE image.
#[repr(C, align(64))]
struct Image([u32; (XSAVE_HEADER + 64) / 4]);

impl Image {
    const fn initial() -> Image {
        let mut words = [0; (XSAVE_HEADER + 64) / 4];
        words[0] = FCW as u32;
        words[24 / 4] = MXCSR;
        Image(words)
    }
}

fn image(area: u64) -> *mut u8 {
    (area as usize + VECTOR_OFFSET) as *mut u8
}

fn is_owner<G: Ground>(area: u64) -> bool {
    // SAFETY: the slots live as long as the machine.
    unsafe { (*G::slots()).vector_owner == area }
}

fn features<G: Ground>() -> u64 {
    // SAFETY: as in `is_owner`.
    unsafe { (*G::slots()).vector_mask }
}

fn wide<G: Ground>() -> u64 {
    // SAFETY: as in `is_owner`.
    unsafe { (*G::slots()).vector_wide }
}

fn image_bytes<G: Ground>() -> usize {
    // SAFETY: as in `is_owner`.
    unsafe { (*G::slots()).vector_bytes }
}

/// The registers are nobody's any more, if they were this thread's.
pub fn disown<G: Ground>(area: u64) {
    if is_owner::<G>(area) {
        // SAFETY: the slots live as long as the machine.
        unsafe { (*G::slots()).vector_owner = G::dummy_area() };
    }
}

/// The registers are about to be another's, on another processor's stack: what only they hold goes into their owner's image.
pub fn release<G: Ground>() {
    // SAFETY: the slots live as long as the machine.
    let owner = unsafe { (*G::slots()).vector_owner };
    if owner != G::dummy_area() {
        // SAFETY: the owner's area is mapped as long as it is in the slot.
        unsafe { save_wide::<G>(image(owner)) };
        disown::<G>(owner);
    }
}

pub fn float_words(area: u64) -> FloatWords {
    let legacy = image(area);
    // SAFETY: the vector page is mapped and aligned; the legacy part was saved at kernel entry.
    unsafe {
        FloatWords {
            x87_control: legacy.cast::<u16>().read(),
            x87_status: legacy.add(2).cast::<u16>().read(),
            mxcsr: legacy.add(24).cast::<u32>().read(),
        }
    }
}

/// Stores the parts above SSE of the registers into an image.
///
/// # Safety
/// The image is aligned to 64 bytes, large enough, and used by nobody else.
unsafe fn save_wide<G: Ground>(to: *mut u8) {
    let wide = wide::<G>();
    // SAFETY: as the caller says.
    unsafe { asm!("xsave64 [{}]", in(reg) to, in("eax") wide as u32, in("edx") (wide >> 32) as u32) };
}

/// Loads the parts above SSE, if the registers are this thread's; the others are restored at kernel exit.
fn load_wide<G: Ground>(area: u64) {
    if is_owner::<G>(area) {
        let wide = wide::<G>();
        // SAFETY: the image is valid: the initial state, or one that was checked.
        unsafe { asm!("xrstor64 [{}]", in(reg) image(area), in("eax") wide as u32, in("edx") (wide >> 32) as u32) };
    }
}

/// See `Tte::save_vector_state`.
pub fn save<G: Ground>(area: u64, to: VirtAddr, software: &[u8; SOFTWARE_BYTES]) -> Result<(), UserFault> {
    let software_at = VirtAddr(to.0.saturating_add(SOFTWARE_AT as u64));
    if is_owner::<G>(area) && to.0.is_multiple_of(64) {
        // XSAVE writes of the header, which comes next, its first word alone.
        let mut between = [0; SOFTWARE_BYTES + XSAVE_HEADER_BYTES];
        between[..SOFTWARE_BYTES].copy_from_slice(software);
        let is_saved = G::allows(to, image_bytes::<G>())
            // SAFETY: `between` is an array of this function.
            && unsafe { user::copy_out::<G>(software_at, between.as_ptr(), between.len()) }.is_ok()
            // SAFETY: the vector page is mapped, its legacy part was saved at kernel entry.
            && unsafe { user::save_state(to, image(area), features::<G>()) };
        // Who slept in a page fault may not own the registers any more.
        if is_saved && is_owner::<G>(area) {
            return Ok(());
        }
    }
    complete::<G>(area);
    // SAFETY: the vector page is mapped and holds an image; it was checked to fit at boot.
    unsafe {
        user::copy_out::<G>(to, image(area), image_bytes::<G>())?;
        user::copy_out::<G>(software_at, software.as_ptr(), SOFTWARE_BYTES)
    }
}

/// Brings the image of a thread that is in the kernel up to date.
fn complete<G: Ground>(area: u64) {
    if is_owner::<G>(area) {
        // SAFETY: 1. The area's image. 2. Only the parts above SSE are stored: the legacy part was saved at kernel
        // entry and Rust has used its registers since.
        unsafe { save_wide::<G>(image(area)) };
    }
    // SAFETY: the header lies in the vector page, which is mapped.
    unsafe { *image(area).add(XSAVE_HEADER) |= LEGACY as u8 };
}

/// See `Tte::copy_vector_state`.
pub fn copy<G: Ground>(area: u64, into: &mut [u8]) {
    complete::<G>(area);
    let bytes = into.len().min(image_bytes::<G>());
    // SAFETY: the vector page is mapped and holds as many bytes.
    unsafe { into.as_mut_ptr().copy_from_nonoverlapping(image(area), bytes) };
}

/// See `Tte::replace_vector_state`.
pub fn replace<G: Ground>(area: u64, from: &[u8], chosen: u64) -> Result<(), BadVectorState> {
    let bytes = from.len().min(image_bytes::<G>());
    // SAFETY: the vector page is mapped and holds `bytes`; the thread is not in its program.
    unsafe { image(area).copy_from_nonoverlapping(from.as_ptr(), bytes) };
    if bytes < XSAVE_HEADER || !adopt::<G>(area, bytes, chosen) {
        reset::<G>(area);
        return Err(BadVectorState);
    }
    load_wide::<G>(area);
    Ok(())
}

/// See `Tte::load_vector_state`.
pub fn load<G: Ground>(area: u64, from: VirtAddr, bytes: usize, chosen: u64) -> Result<(), BadVectorState> {
    let bytes = bytes.min(image_bytes::<G>());
    // SAFETY: the vector page is mapped and holds `bytes`; only this thread uses it.
    let is_read = unsafe { user::copy_in::<G>(image(area), from, bytes) }.is_ok();
    if !is_read || bytes < XSAVE_HEADER || !adopt::<G>(area, bytes, chosen) {
        reset::<G>(area);
        return Err(BadVectorState);
    }
    load_wide::<G>(area);
    Ok(())
}

/// Makes an image that a program wrote into the vector page one that the processor takes: false if that
/// cannot be. A reserved bit would make XRSTOR fault inside the kernel (SDM vol. 1, 13.8).
fn adopt<G: Ground>(area: u64, bytes: usize, chosen: u64) -> bool {
    if float_words(area).mxcsr & !0xFFFF != 0 {
        return false;
    }
    // SAFETY: the header lies in the vector page, which is this thread's, at an aligned address.
    unsafe {
        let header = image(area).add(XSAVE_HEADER).cast::<u64>();
        let present = if bytes > XSAVE_HEADER { header.read() } else { LEGACY };
        header.write_bytes(0, 8);
        header.write(present & chosen);
        begin_absent(image(area), present & chosen);
        present & !features::<G>() == 0
    }
}

/// The legacy parts that are not present begin anew, as XRSTOR would have it (SDM vol. 1, 13.8.1): FXRSTOR takes all of them.
///
/// # Safety
/// The image is mapped, and used by nobody else.
unsafe fn begin_absent(image: *mut u8, present: u64) {
    const X87: u64 = 1;
    const SSE: u64 = 2;
    // SAFETY: as the caller says; the places lie in the legacy part (SDM vol. 1, table 10-2).
    unsafe {
        if present & X87 == 0 {
            image.write_bytes(0, 24);
            image.cast::<u16>().write(FCW);
            image.add(32).write_bytes(0, 8 * 16);
        }
        if present & SSE == 0 {
            image.add(160).write_bytes(0, 16 * 16);
        }
    }
}

/// See `Tte::reset_vector_state`.
pub fn reset<G: Ground>(area: u64) {
    // The processor knows the initial state by itself: an image in which nothing is present loads it, but for MXCSR.
    static INITIAL: Image = Image::initial();
    // SAFETY: 1. The vector page belongs to the thread. 2. The image is valid, and no part above SSE is loaded. 3. All registers
    // that change are named.
    unsafe {
        asm!(
            "xrstor64 [{initial}]",
            "fxsave64 [{image}]",
            initial = in(reg) &raw const INITIAL,
            image = in(reg) image(area),
            in("eax") LEGACY as u32,
            in("edx") 0,
            clobber_abi("C"),
        );
        image(area).add(XSAVE_HEADER).cast::<[u64; 8]>().write([0; 8]);
    }
    load_wide::<G>(area);
}

/// See `Tte::erase_vector_state`.
pub fn erase<G: Ground>(area: u64) {
    // SAFETY: the vector page belongs to the thread and holds that many bytes.
    unsafe { image(area).write_bytes(0, image_bytes::<G>()) };
    reset::<G>(area);
}

/// The thread with area `to`, which does not run, gets a copy of the running thread's state.
pub fn inherit<G: Ground>(to: u64) {
    let from = G::current() as u64;
    // SAFETY: 1. Both vector pages are mapped and hold an image. 2. Nobody else uses them now.
    unsafe {
        if !is_owner::<G>(from) {
            image(to).copy_from_nonoverlapping(image(from), image_bytes::<G>());
            return;
        }
        // The legacy part was saved at kernel entry; the wide parts are in the registers.
        image(to).copy_from_nonoverlapping(image(from), XSAVE_HEADER);
        image(to).add(XSAVE_HEADER).write_bytes(0, 64);
        save_wide::<G>(image(to));
        *image(to).add(XSAVE_HEADER) |= LEGACY as u8;
    }
}
