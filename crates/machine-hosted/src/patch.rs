//! Call sites: from a trap to a jump.
//!
//! The page that is patched becomes the program's own copy, written through the frame; what the program sees stays
//! readable and executable and never becomes writable (W^X).

use core::sync::atomic::{AtomicU64, Ordering};

use callsite::{AROUND, BEFORE, Shape};
use machine::{UserMemory, VirtAddr};

use crate::cpu::cpu;
use crate::layout::is_user;
use crate::signals::Context;
use crate::stubs::{self, Wanted};
use crate::{the, upcall};

const SYSCALL: [u8; 2] = [0x0F, 0x05];
const JUMP: u8 = 0xE9;
const SHORT_JUMP: u8 = 0xEB;

/// Sites that cannot be patched, so that they are looked at once and not at every call: a small table by address.
static HOPELESS: [AtomicU64; 512] = [const { AtomicU64::new(0) }; 512];

fn hopeless_slot(site: u64) -> &'static AtomicU64 {
    &HOPELESS[(site ^ site >> 9) as usize % HOPELESS.len()]
}

/// Replaces the instructions in front of the call that came from `rip`, if they have a known shape.
pub fn consider(context: &Context) {
    let back = context.rip;
    if the().trap_only || !is_user(back) || hopeless_slot(back).load(Ordering::Relaxed) == back {
        return;
    }
    let done = patch(back, context.rax as u32).is_some();
    // SAFETY: the slots are words; no other kernel code is under way.
    unsafe {
        if done {
            (*cpu()).patched += 1;
        } else {
            (*cpu()).refused += 1;
            hopeless_slot(back).store(back, Ordering::Relaxed);
        }
    }
}

fn patch(back: u64, number: u32) -> Option<()> {
    let call = back.checked_sub(2)?;
    let start = call.checked_sub(BEFORE as u64)?;
    let mut bytes = [0; BEFORE + 2];
    read(start, &mut bytes)?;
    let (window, instruction) = bytes.split_first_chunk::<BEFORE>()?;
    if *instruction != SYSCALL {
        return None;
    }
    let shape = callsite::find(window, number)?;
    let site = start + shape.at as u64;
    let copied_from = if shape.loads_number { shape.at + shape.bytes } else { shape.at };
    let wanted = Wanted { site, number: shape.loads_number.then_some(number), between: &window[copied_from..], back };
    if shape.bytes >= 5 {
        let stub = stubs::make(&wanted)?;
        return write(site, &jump(site, stub));
    }
    patch_short(&wanted, shape)
}

/// The site holds a two-byte jump only: it leads to a no-op nearby, which holds the long one.
fn patch_short(wanted: &Wanted<'_>, shape: Shape) -> Option<()> {
    let start = wanted.site.checked_sub(AROUND as u64)?;
    let mut around = [0; 2 * AROUND];
    read(start, &mut around)?;
    let (at, bytes) = callsite::long_no_op(&around, AROUND)?;
    let no_op = start + at as u64;
    let stub = stubs::make(wanted)?;
    let mut code = [SHORT_JUMP, bytes as u8 - 2, 0, 0, 0, 0, 0];
    code[2..].copy_from_slice(&jump(no_op + 2, stub));
    write(no_op, &code)?;
    let distance = (no_op + 2).wrapping_sub(wanted.site + shape.bytes as u64) as i8;
    write(wanted.site, &[SHORT_JUMP, distance as u8])
}

fn jump(from: u64, to: u64) -> [u8; 5] {
    let distance = (to.wrapping_sub(from + 5) as u32).to_le_bytes();
    [JUMP, distance[0], distance[1], distance[2], distance[3]]
}

fn read(address: u64, into: &mut [u8]) -> Option<()> {
    the().copy_in(VirtAddr(address), into).ok()
}

fn write(address: u64, bytes: &[u8]) -> Option<()> {
    machine_x86::upcalls().rewrite_text(upcall::thread(), VirtAddr(address), bytes).then_some(())
}
