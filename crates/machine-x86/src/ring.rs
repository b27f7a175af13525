//! The ready ring (S-57), in the TTEs themselves.
//!
//! ```text
//!            after            after
//!   record A ─────► record B ─────► record C ──► A          idle ──► first
//!        ◄───── before   ◄───── before
//!   next = sw_in of B     next = sw_in of C
//! ```
//! `after` and `before` keep the order, `next` is what `sw_out` jumps through (S-58: with the address space, if the two
//! differ in it). A thread comes in by two links and leaves by one. [`machine::Ring`] says what is meant.
//!
//! All functions: the records are mapped, they and the words are this processor's, and nobody else changes them meanwhile.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::mem::offset_of;

use crate::slots::Slots;
use crate::thread::TteRecord;

type Tte = *mut TteRecord;

/// Has leaving `from` lead to `to`.
unsafe fn link(from: Tte, to: Tte, mmu_bytes: u64) {
    // SAFETY: as the module says; an aligned 8-byte store publishes the link (R3).
    unsafe {
        let root = (*to).root;
        // A kernel-only thread leaves no certain address space behind; it runs in any.
        let is_same = root == 0 || root == (*from).root;
        let entry = if is_same { (*to).switch_in } else { (*to).switch_in - mmu_bytes };
        (&raw mut (*from).next_quantum).write_volatile(to as u64 + offset_of!(TteRecord, quantum) as u64);
        (&raw mut (*from).next).write_volatile(entry);
    }
}

/// `idle` runs while the ring is empty.
pub unsafe fn set_idle(cpu: *mut Slots, idle: Tte, mmu_bytes: u64) {
    // SAFETY: as the module says.
    unsafe {
        (*cpu).idle = idle;
        link(idle, idle, mmu_bytes);
    }
}

/// Puts `new` behind `place`; if that is not in the ring, behind the first.
pub unsafe fn insert(cpu: *mut Slots, place: Tte, new: Tte, mmu_bytes: u64) {
    // SAFETY: as the module says.
    unsafe {
        *(*cpu).words.ready.as_ptr() += 1;
        let before = if (*place).after.is_null() { (*cpu).first } else { place };
        if before.is_null() {
            ((*new).after, (*new).before, (*cpu).first) = (new, new, new);
            link(new, new, mmu_bytes);
            link((*cpu).idle, new, mmu_bytes);
            // Who is about to leave does not go round by the idle thread.
            link(place, new, mmu_bytes);
            return;
        }
        let after = (*before).after;
        ((*new).after, (*new).before) = (after, before);
        ((*before).after, (*after).before) = (new, new);
        link(new, after, mmu_bytes);
        link(before, new, mmu_bytes);
    }
}

/// Takes `old` out; leaving it leads to who follows it, or to the idle thread.
pub unsafe fn remove(cpu: *mut Slots, old: Tte, mmu_bytes: u64) {
    // SAFETY: as the module says.
    unsafe {
        let (before, after) = ((*old).before, (*old).after);
        if after.is_null() {
            return;
        }
        (*old).after = core::ptr::null_mut();
        *(*cpu).words.ready.as_ptr() -= 1;
        let idle = (*cpu).idle;
        if after == old {
            (*cpu).first = core::ptr::null_mut();
            link(old, idle, mmu_bytes);
            link(idle, idle, mmu_bytes);
            return;
        }
        ((*before).after, (*after).before, (*cpu).first) = (after, before, after);
        link(before, after, mmu_bytes);
        link(idle, after, mmu_bytes);
    }
}

/// The thread runs in another quaspace now: links from and to it may need the other entry.
pub unsafe fn relink(cpu: *mut Slots, tte: Tte, mmu_bytes: u64) {
    // SAFETY: as the module says.
    unsafe {
        if (*tte).after.is_null() {
            return;
        }
        link((*tte).before, tte, mmu_bytes);
        link(tte, (*tte).after, mmu_bytes);
        if (*cpu).first == tte {
            link((*cpu).idle, tte, mmu_bytes);
        }
    }
}

