//! Call sites: from a trap to a jump.
//!
//! The page that is patched becomes the program's own copy, written through the frame; what the program sees stays
//! readable and executable and never becomes writable (W^X).

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicU64, Ordering};

use callsite::{AROUND, BEFORE, Shape};
use machine::{KernelCell, Rewritten, UserMemory, VirtAddr};

use crate::counts::Refusal;
use crate::cpu::cpu;
use crate::layout::is_user;
use crate::signals::Context;
use crate::stubs::{self, Wanted};
use crate::{the, threads, translation, upcall};

const SYSCALL: [u8; 2] = [0x0F, 0x05];
const JUMP: u8 = 0xE9;
const SHORT_JUMP: u8 = 0xEB;

/// Sites that cannot be patched, so that they are looked at once and not at every call: a small table by address.
static HOPELESS: [AtomicU64; 512] = [const { AtomicU64::new(0) }; 512];

/// Sites that have made a call in one quaspace, a bit each. Most of a start's calls come from sites that make one in a process's life, for
/// which a patch, with a copy of the page, costs more than the trap: a site is patched at its second call there. Sites that
/// share a bit are patched earlier, never later.
pub struct Called([AtomicU64; CALLED_WORDS]);

const CALLED_WORDS: usize = 16;

impl Called {
    pub fn none() -> Called {
        Called([const { AtomicU64::new(0) }; CALLED_WORDS])
    }

    /// Whether the site has made one before; from now on it has.
    fn note(&self, site: u64) -> bool {
        let bit = (site ^ site >> 12) as usize % (64 * CALLED_WORDS);
        let word = &self.0[bit / 64];
        let bits = word.load(Ordering::Relaxed);
        word.store(bits | 1 << (bit % 64), Ordering::Relaxed);
        bits >> (bit % 64) & 1 != 0
    }
}

fn hopeless_slot(site: u64) -> &'static AtomicU64 {
    &HOPELESS[(site ^ site >> 9) as usize % HOPELESS.len()]
}

/// Replaces the instructions in front of the call that came from `rip`, if they have a known shape and it is not the first.
pub fn consider(context: &Context) {
    let back = context.rip;
    // SAFETY: the record is the running thread's.
    let is_debugged = unsafe { (*threads::current()).debugged } != 0;
    if is_debugged || the().trap_only || !is_user(back) || hopeless_slot(back).load(Ordering::Relaxed) == back {
        return;
    }
    if !translation::active().is_some_and(|space| space.called.note(back)) {
        return;
    }
    let _entered = upcall::entered();
    let result = patch(back, context.rax as u32);
    // SAFETY: the slots are words; no other kernel code is under way.
    let counts = unsafe { &mut (*cpu()).counts };
    match result {
        Ok(()) => counts.patched += 1,
        Err(refusal) => {
            counts.refused[refusal as usize] += 1;
            hopeless_slot(back).store(back, Ordering::Relaxed);
        }
    }
}

fn patch(back: u64, number: u32) -> Result<(), Refusal> {
    let start = back.checked_sub(BEFORE as u64 + 2).ok_or(Refusal::UnknownShape)?;
    let mut bytes = [0; BEFORE + 2];
    read(start, &mut bytes)?;
    let (window, instruction) = bytes.split_first_chunk::<BEFORE>().ok_or(Refusal::UnknownShape)?;
    if *instruction != SYSCALL {
        return Err(Refusal::UnknownShape);
    }
    let shape = callsite::find(window, number).ok_or(Refusal::UnknownShape)?;
    let site = start + shape.at as u64;
    let copied_from = if shape.loads_number { shape.at + shape.bytes } else { shape.at };
    let wanted = Wanted { site, number: shape.loads_number.then_some(number), between: &window[copied_from..], back };
    if shape.bytes >= 5 {
        let stub = stubs::make(&wanted).ok_or(Refusal::NoStub)?;
        return write(site, &jump(site, stub));
    }
    patch_short(&wanted, shape)
}

/// The site holds a two-byte jump only: it leads to a no-op nearby, which holds the long one.
fn patch_short(wanted: &Wanted<'_>, shape: Shape) -> Result<(), Refusal> {
    let start = wanted.site.checked_sub(AROUND as u64).ok_or(Refusal::NoNoOp)?;
    let mut around = [0; 2 * AROUND];
    read(start, &mut around)?;
    let (at, bytes) = callsite::long_no_op(&around, AROUND).ok_or(Refusal::NoNoOp)?;
    let no_op = start + at as u64;
    let stub = stubs::make(wanted).ok_or(Refusal::NoStub)?;
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

fn read(address: u64, into: &mut [u8]) -> Result<(), Refusal> {
    the().copy_in(VirtAddr(address), into).map_err(|_| Refusal::NotText)
}

fn write(address: u64, bytes: &[u8]) -> Result<(), Refusal> {
    let mut original = [0; REWRITE_MAX];
    let original = &mut original[..bytes.len()];
    read(address, original)?;
    let written = machine_x86::upcalls().rewrite_text(upcall::thread(), VirtAddr(address), bytes);
    written.then_some(()).ok_or(Refusal::NotText)?;
    let mut rewrites = REWRITES.borrow_mut();
    if rewrites.get(&address).is_none_or(|known| known.now() != bytes) {
        rewrites.insert(address, Rewrite::new(bytes, original));
    }
    Ok(())
}

/// Bytes of one rewrite at most: a short jump and a long one.
const REWRITE_MAX: usize = 7;

/// What stands at an address since the machine rewrote it, and what stood there.
struct Rewrite {
    bytes: u8,
    now: [u8; REWRITE_MAX],
    original: [u8; REWRITE_MAX],
}

/// All rewrites, by address. Other programs may have other text there.
static REWRITES: KernelCell<BTreeMap<u64, Rewrite>> = KernelCell::new(BTreeMap::new());

impl Rewrite {
    fn new(now: &[u8], original: &[u8]) -> Rewrite {
        let mut rewrite = Rewrite { bytes: now.len() as u8, now: [0; REWRITE_MAX], original: [0; REWRITE_MAX] };
        rewrite.now[..now.len()].copy_from_slice(now);
        rewrite.original[..now.len()].copy_from_slice(original);
        rewrite
    }

    fn now(&self) -> &[u8] {
        &self.now[..usize::from(self.bytes)]
    }
}

/// Shows all rewrites. The two of a site with a short jump do not overlap.
pub fn visit(visit: &mut dyn FnMut(Rewritten<'_>)) {
    for (address, rewrite) in &*REWRITES.borrow() {
        let original = &rewrite.original[..usize::from(rewrite.bytes)];
        visit(Rewritten { address: VirtAddr(*address), now: rewrite.now(), original });
    }
}
