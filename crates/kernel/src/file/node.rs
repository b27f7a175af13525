//! Nodes: files, directories and everything else that has a name in a file system.

mod below;
mod elsewhere;
mod times;

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::{Arc, Weak};
use core::any::Any;

use abi::Errno;
use abi::poll::IN_MODIFY;
use machine::{KernelCell, KernelValue, PAGE_BYTES};

use super::attributes::{Attributes, Meta, NewNode, NodeKind, SET_GROUP, SET_USER, Time};
use super::below::Keeper;
use super::content::Content;
use super::credentials::Credentials;
use super::directory::{Entries, FIRST_COOKIE, Found};
use super::doomed::Doomed;
use super::extended::ExtendedAttributes;
use super::limits::NAME_BYTES_MAX;
use super::locks::NodeLocks;
use super::seals::Seals;
use super::store::Guess;
use super::virtual_tree::{LinkTarget, Listed, VirtualDirectory, VirtualFile, VirtualLink, Visit};
use super::volume::Volume;

/// A file, directory, symlink, device, fifo or socket (an inode). Its entry in a directory and every
/// open of it hold an `Arc`; the last one to go frees the data. That is all there is to deleting a
/// file that is still open.
pub struct Node {
    volume: Arc<Volume>,
    number: u64,
    kind: NodeKind,
    meta: KernelCell<Meta>,
    pub(super) place: KernelCell<Place>,
    data: Data,
    /// Something is mounted here.
    pub(super) covered: KernelValue<bool>,
    /// Above 0: opens for writing. Below 0: programs that execute it. Never both.
    writers: KernelValue<i32>,
    locks: KernelCell<NodeLocks>,
    attachment: KernelCell<Option<Arc<dyn Any + Send + Sync>>>,
    pub(super) extended_here: KernelCell<ExtendedAttributes>,
    /// Never had a name, and may get one.
    is_linkable: KernelValue<bool>,
    /// Of what has several names below: who keeps it for those that nobody has looked at.
    pub(super) keeper: KernelCell<Option<Arc<dyn Keeper>>>,
}

/// Where a node was last given a name. For a directory this is its parent; for a file with several
/// links it is one of them, good enough to tell a person its path.
pub(super) struct Place {
    pub(super) parent: Parent,
    name: Arc<[u8]>,
}

pub(super) enum Parent {
    /// The root of a volume, or a node that was never linked.
    None,
    /// The parent's table holds this node.
    Linked(Weak<Node>),
    /// This node keeps its parent: a removed directory, whose `..` still works, or a produced node.
    Held(Arc<Node>),
}

/// What a node holds.
pub enum Data {
    Regular(Content),
    #[doc(hidden)]
    Directory(DirectoryData),
    Symlink(Arc<[u8]>),
    /// Devices, fifos, sockets: what they do is elsewhere.
    Special,
    VirtualDirectory(Arc<dyn VirtualDirectory>),
    VirtualFile(Arc<dyn VirtualFile>),
    VirtualLink(Arc<dyn VirtualLink>),
    /// All is kept by the volume's store, which is asked each time; this is what it knows of the node.
    Elsewhere(Box<dyn Any + Send + Sync>),
}

/// The table of a directory that is in memory.
pub struct DirectoryData(pub(super) KernelCell<Entries>);

impl Data {
    pub(super) fn empty_directory() -> Data {
        Data::Directory(DirectoryData(KernelCell::new(Entries::default())))
    }
}

impl Node {
    /// The root directory of a volume in memory. Error: `ENOSPC`.
    pub fn root(volume: &Arc<Volume>, new: NewNode) -> Result<Arc<Node>, Errno> {
        let node = Node::unlinked(volume, NodeKind::Directory, Data::empty_directory(), new)?;
        node.change_meta(|meta| meta.links = 2);
        Ok(node)
    }

    /// The root directory of a volume on demand. Error: `ENOSPC`.
    pub fn virtual_root(
        volume: &Arc<Volume>,
        directory: Arc<dyn VirtualDirectory>,
        new: NewNode,
    ) -> Result<Arc<Node>, Errno> {
        let links = 2 + directory.subdirectories();
        let node = Node::unlinked(volume, NodeKind::Directory, Data::VirtualDirectory(directory), new)?;
        node.change_meta(|meta| meta.links = links);
        Ok(node)
    }

