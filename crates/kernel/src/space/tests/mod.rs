//! Behaviour of quaspaces over a mock translation and a memory that is a vector.

mod areas;
mod faults;
mod forks;
mod model;
mod moves;
mod trees;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::practice;

use machine::{
    FrameNumber, KernelCell, KernelValue, Mapping, NoFrames, PAGE_BYTES, PhysicalMemory, Protection, Translation,
    VirtAddr,
};

use super::limits::PAGE;
use super::*;
use crate::charge::{Bill, Held, Kept};

const NONE: Protection = Protection { read: false, write: false, execute: false };
const READ: Protection = Protection { read: true, write: false, execute: false };
const RW: Protection = Protection { read: true, write: true, execute: false };
const RX: Protection = Protection { read: true, write: false, execute: true };

struct Ram(KernelCell<Vec<u8>>);

impl Ram {
    fn at(frame: FrameNumber, offset: usize, bytes: usize) -> core::ops::Range<usize> {
        assert!(offset + bytes <= PAGE_BYTES);
        let start = frame.number() as usize * PAGE_BYTES + offset;
        start..start + bytes
    }
}

impl PhysicalMemory for Ram {
    fn read(&self, frame: FrameNumber, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.0.borrow()[Ram::at(frame, offset, into.len())]);
    }
    fn write(&self, frame: FrameNumber, offset: usize, from: &[u8]) {
        self.0.borrow_mut()[Ram::at(frame, offset, from.len())].copy_from_slice(from);
    }
    fn fill(&self, frame: FrameNumber, offset: usize, bytes: usize, value: u8) {
        self.0.borrow_mut()[Ram::at(frame, offset, bytes)].fill(value);
    }
    fn copy(&self, from: FrameNumber, to: FrameNumber) {
        self.0.borrow_mut().copy_within(Ram::at(from, 0, PAGE_BYTES), to.number() as usize * PAGE_BYTES);
    }
    fn read_u64(&self, frame: FrameNumber, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        self.read(frame, offset, &mut bytes);
        u64::from_le_bytes(bytes)
    }
    fn write_u64(&self, frame: FrameNumber, offset: usize, value: u64) {
        self.write(frame, offset, &value.to_le_bytes());
    }
}

/// A pool of `frames` frames that starts with junk everywhere.
fn pool(frames: u32) -> &'static FramePool {
    let ram: &'static Ram = Box::leak(Box::new(Ram(KernelCell::new(vec![0xAA; frames as usize * PAGE_BYTES]))));
    Box::leak(Box::new(FramePool::new(ram, vec![practice::frames(0..frames)], 0)))
}

/// Page tables as a map, with a frame for each 2 MiB that was ever used, as on the pc.
struct Tables {
    pool: &'static FramePool,
    entries: KernelCell<BTreeMap<u64, Mapping>>,
    frames: KernelCell<BTreeMap<u64, Page>>,
    /// Calls that change something, to see what a path costs.
    changes: KernelCell<u64>,
}

// SAFETY: no processor is led by it.
#[allow(unsafe_code, reason = "a test's own tables")]
unsafe impl Translation for Tables {
    fn map(&self, page: VirtAddr, frame: FrameNumber, protection: Protection) -> Result<(), NoFrames> {
        assert!(page.0 < USER_LIMIT && page.0.is_multiple_of(PAGE), "{page:?}");
        assert!(!(protection.write && self.pool.is_zero_frame(frame)), "zero page mapped writable");
        let table = page.0 >> 21;
        if !self.frames.borrow().contains_key(&table) {
            let frame = self.pool.allocate_reserved()?;
            self.frames.borrow_mut().insert(table, frame);
        }
        self.changes.set(self.changes.get() + 1);
        self.entries.borrow_mut().insert(page.0, Mapping { frame, protection, dirty: false });
        Ok(())
    }
    fn unmap(&self, page: VirtAddr) -> Option<Mapping> {
        self.changes.set(self.changes.get() + 1);
        self.entries.borrow_mut().remove(&page.0)
    }
    fn protect(&self, page: VirtAddr, protection: Protection) {
        self.changes.set(self.changes.get() + 1);
        if let Some(entry) = self.entries.borrow_mut().get_mut(&page.0) {
            assert!(!(protection.write && self.pool.is_zero_frame(entry.frame)), "zero page made writable");
            entry.protection = protection;
        }
    }
    fn query(&self, page: VirtAddr) -> Option<Mapping> {
        self.entries.borrow().get(&page.0).copied()
    }
    fn next_present(&self, from: VirtAddr, to: VirtAddr) -> Option<(VirtAddr, Mapping)> {
        self.entries.borrow().range(from.0..to.0).next().map(|(&page, &mapping)| (VirtAddr(page), mapping))
    }
}

