//! Changing whose a node is, who may use it and its times.

use abi::Errno;
use abi::poll::{IN_ACCESS, IN_ATTRIB, IN_MODIFY};
use abi::process::{CAP_CHOWN, CAP_FSETID};

use super::attributes::{MODE_BITS, SET_GROUP, SET_USER, Time};
use super::credentials::{Access, Credentials};
use super::foreign::{ForeignNode, ForeignTree};
use super::namespace::Namespace;
use super::node::Node;
use super::seals::Seals;

/// A new value for one of a node's times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeChange {
    /// The current time.
    Now,
    /// Leave it.
    Omit,
    Set(Time),
}

impl TimeChange {
    fn apply(self, time: &mut Time, now: Time) {
        match self {
            TimeChange::Now => *time = now,
            TimeChange::Omit => {}
            TimeChange::Set(new) => *time = new,
        }
    }
}

impl Namespace {
    /// Sets the mode bits (`chmod`). Errors: `EPERM` for who does not own the node, `EROFS`, `ENOTSUP`
    /// for a symlink.
    pub fn set_mode(&self, who: &Credentials, node: &Node, mode: u32, now: Time) -> Result<(), Errno> {
        check_writable(node)?;
        if node.is_symlink() {
            return Err(Errno::ENOTSUP);
        }
        if let Some(tree) = outside(who, node, Errno::EPERM)? {
            return tree.1.set_mode(tree.0, mode & MODE_BITS);
        }
        if !who.owns(node) {
            return Err(Errno::EPERM);
        }
        let changes_execution = (mode ^ node.meta().mode) & 0o111 != 0;
        if changes_execution && node.content().is_some_and(|content| content.seals().has(Seals::EXEC)) {
            return Err(Errno::EPERM);
        }
        let foreign = !who.in_group(node.meta().group) && !who.can(CAP_FSETID);
        let mode = if foreign { mode & !SET_GROUP } else { mode };
        node.change_meta(|meta| {
            meta.mode = mode & MODE_BITS;
            meta.changed = now;
        });
        self.search_may_change(node);
        node.happened(IN_ATTRIB);
        Ok(())
    }

    /// Sets owner and group; `None` leaves one (`chown`). A file loses set-user and set-group.
    /// Errors: `EPERM`, `EROFS`.
    pub fn set_owner(
        &self,
        who: &Credentials,
        node: &Node,
        user: Option<u32>,
        group: Option<u32>,
        now: Time,
    ) -> Result<(), Errno> {
        check_writable(node)?;
        if let Some((foreign, tree)) = node.abroad()
            && tree.speaks_for(who)
        {
            return tree.set_owner(foreign, user, group);
        }
        let meta = node.meta();
        let is_owner = meta.user == who.user;
        let user_allowed = user.is_none_or(|user| is_owner && user == meta.user);
        let group_allowed = group.is_none_or(|group| is_owner && (group == meta.group || who.in_group(group)));
        let allowed = user_allowed && group_allowed;
        if !allowed && !who.can(CAP_CHOWN) {
            return Err(Errno::EPERM);
        }
        if let Some((foreign, tree)) = node.abroad() {
            return tree.set_owner(foreign, user, group);
        }
        let keeps_group_bit = who.can(CAP_FSETID) || who.in_group(meta.group);
        node.change_meta(|meta| {
            meta.user = user.unwrap_or(meta.user);
            meta.group = group.unwrap_or(meta.group);
            meta.changed = now;
            if !node.is_directory() {
                meta.mode &= !SET_USER;
                if meta.mode & 0o010 != 0 || !keeps_group_bit {
                    meta.mode &= !SET_GROUP;
                }
            }
        });
        self.search_may_change(node);
        if user.is_some() || group.is_some() {
            node.happened(IN_ATTRIB);
        }
        Ok(())
    }

    /// Sets access and modification time (`utimensat`). Two times `Now` need only the right to write.
    /// Errors: `EPERM`, `EACCES`, `EROFS`.
    pub fn set_times(
        &self,
        who: &Credentials,
        node: &Node,
        accessed: TimeChange,
        modified: TimeChange,
        now: Time,
    ) -> Result<(), Errno> {
        if accessed == TimeChange::Omit && modified == TimeChange::Omit {
            return Ok(());
        }
        check_writable(node)?;
        if let Some((foreign, tree)) = node.abroad()
            && tree.speaks_for(who)
        {
            return tree.set_times(foreign, [accessed, modified]);
        }
        let both_now = accessed == TimeChange::Now && modified == TimeChange::Now;
        if !who.owns(node) {
            if !both_now {
                return Err(Errno::EPERM);
            }
            who.permit(node, Access::WRITE)?;
        }
        if let Some((foreign, tree)) = node.abroad() {
            return tree.set_times(foreign, [accessed, modified]);
        }
        node.change_meta(|meta| {
            accessed.apply(&mut meta.accessed, now);
            modified.apply(&mut meta.modified, now);
            meta.changed = now;
        });
        // One time alone is what reading or writing changes.
        node.happened(match (accessed, modified) {
            (_, TimeChange::Omit) => IN_ACCESS,
            (TimeChange::Omit, _) => IN_MODIFY,
            _ => IN_ATTRIB,
        });
        Ok(())
    }

    fn search_may_change(&self, node: &Node) {
        // Directories, for the walk; devices, for synthesized opens, which check permission once.
        if node.kind() != super::attributes::NodeKind::Regular {
            self.names_changed();
        }
    }
}

/// A node outside of the machine, whose owner `who` is, or says to be: the other side knows its own user.
/// Error: `refusal` for another user.
fn outside<'a>(
    who: &Credentials,
    node: &'a Node,
    refusal: Errno,
) -> Result<Option<(&'a ForeignNode, &'a ForeignTree)>, Errno> {
    match node.abroad() {
        Some((_, tree)) if !tree.speaks_for(who) && !who.owns(node) => Err(refusal),
        found => Ok(found),
    }
}

fn check_writable(node: &Node) -> Result<(), Errno> {
    if node.volume().is_read_only() { Err(Errno::EROFS) } else { Ok(()) }
}
