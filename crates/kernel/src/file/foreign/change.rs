//! Making, removing and changing names, owners and times outside of the machine. The other side checks what its user
//! may do; for another user of this machine the caller has asked the mode bits before.

use alloc::sync::Arc;

use abi::Errno;
use abi::process::CAP_MKNOD;
use machine::{Extended, Handle, Hold, KernelCell, LastLink, Stamp};

use super::super::attributes::{NodeKind, SET_GROUP};
use super::super::change::NewSpecial;
use super::super::limits::FILE_BYTES_MAX;
use super::super::node::Node;
use super::super::open::Opened;
use super::super::opened::File;
use super::super::ownership::TimeChange;
use super::super::rename::{RenameMode, Renaming};
use super::super::share::Share;
use super::super::store::{Guess, NewName, Store};
use super::super::walk::FinalLink;
use super::opening::{Opening, flags_there};
use super::{ForeignNode, ForeignTree, SharedNode, foreign};

/// Linux's flag that is part of `O_TMPFILE`.
const O_DIRECTORY: u32 = 0o200_000;

impl ForeignTree {
    /// Who makes something owns it, also if the other side was asked in another's name.
    fn give_to(&self, new: NewName<'_>, place: Handle) {
        if !self.speaks_for(new.who) {
            let group = (new.directory.meta().mode & SET_GROUP == 0).then_some(new.who.group);
            let _ = self.ask(|far| far.set_owner(place, Some(new.who.user), group));
        }
    }

    fn made(&self, new: NewName<'_>) -> Result<Arc<Node>, Errno> {
        let node = self.child(new.directory, new.name, Guess::New)?;
        if let Ok(foreign) = foreign(&node) {
            self.give_to(new, foreign.place());
        }
        Ok(node)
    }

    /// Makes a regular file that must not exist, and opens it.
    pub(super) fn create(&self, new: NewName<'_>, mode: u32, flags: u32) -> Result<Opened, Errno> {
        let at = foreign(new.directory)?;
        let handle = self.ask(|far| far.create(at.place(), new.name, flags_there(flags), mode))?;
        let opening = self.opened(new.directory, (handle, flags))?;
        opening.node().show_in(new.directory, new.name);
        self.give_to(new, handle);
        Ok(Opened::made(opening))
    }

    /// Makes a regular file without a name (`O_TMPFILE`) and opens it.
    pub(super) fn create_nameless(&self, new: NewName<'_>, mode: u32, flags: u32) -> Result<Opened, Errno> {
        let at = foreign(new.directory)?;
        if let Some(share) = self.share {
            return self.create_hidden(share, new, mode, flags);
        }
        let handle = self.ask(|far| far.create_nameless(at.place(), flags_there(flags), mode))?;
        self.give_to(new, handle);
        self.opened(new.directory, (handle, flags)).map(|opening| Opened::made(opening))
    }

    /// The same where everything has a name: it gets a hidden one, which goes when it is closed.
    fn create_hidden(&self, share: &'static Share, new: NewName<'_>, mode: u32, flags: u32) -> Result<Opened, Errno> {
        let at = foreign(new.directory)?;
        let name = share.hidden_name(new.directory.number())?;
        let directory = self.ask(|_| share.another(at.place()))?;
        let flags = flags_there(flags) & !O_DIRECTORY;
        let made = self.ask(|far| far.create(at.place(), &name, flags, mode));
        let opening = made.and_then(|handle| {
            self.give_to(new, handle);
            self.opened(new.directory, (handle, flags))
        });
        let hidden = opening.as_ref().ok().and_then(|opening| foreign(opening.node()).ok()?.shared.as_ref());
        match hidden {
            Some(shared) => *shared.hidden.borrow_mut() = Some((directory, name)),
            None => share.remove_hidden(directory, name),
        }
        opening.map(|opening| Opened::made(opening))
    }

