//! Making and removing names.

use alloc::sync::Arc;

use abi::Errno;

use super::attributes::{NodeKind, Time};
use super::credentials::{Access, Credentials};
use super::limits::{NAME_BYTES_MAX, PATH_BYTES_MAX};
use super::namespace::Namespace;
use super::node::Node;
use super::open::Opened;
use super::store::{NewName, Residence};
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

impl FreeName<'_> {
    fn for_whom<'a>(&'a self, who: &'a Credentials, now: Time) -> NewName<'a> {
        NewName { who, directory: &self.directory, name: self.name.bytes(), now }
    }
}

impl Namespace {
    /// Makes a directory. `mode` has the process's umask taken off.
    /// Errors: those of a walk; `EEXIST`, `EACCES`, `EROFS`, `ENOSPC`, `EPERM`.
    pub fn make_directory(&self, view: View<'_>, path: &[u8], mode: u32, now: Time) -> Result<Arc<Node>, Errno> {
        let mut walk = Walk::new(self, view, path)?;
        let free = free_name(&mut walk, Slash::Allowed)?;
        check_create(view.credentials, &free.directory)?;
        free.directory.volume().store().make_directory(free.for_whom(view.credentials, now), mode)
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
        check_create(view.credentials, &free.directory)?;
        free.directory.volume().store().make_symlink(free.for_whom(view.credentials, now), target)
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
        check_create(view.credentials, directory)?;
        directory.volume().store().link(free.for_whom(view.credentials, now), node)
    }

    /// Removes a name of something that is not a directory. The node lives on while it has other
    /// names or is open.
    /// Errors: those of a walk; `EISDIR`, `EACCES`, `EPERM` in a sticky directory, `EROFS`.
    pub fn unlink(&self, view: View<'_>, path: &[u8], now: Time) -> Result<Arc<Node>, Errno> {
        let mut walk = Walk::new(self, view, path)?;
        let Last::Name(name) = walk.reach_last_of_now()? else { return Err(Errno::EISDIR) };
        check_changeable(&walk.at)?;
        let node = walk.child(name.bytes())?;
        if walk.ends_in_slash {
            return Err(if node.is_directory() { Errno::EISDIR } else { Errno::ENOTDIR });
        }
        check_remove(view.credentials, &walk.at, &node)?;
        if node.is_directory() {
            return Err(Errno::EISDIR);
        }
        self.take_out(&walk.at, name.bytes(), &node, now)?;
        Ok(node)
    }

    /// Removes an empty directory.
    /// Errors: those of a walk; `EINVAL` for `.`, `ENOTEMPTY`, `ENOTDIR`, `EBUSY` for a mount point or
    /// root, `EACCES`, `EPERM` in a sticky directory, `EROFS`.
    pub fn remove_directory(&self, view: View<'_>, path: &[u8], now: Time) -> Result<(), Errno> {
        let mut walk = Walk::new(self, view, path)?;
        let name = match walk.reach_last_of_now()? {
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
        check_create(who, directory)?;
        directory.volume().store().make_special(NewName { who, directory, name, now }, special)
    }

    /// Makes a regular file without a name in the volume of a directory (`O_TMPFILE`), to be opened with Linux's flags.
    /// Errors: `EACCES`, `EROFS`, `ENOTSUP`, `ENOSPC`.
    pub fn create_nameless(
        &self,
        who: &Credentials,
        directory: &Arc<Node>,
        mode: u32,
        flags: u32,
        now: Time,
    ) -> Result<Opened, Errno> {
        let store = directory.volume().store();
        if !directory.volume().speaks_for(who) {
            who.permit(directory, Access::CHANGE_NAMES)?;
        }
        store.create_nameless(NewName { who, directory, name: &[], now }, mode, flags)
    }

    /// Takes out a name that stands for `node`.
    fn take_out(&self, directory: &Arc<Node>, name: &[u8], node: &Arc<Node>, now: Time) -> Result<(), Errno> {
        directory.volume().store().remove(directory, name, node, now)?;
        self.names_changed_in(directory);
        Ok(())
    }

    /// A name of this directory leads elsewhere now. What others change too nobody remembers.
    pub(super) fn names_changed_in(&self, directory: &Node) {
        if directory.volume().residence() == Residence::Memory {
            self.names_changed();
        }
    }
}

pub(super) fn denies_names(directory: &Node) -> bool {
    directory.volume().denies_names()
}

/// Error: `EROFS`, which Linux finds before it looks for the last name.
pub(super) fn check_changeable(directory: &Node) -> Result<(), Errno> {
    if directory.volume().is_read_only() { Err(Errno::EROFS) } else { Ok(()) }
}

/// May `who` add a name to `directory`? Errors: `ENOENT` if it was removed, `EROFS`, `EACCES`.
pub(super) fn check_create(who: &Credentials, directory: &Node) -> Result<(), Errno> {
    check_changeable(directory)?;
    if directory.volume().speaks_for(who) {
        return Ok(());
    }
    if directory.is_removed() {
        return Err(Errno::ENOENT);
    }
    who.permit(directory, Access::CHANGE_NAMES)
}

/// May `who` take `victim` out of `directory`? Errors: `EROFS`, `EACCES`, `EPERM` if it is sticky.
pub(super) fn check_remove(who: &Credentials, directory: &Node, victim: &Node) -> Result<(), Errno> {
    if directory.volume().speaks_for(who) {
        return Ok(());
    }
    who.permit(directory, Access::CHANGE_NAMES)?;
    who.permit_removal(directory, victim)
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
    let Last::Name(name) = walk.reach_last_of_now()? else { return Err(Errno::EEXIST) };
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
