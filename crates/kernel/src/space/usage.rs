//! What a quaspace holds, for /proc and for other kernel parts that ask what an address is.

use alloc::sync::Arc;

use machine::{Change, Protection, VirtAddr};

use super::Space;
use super::area::{Area, Kind};
use super::backing::Backing;
use super::limits::{PAGE, page_of};
use crate::charge::{Bill, Held, Kept};

/// What one area costs in the tree of areas, roughly: its key, its value, and the tree's own words.
const AREA_RECORD_BYTES: usize = size_of::<Area>() + 48;

/// What the last column of /proc/PID/maps is made of.
#[derive(Clone, Copy)]
pub enum AreaLabel<'a> {
    None,
    Heap,
    Stack,
    Backing(&'a dyn Backing),
}

/// One line of /proc/PID/maps.
#[derive(Clone, Copy)]
pub struct AreaView<'a> {
    pub start: u64,
    pub end: u64,
    pub protection: Protection,
    pub is_shared: bool,
    pub is_locked: bool,
    /// Does not go into core files.
    pub is_undumped: bool,
    /// Some pages may be the program's own: written ones of a private area.
    pub has_copies: bool,
    /// The kernel's own pages, such as the vDSO.
    pub is_special: bool,
    /// Offset in the backing, 0 without one.
    pub offset_bytes: u64,
    pub label: AreaLabel<'a>,
}

/// Sizes as /proc/PID/statm and status show them, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// VmSize and VmPeak.
    pub total: u64,
    pub total_peak: u64,
    /// VmRSS and VmHWM.
    pub resident: u64,
    pub resident_peak: u64,
    /// VmData without stacks, and VmStk.
    pub data: u64,
    pub stack: u64,
    /// Executable areas of files (VmExe and VmLib together).
    pub text: u64,
    /// Locked areas (VmLck).
    pub locked: u64,
    /// The break (part of `data`).
    pub heap: u64,
}

/// What is present of one area, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AreaSizes {
    pub resident: u64,
    /// The part of `resident` that comes from backings and was not copied (RssFile, RssShmem).
    pub resident_shared: u64,
    /// The part of `resident` that is locked.
    pub locked: u64,
}

/// What a byte of program memory is, independent of who shows it: the key of a shared futex.
#[derive(Clone)]
pub enum Identity {
    /// Only this quaspace has it.
    Private,
    /// The byte at an offset in a backing, whoever shows it.
    Shared { backing: Arc<dyn Backing>, offset_bytes: u64 },
}

