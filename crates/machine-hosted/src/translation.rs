//! Quaspaces on the host: what is mapped is a cache of what the kernel decided, as a processor's TLB is.
//!
//! A translation keeps its pages in a table of its own, and a host process shows them (`hosts.rs`). They are mapped when they are
//! touched first, in runs of neighbouring frames, since a host mapping costs the same for one page and for many. What changes while
//! another process runs is unmapped before its own runs again.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use alloc::vec::Vec;
use core::cell::RefMut;
use core::ops::{Bound, Range};

use machine::{
    Access, FrameNumber, KernelCell, KernelValue, Mapping, NoFrames, Ordered, PAGE_BYTES, Protection, Root,
    Translation, VirtAddr, WINDOW_PAGES,
};
use machine_x86::USER_LIMIT;

use crate::cpu::cpu;
use crate::layout::{RESERVED, USER_START, is_user};
use crate::patch::Called;
use crate::{host, hosts, threads, upcall, windows};

const PAGE: u64 = PAGE_BYTES as u64;
/// What one page costs in the tree, roughly: its key, its value, and what nodes have left over.
const ENTRY_BYTES: usize = (size_of::<u64>() + size_of::<Entry>()) * 3 / 2;
/// Pages that one first touch maps at most, before and behind the touched one; of a file outside a whole window, for which the host
/// makes nothing but a note.
const RUN_PAGES: u64 = 32;
/// Runs that are mapped before they are touched: so many cost less than a few touches.
const RUNS_AHEAD: usize = 48;

/// Frames that are told of at once when they go.
const GONE_AT_ONCE: usize = 64;
/// Ranges that are kept to be unmapped; with more of them everything is.
const STALE_MAX: usize = 64;

pub struct HostTranslation {
    pages: KernelCell<Ordered<u64, Entry>>,
    /// The host process that shows it.
    host: KernelValue<Option<usize>>,
    /// Pages that were mapped in this epoch are still mapped there.
    epoch: KernelValue<u64>,
    /// What changed while another host process ran: to be unmapped.
    stale: KernelCell<Vec<Range<u64>>>,
    /// Where its programs have made calls.
    pub called: Called,
}

#[derive(Clone, Copy)]
struct Entry {
    frame: FrameNumber,
    protection: Protection,
    /// The epoch in which the host mapped the page; 0: not yet.
    mapped_in: u64,
}

impl Entry {
    fn allows(&self, access: Access) -> bool {
        match (access.execute, access.write) {
            (true, _) => self.protection.execute,
            (_, true) => self.protection.write,
            _ => self.protection.read,
        }
    }
}

/// An epoch in which nothing was mapped yet.
fn next_epoch() -> u64 {
    // SAFETY: the slot is a word that only kernel code stores.
    unsafe {
        (*cpu()).epoch += 1;
        (*cpu()).epoch
    }
}

fn host_rights(protection: Protection) -> u64 {
    let bits = [(protection.read, host::PROT_READ), (protection.write, host::PROT_READ | host::PROT_WRITE)];
    let execute = if protection.execute { host::PROT_READ | host::PROT_EXEC } else { 0 };
    bits.iter().filter(|(on, _)| *on).fold(execute, |all, (_, bit)| all | bit)
}

/// Maps `pages` pages at `page` to neighbouring frames from `frame` on.
fn map_run(page: u64, pages: u64, frame: FrameNumber, protection: Protection) -> bool {
    assert!(is_user(page) && is_user(page + (pages - 1) * PAGE), "{page:#x} is no program's");
    let (fd, offset) = windows::source_of(frame).unwrap_or((crate::memory_fd(), frame.physical_address()));
    // The host supplies a file's pages itself, some around each that is touched; at once it would supply holes, too.
    let at_once = fd == crate::memory_fd();
    // SAFETY: the addresses are the program's; nothing of the kernel lies there.
    let mapped = unsafe { host::map_file(page, pages * PAGE, host_rights(protection), fd, offset, at_once) };
    mapped.is_ok()
}

