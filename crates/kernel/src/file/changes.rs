//! What was changed in a tree over others, as it is brought out when the machine ends (`--upper`).
//!
//! ```text
//!   brought/   what is new or changed, at its path, in directories that lead there
//!   gone       paths of names that were taken out, each behind a zero byte
//!   whole      paths of directories that hide what is below them
//!   owners     user:group:mode and path of what is in brought, each behind a zero byte
//!   end        how it went: empty, or why not
//! ```
//! A node was changed when its time of change is behind the start, and is not that of the same thing below. So nobody has to note what
//! a program does, and what was only looked at costs a comparison.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use machine::{TryGrow, try_text, try_to_vec};

use super::attributes::{NodeKind, Time};
use super::below::Under;
use super::namespace::Namespace;
use super::node::Node;
use super::sending::{BROUGHT, finish, names_in, send_one, tell, write_whole};

const GONE: &[u8] = b"gone";
const WHOLE: &[u8] = b"whole";
const OWNERS: &[u8] = b"owners";

/// Where the changes go, and what does not count.
pub(super) struct Upper {
    to: Arc<Node>,
    /// Directories that are the machine's own.
    alone: Vec<Arc<Node>>,
    /// What was changed until then came from outside.
    since: Time,
}

/// A directory on the way down.
struct Step {
    node: Arc<Node>,
    name: Vec<u8>,
    /// The same outside, as soon as there is something to put there.
    made: Option<Arc<Node>>,
    rest: Vec<Change>,
}

/// What became of a name.
struct Change {
    name: Vec<u8>,
    what: What,
}

enum What {
    Gone,
    Node {
        node: Arc<Node>,
        /// Something else of this name is below.
        hides: bool,
        /// Of a directory: whether all that is in it counts.
        is_all_new: bool,
    },
}

/// The changes so far, and where the next one goes.
struct Bringing {
    since: Time,
    now: Time,
    to: Arc<Node>,
    way: Vec<Step>,
    gone: Vec<u8>,
    whole: Vec<u8>,
    owners: Vec<u8>,
}

impl Namespace {
    /// What programs change in the tree from now on shall be brought to a folder outside, but for what they do in these directories.
    pub fn bring_changes(&self, to: Arc<Node>, alone: Vec<Arc<Node>>) {
        *self.upper.borrow_mut() = Some(Upper { to, alone, since: Time { seconds: i64::MAX, nanos: 0 } });
    }

    /// The clock shows this: whatever is changed from now on may have such a time.
    pub fn note_clock(&self, now: Time) {
        if let Some(upper) = &mut *self.upper.borrow_mut() {
            upper.since = upper.since.min(now);
        }
    }

    /// Brings the changes out. Nobody runs any more; the folders look for their answers.
    pub fn send_changes(&self, now: Time) {
        let Some(upper) = self.upper.borrow_mut().take() else { return };
        let sent = upper.send(self.root(), now);
        tell(&upper.to, sent, now);
    }
}

impl Upper {
    fn send(&self, root: &Arc<Node>, now: Time) -> Result<(), Errno> {
        let [gone, whole, owners] = [const { Vec::new() }; 3];
        let mut bringing =
            Bringing { since: self.since, now, to: self.to.clone(), way: Vec::new(), gone, whole, owners };
        bringing.enter(root.clone(), Vec::new(), false)?;
        bringing.make_way(true)?;
        while let Some(step) = bringing.way.last_mut() {
            match step.rest.pop() {
                Some(Change { what: What::Node { node, .. }, .. }) if self.is_alone(&node) => {}
                Some(change) => bringing.bring(change)?,
                None => bringing.leave()?,
            }
        }
        write_whole(&self.to, GONE, &bringing.gone, now)?;
        write_whole(&self.to, WHOLE, &bringing.whole, now)?;
        write_whole(&self.to, OWNERS, &bringing.owners, now)
    }

    fn is_alone(&self, node: &Arc<Node>) -> bool {
        self.alone.iter().any(|alone| Arc::ptr_eq(alone, node))
    }
}

impl Bringing {
    fn enter(&mut self, node: Arc<Node>, name: Vec<u8>, is_all_new: bool) -> Result<(), Errno> {
        let rest = if is_all_new { all_in(&node)? } else { self.changes_in(&node)? };
        Ok(self.way.try_push(Step { node, name, made: None, rest })?)
    }