    fn opened(&self, directory: &Arc<Node>, (handle, flags): (Handle, u32)) -> Result<Arc<Opening>, Errno> {
        let node = self.ask(|far| far.place_of(handle)).and_then(|place| self.adopt(directory.volume(), place));
        match node {
            Ok(node) => Ok(Opening::new(&node, self.far, (handle, flags))),
            Err(error) => {
                self.far.release(handle);
                Err(error)
            }
        }
    }

    pub(super) fn make_directory(&self, new: NewName<'_>, mode: u32) -> Result<Arc<Node>, Errno> {
        let at = foreign(new.directory)?;
        self.ask(|far| far.make_directory(at.place(), new.name, mode))?;
        self.made(new)
    }

    pub(super) fn make_special(&self, new: NewName<'_>, special: NewSpecial) -> Result<Arc<Node>, Errno> {
        let at = foreign(new.directory)?;
        if matches!(special.kind, NodeKind::Directory | NodeKind::Symlink) {
            return Err(Errno::EINVAL);
        }
        if special.kind.is_device() && !new.who.can(CAP_MKNOD) {
            return Err(Errno::EPERM);
        }
        let (mode, numbers) = (special.kind.mode_bits() | special.mode, special.kind.device_numbers());
        self.ask(|far| far.make_special(at.place(), new.name, mode, numbers))?;
        self.made(new)
    }

    pub(super) fn make_symlink(&self, new: NewName<'_>, target: &[u8]) -> Result<Arc<Node>, Errno> {
        let at = foreign(new.directory)?;
        self.ask(|far| far.make_symlink(at.place(), new.name, target))?;
        self.made(new)
    }

    pub(super) fn link(&self, new: NewName<'_>, node: &Arc<Node>) -> Result<(), Errno> {
        let (from, at) = (foreign(node)?, foreign(new.directory)?);
        self.ask(|far| far.link(from.place(), at.place(), new.name))?;
        node.show_in(new.directory, new.name);
        Ok(())
    }

    /// Removes a name that stood for `node` when it was looked up. Error: `EBUSY` for what is laid over.
    pub(super) fn remove(&self, directory: &Arc<Node>, name: &[u8], node: &Arc<Node>) -> Result<(), Errno> {
        let at = foreign(directory)?;
        foreign(node).map_err(|_| Errno::EBUSY)?;
        if node.is_directory() {
            self.ask(|far| far.remove_directory(at.place(), name))?;
        } else if let Some(shared) = foreign(node)?.shared.as_ref().filter(|shared| shared.is_needed()) {
            self.hide(shared, at, name, node)?;
        } else {
            self.ask(|far| far.remove(at.place(), name))?;
        }
        self.let_go(node);
        Ok(())
    }

    /// A server that finds files by their names loses one without a name. So what is open here gets another name instead, and is
    /// removed when it is closed.
    fn hide(&self, shared: &SharedNode, at: &ForeignNode, name: &[u8], node: &Arc<Node>) -> Result<(), Errno> {
        let hidden = shared.share.hidden_name(node.number())?;
        let directory = self.ask(|_| shared.share.another(at.place()))?;
        let renamed = self.ask(|far| far.rename((at.place(), name), (at.place(), &hidden), 0));
        if renamed.is_err() || !shared.is_needed() {
            // It was closed meanwhile, or has not got the name.
            shared.share.remove_hidden(directory, hidden);
            return renamed;
        }
        *shared.hidden.borrow_mut() = Some((directory, hidden));
        Ok(())
    }

