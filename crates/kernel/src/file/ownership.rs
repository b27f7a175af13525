//! Changing whose a node is, who may use it and its times.

use abi::Errno;
use abi::poll::{IN_ACCESS, IN_ATTRIB, IN_MODIFY};
use abi::process::{CAP_CHOWN, CAP_FSETID};

use super::attributes::{MODE_BITS, SET_GROUP, SET_USER, Time};
use super::credentials::{Access, Credentials};
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
        let store = node.volume().store();
        if !node.volume().speaks_for(who) && !who.owns(node) {
            return Err(Errno::EPERM);
        }
        store.set_mode(who, node, mode & MODE_BITS, now)?;
        self.search_may_change(node);
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
        let store = node.volume().store();
        if !node.volume().speaks_for(who) {
            check_owner_change(who, node, [user, group])?;
        }
        store.set_owner(who, node, [user, group], now)?;
        self.search_may_change(node);
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
        let store = node.volume().store();
        if !node.volume().speaks_for(who) && !who.owns(node) {
            if [accessed, modified] != [TimeChange::Now; 2] {
                return Err(Errno::EPERM);
            }
            who.permit(node, Access::WRITE)?;
        }
        store.set_times(node, [accessed, modified], now)
    }

    fn search_may_change(&self, node: &Node) {
        // Directories, for the walk; devices, for synthesized opens, which check permission once.
        if node.kind() != super::attributes::NodeKind::Regular {
            self.names_changed();
        }
    }
}

/// Error: `EPERM`.
fn check_owner_change(who: &Credentials, node: &Node, [user, group]: [Option<u32>; 2]) -> Result<(), Errno> {
    let meta = node.meta();
    let is_owner = meta.user == who.user;
    let user_allowed = user.is_none_or(|user| is_owner && user == meta.user);
    let group_allowed = group.is_none_or(|group| is_owner && (group == meta.group || who.in_group(group)));
    if user_allowed && group_allowed || who.can(CAP_CHOWN) { Ok(()) } else { Err(Errno::EPERM) }
}

/// Of a node whose attributes are its own.
impl Node {
    /// Error: `EPERM` by a seal.
    pub(super) fn set_own_mode(&self, who: &Credentials, mode: u32, now: Time) -> Result<(), Errno> {
        let changes_execution = (mode ^ self.meta().mode) & 0o111 != 0;
        if changes_execution && self.content().is_some_and(|content| content.seals().has(Seals::EXEC)) {
            return Err(Errno::EPERM);
        }
        let is_strange = !who.in_group(self.meta().group) && !who.can(CAP_FSETID);
        let mode = if is_strange { mode & !SET_GROUP } else { mode };
        self.change_meta(|meta| {
            meta.mode = mode;
            meta.changed = now;
        });
        self.happened(IN_ATTRIB);
        Ok(())
    }

    pub(super) fn set_own_owner(&self, who: &Credentials, [user, group]: [Option<u32>; 2], now: Time) {
        let keeps_group_bit = who.can(CAP_FSETID) || who.in_group(self.meta().group);
        self.change_meta(|meta| {
            meta.user = user.unwrap_or(meta.user);
            meta.group = group.unwrap_or(meta.group);
            meta.changed = now;
            if !self.is_directory() {
                meta.mode &= !SET_USER;
                if meta.mode & 0o010 != 0 || !keeps_group_bit {
                    meta.mode &= !SET_GROUP;
                }
            }
        });
        if user.is_some() || group.is_some() {
            self.happened(IN_ATTRIB);
        }
    }

    pub(super) fn set_own_times(&self, [accessed, modified]: [TimeChange; 2], now: Time) {
        self.change_meta(|meta| {
            accessed.apply(&mut meta.accessed, now);
            modified.apply(&mut meta.modified, now);
            meta.changed = now;
        });
        // One time alone is what reading or writing changes.
        self.happened(match (accessed, modified) {
            (_, TimeChange::Omit) => IN_ACCESS,
            (TimeChange::Omit, _) => IN_MODIFY,
            _ => IN_ATTRIB,
        });
    }
}

fn check_writable(node: &Node) -> Result<(), Errno> {
    if node.volume().is_read_only() { Err(Errno::EROFS) } else { Ok(()) }
}
