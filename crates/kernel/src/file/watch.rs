//! Who is told what happens to files and names (inotify).
//!
//! ```text
//!   read, write, open, close, chmod ─► Node::happened ─┬─► watches of the directory in which it has its name, with the name
//!                                                      └─► watches of the node itself
//!   create, delete, rename ─► Node::name_happened ────────► watches of the directory
//! ```
//! A volume keeps the watches of its nodes by their numbers, so a node without a watch takes no more room, and a volume
//! without watches costs one comparison. Numbers serve for produced nodes as well: each look makes another node.
//!
//! Of some file systems the other side tells (`Store::tells`).
//!
//! Machine code that reads and writes tells nobody. The windows of a watched file are forgotten and not filled again
//! (`Node::is_data_watched`), so that all of it is done in Rust.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use abi::Errno;
use abi::poll::*;
use machine::{KernelCell, KernelValue, TryGrow};

use super::attributes::NodeKind;
use super::directory::FIRST_COOKIE;
use super::namespace::Namespace;
use super::node::{Data, Node};
use super::store::{Residence, WatchKey as Key};
use super::volume::Volume;

/// A watch ended, or the volume of its node was taken away (`linux/inotify.h`; programs cannot ask for these).
pub const UNMOUNTED: u32 = 0x2000;
pub const ENDED: u32 = 0x8000;
/// Something happened that could not be kept.
pub const OVERFLOWED: u32 = 0x4000;

/// What a watch of data is told by reading and writing alone.
const OF_DATA: u32 = IN_ACCESS | IN_MODIFY;
/// What happened to a node itself, of which Linux does not say that it is a directory.
const OF_SELF: u32 = IN_DELETE_SELF | IN_MOVE_SELF;
/// What one asks a watch for, beside how it shall be.
const EVENTS: u32 = 0xFFF;

/// Lists of watches: enough that each is short with as many watches as a user may have.
const LISTS: usize = 256;

/// What happened, as a watcher is told.
pub struct Happened<'a> {
    /// Linux's bits.
    pub mask: u32,
    /// The two halves of a renaming have the same; otherwise 0.
    pub cookie: u32,
    /// The name in the watched directory; empty for what happened to the node itself.
    pub name: &'a [u8],
}

/// Who set a watch.
pub trait Watcher: Send + Sync {
    /// Must not sleep, nor call back.
    fn tell(&self, watch: &Watch, happened: &Happened<'_>);
    /// The watch has ended: its node has gone, or it was for once.
    fn ended(&self, watch: &Watch);
}

fn key_of(node: &Node) -> Key {
    (node.device(), node.number())
}

/// One watched node of one watcher.
pub struct Watch {
    key: Key,
    volume: Arc<Volume>,
    /// The number that its watcher gave it.
    pub number: i32,
    /// Linux's bits: what to tell, and how.
    mask: KernelValue<u32>,
    watcher: Weak<dyn Watcher>,
    /// A produced node would be gone at once.
    _kept: Option<Arc<Node>>,
}

impl Watch {
    /// Starts to watch a node. Error: `ENOMEM`.
    pub fn start(node: &Arc<Node>, watcher: Weak<dyn Watcher>, number: i32, mask: u32) -> Result<Arc<Watch>, Errno> {
        let kept = (node.volume().residence() == Residence::Virtual).then(|| node.clone());
        let volume = node.volume().clone();
        let watch =
            Arc::new(Watch { key: key_of(node), volume, number, mask: KernelValue::new(mask), watcher, _kept: kept });
        watch.volume.watches().add(&watch)?;
        watch.ask_outside(node).inspect_err(|_| watch.stop())?;
        Ok(watch)
    }

    pub fn mask(&self) -> u32 {
        self.mask.get()
    }

    /// Changes what is told of the node. Errors: those of the other side.
    pub fn set_mask(&self, node: &Node, mask: u32) -> Result<(), Errno> {
        let before = self.mask.replace(mask);
        self.ask_outside(node).inspect_err(|_| self.mask.set(before))
    }

