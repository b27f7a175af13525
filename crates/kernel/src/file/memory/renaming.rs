//! Moving names in memory.

use alloc::sync::Arc;

use abi::Errno;
use abi::poll::{IN_ATTRIB, IN_MOVE_SELF, IN_MOVED_FROM, IN_MOVED_TO};

use super::super::node::Node;
use super::super::rename::{Named, RenameMode, Renaming};
use super::super::watch::take_cookie;
use super::names::{name_lost, subdirectory_lost};

/// Nothing has changed when it fails. Error: `ENOTEMPTY`.
pub(super) fn rename(renaming: &Renaming<'_>) -> Result<(), Errno> {
    let &Renaming { from, moved, to, replaced, mode, now } = renaming;
    match replaced {
        Some(other) if mode == RenameMode::Exchange => exchange(renaming, other)?,
        Some(other) if other.is_directory() && !other.is_empty_directory()? => return Err(Errno::ENOTEMPTY),
        _ => move_name(renaming)?,
    }
    from.directory.note_names_changed(now);
    to.directory.note_names_changed(now);
    match replaced {
        Some(other) if mode == RenameMode::Exchange => {
            tell_move(from, moved, to, None);
            tell_move(to, other, from, None);
        }
        replaced => tell_move(from, moved, to, replaced),
    }
    Ok(())
}

/// Tells those who watch the two directories and the node, in Linux's order.
fn tell_move(from: Named<'_>, moved: &Node, to: Named<'_>, replaced: Option<&Arc<Node>>) {
    let cookie = take_cookie();
    from.directory.name_happened(IN_MOVED_FROM, from.name, moved, cookie);
    to.directory.name_happened(IN_MOVED_TO, to.name, moved, cookie);
    if let Some(replaced) = replaced {
        replaced.happened_here(IN_ATTRIB);
    }
    moved.happened_here(IN_MOVE_SELF);
}

/// What had the new name loses it.
fn move_name(&Renaming { from, moved, to, replaced, now, .. }: &Renaming<'_>) -> Result<(), Errno> {
    let name: Arc<[u8]> = to.name.into();
    let (left, entered) = (from.directory.table(Errno::EPERM)?, to.directory.table(Errno::EPERM)?);
    if let Some(replaced) = replaced {
        let gone = entered.borrow_mut().replace(&name, moved.clone());
        drop(gone);
        name_lost(to.directory, replaced, now);
    } else {
        entered.borrow_mut().insert(name.clone(), moved.clone())?;
    }
    let entry = left.borrow_mut().remove(from.name);
    drop(entry);
    if moved.is_directory() {
        subdirectory_lost(from.directory);
        to.directory.change_meta(|meta| meta.links += 1);
    }
    moved.set_place(to.directory, name);
    moved.change_meta(|meta| meta.changed = now);
    Ok(())
}

/// Lets the two names change places.
fn exchange(&Renaming { from, moved, to, now, .. }: &Renaming<'_>, other: &Arc<Node>) -> Result<(), Errno> {
    let ends = [(from, other), (to, moved)];
    for (end, node) in ends {
        let gone = end.directory.table(Errno::EPERM)?.borrow_mut().replace(end.name, node.clone());
        drop(gone);
    }
    for (end, node) in ends {
        node.set_place(end.directory, end.name.into());
        node.change_meta(|meta| meta.changed = now);
    }
    let shift = i32::from(other.is_directory()) - i32::from(moved.is_directory());
    from.directory.change_meta(|meta| meta.links = meta.links.saturating_add_signed(shift).max(2));
    to.directory.change_meta(|meta| meta.links = meta.links.saturating_add_signed(-shift).max(2));
    Ok(())
}
