//! Making and removing names.

use alloc::sync::Arc;

use abi::Errno;
use abi::poll::{IN_ATTRIB, IN_CREATE, IN_DELETE};
use abi::process::{CAP_FSETID, CAP_MKNOD};

use super::attributes::NewNode;
use super::attributes::{MODE_BITS, NodeKind, SET_GROUP, STICKY, Time};
use super::content::Content;
use super::credentials::{Access, Credentials};
use super::limits::{NAME_BYTES_MAX, PATH_BYTES_MAX};
use super::namespace::Namespace;
use super::node::{Data, Node};
use super::volume::{MAGIC_PROC, Residence};
use super::walk::{FinalLink, Last, Name, View, Walk};

/// A node to be made by name: any kind but directory and symlink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewSpecial {
    pub kind: NodeKind,
    /// Permission bits, the process's umask already taken off.
    pub mode: u32,
}

/// The last name of a path under which something shall be made.
struct FreeName<'a> {
    directory: Arc<Node>,
    name: Name<'a>,
}

impl Namespace {
    /// Makes a directory. `mode` has the process's umask taken off.
    /// Errors: those of a walk; `EEXIST`, `EACCES`, `EROFS`, `ENOSPC`, `EPERM`.
    pub fn make_directory(&self, view: View<'_>, path: &[u8], mode: u32, now: Time) -> Result<Arc<Node>, Errno> {
        let mut walk = Walk::new(self, view, path)?;
        let free = free_name(&mut walk, Slash::Allowed)?;
        if let Some(tree) = free.directory.volume().foreign() {
            return tree.make_directory(view.credentials, &free.directory, free.name.bytes(), mode);
        }
        check_create(view.credentials, &free.directory)?;
        free.directory.table(Errno::EPERM)?;
        let mode = mode & (0o777 | STICKY);
        let new = inherit(view.credentials, &free.directory, NodeKind::Directory, mode, now);
        let node = Node::unlinked(free.directory.volume(), NodeKind::Directory, Data::empty_directory(), new)?;
        self.enter(&free.directory, free.name.bytes(), &node, now)?;
        Ok(node)
    }

    /// Makes a regular file, fifo, socket or device (`mknod`).
    /// Errors: those of a walk; `EEXIST`, `EACCES`, `EROFS`, `ENOSPC`, `EPERM` for a device without
    /// privilege, `EINVAL` for a directory or symlink.
    pub fn make_special(
        &self,
        view: View<'_>,
        path: &[u8],
        special: NewSpecial,
        now: Time,
    ) -> Result<Arc<Node>, Errno> {
        let mut walk = Walk::new(self, view, path)?;
        let free = free_name(&mut walk, Slash::Forbidden)?;
        self.create_in(view.credentials, &free.directory, free.name.bytes(), special, now)
    }

    /// Makes a symlink that leads to `target`.
    /// Errors: those of a walk; `ENOENT` for an empty target, `ENAMETOOLONG`, `EEXIST`, `EACCES`,
    /// `EROFS`, `ENOSPC`, `EPERM`.
    pub fn make_symlink(&self, view: View<'_>, target: &[u8], path: &[u8], now: Time) -> Result<Arc<Node>, Errno> {
        match target.len() {
            0 => return Err(Errno::ENOENT),
            bytes if bytes > PATH_BYTES_MAX => return Err(Errno::ENAMETOOLONG),
            _ => {}
        }
        let mut walk = Walk::new(self, view, path)?;
        let free = free_name(&mut walk, Slash::Forbidden)?;
        if let Some(tree) = free.directory.volume().foreign() {
            return tree.make_symlink(view.credentials, &free.directory, free.name.bytes(), target);
        }
        check_create(view.credentials, &free.directory)?;
        free.directory.table(Errno::EPERM)?;
        let new = inherit(view.credentials, &free.directory, NodeKind::Symlink, 0o777, now);
        let data = Data::Symlink(target.into());
        let node = Node::unlinked(free.directory.volume(), NodeKind::Symlink, data, new)?;
        self.enter(&free.directory, free.name.bytes(), &node, now)?;
        Ok(node)
    }

