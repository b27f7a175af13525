//! Renaming.

use alloc::sync::Arc;

use abi::Errno;
use abi::poll::{IN_ATTRIB, IN_MOVE_SELF, IN_MOVED_FROM, IN_MOVED_TO};

use super::attributes::Time;
use super::change::{check_changeable, check_create, check_remove, name_lost};
use super::credentials::{Access, Credentials};
use super::foreign::ForeignTree;
use super::namespace::Namespace;
use super::node::Node;
use super::walk::{Last, Name, View, Walk};

/// What happens if the new name is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RenameMode {
    /// What has it loses it.
    Replace,
    /// `EEXIST` (`RENAME_NOREPLACE`).
    Keep,
    /// The two change places (`RENAME_EXCHANGE`); it must be taken.
    Exchange,
}

/// One end of a renaming: a name, and the node it stands for.
struct End<'a> {
    directory: Arc<Node>,
    name: Name<'a>,
    node: Option<Arc<Node>>,
    ends_in_slash: bool,
}

impl Namespace {
    /// Moves the name `old` to `new`, in one step: nobody ever sees both or neither.
    ///
    /// Errors: those of a walk; `EBUSY` for `.`, `..`, roots and mount points, `EXDEV`, `EEXIST`,
    /// `ENOTDIR`, `EISDIR`, `ENOTEMPTY`, `EINVAL` into the directory's own subtree, `EACCES`, `EPERM` in
    /// a sticky directory, `EROFS`, `ENOSPC`.
    pub fn rename(
        &self,
        old: (View<'_>, &[u8]),
        new: (View<'_>, &[u8]),
        mode: RenameMode,
        now: Time,
    ) -> Result<(), Errno> {
        let mut old_walk = Walk::new(self, old.0, old.1)?;
        let old_last = old_walk.reach_last()?;
        let mut new_walk = Walk::new(self, new.0, new.1)?;
        let new_last = new_walk.reach_last()?;
        if !Arc::ptr_eq(old_walk.at.volume(), new_walk.at.volume()) {
            return Err(Errno::EXDEV);
        }
        let Last::Name(old_name) = old_last else { return Err(Errno::EBUSY) };
        let Last::Name(new_name) = new_last else {
            return Err(if mode == RenameMode::Keep { Errno::EEXIST } else { Errno::EBUSY });
        };
        check_changeable(&old_walk.at)?;
        let source = end(&old_walk, old_name)?;
        let target = end(&new_walk, new_name)?;
        self.rename_ends(old.0.credentials, source, target, mode, now)
    }

    fn rename_ends(
        &self,
        who: &Credentials,
        source: End<'_>,
        target: End<'_>,
        mode: RenameMode,
        now: Time,
    ) -> Result<(), Errno> {
        let moved = source.node.clone().ok_or(Errno::ENOENT)?;
        check_names(&source, &moved, &target, mode)?;
        if target.node.as_ref().is_some_and(|node| node.is(&moved)) {
            return Ok(());
        }
        check_permissions(who, &source, &moved, &target, mode)?;
        if moved.covered.get() || target.node.as_ref().is_some_and(|node| node.covered.get()) {
            return Err(Errno::EBUSY);
        }
        if let Some(tree) = source.directory.volume().foreign() {
            return rename_outside(tree, &source, &moved, &target, mode);
        }
        source.directory.table(Errno::EPERM)?;
        match &target.node {
            Some(other) if mode == RenameMode::Exchange => exchange(&source, &moved, &target, other, now)?,
            Some(other) if other.is_directory() && !other.is_empty_directory() => return Err(Errno::ENOTEMPTY),
            _ => move_name(&source, &moved, &target, now)?,
        }
        source.directory.note_names_changed(now);
        target.directory.note_names_changed(now);
        self.names_changed();
        match &target.node {
            Some(other) if mode == RenameMode::Exchange => {
                self.tell_move(&source, &moved, &target, None);
                self.tell_move(&target, other, &source, None);
            }
            replaced => self.tell_move(&source, &moved, &target, replaced.as_deref()),
        }
        Ok(())
    }

    /// Tells those who watch the two directories and the node, in Linux's order.
    fn tell_move(&self, source: &End<'_>, moved: &Node, target: &End<'_>, replaced: Option<&Node>) {
        let cookie = self.take_cookie();
        source.directory.name_happened(IN_MOVED_FROM, source.name.bytes(), moved, cookie);
        target.directory.name_happened(IN_MOVED_TO, target.name.bytes(), moved, cookie);
        if let Some(replaced) = replaced {
            replaced.happened_here(IN_ATTRIB);
        }
        moved.happened_here(IN_MOVE_SELF);
    }
}

/// Error: `EBUSY` for what is laid over a directory outside of the machine.
fn rename_outside(
    tree: &ForeignTree,
    source: &End<'_>,
    moved: &Arc<Node>,
    target: &End<'_>,
    mode: RenameMode,
) -> Result<(), Errno> {
    let laid_over = |node: &Arc<Node>| node.foreign().is_none();
    if laid_over(moved) || target.node.as_ref().is_some_and(laid_over) {
        return Err(Errno::EBUSY);
    }
    let (from, to) = (source.name.bytes(), target.name.bytes());
    tree.rename((&source.directory, from), (&target.directory, to), mode)?;
    moved.show_in(&target.directory, to);
    if let Some(other) = &target.node {
        match mode {
            RenameMode::Exchange => other.show_in(&source.directory, from),
            _ => tree.let_go(other),
        }
    }
    Ok(())
}

fn end<'a>(walk: &Walk<'a>, name: Name<'a>) -> Result<End<'a>, Errno> {
    // What is mounted over the name stays out of sight: the name itself is moved, or refused.
    let node = match walk.at.child(name.bytes()) {
        Ok(node) => Some(node),
        Err(Errno::ENOENT) => None,
        Err(error) => return Err(error),
    };
    Ok(End { directory: walk.at.clone(), name, node, ends_in_slash: walk.ends_in_slash })
}

/// What can be said from the names alone, in Linux's order.
fn check_names(source: &End<'_>, moved: &Arc<Node>, target: &End<'_>, mode: RenameMode) -> Result<(), Errno> {
    match (mode, &target.node) {
        (RenameMode::Keep, Some(_)) => return Err(Errno::EEXIST),
        (RenameMode::Exchange, None) => return Err(Errno::ENOENT),
        (RenameMode::Exchange, Some(other)) if !other.is_directory() && target.ends_in_slash => {
            return Err(Errno::ENOTDIR);
        }
        _ => {}
    }
    if !moved.is_directory() {
        let target_slash = target.ends_in_slash && mode != RenameMode::Exchange;
        if source.ends_in_slash || target_slash {
            return Err(Errno::ENOTDIR);
        }
    }
    if moved.is_directory() && is_within(&target.directory, moved) {
        return Err(Errno::EINVAL);
    }
    match &target.node {
        Some(other) if other.is_directory() && is_within(&source.directory, other) => {
            Err(if mode == RenameMode::Exchange { Errno::EINVAL } else { Errno::ENOTEMPTY })
        }
        _ => Ok(()),
    }
}

/// Whether `directory` is `ancestor` or below it.
fn is_within(directory: &Arc<Node>, ancestor: &Node) -> bool {
    let mut at = Some(directory.clone());
    while let Some(node) = at {
        if node.is(ancestor) {
            return true;
        }
        at = node.parent();
    }
    false
}

/// May `who` take both ends away and put them there, in Linux's order (`vfs_rename`)?
fn check_permissions(
    who: &Credentials,
    source: &End<'_>,
    moved: &Arc<Node>,
    target: &End<'_>,
    mode: RenameMode,
) -> Result<(), Errno> {
    if source.directory.volume().foreign().is_some_and(|tree| tree.speaks_for(who)) {
        return Ok(());
    }
    check_remove(who, &source.directory, moved)?;
    match &target.node {
        None => check_create(who, &target.directory)?,
        Some(other) => {
            check_remove(who, &target.directory, other)?;
            match (moved.is_directory(), other.is_directory()) {
                _ if mode == RenameMode::Exchange => {}
                (true, false) => return Err(Errno::ENOTDIR),
                (false, true) => return Err(Errno::EISDIR),
                _ => {}
            }
        }
    }
    if source.directory.is(&target.directory) {
        return Ok(());
    }
    // A directory that gets another parent is written to: its `..` changes.
    let other = target.node.as_ref().filter(|_| mode == RenameMode::Exchange);
    for node in [Some(moved), other].into_iter().flatten().filter(|node| node.is_directory()) {
        who.permit(node, Access::WRITE)?;
    }
    Ok(())
}

/// Moves the name; what had the new one loses it. Nothing has changed when it fails.
fn move_name(source: &End<'_>, moved: &Arc<Node>, target: &End<'_>, now: Time) -> Result<(), Errno> {
    let name: Arc<[u8]> = target.name.bytes().into();
    let from = source.directory.table(Errno::EPERM)?;
    let to = target.directory.table(Errno::EPERM)?;
    if let Some(replaced) = &target.node {
        let gone = to.borrow_mut().replace(&name, moved.clone());
        drop(gone);
        name_lost(&target.directory, replaced, now);
    } else {
        to.borrow_mut().insert(name.clone(), moved.clone())?;
    }
    let entry = from.borrow_mut().remove(source.name.bytes());
    drop(entry);
    if moved.is_directory() {
        source.directory.change_meta(|meta| meta.links -= 1);
        target.directory.change_meta(|meta| meta.links += 1);
    }
    moved.set_place(&target.directory, name);
    moved.change_meta(|meta| meta.changed = now);
    Ok(())
}

/// Lets the two names change places.
fn exchange(source: &End<'_>, moved: &Arc<Node>, target: &End<'_>, other: &Arc<Node>, now: Time) -> Result<(), Errno> {
    let ends = [(source, other), (target, moved)];
    for (end, node) in ends {
        let gone = end.directory.table(Errno::EPERM)?.borrow_mut().replace(end.name.bytes(), node.clone());
        drop(gone);
    }
    for (end, node) in ends {
        node.set_place(&end.directory, end.name.bytes().into());
        node.change_meta(|meta| meta.changed = now);
    }
    let shift = i32::from(other.is_directory()) - i32::from(moved.is_directory());
    source.directory.change_meta(|meta| meta.links = meta.links.saturating_add_signed(shift));
    target.directory.change_meta(|meta| meta.links = meta.links.saturating_add_signed(-shift));
    Ok(())
}
