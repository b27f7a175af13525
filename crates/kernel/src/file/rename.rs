//! Renaming.

use alloc::sync::Arc;

use abi::Errno;

use super::attributes::Time;
use super::change::{check_changeable, check_create, check_remove};
use super::credentials::{Access, Credentials};
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

impl End<'_> {
    fn named(&self) -> Named<'_> {
        Named { directory: &self.directory, name: self.name.bytes() }
    }
}

/// A name in a directory.
#[derive(Clone, Copy)]
pub struct Named<'a> {
    pub directory: &'a Arc<Node>,
    pub name: &'a [u8],
}

/// What a store is asked to do when a name moves: all is in its volume, nothing is a mount point, and whether who asks may has been
/// asked.
#[derive(Clone, Copy)]
pub struct Renaming<'a> {
    pub from: Named<'a>,
    pub moved: &'a Arc<Node>,
    pub to: Named<'a>,
    /// What the new name stood for: another node.
    pub replaced: Option<&'a Arc<Node>>,
    pub mode: RenameMode,
    pub now: Time,
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
        let old_last = old_walk.reach_last_of_now()?;
        let mut new_walk = Walk::new(self, new.0, new.1)?;
        let new_last = new_walk.reach_last_of_now()?;
        if !Arc::ptr_eq(old_walk.at.volume(), new_walk.at.volume()) {
            return Err(Errno::EXDEV);
        }
        let Last::Name(old_name) = old_last else { return Err(Errno::EBUSY) };
        let Last::Name(new_name) = new_last else {
            return Err(if mode == RenameMode::Keep { Errno::EEXIST } else { Errno::EBUSY });
        };
        check_changeable(&old_walk.at)?;
        if old_walk.at.is_layered() || new_walk.at.is_layered() {
            learn(&old_walk, &old_name);
            learn(&new_walk, &new_name);
        }
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
        let renaming = Renaming {
            from: source.named(),
            moved: &moved,
            to: target.named(),
            replaced: target.node.as_ref(),
            mode,
            now,
        };
        source.directory.volume().store().rename(&renaming)?;
        self.names_changed_in(&source.directory);
        Ok(())
    }
}

/// What lies over others asks for names, and others run meanwhile: it is asked before, so that both ends are looked at in one go.
#[cold]
fn learn(walk: &Walk<'_>, name: &Name<'_>) {
    let _ = walk.at.child(name.bytes()).and_then(|node| node.list_below());
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
    if source.directory.volume().speaks_for(who) {
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