    /// Gives the node at `old` a further name `new` (`linkat`).
    /// Errors: those of a walk; `EEXIST`, `EXDEV`, `EPERM` for a directory, `EACCES`, `EROFS`, `ENOSPC`.
    pub fn link(
        &self,
        old: (View<'_>, &[u8]),
        new: (View<'_>, &[u8]),
        last: FinalLink,
        now: Time,
    ) -> Result<(), Errno> {
        let node = self.lookup(old.0, old.1, last)?;
        self.link_node(&node, new.0, new.1, now)
    }

    /// Gives `node` a further name `path`; a file made by [`Node::nameless`] gets its first.
    /// Errors: as [`Namespace::link`]; `ENOENT` for a file that has lost all its names.
    pub fn link_node(&self, node: &Arc<Node>, view: View<'_>, path: &[u8], now: Time) -> Result<(), Errno> {
        let mut walk = Walk::new(self, view, path)?;
        let free = free_name(&mut walk, Slash::Forbidden)?;
        let directory = &free.directory;
        check_changeable(directory)?;
        if !Arc::ptr_eq(node.volume(), directory.volume()) {
            return Err(Errno::EXDEV);
        }
        if let Some(tree) = directory.volume().foreign() {
            return tree.link(view.credentials, node, directory, free.name.bytes());
        }
        check_create(view.credentials, directory)?;
        directory.table(Errno::EPERM)?;
        if node.is_directory() {
            return Err(Errno::EPERM);
        }
        let nameless = node.is_linkable();
        if node.meta().links == 0 && !nameless {
            return Err(Errno::ENOENT);
        }
        if !nameless {
            node.volume().charge_node()?;
        }
        let entered = self.enter_quietly(directory, free.name.bytes(), node, now);
        match entered {
            Ok(()) => {
                node.change_meta(|meta| meta.changed = now);
                node.happened_here(IN_ATTRIB);
            }
            Err(_) if !nameless => node.volume().release_node(),
            Err(_) => {}
        }
        entered?;
        directory.name_happened(IN_CREATE, free.name.bytes(), node, 0);
        Ok(())
    }

    /// Removes a name of something that is not a directory. The node lives on while it has other
    /// names or is open.
    /// Errors: those of a walk; `EISDIR`, `EACCES`, `EPERM` in a sticky directory, `EROFS`.
    pub fn unlink(&self, view: View<'_>, path: &[u8], now: Time) -> Result<Arc<Node>, Errno> {
        let mut walk = Walk::new(self, view, path)?;
        let Last::Name(name) = walk.reach_last()? else { return Err(Errno::EISDIR) };
        check_changeable(&walk.at)?;
        let node = walk.child(name.bytes())?;
        if walk.ends_in_slash {
            return Err(if node.is_directory() { Errno::EISDIR } else { Errno::ENOTDIR });
        }
        check_remove(view.credentials, &walk.at, &node)?;
        if node.is_directory() {
            return Err(Errno::EISDIR);
        }
        if let Some(tree) = walk.at.volume().foreign() {
            return tree.remove(&walk.at, name.bytes(), &node).map(|()| node);
        }
        self.take_out(&walk.at, name.bytes(), &node, now)?;
        Ok(node)
    }

    /// Removes an empty directory.
    /// Errors: those of a walk; `EINVAL` for `.`, `ENOTEMPTY`, `ENOTDIR`, `EBUSY` for a mount point or
    /// root, `EACCES`, `EPERM` in a sticky directory, `EROFS`.
    pub fn remove_directory(&self, view: View<'_>, path: &[u8], now: Time) -> Result<(), Errno> {
        let mut walk = Walk::new(self, view, path)?;
        let name = match walk.reach_last()? {
            Last::Name(name) => name,
            Last::Dot => return Err(Errno::EINVAL),
            Last::DotDot => return Err(Errno::ENOTEMPTY),
            Last::Root => return Err(Errno::EBUSY),
        };
        check_changeable(&walk.at)?;
        let node = walk.at.child(name.bytes())?;
        check_remove(view.credentials, &walk.at, &node)?;
        if !node.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        if node.covered.get() {
            return Err(Errno::EBUSY);
        }
        if let Some(tree) = walk.at.volume().foreign() {
            return tree.remove(&walk.at, name.bytes(), &node);
        }
        walk.at.table(Errno::EPERM)?;
        if !node.is_empty_directory() {
            return Err(Errno::ENOTEMPTY);
        }
        self.take_out(&walk.at, name.bytes(), &node, now)
    }

    /// Makes a node in `directory` after checking that `who` may. The name is free.
    pub(super) fn create_in(
        &self,
        who: &Credentials,
        directory: &Arc<Node>,
        name: &[u8],
        special: NewSpecial,
        now: Time,
    ) -> Result<Arc<Node>, Errno> {
        if denies_names(directory) {
            return Err(Errno::ENOENT);
        }
        if let Some(tree) = directory.volume().foreign() {
            return tree.make_special(who, directory, name, special);
        }
        check_create(who, directory)?;
        directory.table(if special.kind == NodeKind::Regular { Errno::EACCES } else { Errno::EPERM })?;
        let volume = directory.volume();
        let data = match special.kind {
            NodeKind::Regular => Data::Regular(Content::new(volume)),
            kind if kind.is_device() && !who.can(CAP_MKNOD) => return Err(Errno::EPERM),
            NodeKind::Directory | NodeKind::Symlink => return Err(Errno::EINVAL),
            _ => Data::Special,
        };
        let new = inherit(who, directory, special.kind, special.mode & MODE_BITS, now);
        let node = Node::unlinked(volume, special.kind, data, new)?;
        self.enter(directory, name, &node, now)?;
        Ok(node)
    }

    /// Enters a free name. A new name can make no remembered path wrong, so the generation stays.
    fn enter(&self, directory: &Arc<Node>, name: &[u8], node: &Arc<Node>, now: Time) -> Result<(), Errno> {
        self.enter_quietly(directory, name, node, now)?;
        directory.name_happened(IN_CREATE, name, node, 0);
        Ok(())
    }

    /// The same, and nobody who watches the directory is told.
    fn enter_quietly(&self, directory: &Arc<Node>, name: &[u8], node: &Arc<Node>, now: Time) -> Result<(), Errno> {
        directory.attach(name, node)?;
        directory.note_names_changed(now);
        Ok(())
    }

    /// Takes out a name that stands for `node`.
    fn take_out(&self, directory: &Arc<Node>, name: &[u8], node: &Arc<Node>, now: Time) -> Result<(), Errno> {
        let entry = directory.table(Errno::EPERM)?.borrow_mut().remove(name);
        drop(entry);
        name_lost(directory, node, now);
        if !node.is_directory() {
            node.happened_here(IN_ATTRIB);
        }
        directory.note_names_changed(now);
        self.names_changed();
        node.may_have_gone();
        directory.name_happened(IN_DELETE, name, node, 0);
        Ok(())
    }
}

/// Counts one link of `node` less, after its name left the table of `directory`.
pub(super) fn name_lost(directory: &Arc<Node>, node: &Arc<Node>, now: Time) {
    if node.is_directory() {
        node.set_removed(directory);
        directory.change_meta(|meta| meta.links -= 1);
    } else {
        node.change_meta(|meta| meta.links -= 1);
        if node.meta().links > 0 {
            node.volume().release_node();
        }
    }
    node.change_meta(|meta| meta.changed = now);
}

/// Linux's /proc says of every name it does not know that there is none, whoever asks and why.
fn denies_names(directory: &Node) -> bool {
    let volume = directory.volume();
    volume.residence() == Residence::Virtual && volume.numbers().magic == MAGIC_PROC
}

/// Error: `EROFS`, which Linux finds before it looks for the last name.
pub(super) fn check_changeable(directory: &Node) -> Result<(), Errno> {
    if directory.volume().is_read_only() { Err(Errno::EROFS) } else { Ok(()) }
}

/// May `who` add a name to `directory`? Errors: `ENOENT` if it was removed, `EROFS`, `EACCES`.
pub(super) fn check_create(who: &Credentials, directory: &Node) -> Result<(), Errno> {
    check_changeable(directory)?;
    if directory.is_removed() {
        return Err(Errno::ENOENT);
    }
    who.permit(directory, Access::CHANGE_NAMES)
}

/// May `who` take `victim` out of `directory`? Errors: `EROFS`, `EACCES`, `EPERM` if it is sticky.
pub(super) fn check_remove(who: &Credentials, directory: &Node, victim: &Node) -> Result<(), Errno> {
    if directory.volume().foreign().is_some_and(|tree| tree.speaks_for(who)) {
        return Ok(());
    }
    who.permit(directory, Access::CHANGE_NAMES)?;
    who.permit_removal(directory, victim)
}

/// Owner, group and mode of something new in `directory`: in a set-group directory the group is the
/// directory's, and a new directory is set-group itself.
fn inherit(who: &Credentials, directory: &Node, kind: NodeKind, mode: u32, now: Time) -> NewNode {
    let parent = directory.meta();
    if parent.mode & SET_GROUP == 0 {
        return NewNode { mode, user: who.user, group: who.group, now };
    }
    let foreign = !who.in_group(parent.group) && !who.can(CAP_FSETID);
    let mode = match kind {
        NodeKind::Directory => mode | SET_GROUP,
        _ if foreign && mode & 0o010 != 0 => mode & !SET_GROUP,
        _ => mode,
    };
    NewNode { mode, user: who.user, group: parent.group, now }
}

/// Whether the path of something new may end in a slash.
#[derive(PartialEq, Eq)]
enum Slash {
    Allowed,
    Forbidden,
}

/// Walks to a name that must be free. Errors: `EEXIST`; `ENOENT` for a slash behind what will not be
/// a directory; those of a walk.
fn free_name<'a>(walk: &mut Walk<'a>, slash: Slash) -> Result<FreeName<'a>, Errno> {
    let Last::Name(name) = walk.reach_last()? else { return Err(Errno::EEXIST) };
    if name.bytes().len() > NAME_BYTES_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    match walk.child(name.bytes()) {
        Ok(_) => Err(Errno::EEXIST),
        Err(Errno::ENOENT) if denies_names(&walk.at) => Err(Errno::ENOENT),
        Err(Errno::ENOENT) if walk.ends_in_slash && slash == Slash::Forbidden => Err(Errno::ENOENT),
        Err(Errno::ENOENT) => Ok(FreeName { directory: walk.at.clone(), name }),
        Err(error) => Err(error),
    }
}
