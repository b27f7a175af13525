//! Bytes of a file below, for the node above it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use abi::Errno;
use machine::{KernelCell, KernelValue, PAGE_BYTES, TryGrow, try_arc};

use super::super::attributes::{Attributes, Time};
use super::super::below::Identity;
use super::super::node::Node;
use super::super::opened::File;
use super::super::page_store::{Fresh, PageStore};
use crate::space::Arrival;

const PAGE: u64 = PAGE_BYTES as u64;
/// Pages that are asked for at a time.
const TOGETHER: usize = 16;

/// A file below. It is found again by its name when it is opened, so that names alone hold nothing there.
pub(super) struct LowerFile {
    parent: Arc<Node>,
    name: Box<[u8]>,
    identity: KernelValue<Identity>,
    /// Pages that it has, as far as they have not been cut off above.
    pages: KernelValue<u64>,
    /// Pages that have been taken out above.
    holes: KernelCell<Vec<Range<u64>>>,
    opened: KernelCell<Option<Opened>>,
    /// Pages in a row that are going to be asked for.
    row: KernelCell<Option<(u64, Vec<Arrival>)>>,
    is_changed: KernelValue<bool>,
    seen: KernelValue<Fresh>,
}

#[derive(Clone)]
enum Opened {
    /// Its pages are here.
    Here(Arc<Node>),
    Asked(Arc<dyn File>),
}

impl LowerFile {
    pub(super) fn of(
        parent: Arc<Node>,
        name: Box<[u8]>,
        node: &Arc<Node>,
        attributes: &Attributes,
    ) -> Result<Arc<dyn PageStore>, Errno> {
        let file = LowerFile {
            parent,
            name,
            identity: KernelValue::new((attributes.volume_device, attributes.number)),
            pages: KernelValue::new(attributes.size_bytes.div_ceil(PAGE)),
            holes: KernelCell::new(Vec::new()),
            // What is in memory cannot be lost, nor refuse to be opened.
            opened: KernelCell::new(node.content().is_some().then(|| Opened::Here(node.clone()))),
            row: KernelCell::new(None),
            is_changed: KernelValue::new(false),
            seen: KernelValue::new(fresh(attributes)),
        };
        Ok(try_arc(file)?)
    }

    /// Has the pages in the row fetched.
    fn ask(&self) {
        let Some((first, arrivals)) = self.row.borrow_mut().take() else { return };
        let opened = self.opened.borrow().clone();
        match opened {
            Some(Opened::Asked(file)) => file.fetch(first, self.seen.get().bytes, arrivals),
            Some(Opened::Here(node)) => {
                for (index, arrival) in (first..).zip(arrivals) {
                    if let Some(content) = node.content() {
                        content.hand(index, arrival);
                    }
                }
            }
            // Nobody has opened it: they fail.
            None => drop(arrivals),
        }
    }
}

fn fresh(attributes: &Attributes) -> Fresh {
    let moment = |time: Time| (time.seconds, time.nanos);
    Fresh { bytes: attributes.size_bytes, modified: moment(attributes.modified), changed: moment(attributes.changed) }
}

impl PageStore for LowerFile {
    fn holds(&self, _: u64, index: u64) -> bool {
        index < self.pages.get() && !self.holes.borrow().iter().any(|hole| hole.contains(&index))
    }

    fn next_page(&self, file: u64, from: u64) -> Option<u64> {
        let mut next = from;
        while next < self.pages.get() {
            if self.holds(file, next) {
                return Some(next);
            }
            next = self.holes.borrow().iter().find(|hole| hole.contains(&next)).map_or(next + 1, |hole| hole.end);
        }
        None
    }

    fn pages(&self, _: u64) -> u64 {
        let holes: u64 =
            self.holes.borrow().iter().map(|hole| hole.end.min(self.pages.get()).saturating_sub(hole.start)).sum();
        self.pages.get().saturating_sub(holes)
    }

    fn prepare(&self, _: u64) -> Result<Option<Fresh>, Errno> {
        if self.opened.borrow().is_some() {
            return Ok(None);
        }
        let node = self.parent.child(&self.name)?;
        let attributes = node.attributes();
        let opened = match node.content() {
            Some(_) => Opened::Here(node),
            None => Opened::Asked(node.open(0)?),
        };
        *self.opened.borrow_mut() = Some(opened);
        let now = fresh(&attributes);
        let is_same = self.identity.get() == (attributes.volume_device, attributes.number) && self.seen.get() == now;
        if is_same || self.is_changed.get() {
            return Ok(None);
        }
        self.identity.set((attributes.volume_device, attributes.number));
        self.seen.set(now);
        self.pages.set(attributes.size_bytes.div_ceil(PAGE));
        Ok(Some(now))
    }

    /// One that nobody may read is not asked for pages.
    fn is_written(&self) -> bool {
        false
    }

    fn ahead(&self) -> u64 {
        TOGETHER as u64 - 1
    }

    fn fetch(&self, _: u64, index: u64, arrival: Arrival) {
        let follows = |row: &Option<(u64, Vec<Arrival>)>| {
            row.as_ref().is_none_or(|(first, row)| row.len() < TOGETHER && first + row.len() as u64 == index)
        };
        if !follows(&self.row.borrow()) {
            self.ask();
        }
        let mut row = self.row.borrow_mut();
        let (_, arrivals) = row.get_or_insert_with(|| (index, Vec::new()));
        // Without memory for it, it fails when it is dropped.
        let _ = arrivals.try_push(arrival);
    }

    fn go(&self) {
        self.ask();
    }

    fn put(&self, _: u64, _: u64, arrival: Arrival) {
        arrival.tell(Err(Errno::EROFS));
    }

    fn cut(&self, _: u64, pages: Range<u64>) {
        self.is_changed.set(true);
        if pages.end >= self.pages.get() {
            self.pages.set(self.pages.get().min(pages.start));
            return;
        }
        let mut holes = self.holes.borrow_mut();
        if let Some(hole) = holes.iter_mut().find(|hole| hole.start <= pages.end && pages.start <= hole.end) {
            *hole = hole.start.min(pages.start)..hole.end.max(pages.end);
            return;
        }
        // Without memory to note it the rest is lost, rather than that old bytes come back.
        if holes.try_push(pages.clone()).is_err() {
            self.pages.set(self.pages.get().min(pages.start));
        }
    }
}