/// False where the host would have to split a mapping and has as many as it wants.
fn unmap_run(page: u64, bytes: u64) -> bool {
    // SAFETY: the addresses are the program's; the kernel reads them only by copies that may fault.
    unsafe { host::unmap(page, bytes) }.is_ok()
}

impl HostTranslation {
    pub fn new() -> HostTranslation {
        HostTranslation {
            pages: KernelCell::new(Ordered::new()),
            host: KernelValue::new(None),
            epoch: KernelValue::new(next_epoch()),
            stale: KernelCell::new(Vec::new()),
            called: Called::none(),
        }
    }

    fn is_active(&self) -> bool {
        // SAFETY: the slot is a word.
        unsafe { (*cpu()).root == self.root_word() }
    }

    pub fn root_word(&self) -> u64 {
        (&raw const *self) as u64
    }

    pub fn host(&self) -> Option<usize> {
        self.host.get()
    }

    /// The host process at this place shows nothing of it yet, and will.
    pub fn have_host(&self, index: usize) {
        self.host.set(Some(index));
        self.forget_mapped();
    }

    /// Its host process shows another one.
    pub fn lose_host(&self) {
        self.host.set(None);
        self.forget_mapped();
    }

    fn forget_mapped(&self) {
        self.epoch.set(next_epoch());
        self.stale.borrow_mut().clear();
    }

    fn is_mapped(&self, entry: &Entry) -> bool {
        entry.mapped_in == self.epoch.get()
    }

    /// Pages have changed while another host process runs.
    fn put_aside(&self, pages: Range<u64>) {
        let Some(host) = self.host.get() else { return };
        let mut stale = self.stale.borrow_mut();
        if let Some(last) = stale.last_mut().filter(|last| last.end == pages.start || last.start == pages.end) {
            *last = last.start.min(pages.start)..last.end.max(pages.end);
        } else if stale.len() < STALE_MAX && stale.try_reserve(1).is_ok() {
            stale.push(pages);
        } else {
            drop(stale);
            self.forget_mapped();
            hosts::must_forget(host);
        }
    }

    /// Pages that the host shows have gone.
    fn take_away(&self, pages: Range<u64>, active: bool, is_gap: impl Fn(Range<u64>) -> bool) {
        if active {
            put_off(pages, Change::Unmap, is_gap);
        } else {
            self.put_aside(pages);
        }
    }

    /// Its host process runs again: what has changed meanwhile goes.
    pub fn catch_up(&self) {
        for range in self.stale.borrow_mut().drain(..) {
            if !unmap_run(range.start, range.end - range.start) {
                unmap_all();
                self.epoch.set(next_epoch());
            }
        }
    }

    /// Sees that the host shows the page at `address`, which the kernel has just supplied: where it replaced another one it
    /// is mapped already.
    pub fn has(&self, access: Access) -> bool {
        let page = access.address.0 & !(PAGE - 1);
        flush();
        let entry = self.pages.borrow().get(&page).copied();
        entry.is_some_and(|entry| self.is_mapped(&entry) && entry.allows(access)) || self.bring_in(access)
    }

    /// Has the host map the page at `address` and its neighbours, if the kernel allows the access.
    pub fn bring_in(&self, access: Access) -> bool {
        let page = access.address.0 & !(PAGE - 1);
        let mut pages = self.pages.borrow_mut();
        let Some(&entry) = pages.get(&page) else { return false };
        if !entry.allows(access) {
            return false;
        }
        flush();
        self.show_run(&mut pages, page, entry).is_some()
    }

    /// Has the host map what is there before it is touched: its process shows nothing of it yet.
    pub fn bring_in_ahead(&self) {
        let mut pages = self.pages.borrow_mut();
        let mut at = USER_START;
        for _ in 0..RUNS_AHEAD {
            let next = pages.range(Bound::Included(&at)).next().map(|(&page, &entry)| (page, entry));
            let Some((page, entry)) = next else { return };
            let Some(run) = self.show_run(&mut pages, page, entry) else { return };
            at = run.end;
        }
    }

