//! Thread areas: one 32 KB piece of the thread window each.
//!
//! ```text
//! area + 0x0000  TteRecord: slots, register save words, the thread's call table
//! area + 0x1000  vector state (XSAVE image)
//! area + 0x2000  guard page, never mapped
//! area + 0x3000  kernel stack, 20 KB, grows down from
//! area + 0x8000  the top: the Registers record of the program ends here
//! ```
//! The area is aligned to its size, so `rsp & -32768` is the running thread's TTE.

use alloc::vec::Vec;

use machine::{KernelCell, NoFrames, Registers, TteId};
use quaject::create;

use crate::ground::Ground;
use crate::thread::{CALLS, Codes, TteRecord, class};

pub const THREAD_AREA_BYTES: u64 = 32 << 10;
pub const VECTOR_OFFSET: usize = 0x1000;
/// Of the page that is never mapped.
pub const GUARD_OFFSET: u64 = 0x2000;

/// Which thread areas are taken.
static AREAS: KernelCell<Areas> = KernelCell::new(Areas { next: 0, free: Vec::new() });

struct Areas {
    next: u32,
    free: Vec<u32>,
}

/// Areas of ended threads that stay mapped and keep their code, for the next threads (R4).
static INACTIVE: KernelCell<Vec<Body>> = KernelCell::new(Vec::new());

/// A mapped area with its synthesized code. All calls of its table go to the slow end.
pub struct Body {
    pub id: TteId,
    pub area: u64,
    pub code: Codes,
}

fn take_number(limit: u64) -> Result<u32, NoFrames> {
    let mut areas = AREAS.borrow_mut();
    if let Some(id) = areas.free.pop() {
        return Ok(id);
    }
    if areas.next as u64 == limit {
        return Err(NoFrames);
    }
    areas.next += 1;
    Ok(areas.next - 1)
}

/// The record at the start of an area.
pub fn record(area: u64) -> *mut TteRecord {
    area as *mut TteRecord
}

/// Where the record of the program's registers lies.
pub fn user_registers(area: u64) -> *mut Registers {
    (area + THREAD_AREA_BYTES - size_of::<Registers>() as u64) as *mut Registers
}

impl Body {
    /// One that waits, or a new one.
    pub fn take<G: Ground>() -> Result<Body, NoFrames> {
        let inactive = INACTIVE.borrow_mut().pop();
        create::allocate_in(class(), inactive, Body::create::<G>)
    }

    fn create<G: Ground>() -> Result<Body, NoFrames> {
        let id = TteId(take_number(G::THREAD_AREAS)?);
        let area = G::THREADS + id.0 as u64 * THREAD_AREA_BYTES;
        let made = G::map_area(area).and_then(|()| {
            // SAFETY: the area is mapped, its first page holds a record of words that may be anything, and nobody writes it.
            let thread = unsafe { &*record(area) };
            // SAFETY: nobody uses the area.
            Codes::synthesize::<G>(id, thread).inspect_err(|_| unsafe { G::unmap_area(area) })
        });
        let code = match made {
            Ok(code) => code,
            Err(NoFrames) => {
                AREAS.borrow_mut().free.push(id.0);
                return Err(NoFrames);
            }
        };
        // SAFETY: the area is mapped and not yet known to anybody else.
        unsafe { (*record(area)).calls = [code.slow.entry().address(); CALLS] };
        Ok(Body { id, area, code })
    }

    /// Keeps the area for the next thread, or gives all back.
    pub fn put_away<G: Ground>(self) {
        // SAFETY: the thread has gone; its area is mapped.
        unsafe { (*record(self.area)).root = 0 };
        let mut inactive = INACTIVE.borrow_mut();
        if inactive.len() < class().inactive_max && inactive.try_reserve(1).is_ok() {
            inactive.push(self);
        } else {
            drop(inactive);
            self.release::<G>();
        }
    }

    /// Gives the memory and the code back.
    fn release<G: Ground>(self) {
        // SAFETY: the thread has gone, and nobody else knows the area.
        unsafe { G::unmap_area(self.area) };
        AREAS.borrow_mut().free.push(self.id.0);
    }
}

/// Gives back what inactive TTEs hold; returns how many frames.
pub fn release_inactive<G: Ground>() -> usize {
    let inactive = core::mem::take(&mut *INACTIVE.borrow_mut());
    let frames = inactive.len() * G::AREA_FRAMES;
    inactive.into_iter().for_each(Body::release::<G>);
    frames
}