    /// Has the other side tell all that anybody wants to know of the node.
    fn ask_outside(&self, node: &Node) -> Result<(), Errno> {
        if !self.volume.store().tells() {
            return Ok(());
        }
        let (mut events, mut excludes) = (0, IN_EXCL_UNLINK);
        self.volume.watches().each_of(&self.key, |watch| {
            events |= watch.mask.get() & EVENTS;
            excludes &= watch.mask.get();
        });
        self.volume.store().watch(node, self.key, events | excludes)
    }

    /// Device and number of the node.
    pub fn place(&self) -> ((u32, u32), u64) {
        self.key
    }

    /// The watch of this node that `watcher` has.
    pub fn find(node: &Node, watcher: &Weak<dyn Watcher>) -> Option<Arc<Watch>> {
        let mut found = None;
        node.volume().watches().each_of(&key_of(node), |watch| {
            if Weak::ptr_eq(&watch.watcher, watcher) {
                found = Some(watch.clone());
            }
        });
        found
    }

    /// Takes the watch away; its watcher is not told.
    pub fn stop(self: &Arc<Watch>) {
        self.volume.watches().remove(self);
        if self.volume.watches().next_of(&self.key, 0).is_none() {
            self.volume.store().unwatch(&self.key);
        }
    }

    fn end(self: &Arc<Watch>) {
        self.stop();
        if let Some(watcher) = self.watcher.upgrade() {
            watcher.ended(self);
        }
    }

    fn tell(self: &Arc<Watch>, happened: &Happened<'_>) {
        let asked = self.mask.get();
        if happened.mask & EVENTS & asked == 0 && happened.mask & (UNMOUNTED | OVERFLOWED) == 0 {
            return;
        }
        if let Some(watcher) = self.watcher.upgrade() {
            watcher.tell(self, happened);
        }
        if asked & IN_ONESHOT != 0 {
            self.end();
        }
    }
}

/// The watches of a volume's nodes.
pub(super) struct Watches {
    count: KernelValue<usize>,
    /// Made with the first watch.
    lists: KernelCell<Vec<Vec<Arc<Watch>>>>,
}

impl Watches {
    pub(super) const fn new() -> Watches {
        Watches { count: KernelValue::new(0), lists: KernelCell::new(Vec::new()) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count.get() == 0
    }

    fn list_of(key: &Key) -> usize {
        (key.1 ^ key.1 >> 8) as usize % LISTS
    }

    fn add(&self, watch: &Arc<Watch>) -> Result<(), Errno> {
        let mut lists = self.lists.borrow_mut();
        if lists.is_empty() {
            lists.try_resize_with(LISTS, Vec::new)?;
        }
        lists[Watches::list_of(&watch.key)].try_push(watch.clone())?;
        self.count.set(self.count.get() + 1);
        Ok(())
    }

    fn remove(&self, watch: &Arc<Watch>) {
        let mut lists = self.lists.borrow_mut();
        let Some(list) = lists.get_mut(Watches::list_of(&watch.key)) else { return };
        let Some(place) = list.iter().position(|other| Arc::ptr_eq(other, watch)) else { return };
        let gone = list.swap_remove(place);
        if list.is_empty() {
            // A list that was long once is not kept for good.
            *list = Vec::new();
        }
        self.count.set(self.count.get() - 1);
        drop(lists);
        drop(gone);
    }

    /// The first watch of a node at or behind a place of its list, and the place behind it.
    fn next_of(&self, key: &Key, from: usize) -> Option<(usize, Arc<Watch>)> {
        let lists = self.lists.borrow();
        let list = lists.get(Watches::list_of(key))?.get(from..)?;
        let found = list.iter().position(|watch| watch.key == *key)?;
        Some((from + found + 1, list[found].clone()))
    }

    fn each_of(&self, key: &Key, mut visit: impl FnMut(&Arc<Watch>)) {
        let mut from = 0;
        while let Some((next, watch)) = self.next_of(key, from) {
            visit(&watch);
            // A watch for once has left the list, and the last one has its place.
            let stays = self.next_of(key, next - 1).is_some_and(|(_, at)| Arc::ptr_eq(&at, &watch));
            from = if stays { next } else { next - 1 };
        }
    }

    fn tell(&self, key: &Key, happened: &Happened<'_>) {
        self.each_of(key, |watch| watch.tell(happened));
    }

    fn asks(&self, key: &Key, events: u32) -> bool {
        let mut asks = false;
        self.each_of(key, |watch| asks |= watch.mask.get() & events != 0);
        asks
    }

    fn at(&self, list: usize, place: usize) -> Option<Arc<Watch>> {
        self.lists.borrow().get(list)?.get(place).cloned()
    }

    /// Any watch, to be ended.
    fn any(&self) -> Option<Arc<Watch>> {
        self.lists.borrow().iter().flatten().next().cloned()
    }
}

impl Volume {
    /// Takes what its store has to tell, and tells those who watch.
    pub fn pull_events(&self) {
        self.store().pull_events(self);
    }