    /// A node of a virtual directory, for [`VirtualDirectory::lookup`]. `number` should be the same
    /// each time the same thing is looked up.
    pub fn produce(
        parent: &Arc<Node>,
        name: &[u8],
        number: u64,
        kind: NodeKind,
        data: Data,
        new: NewNode,
    ) -> Arc<Node> {
        let links = match &data {
            Data::VirtualDirectory(directory) => 2 + directory.subdirectories(),
            _ => 1,
        };
        // A volume on demand has no limit, so the charge cannot fail; `Drop` takes it back.
        let _ = parent.volume.charge_node();
        let node = Node::assemble(&parent.volume, number, kind, data, new);
        node.change_meta(|meta| meta.links = links);
        *node.place.borrow_mut() = Place { parent: Parent::Held(parent.clone()), name: name.into() };
        Arc::new(node)
    }

    /// A regular file that no directory names, as `memfd_create` makes it. People see it as `label`. Error: `ENOSPC`.
    pub fn nameless(volume: &Arc<Volume>, label: &[u8], new: NewNode) -> Result<Arc<Node>, Errno> {
        let node = Node::unlinked(volume, NodeKind::Regular, Data::Regular(Content::new(volume)), new)?;
        node.place.borrow_mut().name = label.into();
        Ok(node)
    }

    /// A file that was made in `directory` without a name there, and may get one (`O_TMPFILE`). Error: `ENOSPC`.
    #[expect(clippy::disallowed_macros, reason = "a number")]
    pub fn nameless_in(directory: &Arc<Node>, is_linkable: bool, new: NewNode) -> Result<Arc<Node>, Errno> {
        let node = Node::nameless(directory.volume(), &[], new)?;
        node.set_place(directory, format!("#{}", node.number).into_bytes().into());
        node.is_linkable.set(is_linkable);
        Ok(node)
    }

    /// May get its first name.
    pub(super) fn is_linkable(&self) -> bool {
        self.is_linkable.get()
    }

    /// As `nameless`, for what stands behind a link of a virtual tree: with the same number it is the same thing.
    pub fn nameless_as(volume: &Arc<Volume>, number: u64, new: NewNode) -> Result<Arc<Node>, Errno> {
        volume.charge_node()?;
        let data = Data::Regular(Content::new(volume));
        Ok(Arc::new(Node::assemble(volume, number, NodeKind::Regular, data, new)))
    }

    /// A node with no links. Error: `ENOSPC`.
    pub(super) fn unlinked(volume: &Arc<Volume>, kind: NodeKind, data: Data, new: NewNode) -> Result<Arc<Node>, Errno> {
        volume.charge_node()?;
        Ok(Arc::new(Node::assemble(volume, volume.take_number(), kind, data, new)))
    }

    fn assemble(volume: &Arc<Volume>, number: u64, kind: NodeKind, data: Data, new: NewNode) -> Node {
        let meta = Meta {
            mode: new.mode,
            user: new.user,
            group: new.group,
            links: 0,
            accessed: new.now,
            modified: new.now,
            changed: new.now,
            born: new.now,
        };
        volume.orphan_gained();
        Node {
            volume: volume.clone(),
            number,
            kind,
            meta: KernelCell::new(meta),
            place: KernelCell::new(Place { parent: Parent::None, name: [].as_slice().into() }),
            data,
            covered: KernelValue::new(false),
            writers: KernelValue::new(0),
            locks: KernelCell::new(NodeLocks::default()),
            attachment: KernelCell::new(None),
            extended_here: KernelCell::new(ExtendedAttributes::default()),
            is_linkable: KernelValue::new(false),
            keeper: KernelCell::new(None),
        }
    }

    pub fn volume(&self) -> &Arc<Volume> {
        &self.volume
    }

    /// Number in its volume (`st_ino`).
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn kind(&self) -> NodeKind {
        self.kind
    }

    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Data of a regular file in memory.
    pub fn content(&self) -> Option<&Content> {
        if let Data::Regular(content) = &self.data { Some(content) } else { None }
    }

    /// Adds to what may never be done again. Errors: `EINVAL` for what is no file in memory; `EPERM`, `EBUSY`.
    pub fn add_seals(&self, more: Seals) -> Result<(), Errno> {
        let content = self.content().ok_or(Errno::EINVAL)?;
        content.add_seals(more, self.meta.borrow().mode)
    }

    pub fn is_directory(&self) -> bool {
        self.kind == NodeKind::Directory
    }

    pub fn is_symlink(&self) -> bool {
        self.kind == NodeKind::Symlink
    }

    /// The same file, even if it was produced twice.
    pub fn is(&self, other: &Node) -> bool {
        let same = self.number == other.number && Arc::ptr_eq(&self.volume, &other.volume);
        core::ptr::eq(self, other) || (same && self.device() == other.device())
    }

