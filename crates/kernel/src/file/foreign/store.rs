//! What a volume outside of the machine answers.

use alloc::sync::Arc;

use abi::Errno;
use machine::{Extended, Hold, LockedRange, Room};

use super::super::attributes::{Attributes, Meta, Time};
use super::super::change::NewSpecial;
use super::super::credentials::{Access, Credentials};
use super::super::node::Node;
use super::super::open::Opened;
use super::super::opened::File;
use super::super::ownership::TimeChange;
use super::super::rename::Renaming;
use super::super::store::{Glance, Guess, NewName, Residence, Store, WatchKey};
use super::super::volume::Volume;
use super::super::walk::FinalLink;
use super::{ForeignNode, ForeignTree, foreign};

impl Store for ForeignTree {
    fn residence(&self) -> Residence {
        Residence::Outside
    }

    fn kind(&self) -> &'static str {
        if self.share.is_some() { "9p" } else { "folder" }
    }

    /// The other side knows its own user.
    fn speaks_for(&self, who: &Credentials) -> bool {
        self.identity == *who
    }

    /// It knows better than the mode bits.
    fn permit(&self, node: &Node, access: Access) -> Result<(), Errno> {
        let foreign = foreign(node)?;
        self.ask(|far| far.may(foreign.place(), access.bits()))
    }

    fn child(&self, directory: &Arc<Node>, name: &[u8], guess: Guess) -> Result<Arc<Node>, Errno> {
        self.child(directory, name, guess)
    }

    fn glance(&self, who: &Credentials, at: &Node, names: &[u8], last: FinalLink) -> Result<Glance, Errno> {
        let foreign = foreign(at)?;
        // Two questions about two names are cheaper than one about both, and directories that are walked through become settled.
        let is_worth_it =
            self.share.is_some() && names.iter().filter(|byte| **byte == b'/').count() != 1 || !names.contains(&b'/');
        let can = is_worth_it && foreign.is_bare_at(names) && self.speaks_for(who);
        if can { self.glance(foreign, names, last) } else { Ok(Glance::Step) }
    }

    fn extended_below(
        &self,
        who: &Credentials,
        at: &Node,
        names: &[u8],
        last: FinalLink,
        what: &mut Extended<'_>,
    ) -> Result<Option<usize>, Errno> {
        let foreign = foreign(at)?;
        let is_worth_it = self.share.is_some() || !names.contains(&b'/');
        let can = is_worth_it && foreign.is_bare_at(names) && self.speaks_for(who);
        if can { self.extended_below(foreign, names, last, what) } else { Ok(None) }
    }

    fn moves(&self) -> Option<u64> {
        self.share.is_none().then(|| self.moves())
    }

    fn is_settled(&self, node: &Node) -> bool {
        self.is_settled(node)
    }

    fn is_gone(&self, directory: &Node) -> bool {
        self.is_gone(directory)
    }

    fn link_target(&self, node: &Node) -> Result<Arc<[u8]>, Errno> {
        self.link_target(foreign(node)?)
    }

    fn device(&self, node: &Node) -> (u32, u32) {
        foreign(node).map_or((0, 0), |foreign| foreign.device)
    }

    fn meta(&self, node: &Node) -> Meta {
        ForeignNode::meta_of(&self.about(node))
    }

    fn attributes(&self, node: &Node) -> Attributes {
        ForeignNode::attributes_of(&self.about(node))
    }

    fn open_child(&self, directory: &Arc<Node>, name: &[u8], flags: u32) -> Option<Arc<dyn File>> {
        self.open_child(directory, name, flags)
    }

    fn open(&self, node: &Arc<Node>, flags: u32) -> Result<Arc<dyn File>, Errno> {
        self.open(node, flags)
    }

    fn resize(&self, node: &Node, bytes: u64) -> Result<(), Errno> {
        let foreign = foreign(node)?;
        self.ask(|far| far.resize(foreign.place(), bytes))?;
        foreign.shared.iter().for_each(|shared| shared.cut(bytes));
        Ok(())
    }

    fn make_directory(&self, new: NewName<'_>, mode: u32) -> Result<Arc<Node>, Errno> {
        self.make_directory(new, mode)
    }

    fn make_special(&self, new: NewName<'_>, special: NewSpecial) -> Result<Arc<Node>, Errno> {
        self.make_special(new, special)
    }

    fn make_symlink(&self, new: NewName<'_>, target: &[u8]) -> Result<Arc<Node>, Errno> {
        self.make_symlink(new, target)
    }

    fn create(&self, new: NewName<'_>, mode: u32, flags: u32) -> Result<Opened, Errno> {
        self.create(new, mode, flags)
    }

    fn create_nameless(&self, new: NewName<'_>, mode: u32, flags: u32) -> Result<Opened, Errno> {
        self.create_nameless(new, mode, flags)
    }

    fn link(&self, new: NewName<'_>, node: &Arc<Node>) -> Result<(), Errno> {
        self.link(new, node)
    }

    fn remove(&self, directory: &Arc<Node>, name: &[u8], node: &Arc<Node>, _now: Time) -> Result<(), Errno> {
        self.remove(directory, name, node)
    }

    fn rename(&self, renaming: &Renaming<'_>) -> Result<(), Errno> {
        self.rename(renaming)
    }

    fn set_mode(&self, _who: &Credentials, node: &Node, mode: u32, _now: Time) -> Result<(), Errno> {
        let foreign = foreign(node)?;
        self.ask(|far| far.set_mode(foreign.place(), mode))
    }

    fn set_owner(&self, _who: &Credentials, node: &Node, owner: [Option<u32>; 2], _now: Time) -> Result<(), Errno> {
        let foreign = foreign(node)?;
        self.ask(|far| far.set_owner(foreign.place(), owner[0], owner[1]))
    }

    fn set_times(&self, node: &Node, times: [TimeChange; 2], _now: Time) -> Result<(), Errno> {
        self.set_times(foreign(node)?, times)
    }

    fn extended(&self, _who: &Credentials, node: &Node, what: Extended<'_>, _now: Time) -> Result<usize, Errno> {
        self.extended(foreign(node)?, what)
    }

    fn room(&self, node: &Node) -> Option<Result<Room, Errno>> {
        Some(foreign(node).and_then(|foreign| self.ask(|far| far.room(foreign.place()))))
    }

    fn hold(&self, node: &Node, hold: Hold, first: u64, last: u64) -> Result<(), Errno> {
        if self.share.is_some() {
            return Ok(());
        }
        let holder = self.lock_holder(foreign(node)?)?;
        self.ask(|far| far.lock(holder, hold, first, last))
    }

    fn held(&self, node: &Node, hold: Hold, first: u64, last: u64) -> Result<Option<LockedRange>, Errno> {
        if self.share.is_some() {
            return Ok(None);
        }
        let holder = self.lock_holder(foreign(node)?)?;
        self.ask(|far| far.lock_in_the_way(holder, hold, first, last))
    }

    fn settle(&self, node: &Node) {
        self.settle(node);
    }

    /// A shared folder says nothing of itself: what happens here is told by who does it.
    fn tells(&self) -> bool {
        self.share.is_none()
    }

    fn watch(&self, node: &Node, key: WatchKey, events: u32) -> Result<(), Errno> {
        self.watch(foreign(node)?, key, events)
    }

    fn unwatch(&self, key: &WatchKey) {
        self.unwatch(key);
    }

    fn pull_events(&self, volume: &Volume) {
        self.pull_events(volume);
    }

    fn forget(&self, node: &Node) {
        self.forget(node);
    }
}