/// Who is in the ring, in the order in which they will run, from the first on.
pub unsafe fn members(cpu: *const Slots) -> impl Iterator<Item = Tte> {
    // SAFETY: as the module says.
    let (first, count) = unsafe { ((*cpu).first, (*cpu).words.ready.as_ptr().read()) };
    // SAFETY: as above: `after` of a member is a member.
    let after = move |tte: &Tte| unsafe { Some((**tte).after) };
    core::iter::successors(Some(first), after).take(count as usize)
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    use machine::{Ring, TteId};

    use super::*;

    const MMU: u64 = 11;
    const THREADS: usize = 6;

    /// Records with entries and quaspaces of their own; the last is the idle thread's.
    fn records() -> Vec<Tte> {
        let record = |id: usize| {
            // SAFETY: all fields are numbers and pointers.
            let tte: Tte = Box::leak(Box::new(unsafe { core::mem::zeroed::<TteRecord>() }));
            // SAFETY: nobody else knows the record.
            unsafe {
                ((*tte).id, (*tte).switch_in, (*tte).root) = (id as u64, 0x1000 * (id as u64 + 1), id as u64 / 2)
            };
            tte
        };
        let records: Vec<Tte> = (0..=THREADS).map(record).collect();
        let idle = records[THREADS];
        // SAFETY: as above.
        unsafe { (*idle).root = 0 };
        records
    }

    /// Where leaving `from` leads: to a thread, by the entry that the two quaspaces ask for.
    fn follow(records: &[Tte], from: usize) -> usize {
        // SAFETY: the records are never freed.
        let (next, root) = unsafe { ((*records[from]).next, (*records[from]).root) };
        let to = next.div_ceil(0x1000) as usize - 1;
        // SAFETY: as above.
        let theirs = unsafe { (*records[to]).root };
        let bytes = if theirs == 0 || theirs == root { 0 } else { MMU };
        assert_eq!(next, 0x1000 * (to as u64 + 1) - bytes, "from {from} to {to}");
        to
    }

    #[test]
    fn the_links_are_those_of_the_ring_of_numbers() {
        let (records, mut ring, mut seed) = (records(), Ring::new(), 7u64);
        let cpu = Box::leak(Box::new(Slots::new()));
        let id = |index: usize| TteId(index as u32);
        // SAFETY: the records are never freed.
        unsafe { set_idle(cpu, records[THREADS], MMU) };
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (place, thread) = ((seed >> 33) as usize % (THREADS + 1), (seed >> 43) as usize % THREADS);
            let is_ready = ring.order().contains(&id(thread));
            // SAFETY: as above.
            unsafe {
                match seed >> 60 {
                    0..7 if !is_ready => {
                        insert(cpu, records[place], records[thread], MMU);
                        ring.insert_after(id(place), id(thread));
                    }
                    0..14 => {
                        remove(cpu, records[thread], MMU);
                        ring.remove(id(thread));
                    }
                    _ => {
                        let tte = records[thread];
                        (*tte).root = 1 + seed % 3;
                        relink(cpu, tte, MMU);
                    }
                }
            }
            // SAFETY: as above.
            let order: Vec<TteId> = unsafe { members(cpu).map(|tte| TteId((*tte).id as u32)).collect() };
            assert_eq!(order, ring.order());
            assert_eq!(cpu.words.ready.load(core::sync::atomic::Ordering::Relaxed) as usize, order.len());
            let first = order.first().map_or(THREADS, |first| first.0 as usize);
            assert_eq!(follow(&records, THREADS), first);
            for (at, thread) in order.iter().enumerate() {
                let next = order[(at + 1) % order.len()].0 as usize;
                assert_eq!(follow(&records, thread.0 as usize), next);
            }
        }
    }
}