fn tables(pool: &'static FramePool) -> Arc<Tables> {
    Arc::new(Tables {
        pool,
        entries: KernelCell::default(),
        frames: KernelCell::default(),
        changes: KernelCell::new(0),
    })
}

fn space(pool: &'static FramePool) -> Space {
    Space::new(pool, tables(pool))
}

/// A file of pages; page i starts with the byte i + 1. `None` pages are holes.
struct File {
    pool: &'static FramePool,
    pages: KernelCell<Vec<Option<Page>>>,
    writes_announced: KernelValue<u32>,
}

fn file(pool: &'static FramePool, pages: usize) -> Arc<File> {
    let contents = (0..pages)
        .map(|index| {
            let page = pool.allocate_zeroed().unwrap();
            page.write(0, &[index as u8 + 1]);
            Some(page)
        })
        .collect();
    Arc::new(File { pool, pages: KernelCell::new(contents), writes_announced: KernelValue::new(0) })
}

impl Backing for File {
    fn held(&self) -> Held {
        Held::NOTHING
    }

    fn page(&self, index: u64) -> Result<Supply, BackingError> {
        self.pages.borrow().get(index as usize).cloned().map(Supply::from).ok_or(BackingError::PastEnd)
    }
    fn page_for_write(&self, index: u64) -> Result<Supply, BackingError> {
        self.writes_announced.set(self.writes_announced.get() + 1);
        let mut pages = self.pages.borrow_mut();
        let slot = pages.get_mut(index as usize).ok_or(BackingError::PastEnd)?;
        if slot.is_none() {
            *slot = Some(self.pool.allocate_zeroed().ok_or(BackingError::OutOfMemory)?);
        }
        Ok(slot.clone().into())
    }
    fn name(&self) -> &[u8] {
        b"/file"
    }
}

fn view(file: &Arc<File>, first_page: u64) -> View {
    View { backing: file.clone(), first_page }
}

fn byte(space: &mut Space, address: u64) -> Result<u8, FaultKind> {
    let mut byte = [0];
    space.read_bytes(address, &mut byte).map(|()| byte[0])
}

fn poke(space: &mut Space, address: u64, value: u8) -> Result<(), FaultKind> {
    space.write_bytes(address, &[value])
}

/// Checks every invariant that `Space` promises.
fn check(space: &Space) {
    let mut end_before = 0;
    let (mut total, mut data, mut stack, mut resident) = (0, 0, 0, 0);
    for (&start, area) in space.areas.iter() {
        assert!(start >= end_before && start < area.end && area.end <= USER_LIMIT);
        assert!(start.is_multiple_of(PAGE) && area.end.is_multiple_of(PAGE));
        end_before = area.end;
        total += area.end - start;
        data += if area.is_data() { area.end - start } else { 0 };
        stack += if area.kind.is_stack() { area.end - start } else { 0 };
        let mut at = start;
        while let Some((page, mapping)) = space.pages.next_present(at, area.end) {
            let (granted, has) = (area.granted(), mapping.protection);
            assert!(!has.read || granted.read);
            assert!(!has.write || granted.write);
            assert!(!has.execute || granted.execute);
            if has.write && !area.kind.is_shared() {
                assert!(!space.pool().is_shared(mapping.frame), "shared page {page:#x} writable");
            }
            resident += u64::from(!space.pool().is_zero_frame(mapping.frame));
            at = page + PAGE;
        }
    }
    assert_eq!((total, data, stack), (space.total_bytes, space.data_bytes, space.stack_bytes));
    assert_eq!(resident, space.pages.resident, "pages outside areas, or miscounted");
}