    /// Has the host map a page and its neighbours. `None`: it does not.
    fn show_run(&self, pages: &mut Ordered<u64, Entry>, page: u64, entry: Entry) -> Option<Range<u64>> {
        let run = run_around(pages, page, entry, self.epoch.get());
        let count = (run.end - run.start) / PAGE;
        let first = *pages.get(&run.start).unwrap_or(&entry);
        if !map_run(run.start, count, first.frame, entry.protection) {
            // The host keeps so many mappings and no more (vm.max_map_count): all go, and come back as they are touched.
            forget_all();
            if !map_run(run.start, count, first.frame, entry.protection) {
                return None;
            }
        }
        let now = self.epoch.get();
        let shown = pages.range_mut(Bound::Included(&run.start)).take_while(|(at, _)| **at < run.end);
        shown.for_each(|(_, entry)| entry.mapped_in = now);
        Some(run)
    }
}

/// The pages around `page` that one host mapping can show: neighbours here and among the frames, equal rights, not
/// mapped yet.
fn run_around(pages: &Ordered<u64, Entry>, page: u64, entry: Entry, epoch: u64) -> Range<u64> {
    let window = windows::index_of(entry.frame);
    let most = if window.is_some() { WINDOW_PAGES } else { RUN_PAGES };
    let fits = |at: u64, other: &Entry| {
        let frame = entry.frame.number() as i64 + (at as i64 - page as i64) / PAGE as i64;
        let same = other.frame.number() as i64 == frame && other.protection == entry.protection;
        same && windows::index_of(other.frame) == window && other.mapped_in != epoch && is_user(at)
    };
    let (mut start, mut end) = (page, page + PAGE);
    for (&at, other) in pages.downwards(&(page - PAGE)) {
        if at + PAGE != start || page - at > most * PAGE || !fits(at, other) {
            break;
        }
        start = at;
    }
    for (&at, other) in pages.range(Bound::Included(&end)) {
        if at != end || at >= page + most * PAGE || !fits(at, other) {
            break;
        }
        end = at + PAGE;
    }
    start..end
}

// SAFETY: no processor is led by it: the host maps what it says, and only below the user limit.
unsafe impl Translation for HostTranslation {
    fn table_frames(&self) -> usize {
        (self.pages.borrow().len() * ENTRY_BYTES).div_ceil(PAGE_BYTES)
    }

    fn root(&self) -> Root {
        // SAFETY: the word names this record, whose pages are what was mapped; the host shows no others.
        unsafe { Root::new(self.root_word()) }
    }

