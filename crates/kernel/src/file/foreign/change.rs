//! Making, removing and changing names, owners and times outside of the machine. The other side checks what its user
//! may do; for another user of this machine the caller has asked the mode bits before.

use alloc::sync::Arc;

use abi::Errno;
use abi::process::CAP_MKNOD;
use machine::{Extended, Handle, Hold, KernelCell, Stamp};

use super::super::attributes::{NodeKind, SET_GROUP};
use super::super::change::NewSpecial;
use super::super::credentials::{Access, Credentials};
use super::super::limits::FILE_BYTES_MAX;
use super::super::node::Node;
use super::super::open::Create;
use super::super::ownership::TimeChange;
use super::super::rename::RenameMode;
use super::opening::{Opening, flags_there};
use super::{ForeignNode, ForeignTree, Guess};

impl ForeignTree {
    fn check_create(&self, who: &Credentials, directory: &Node) -> Result<(), Errno> {
        if self.speaks_for(who) { Ok(()) } else { who.permit(directory, Access::CHANGE_NAMES) }
    }

    /// Who makes something owns it, also if the other side was asked in another's name.
    fn give_to(&self, who: &Credentials, directory: &Node, place: Handle) {
        if !self.speaks_for(who) {
            let group = (directory.meta().mode & SET_GROUP == 0).then_some(who.group);
            let _ = self.ask(|far| far.set_owner(place, Some(who.user), group));
        }
    }

    fn made(&self, who: &Credentials, directory: &Arc<Node>, name: &[u8]) -> Result<Arc<Node>, Errno> {
        let node = self.child(directory, name, Guess::New)?;
        if let Some(foreign) = node.foreign() {
            self.give_to(who, directory, foreign.place);
        }
        Ok(node)
    }

    /// Makes a regular file that must not exist, and opens it.
    pub(in super::super) fn create(
        &self,
        who: &Credentials,
        directory: &Arc<Node>,
        name: &[u8],
        create: Create,
        flags: u32,
    ) -> Result<Arc<Opening>, Errno> {
        let at = directory.foreign().ok_or(Errno::ENOTDIR)?;
        self.check_create(who, directory)?;
        let handle = self.ask(|far| far.create(at.place, name, flags_there(flags), create.mode))?;
        let opening = self.opened(directory, handle)?;
        opening.node().show_in(directory, name);
        self.give_to(who, directory, handle);
        Ok(opening)
    }

    /// Makes a regular file without a name (`O_TMPFILE`) and opens it.
    pub fn create_nameless(
        &self,
        who: &Credentials,
        directory: &Arc<Node>,
        flags: u32,
        mode: u32,
    ) -> Result<Arc<Opening>, Errno> {
        let at = directory.foreign().ok_or(Errno::ENOTDIR)?;
        self.check_create(who, directory)?;
        let handle = self.ask(|far| far.create_nameless(at.place, flags_there(flags), mode))?;
        self.give_to(who, directory, handle);
        self.opened(directory, handle)
    }

    fn opened(&self, directory: &Arc<Node>, handle: Handle) -> Result<Arc<Opening>, Errno> {
        let node = self.ask(|far| far.place_of(handle)).and_then(|place| self.adopt(directory.volume(), place));
        match node {
            Ok(node) => Ok(Opening::new(&node, self.far, handle)),
            Err(error) => {
                self.far.release(handle);
                Err(error)
            }
        }
    }

    pub(in super::super) fn make_directory(
        &self,
        who: &Credentials,
        directory: &Arc<Node>,
        name: &[u8],
        mode: u32,
    ) -> Result<Arc<Node>, Errno> {
        let at = directory.foreign().ok_or(Errno::ENOTDIR)?;
        self.check_create(who, directory)?;
        self.ask(|far| far.make_directory(at.place, name, mode))?;
        self.made(who, directory, name)
    }

    pub(in super::super) fn make_special(
        &self,
        who: &Credentials,
        directory: &Arc<Node>,
        name: &[u8],
        special: NewSpecial,
    ) -> Result<Arc<Node>, Errno> {
        let at = directory.foreign().ok_or(Errno::ENOTDIR)?;
        if matches!(special.kind, NodeKind::Directory | NodeKind::Symlink) {
            return Err(Errno::EINVAL);
        }
        self.check_create(who, directory)?;
        if special.kind.is_device() && !who.can(CAP_MKNOD) {
            return Err(Errno::EPERM);
        }
        let (mode, numbers) = (special.kind.mode_bits() | special.mode, special.kind.device_numbers());
        self.ask(|far| far.make_special(at.place, name, mode, numbers))?;
        self.made(who, directory, name)
    }

    pub(in super::super) fn make_symlink(
        &self,
        who: &Credentials,
        directory: &Arc<Node>,
        name: &[u8],
        target: &[u8],
    ) -> Result<Arc<Node>, Errno> {
        let at = directory.foreign().ok_or(Errno::ENOTDIR)?;
        self.check_create(who, directory)?;
        self.ask(|far| far.make_symlink(at.place, name, target))?;
        self.made(who, directory, name)
    }

    pub(in super::super) fn link(
        &self,
        who: &Credentials,
        node: &Arc<Node>,
        directory: &Arc<Node>,
        name: &[u8],
    ) -> Result<(), Errno> {
        let (from, at) = (node.foreign().ok_or(Errno::EXDEV)?, directory.foreign().ok_or(Errno::EXDEV)?);
        self.check_create(who, directory)?;
        self.ask(|far| far.link(from.place, at.place, name))?;
        node.show_in(directory, name);
        Ok(())
    }