    fn bring(&mut self, Change { name, what }: Change) -> Result<(), Errno> {
        let (node, hides, is_all_new) = match what {
            What::Gone => {
                self.make_way(true)?;
                return note(&mut self.gone, &[], &self.way, &name);
            }
            What::Node { node, hides, is_all_new } => (node, hides, is_all_new),
        };
        if !node.is_directory() {
            let to = self.make_way(true)?;
            send_one(&node, &to, &name, self.now)?;
            return note(&mut self.owners, &owner_of(&node)?, &self.way, &name);
        }
        if hides {
            note(&mut self.whole, &[], &self.way, &name)?;
        }
        let is_changed = is_all_new || node.meta().changed > self.since;
        self.enter(node, name, is_all_new)?;
        self.make_way(is_changed).map(drop)
    }

    /// The directory is done. One that its owner may not write gets that mode now, and its time, too.
    fn leave(&mut self) -> Result<(), Errno> {
        let Some(step) = self.way.pop() else { return Ok(()) };
        let Some(made) = step.made else { return Ok(()) };
        finish(&step.node, &made, self.now)?;
        if self.way.is_empty() {
            return Ok(());
        }
        note(&mut self.owners, &owner_of(&step.node)?, &self.way, &step.name)
    }

    /// The directories on the way outside, if they are needed. The last of them.
    fn make_way(&mut self, is_needed: bool) -> Result<Arc<Node>, Errno> {
        let mut last = self.to.clone();
        for step in self.way.iter_mut().filter(|_| is_needed) {
            if step.made.is_none() {
                let name = if step.name.is_empty() { BROUGHT } else { &step.name };
                step.made = send_one(&step.node, &last, name, self.now)?;
            }
            last = step.made.clone().ok_or(Errno::ENOTDIR)?;
        }
        Ok(last)
    }

    /// What is not in a directory as it is below it.
    fn changes_in(&self, directory: &Arc<Node>) -> Result<Vec<Change>, Errno> {
        let mut changes = Vec::new();
        let (entries, under) = {
            let table = directory.table(Errno::ENOTDIR)?.borrow();
            let mut entries = Vec::new();
            for entry in table.all() {
                match entry.node() {
                    Some(node) => entries.try_push((entry.name.clone(), Some(node.clone())))?,
                    None if entry.hides() => entries.try_push((entry.name.clone(), None))?,
                    None => {}
                }
            }
            (entries, table.below.as_ref().map(|below| below.under.clone()))
        };
        for (name, node) in entries {
            let what = match node {
                Some(node) => self.change_of(&name, node, under.as_deref())?,
                None => Some(What::Gone),
            };
            if let Some(what) = what {
                changes.try_push(Change { name: try_to_vec(&name)?, what })?;
            }
        }
        Ok(changes)
    }

    fn change_of(&self, name: &[u8], node: Arc<Node>, under: Option<&dyn Under>) -> Result<Option<What>, Errno> {
        let meta = node.meta();
        let is_directory = node.kind() == NodeKind::Directory;
        if !is_directory && meta.changed <= self.since {
            return Ok(None);
        }
        let seen = under.map_or(Ok(None), |under| under.look(name))?;
        if !is_directory {
            let is_as_below = seen.is_some_and(|seen| seen.changed == meta.changed);
            return Ok((!is_as_below).then_some(What::Node { node, hides: false, is_all_new: false }));
        }
        let lies_over = node.table(Errno::ENOTDIR)?.borrow().below.as_ref().map(|below| below.under.identity());
        let is_same = lies_over.is_some() && lies_over == seen.as_ref().map(|seen| seen.identity);
        // One that was packed was there before, and one that was moved here brings all that is in it along.
        let is_all_new = !is_same && (lies_over.is_some() || meta.born > self.since);
        Ok(Some(What::Node { node, hides: seen.is_some() && !is_same, is_all_new }))
    }
}

fn all_in(directory: &Arc<Node>) -> Result<Vec<Change>, Errno> {
    let mut changes = Vec::new();
    for name in names_in(directory)? {
        let what = What::Node { node: directory.child(&name)?, hides: false, is_all_new: true };
        changes.try_push(Change { name, what })?;
    }
    Ok(changes)
}

/// The head of a line about who has a node, and its mode.
fn owner_of(node: &Node) -> Result<Vec<u8>, Errno> {
    let meta = node.meta();
    Ok(try_text(format_args!("{}:{}:0{:o}:", meta.user, meta.group, meta.mode & 0o7777))?.into_bytes())
}

/// Puts the path of a name at the end of a list, behind a head. The first step is the root.
fn note(list: &mut Vec<u8>, head: &[u8], way: &[Step], name: &[u8]) -> Result<(), Errno> {
    list.try_push(0)?;
    list.try_extend_from_slice(head)?;
    for step in way.iter().skip(1) {
        list.try_extend_from_slice(&step.name)?;
        list.try_push(b'/')?;
    }
    Ok(list.try_extend_from_slice(name)?)
}