    fn reserved(&self) -> &'static [Range<u64>] {
        &RESERVED
    }

    fn map(&self, page: VirtAddr, frame: FrameNumber, protection: Protection) -> Result<(), NoFrames> {
        assert!(is_user(page.0) && page.0.is_multiple_of(PAGE), "{page:?} cannot be mapped");
        let mut entry = Entry { frame, protection, mapped_in: 0 };
        let active = self.is_active();
        let mut pages = self.pages.borrow_mut();
        let was_mapped = pages.get(&page.0).is_some_and(|entry| self.is_mapped(entry));
        if was_mapped && !active {
            self.put_aside(one(page));
        } else if was_mapped {
            flush();
            if map_run(page.0, 1, frame, protection) {
                entry.mapped_in = self.epoch.get();
            } else {
                unmap_run(page.0, PAGE);
            }
        }
        // Only a page that is new here can fail, and the host shows none of those.
        pages.try_insert(page.0, entry).map(drop).map_err(|_| NoFrames)
    }

    fn unmap(&self, page: VirtAddr) -> Option<Mapping> {
        let mut pages = self.pages.borrow_mut();
        let entry = pages.remove(&page.0)?;
        if self.is_mapped(&entry) {
            self.take_away(one(page), self.is_active(), |gap| first_in(&pages, gap).is_none());
        }
        Some(mapping_of(&entry))
    }

    fn protect(&self, page: VirtAddr, protection: Protection) {
        let active = self.is_active();
        let mut pages = self.pages.borrow_mut();
        let Some(entry) = pages.get_mut(&page.0) else { return };
        if entry.protection == protection {
            return;
        }
        entry.protection = protection;
        if entry.mapped_in != self.epoch.get() {
            return;
        }
        if !active {
            entry.mapped_in = 0;
            self.put_aside(one(page));
        } else {
            put_off(one(page), Change::Protect(host_rights(protection)), |_| false);
        }
    }

    fn unmap_all(&self, from: VirtAddr, to: VirtAddr, gone: &mut dyn FnMut(&[FrameNumber])) {
        let (mut frames, mut count) = ([const { FrameNumber::NOTHING }; GONE_AT_ONCE], 0);
        let mut shown: Option<Range<u64>> = None;
        let (epoch, active) = (self.epoch.get(), self.is_active());
        let mut pages = self.pages.borrow_mut();
        pages.remove_range(&from.0, &to.0, |page, entry| {
            if count == GONE_AT_ONCE {
                gone(&frames);
                count = 0;
            }
            frames[count] = entry.frame;
            count += 1;
            if entry.mapped_in == epoch {
                match &mut shown {
                    Some(shown) if is_one_region(shown.end, *page) => shown.end = *page + PAGE,
                    _ => {
                        let before = shown.replace(*page..*page + PAGE);
                        before.into_iter().for_each(|before| self.take_away(before, active, |_| false));
                    }
                }
            }
        });
        gone(&frames[..count]);
        shown.into_iter().for_each(|shown| self.take_away(shown, active, |gap| first_in(&pages, gap).is_none()));
    }

    fn ahead_pages(&self) -> u64 {
        RUN_PAGES / 2
    }

    fn query(&self, page: VirtAddr) -> Option<Mapping> {
        self.pages.borrow().get(&page.0).map(mapping_of)
    }

    fn next_present(&self, from: VirtAddr, to: VirtAddr) -> Option<(VirtAddr, Mapping)> {
        if from >= to {
            return None;
        }
        first_in(&self.pages.borrow(), from.0..to.0)
    }
}

/// The first page in a range.
fn first_in(pages: &Ordered<u64, Entry>, range: Range<u64>) -> Option<(VirtAddr, Mapping)> {
    let first = pages.range(Bound::Included(&range.start)).next().filter(|(at, _)| **at < range.end);
    first.map(|(&page, entry)| (VirtAddr(page), mapping_of(entry)))
}

/// The host does not say which pages were written: what could be written counts as written.
fn mapping_of(entry: &Entry) -> Mapping {
    Mapping { frame: entry.frame, protection: entry.protection, dirty: entry.protection.write }
}

impl Drop for HostTranslation {
    fn drop(&mut self) {
        if self.is_active() {
            flush();
            // SAFETY: the slot is a word that only kernel code stores.
            unsafe { (*cpu()).root = 0 };
        }
        if let Some(host) = self.host.get() {
            hosts::release(host);
        }
        hosts::forget_lost(self.root_word());
    }
}

/// A change of host mappings that has been decided and not yet made. Calls of the kernel come page by page; what is
/// said of neighbours becomes one host call. Nobody may look at the program's memory before [`flush`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Unmap,
    Protect(u64),
}

/// A change of mappings that may be joined with the next.
pub struct PutOff {
    start: u64,
    end: u64,
    change: Change,
}

impl PutOff {
    pub const fn nothing() -> PutOff {
        PutOff { start: 0, end: 0, change: Change::Unmap }
    }
}