    /// The volume is taken out of the tree: whoever watches something of it is told.
    pub(super) fn unmounted(&self) {
        while let Some(watch) = self.watches().any() {
            watch.tell(&Happened { mask: UNMOUNTED, cookie: 0, name: &[] });
            watch.end();
        }
    }

    pub(super) fn tell_watches_of(&self, key: &Key, happened: &Happened<'_>) {
        self.watches().tell(key, happened);
    }

    pub(super) fn tell_all_watches(&self, happened: &Happened<'_>) {
        for list in 0..LISTS {
            let mut place = 0;
            while let Some(watch) = self.watches().at(list, place) {
                watch.tell(happened);
                place += 1;
            }
        }
    }

    pub(super) fn end_watches_of(&self, key: &Key) {
        while let Some((_, watch)) = self.watches().next_of(key, 0) {
            watch.end();
        }
    }
}

impl Node {
    /// Whether anything of this node's volume is watched, and this side has to tell.
    #[inline]
    fn may_be_watched(&self) -> bool {
        !self.volume().watches().is_empty() && self.is_told_here()
    }

    /// The other side does not see what goes through its special files: their streams are ours.
    fn is_told_here(&self) -> bool {
        !self.volume().store().tells() || self.is_special()
    }

    fn kind_bit(&self) -> u32 {
        if self.is_directory() { IN_ISDIR } else { 0 }
    }

    /// Something happened to the node: those who watch the directory of its name are told, then those who watch itself.
    #[inline]
    pub fn happened(&self, what: u32) {
        if self.may_be_watched() {
            self.tell_all(what);
        }
    }

    /// Bytes were read from the node, or written to it. Who may only look at a directory is not told of the special files
    /// in it: their times do not tell either.
    #[inline]
    pub fn data_happened(&self, what: u32) {
        if self.is_special() { self.happened_here(what) } else { self.happened(what) }
    }

    /// Neither a file nor a directory.
    pub fn is_special(&self) -> bool {
        !matches!(self.kind(), NodeKind::Regular | NodeKind::Directory)
    }

    #[cold]
    fn tell_all(&self, what: u32) {
        let mask = what | self.kind_bit();
        if let Some(parent) = self.parent().filter(|parent| !parent.volume().watches().is_empty()) {
            let name = self.name();
            let happened = Happened { mask, cookie: 0, name: &name };
            parent.volume().watches().each_of(&key_of(&parent), |watch| {
                if watch.mask.get() & IN_EXCL_UNLINK == 0 || self.has_its_name(&parent, &name) {
                    watch.tell(&happened);
                }
            });
        }
        self.tell_own(mask);
    }