    /// Device number, major and minor: the volume's, or what its store says.
    pub fn device(&self) -> (u32, u32) {
        if self.is_elsewhere() { self.volume.store().device(self) } else { self.volume.device() }
    }

    #[inline]
    pub fn meta(&self) -> Meta {
        if self.is_elsewhere() { self.asked_meta() } else { self.own_meta() }
    }

    #[inline(always)]
    pub(super) fn own_meta(&self) -> Meta {
        self.settle_times();
        self.meta.get()
    }

    pub(super) fn change_meta(&self, change: impl FnOnce(&mut Meta)) {
        self.forget_noted();
        let (before, after) = {
            let mut meta = self.meta.borrow_mut();
            let before = meta.links;
            change(&mut meta);
            (before, meta.links)
        };
        match (before, after) {
            (0, 1..) => self.volume.orphan_lost(),
            (1.., 0) => self.volume.orphan_gained(),
            _ => {}
        }
        if self.loses_privilege_when_written()
            && let Data::Regular(content) = &self.data
        {
            content.hide_pages();
        }
    }

    /// The next write may have to take set-user or set-group away, so it must not be done by a window's routine.
    pub fn loses_privilege_when_written(&self) -> bool {
        self.meta.borrow().mode & (SET_USER | SET_GROUP) != 0
    }

    /// Pages that come back when nobody has the file any more: no name in memory leads to it.
    pub fn nameless_pages(&self) -> u64 {
        let is_nameless = !self.is_elsewhere() && self.meta.borrow().links == 0;
        self.content().filter(|_| is_nameless).map_or(0, Content::pages_present)
    }

    /// A directory that has been removed: nothing can be created in it.
    pub fn is_removed(&self) -> bool {
        self.meta().links == 0
    }

    /// What `stat` tells.
    #[inline]
    pub fn attributes(&self) -> Attributes {
        if self.is_elsewhere() { self.asked_attributes() } else { self.own_attributes() }
    }

    #[inline(always)]
    pub(super) fn own_attributes(&self) -> Attributes {
        let meta = self.own_meta();
        let (size_bytes, pages) = match &self.data {
            Data::Regular(content) => (content.size(), content.pages_stored()),
            Data::Directory(table) => table.0.borrow().told_size(),
            Data::Symlink(target) => (target.len() as u64, 0),
            _ => (0, 0),
        };
        Attributes {
            volume_device: self.volume.device(),
            number: self.number,
            kind: self.kind,
            mode: meta.mode,
            links: meta.links,
            user: meta.user,
            group: meta.group,
            size_bytes,
            blocks_512: pages * (PAGE_BYTES as u64 / 512),
            accessed: meta.accessed,
            modified: meta.modified,
            changed: meta.changed,
            born: meta.born,
        }
    }