fn last_put_off() -> RefMut<'static, PutOff> {
    // SAFETY: the record is never freed.
    unsafe { &(*cpu()).put_off }.borrow_mut()
}

/// Remembers a change of pages in a row; `is_gap` says whether nothing is present in a range, so that it may be swept over.
fn put_off(pages: Range<u64>, change: Change, is_gap: impl Fn(Range<u64>) -> bool) {
    let mut last = last_put_off();
    let follows = last.start < last.end && last.change == change && pages.start >= last.end;
    let gap = last.end..pages.start;
    let joins = follows && (gap.is_empty() || is_one_region(gap.start, gap.end) && is_gap(gap));
    if joins {
        last.end = pages.end;
        return;
    }
    apply(&mut last);
    *last = PutOff { start: pages.start, end: pages.end, change };
}

/// The addresses of a page.
fn one(page: VirtAddr) -> Range<u64> {
    page.0..page.0 + PAGE
}

/// Nothing of the kernel lies between the two addresses.
fn is_one_region(from: u64, to: u64) -> bool {
    !RESERVED.iter().any(|range| range.start < to && from < range.end)
}

fn apply(last: &mut PutOff) {
    let bytes = last.end - last.start;
    if bytes > 0 {
        match last.change {
            Change::Unmap if unmap_run(last.start, bytes) => (),
            // SAFETY: the pages are the program's.
            Change::Protect(rights) if unsafe { host::protect(last.start, bytes, rights) }.is_ok() => (),
            // The next touch maps the pages again, with the new rights.
            _ if unmap_run(last.start, bytes) => (),
            _ => forget_all(),
        }
    }
    last.end = last.start;
}

/// Makes the change that was put off. Called before the program runs or its memory is read.
pub fn flush() {
    apply(&mut last_put_off());
}

/// Makes the translation with this root word the active one; 0: none.
pub fn change_space(root: u64) {
    flush();
    // SAFETY: the slots are words that only kernel code stores.
    unsafe {
        if (*cpu()).root == root {
            return;
        }
        (*cpu()).root = root;
    }
    let Some(space) = active() else { return };
    hosts::show(space);
}

/// The running thread leaves the active translation for this one; 0: for none. Where nobody else is in the old one, its host process
/// shows the new one from now on.
pub fn enter(root: u64) {
    flush();
    // SAFETY: the slot is a word that only kernel code stores.
    let before = unsafe { (*cpu()).root };
    let is_left = before != 0 && root != 0 && !threads::may_be_in(before);
    if !is_left {
        return change_space(root);
    }
    // SAFETY: as above.
    unsafe { (*cpu()).root = root };
    if let Some(space) = active().filter(|space| space.host().is_none()) {
        hosts::show_here(space);
    } else if let Some(space) = active() {
        hosts::show(space);
    }
}

/// Takes the active quaspace's mappings away; nothing is lost, as when a TLB is emptied.
fn forget_all() {
    unmap_all();
    if let Some(space) = active() {
        space.epoch.set(next_epoch());
    }
}

/// Takes every mapping of programs away that this host process has.
pub fn unmap_all() {
    let mut start = USER_START;
    for range in &RESERVED {
        let _ = unmap_run(start, range.start - start);
        start = range.end;
    }
    let _ = unmap_run(start, USER_LIMIT - start);
}

/// The active translation.
pub fn active() -> Option<&'static HostTranslation> {
    // SAFETY: 1. The root word is the address of a translation, which takes itself out of the slot when it goes.
    // 2. Nothing is dropped while the result is in use: kernel code does not run in between.
    unsafe { ((*cpu()).root as *const HostTranslation).as_ref() }
}

/// For `sw_in_mmu`.
#[unsafe(no_mangle)]
extern "C" fn hosted_change_space_rust(root: u64) {
    if root != 0 {
        // Who leaves has given the lock up, and the thread that is entered may need none; the table of host processes does.
        let _entered = upcall::entered();
        change_space(root);
    }
}