    /// Error: `EBUSY` for what is laid over.
    pub(super) fn rename(&self, &Renaming { from, moved, to, replaced, mode, .. }: &Renaming<'_>) -> Result<(), Errno> {
        let laid_over = |node: &Arc<Node>| foreign(node).is_err();
        if laid_over(moved) || replaced.is_some_and(laid_over) {
            return Err(Errno::EBUSY);
        }
        let (old, new) = (foreign(from.directory)?, foreign(to.directory)?);
        let flags = match mode {
            RenameMode::Replace => 0,
            RenameMode::Keep => 1,
            RenameMode::Exchange => 2,
        };
        if let Some(other) = replaced
            && mode == RenameMode::Replace
            && !Arc::ptr_eq(other, moved)
            && let Some(shared) = foreign(other)?.shared.as_ref().filter(|shared| shared.is_needed())
        {
            self.hide(shared, new, to.name, other)?;
        }
        self.ask(|far| far.rename((old.place(), from.name), (new.place(), to.name), flags))?;
        moved.show_in(to.directory, to.name);
        match replaced {
            Some(other) if mode == RenameMode::Exchange => other.show_in(from.directory, from.name),
            Some(other) => self.let_go(other),
            None => {}
        }
        Ok(())
    }

    pub(super) fn set_times(&self, node: &ForeignNode, times: [TimeChange; 2]) -> Result<(), Errno> {
        let stamps = times.map(|change| match change {
            TimeChange::Now => Stamp::Now,
            TimeChange::Omit => Stamp::Omit,
            TimeChange::Set(time) => Stamp::At((time.seconds, time.nanos)),
        });
        self.ask(|far| far.set_times(node.place(), stamps))
    }

    /// A value's bytes; with no room only their count.
    /// `None`: only a walk can tell.
    pub(super) fn extended_below(
        &self,
        directory: &ForeignNode,
        names: &[u8],
        last: FinalLink,
        what: &mut Extended<'_>,
    ) -> Result<Option<usize>, Errno> {
        let last = if last == FinalLink::Keep { LastLink::Itself } else { LastLink::Refused };
        let what = KernelCell::new(what);
        match self.ask(|far| far.extended_below(directory.place(), names, last, *what.borrow_mut())) {
            Ok(count) => Ok(Some(count)),
            Err(Errno::ELOOP | Errno::ENOSYS | Errno::EXDEV | Errno::ENAMETOOLONG | Errno::EAGAIN) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn extended(&self, node: &ForeignNode, what: Extended<'_>) -> Result<usize, Errno> {
        let what = KernelCell::new(Some(what));
        // The question is asked once: it needs no descriptor that could be missing.
        self.ask(|far| match what.borrow_mut().take() {
            Some(what) => far.extended(node.place(), what),
            None => Err(machine::Refused(Errno::ENFILE as u16)),
        })
    }
}

/// Record locks: this machine's processes settle theirs among themselves (`NodeLocks`); what they hold together is held
/// against others by one opening of the node.
impl ForeignTree {
    /// Gives up against others what nobody here holds any more.
    pub(super) fn settle(&self, node: &Node) {
        let Ok(foreign) = foreign(node) else { return };
        let Some(holder) = foreign.lock_holder.get() else { return };
        let gap_from = |at| node.locks().borrow().gap_from(at);
        if gap_from(0) == Some((0, FILE_BYTES_MAX)) {
            foreign.lock_holder.set(None);
            self.far.release(holder);
            return;
        }
        let mut next = gap_from(0);
        while let Some((first, last)) = next {
            let _ = self.ask(|far| far.lock(holder, Hold::None, first, last));
            next = gap_from(last.saturating_add(1));
        }
    }

    pub(super) fn lock_holder(&self, foreign: &ForeignNode) -> Result<Handle, Errno> {
        const READ_WRITE: u32 = 2;
        const READ: u32 = 0;
        const WRITE: u32 = 1;
        if let Some(holder) = foreign.lock_holder.get() {
            return Ok(holder);
        }
        let open = |flags| self.ask(|far| far.open(foreign.place(), flags));
        let holder = open(READ_WRITE).or_else(|_| open(READ)).or_else(|_| open(WRITE))?;
        foreign.lock_holder.set(Some(holder));
        Ok(holder)
    }
}