    /// Whether the directory still shows the node under this name.
    fn has_its_name(&self, parent: &Arc<Node>, name: &[u8]) -> bool {
        self.meta().links > 0 && parent.child(name).is_ok_and(|found| found.is(self))
    }

    /// Something happened to the node that has nothing to do with where it is.
    pub(super) fn happened_here(&self, what: u32) {
        if self.may_be_watched() {
            let kind = if what & OF_SELF != 0 { 0 } else { self.kind_bit() };
            self.tell_own(what | kind);
        }
    }

    fn tell_own(&self, mask: u32) {
        self.volume().watches().tell(&key_of(self), &Happened { mask, cookie: 0, name: &[] });
    }

    /// Something happened to a name in this directory, which stands or stood for `node`.
    pub(super) fn name_happened(&self, what: u32, name: &[u8], node: &Node, cookie: u32) {
        if self.may_be_watched() {
            let happened = Happened { mask: what | node.kind_bit(), cookie, name };
            self.volume().watches().tell(&key_of(self), &happened);
        }
    }

    /// The node goes with its last user, which is the caller if it has neither a name nor another user.
    pub(super) fn may_have_gone(self: &Arc<Node>) {
        if self.may_be_watched() && Arc::strong_count(self) == 1 {
            self.end_watches();
        }
    }

    /// Tells those who watch the node that it has gone.
    pub(super) fn end_watches(&self) {
        // A produced node is not the thing itself, and outside of the machine others have it.
        if !self.may_be_watched() || self.volume().residence() != Residence::Memory {
            return;
        }
        let key = key_of(self);
        if self.meta().links == 0 {
            self.tell_own(IN_DELETE_SELF);
        }
        self.volume().end_watches_of(&key);
    }

    /// Whether somebody wants to be told of reads or writes of this node: then they are not done by machine code.
    pub fn is_data_watched(&self) -> bool {
        self.may_be_watched() && self.is_watched_for(OF_DATA, !self.is_special())
    }

    /// Whether somebody wants to be told of its opening, its use or its closing.
    pub fn is_use_watched(&self) -> bool {
        self.may_be_watched() && self.is_watched_for(OF_DATA | IN_OPEN | IN_CLOSE_WRITE | IN_CLOSE_NOWRITE, true)
    }

    #[cold]
    fn is_watched_for(&self, events: u32, is_told_of_above: bool) -> bool {
        let watches = |node: &Node| node.volume().watches().asks(&key_of(node), events);
        watches(self) || is_told_of_above && self.parent().is_some_and(|parent| watches(&parent))
    }

    /// Machine code that works on the data of this node, or of the nodes named in it, goes back to Rust. Of a directory
    /// this looks at some entries from cookie `from` on, and returns where to go on.
    pub fn hide_pages(&self, from: u64) -> Option<u64> {
        const AT_ONCE: usize = 256;
        match self.data() {
            Data::Regular(content) => content.hide_pages(),
            Data::Directory(table) => {
                let mut last = None;
                for (cookie, entry) in table.0.borrow().at_or_after(from.max(FIRST_COOKIE)).take(AT_ONCE) {
                    last = Some(cookie);
                    if let Some(content) = entry.node().and_then(|node| node.content()) {
                        content.hide_pages();
                    }
                }
                return last.map(|cookie| cookie + 1);
            }
            _ => {}
        }
        None
    }

    /// The node has come into this directory, which may be watched.
    pub(super) fn comes_to(&self, directory: &Node) {
        if directory.may_be_watched()
            && self.kind() == NodeKind::Regular
            && let Some(content) = self.content()
        {
            content.hide_pages();
        }
    }
}

impl Namespace {
    /// A new watch may be of what synthesized opens open: they look anew.
    pub fn watch_started(&self) {
        self.names_changed();
    }
}

/// A number that joins the two halves of a renaming.
pub(super) fn take_cookie() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)
}