    /// Sets the size of a regular file. Errors: `EISDIR`, `EINVAL` for other kinds, `EFBIG`, `ETXTBSY`.
    pub fn truncate(&self, size_bytes: u64, who: &Credentials, now: Time) -> Result<(), Errno> {
        match &self.data {
            Data::Regular(_) | Data::Elsewhere(_) if self.writers.get() < 0 => Err(Errno::ETXTBSY),
            Data::Elsewhere(_) if self.kind == NodeKind::Regular => self.volume.store().resize(self, size_bytes),
            Data::Regular(content) => {
                content.resize(size_bytes)?;
                self.note_write(who, now);
                self.happened(IN_MODIFY);
                Ok(())
            }
            Data::VirtualFile(_) => Ok(()),
            _ if self.is_directory() => Err(Errno::EISDIR),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Ahead of [`Node::truncate`]: see [`Content::release_some`].
    pub fn release_some(&self, position: u64, bytes: u64) -> Option<u64> {
        if self.writers.get() < 0 { None } else { self.content()?.release_some(position, bytes) }
    }

    /// Where a symlink leads. Error: `EINVAL` for another kind.
    pub fn link_target(&self) -> Result<LinkTarget, Errno> {
        match &self.data {
            Data::Symlink(target) => Ok(LinkTarget::Path(target.clone())),
            Data::VirtualLink(link) => link.target(),
            Data::Elsewhere(_) if self.is_symlink() => self.volume.store().link_target(self).map(LinkTarget::Path),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Opened for writing. Error: `ETXTBSY` while it is executed.
    pub fn begin_write(&self) -> Result<(), Errno> {
        if self.writers.get() < 0 {
            return Err(Errno::ETXTBSY);
        }
        self.volume.writer_gained();
        self.writers.set(self.writers.get() + 1);
        Ok(())
    }

    /// A file opened for writing was closed.
    pub fn end_write(&self) {
        debug_assert!(self.writers.get() > 0, "end_write without begin_write");
        self.volume.writer_lost();
        self.writers.set(self.writers.get() - 1);
    }

    /// A program starts to run from this file. Error: `ETXTBSY` while it is open for writing.
    pub fn begin_execute(&self) -> Result<(), Errno> {
        if self.writers.get() > 0 {
            return Err(Errno::ETXTBSY);
        }
        self.writers.set(self.writers.get() - 1);
        Ok(())
    }

    /// A program that ran from this file is gone.
    pub fn end_execute(&self) {
        debug_assert!(self.writers.get() < 0, "end_execute without begin_execute");
        self.writers.set(self.writers.get() + 1);
    }

    pub(super) fn is_executed(&self) -> bool {
        self.writers.get() < 0
    }

    /// The advisory locks on this file.
    pub fn locks(&self) -> &KernelCell<NodeLocks> {
        &self.locks
    }

    /// What another quaject keeps with this node: the pipe of a fifo, the endpoint of a socket.
    pub fn attachment(&self) -> &KernelCell<Option<Arc<dyn Any + Send + Sync>>> {
        &self.attachment
    }
}

// Names inside directories.
impl Node {
    /// The node called `name` in this directory; `name` is not `.` or `..`.
    /// Errors: `ENOTDIR`, `ENAMETOOLONG`, `ENOENT`.
    pub fn child(self: &Arc<Node>, name: &[u8]) -> Result<Arc<Node>, Errno> {
        self.child_as(name, Guess::Known)
    }

    #[inline]
    pub(super) fn child_as(self: &Arc<Node>, name: &[u8], guess: Guess) -> Result<Arc<Node>, Errno> {
        if !self.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        match &self.data {
            Data::Directory(table) => {
                let found = table.0.borrow().find(name);
                match found {
                    Found::Node(node) => Ok(node),
                    Found::Missing => Err(Errno::ENOENT),
                    Found::Unknown => self.bring(name),
                }
            }
            Data::VirtualDirectory(directory) => directory.lookup(self, name),
            Data::Elsewhere(_) => self.asked_child(name, guess),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// Shows the entries from cookie `from` on, `.` and `..` first, until `visit` stops. A listing
    /// goes on at `next` of the last entry taken. `visit` must not touch program memory.
    ///
    /// Errors: `ENOTDIR`; `ENOENT` if the directory was removed.
    pub fn list(self: &Arc<Node>, from: u64, visit: &mut dyn FnMut(&Listed<'_>) -> Visit) -> Result<(), Errno> {
        if !self.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        if self.is_elsewhere() {
            return self.open(0)?.list(from, 32_768, visit);
        }
        if self.is_removed() {
            return Err(Errno::ENOENT);
        }
        self.list_below()?;
        let parent = self.parent().map_or(self.number, |parent| parent.number);
        let dots: [(&[u8], u64); 2] = [(b".", self.number), (b"..", parent)];
        for (cookie, (name, number)) in (0..).zip(dots) {
            let listed = Listed { cookie, next: cookie + 1, number, kind: NodeKind::Directory, name };
            if cookie >= from && visit(&listed) == Visit::Stop {
                return Ok(());
            }
        }
        match &self.data {
            Data::Directory(table) => list_table(&table.0.borrow(), from, visit),
            Data::VirtualDirectory(directory) => {
                let shift = |listed: &Listed<'_>| {
                    visit(&Listed { cookie: listed.cookie + FIRST_COOKIE, next: listed.next + FIRST_COOKIE, ..*listed })
                };
                directory.list(self, from.saturating_sub(FIRST_COOKIE), &mut { shift });
            }
            _ => {}
        }
        Ok(())
    }

    /// Entries without `.` and `..`; a virtual directory never counts as empty. Errors: those of what it lies over.
    pub(super) fn is_empty_directory(self: &Arc<Node>) -> Result<bool, Errno> {
        self.list_below()?;
        Ok(matches!(&self.data, Data::Directory(table) if table.0.borrow().len() == 0))
    }

    /// The table of this directory. Error: `error` for a virtual directory, which nobody may change.
    pub(super) fn table(&self, error: Errno) -> Result<&KernelCell<Entries>, Errno> {
        match &self.data {
            Data::Directory(table) => Ok(&table.0),
            _ => Err(error),
        }
    }

    /// Gives `node` a further name here. Neither permissions nor times are looked at.
    /// Errors: `ENOSPC`, `EPERM` for a virtual directory.
    pub(super) fn attach(self: &Arc<Node>, name: &[u8], node: &Arc<Node>) -> Result<(), Errno> {
        let name: Arc<[u8]> = name.into();
        self.table(Errno::EPERM)?.borrow_mut().insert(name.clone(), node.clone())?;
        node.set_place(self, name);
        if node.is_directory() {
            node.change_meta(|meta| meta.links = 2);
            self.change_meta(|meta| meta.links += 1);
        } else {
            node.is_linkable.set(false);
            node.change_meta(|meta| meta.links += 1);
        }
        Ok(())
    }

    pub(super) fn set_place(&self, parent: &Arc<Node>, name: Arc<[u8]>) {
        let new = Place { parent: Parent::Linked(Arc::downgrade(parent)), name };
        let old = core::mem::replace(&mut *self.place.borrow_mut(), new);
        drop(old);
        self.comes_to(parent);
    }

    /// This node was found as `name` in `parent`, which it keeps: the table that names it is not this machine's.
    pub(super) fn show_in(&self, parent: &Arc<Node>, name: &[u8]) {
        let mut place = self.place.borrow_mut();
        let known = matches!(&place.parent, Parent::Held(held) if Arc::ptr_eq(held, parent)) && *place.name == *name;
        // A removed root would keep itself.
        if known || core::ptr::eq(&**parent, self) {
            return;
        }
        let new = Place { parent: Parent::Held(parent.clone()), name: name.into() };
        let old = core::mem::replace(&mut *place, new);
        drop(place);
        drop(old);
    }

    /// This directory has been removed from `parent`. It keeps `parent`, so that `..` still works.
    pub(super) fn set_removed(&self, parent: &Arc<Node>) {
        self.change_meta(|meta| meta.links = 0);
        self.place.borrow_mut().parent = Parent::Held(parent.clone());
    }

    /// Parent of a directory inside its volume, `None` for the volume's root. For another node: the
    /// directory where it was last given a name, if that still exists.
    /// As which it was last seen is this directory and this name.
    pub(super) fn is_shown_in(&self, directory: &Arc<Node>, name: &[u8]) -> bool {
        let place = self.place.borrow();
        matches!(&place.parent, Parent::Held(held) if Arc::ptr_eq(held, directory)) && *place.name == *name
    }

    pub fn parent(&self) -> Option<Arc<Node>> {
        match &self.place.borrow().parent {
            Parent::None => None,
            Parent::Linked(parent) => parent.upgrade(),
            Parent::Held(parent) => Some(parent.clone()),
        }
    }

    /// The name in [`Node::parent`]; empty for the root of a volume.
    pub fn name(&self) -> Arc<[u8]> {
        self.place.borrow().name.clone()
    }

    /// A name of this node went away together with the directory it was in.
    fn forget_link(&self) {
        let links = self.meta().links;
        if !self.is_directory() && links > 1 {
            self.change_meta(|meta| meta.links = links - 1);
            self.volume.release_node();
        }
    }

    /// Gives up what this node keeps alive; who goes with it joins `doomed`.
    fn let_go(&mut self, doomed: &mut Doomed) {
        if let Parent::Held(parent) = core::mem::replace(&mut self.place.borrow_mut().parent, Parent::None) {
            doomed.add(parent);
        }
        if let Data::Directory(table) = &self.data {
            for node in table.0.borrow_mut().drain() {
                node.forget_link();
                doomed.add(node);
            }
        }
    }
}

fn list_table(entries: &Entries, from: u64, visit: &mut dyn FnMut(&Listed<'_>) -> Visit) {
    for (cookie, entry) in entries.at_or_after(from) {
        let (number, kind) = (entry.number(), entry.kind());
        let listed = Listed { cookie, next: cookie + 1, number, kind, name: &entry.name };
        if visit(&listed) == Visit::Stop {
            return;
        }
    }
}

/// A tree may be deeper than the kernel's stack, so what a node keeps is taken apart in a loop, not
/// by one drop inside another.
impl Drop for Node {
    fn drop(&mut self) {
        self.end_watches();
        self.volume.release_node();
        self.extended_here.borrow().release(&self.volume);
        if self.meta.borrow().links == 0 {
            self.volume.orphan_lost();
        }
        if self.is_elsewhere() {
            self.volume.store().forget(self);
        }
        let mut doomed = Doomed::default();
        self.let_go(&mut doomed);
        while let Some(mut node) = doomed.take() {
            node.let_go(&mut doomed);
        }
    }
}