    /// Removes a name that stood for `node` when it was looked up. Error: `EBUSY` for what is laid over.
    pub(in super::super) fn remove(&self, directory: &Arc<Node>, name: &[u8], node: &Arc<Node>) -> Result<(), Errno> {
        let at = directory.foreign().ok_or(Errno::ENOTDIR)?;
        if node.foreign().is_none() {
            return Err(Errno::EBUSY);
        }
        if node.is_directory() {
            self.ask(|far| far.remove_directory(at.place, name))?;
        } else {
            self.ask(|far| far.remove(at.place, name))?;
        }
        self.let_go(node);
        Ok(())
    }

    pub(in super::super) fn rename(
        &self,
        old: (&Arc<Node>, &[u8]),
        new: (&Arc<Node>, &[u8]),
        mode: RenameMode,
    ) -> Result<(), Errno> {
        let (from, to) = (old.0.foreign().ok_or(Errno::EXDEV)?, new.0.foreign().ok_or(Errno::EXDEV)?);
        let flags = match mode {
            RenameMode::Replace => 0,
            RenameMode::Keep => 1,
            RenameMode::Exchange => 2,
        };
        self.ask(|far| far.rename((from.place, old.1), (to.place, new.1), flags))
    }

    pub(in super::super) fn set_mode(&self, node: &ForeignNode, mode: u32) -> Result<(), Errno> {
        self.ask(|far| far.set_mode(node.place, mode))
    }

    pub(in super::super) fn set_owner(
        &self,
        node: &ForeignNode,
        user: Option<u32>,
        group: Option<u32>,
    ) -> Result<(), Errno> {
        self.ask(|far| far.set_owner(node.place, user, group))
    }

    pub(in super::super) fn set_times(&self, node: &ForeignNode, times: [TimeChange; 2]) -> Result<(), Errno> {
        let stamps = times.map(|change| match change {
            TimeChange::Now => Stamp::Now,
            TimeChange::Omit => Stamp::Omit,
            TimeChange::Set(time) => Stamp::At((time.seconds, time.nanos)),
        });
        self.ask(|far| far.set_times(node.place, stamps))
    }

    pub(in super::super) fn resize(&self, node: &ForeignNode, bytes: u64) -> Result<(), Errno> {
        self.ask(|far| far.resize(node.place, bytes))
    }
}

/// Extended attributes; a name comes with its NUL.
impl Node {
    /// The value's bytes; with no room only their count. Errors: `ENOTSUP` for a node in memory, those of the other side.
    pub fn extended_outside(&self, what: Extended<'_>) -> Option<Result<usize, Errno>> {
        let (foreign, tree) = self.abroad()?;
        let what = KernelCell::new(Some(what));
        // The question is asked once: it needs no descriptor that could be missing.
        Some(tree.ask(|far| match what.borrow_mut().take() {
            Some(what) => far.extended(foreign.place, what),
            None => Err(machine::Refused(Errno::ENFILE as u16)),
        }))
    }
}

/// Record locks: this machine's processes settle theirs among themselves (`NodeLocks`); what they hold together is held
/// against others by one opening of the node.
impl Node {
    /// Holds `first..=last` against others too. Error: `EAGAIN`. A node in memory has no others.
    pub fn hold_outside(&self, hold: Hold, first: u64, last: u64) -> Result<(), Errno> {
        let Some((foreign, tree)) = self.abroad() else { return Ok(()) };
        let holder = self.lock_holder(foreign, tree)?;
        tree.ask(|far| far.lock(holder, hold, first, last))
    }

    /// What others hold in the way.
    pub fn held_outside(&self, hold: Hold, first: u64, last: u64) -> Result<Option<machine::Held>, Errno> {
        let Some((foreign, tree)) = self.abroad() else { return Ok(None) };
        let holder = self.lock_holder(foreign, tree)?;
        tree.ask(|far| far.lock_in_the_way(holder, hold, first, last))
    }

    /// Gives up against others what nobody here holds any more.
    pub fn settle_outside(&self) {
        let Some((foreign, tree)) = self.abroad() else { return };
        let Some(holder) = foreign.lock_holder.get() else { return };
        let gap_from = |at| self.locks().borrow().gap_from(at);
        if gap_from(0) == Some((0, FILE_BYTES_MAX)) {
            foreign.lock_holder.set(None);
            tree.far.release(holder);
            return;
        }
        let mut next = gap_from(0);
        while let Some((first, last)) = next {
            let _ = tree.ask(|far| far.lock(holder, Hold::None, first, last));
            next = gap_from(last.saturating_add(1));
        }
    }

    fn lock_holder(&self, foreign: &ForeignNode, tree: &ForeignTree) -> Result<Handle, Errno> {
        const READ_WRITE: u32 = 2;
        const READ: u32 = 0;
        const WRITE: u32 = 1;
        if let Some(holder) = foreign.lock_holder.get() {
            return Ok(holder);
        }
        let open = |flags| tree.ask(|far| far.open(foreign.place, flags));
        let holder = open(READ_WRITE).or_else(|_| open(READ)).or_else(|_| open(WRITE))?;
        foreign.lock_holder.set(Some(holder));
        Ok(holder)
    }
}
