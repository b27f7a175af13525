//! Making and removing names in memory.

use alloc::sync::Arc;

use abi::Errno;
use abi::file::O_EXCL;
use abi::poll::{IN_ATTRIB, IN_CREATE, IN_DELETE};
use abi::process::{CAP_FSETID, CAP_MKNOD};

use super::super::attributes::{MODE_BITS, NewNode, NodeKind, SET_GROUP, STICKY, Time};
use super::super::change::NewSpecial;
use super::super::content::Content;
use super::super::node::{Data, Node};
use super::super::store::NewName;

pub(super) fn make_directory(new: NewName<'_>, mode: u32) -> Result<Arc<Node>, Errno> {
    make(new, NodeKind::Directory, mode & (0o777 | STICKY), Data::empty_directory())
}

pub(super) fn make_symlink(new: NewName<'_>, target: &[u8]) -> Result<Arc<Node>, Errno> {
    make(new, NodeKind::Symlink, 0o777, Data::Symlink(target.into()))
}

pub(super) fn make_special(new: NewName<'_>, special: NewSpecial) -> Result<Arc<Node>, Errno> {
    let data = match special.kind {
        NodeKind::Regular => Data::Regular(Content::new(new.directory.volume())),
        kind if kind.is_device() && !new.who.can(CAP_MKNOD) => return Err(Errno::EPERM),
        NodeKind::Directory | NodeKind::Symlink => return Err(Errno::EINVAL),
        _ => Data::Special,
    };
    make(new, special.kind, special.mode & MODE_BITS, data)
}

fn make(new: NewName<'_>, kind: NodeKind, mode: u32, data: Data) -> Result<Arc<Node>, Errno> {
    let node = Node::unlinked(new.directory.volume(), kind, data, inherit(new, kind, mode))?;
    enter_quietly(new, &node)?;
    new.directory.name_happened(IN_CREATE, new.name, &node, 0);
    Ok(node)
}

/// It may get a name, unless `O_EXCL` forbids that.
pub(super) fn create_nameless(new: NewName<'_>, mode: u32, flags: u32) -> Result<Arc<Node>, Errno> {
    let NewName { who, directory, now, .. } = new;
    Node::nameless_in(directory, flags & O_EXCL == 0, NewNode { mode, user: who.user, group: who.group, now })
}

/// Errors: `EPERM` for a directory, `ENOENT` for what has lost all its names, `ENOSPC`.
pub(super) fn link(new: NewName<'_>, node: &Arc<Node>) -> Result<(), Errno> {
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
    if let Err(error) = enter_quietly(new, node) {
        if !nameless {
            node.volume().release_node();
        }
        return Err(error);
    }
    node.change_meta(|meta| meta.changed = new.now);
    node.happened_here(IN_ATTRIB);
    new.directory.name_happened(IN_CREATE, new.name, node, 0);
    Ok(())
}

/// Takes out a name that stands for `node`. Error: `ENOTEMPTY`.
pub(super) fn remove(directory: &Arc<Node>, name: &[u8], node: &Arc<Node>, now: Time) -> Result<(), Errno> {
    if node.is_directory() {
        if !node.is_empty_directory()? {
            return Err(Errno::ENOTEMPTY);
        }
        // To list what it lies over takes time, in which the name may have come to stand for something else.
        if node.is_layered() && !directory.child(name).is_ok_and(|found| Arc::ptr_eq(&found, node)) {
            return Err(Errno::ENOENT);
        }
    }
    let entry = directory.table(Errno::EPERM)?.borrow_mut().remove(name);
    drop(entry);
    name_lost(directory, node, now);
    if !node.is_directory() {
        node.happened_here(IN_ATTRIB);
    }
    directory.note_names_changed(now);
    node.may_have_gone();
    directory.name_happened(IN_DELETE, name, node, 0);
    Ok(())
}

/// Enters a free name, and nobody who watches the directory is told. A new name can make no remembered path wrong.
fn enter_quietly(new: NewName<'_>, node: &Arc<Node>) -> Result<(), Errno> {
    new.directory.attach(new.name, node)?;
    new.directory.note_names_changed(new.now);
    Ok(())
}

/// Counts one link of `node` less, after its name left the table of `directory`.
pub(super) fn name_lost(directory: &Arc<Node>, node: &Arc<Node>, now: Time) {
    if node.is_directory() {
        node.set_removed(directory);
        subdirectory_lost(directory);
    } else {
        node.change_meta(|meta| meta.links -= 1);
        if node.meta().links > 0 {
            node.volume().release_node();
        } else {
            node.leave_layers();
        }
    }
    node.change_meta(|meta| meta.changed = now);
}

/// A subdirectory has left `directory`, which may lie over one whose file system does not count them.
pub(super) fn subdirectory_lost(directory: &Node) {
    directory.change_meta(|meta| meta.links = (meta.links - 1).max(2));
}

/// Owner, group and mode of something new: in a set-group directory the group is the directory's, and a new directory is
/// set-group itself.
fn inherit(NewName { who, directory, now, .. }: NewName<'_>, kind: NodeKind, mode: u32) -> NewNode {
    let parent = directory.meta();
    if parent.mode & SET_GROUP == 0 {
        return NewNode { mode, user: who.user, group: who.group, now };
    }
    let is_strange = !who.in_group(parent.group) && !who.can(CAP_FSETID);
    let mode = match kind {
        NodeKind::Directory => mode | SET_GROUP,
        _ if is_strange && mode & 0o010 != 0 => mode & !SET_GROUP,
        _ => mode,
    };
    NewNode { mode, user: who.user, group: parent.group, now }
}