impl Space {
    /// The areas in order of addresses.
    pub fn areas(&self) -> impl Iterator<Item = AreaView<'_>> {
        self.areas.iter().map(|(&start, area)| self.view_of(start, area))
    }

    /// The areas with what is present of them, for /proc/PID/smaps. Walks all present pages.
    pub fn areas_with_sizes(&self) -> impl Iterator<Item = (AreaView<'_>, AreaSizes)> {
        self.areas.iter().map(|(&start, area)| {
            let resident = self.resident_bytes_within(start, area.end);
            let sizes = AreaSizes {
                resident,
                resident_shared: self.shared_bytes(start, area),
                locked: if area.is_locked { resident } else { 0 },
            };
            (self.view_of(start, area), sizes)
        })
    }

    /// The first page of `from..to` that is there.
    pub fn next_present(&self, from: u64, to: u64) -> Option<u64> {
        self.pages.next_present(from, to).map(|(page, _)| page)
    }

    fn view_of<'a>(&self, start: u64, area: &'a Area) -> AreaView<'a> {
        AreaView {
            start,
            end: area.end,
            protection: area.protection,
            is_shared: area.kind.is_shared(),
            is_locked: area.is_locked,
            is_undumped: area.is_undumped,
            has_copies: area.has_copies,
            is_special: matches!(area.kind, Kind::Special(_)),
            offset_bytes: area.kind.view().map_or(0, |view| view.first_page * PAGE),
            label: self.label(start, area),
        }
    }

    /// Present pages, the shared page of zeros not counted.
    fn resident_bytes_within(&self, start: u64, end: u64) -> u64 {
        let mut bytes = 0;
        let mut at = start;
        while let Some((page, mapping)) = self.pages.next_present(at, end) {
            if !self.pages.pool.is_zero_frame(mapping.frame) {
                bytes += PAGE;
            }
            at = page + PAGE;
        }
        bytes
    }

    /// The part of the resident bytes that comes from backings and was not copied. Walks all present pages of files.
    pub fn resident_shared_bytes(&self) -> u64 {
        self.areas.iter().map(|(&start, area)| self.shared_bytes(start, area)).sum()
    }

    /// The sizes now.
    pub fn usage(&self) -> Usage {
        let is_text = |area: &Area| area.protection.execute && matches!(area.kind, Kind::FilePrivate(_));
        Usage {
            total: self.total_bytes,
            total_peak: self.total_bytes_peak,
            resident: self.pages.resident * PAGE,
            resident_peak: self.pages.resident_peak * PAGE,
            data: self.data_bytes,
            stack: self.stack_bytes,
            text: self.areas.iter().filter(|(_, area)| is_text(area)).map(|(&start, area)| area.end - start).sum(),
            locked: self.locked_bytes(),
            heap: self.brk.end - self.brk.start,
        }
    }

    /// What would come back if the quaspace went, besides what [`Space::charge_some`] finds.
    pub fn charge(&self, bill: &mut Bill) {
        let records = self.areas.len() * AREA_RECORD_BYTES;
        bill.add(Held::new(Kept::Maps, records));
        bill.add(Held::new(Kept::PageTables, self.pages.translation.table_frames() * PAGE as usize));
    }

    /// Adds what areas show from the address `from` on: so many areas and pages together. Where to go on; `None`: that was all.
    pub fn charge_some(&self, bill: &mut Bill, from: u64, most: u64) -> Option<u64> {
        let (mut left, mut at) = (most, from);
        while let Some((start, area)) = self.area_from(at) {
            if left == 0 {
                return Some(at);
            }
            left -= u64::from(at <= start);
            let from = start.max(at);
            at = match area.kind.view() {
                Some(view) if area.kind.is_shared() => {
                    bill.share(view.backing.held(), Arc::strong_count(&view.backing));
                    area.end
                }
                Some(_) if !area.has_copies => area.end,
                _ => self.charge_pages(bill, area, from, &mut left),
            };
        }
        None
    }

    /// Adds the first pages that are there from `from` on, at most `left` of them; where the rest begins.
    fn charge_pages(&self, bill: &mut Bill, area: &Area, from: u64, left: &mut u64) -> u64 {
        let Some((first, _)) = self.pages.next_present(from, area.end) else { return area.end };
        let end = area.end.min(first.saturating_add(*left * PAGE));
        // Nobody else shows the copies of a file's pages; of others each has a part.
        let is_of_file = area.kind.view().is_some();
        let mut bytes = 0;
        self.each_reference_count(first, end, |count| {
            bytes += if is_of_file { u64::from(count == 1) * PAGE } else { PAGE / count }
        });
        bill.add(Held { kept: Kept::Pages, bytes });
        *left -= (end - first) / PAGE;
        end
    }

    fn each_reference_count(&self, start: u64, end: u64, mut see: impl FnMut(u64)) {
        let pool = self.pages.pool;
        self.pages.translation.visit(VirtAddr(start), VirtAddr(end), &mut |_, mapping| {
            if !pool.is_zero_frame(mapping.frame) {
                see(pool.references(mapping.frame).max(1).into());
            }
            Change::Keep
        });
    }

    /// The most bytes that were present at once. Costs no walk.
    pub fn resident_peak_bytes(&self) -> u64 {
        self.pages.resident_peak * PAGE
    }

    /// Areas in all.
    pub fn area_count(&self) -> usize {
        self.areas.len()
    }

    /// What the program may do with the byte at `address`; `None` if nothing is mapped there.
    pub fn protection(&self, address: u64) -> Option<Protection> {
        self.area_at(page_of(address)).map(|(_, area)| area.protection)
    }

    /// What the byte at `address` is; `None` if nothing is mapped there.
    pub fn identity(&self, address: u64) -> Option<Identity> {
        self.identity_and_protection(address).map(|(identity, _)| identity)
    }

    /// The same with what programs may do there.
    pub fn identity_and_protection(&self, address: u64) -> Option<(Identity, Protection)> {
        let (start, area) = self.area_at(page_of(address))?;
        let shared = area.kind.view().filter(|_| area.kind.is_shared());
        let identity = shared.map_or(Identity::Private, |view| Identity::Shared {
            backing: view.backing.clone(),
            offset_bytes: view.first_page * PAGE + (address - start),
        });
        Some((identity, area.protection))
    }

    fn label<'a>(&self, start: u64, area: &'a Area) -> AreaLabel<'a> {
        match &area.kind {
            Kind::Anonymous if start < self.brk.end && area.end > self.brk.start => AreaLabel::Heap,
            Kind::Stack if area.end == self.stack_top => AreaLabel::Stack,
            Kind::Anonymous | Kind::Stack => AreaLabel::None,
            kind => kind.view().map_or(AreaLabel::None, |view| AreaLabel::Backing(&*view.backing)),
        }
    }

    fn shared_bytes(&self, start: u64, area: &Area) -> u64 {
        let Some(view) = area.kind.view() else { return 0 };
        let mut bytes = 0;
        let mut at = start;
        while let Some((page, mapping)) = self.pages.next_present(at, area.end) {
            let is_copy = area.has_copies && view.present(Area::index(start, view, page)) != Some(mapping.frame);
            if !is_copy && !self.pages.pool.is_zero_frame(mapping.frame) {
                bytes += PAGE;
            }
            at = page + PAGE;
        }
        bytes
    }
}
