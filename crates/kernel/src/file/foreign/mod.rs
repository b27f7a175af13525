//! File systems outside of the machine, joined to the tree of names by mounting (S-98: other file systems join
//! through monitor and switch): the host's own when hosted, a shared folder of a virtual machine.
//!
//! A [`Node`] of such a volume stands for a place on the other side. It keeps no copy of anything: attributes, names
//! and data are asked for each time, because others change them meanwhile. While a node is alive its place is held, so
//! one place is one node (found by device and number), however often its name is looked up.
//!
//! A volume in memory may be laid over such a tree. What it holds is seen instead of what is there; its directories
//! are joined with those of the same name, but for the *memory folders*, which are seen alone (`/tmp`, `/dev`).

mod change;
mod ferry;
mod guarded;
mod map;
mod opening;
mod store;
mod watch;

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use abi::Errno;
use machine::{About, Foreign, Handle, KernelCell, KernelValue, NoMemory, Refused, TryGrow, try_arc_slice, try_filled};

pub use ferry::Ferry;
use guarded::{Recent, Settled};
use map::ForeignMap;
pub(super) use opening::Opening;

use super::attributes::Meta;
use super::attributes::{Attributes, NodeKind, Time};
use super::credentials::Credentials;
use super::limits::PATH_BYTES_MAX;
use super::node::Node;
use super::share::{self, Pages, Puts, Share};
use super::store::{Glance, Guess, WatchKey as Key};
use super::volume::Volume;
use super::walk::FinalLink;

/// What a volume outside of the machine knows.
pub struct ForeignTree {
    far: &'static dyn Foreign,
    /// In whose name the other side is asked.
    identity: Credentials,
    /// All that are alive, sorted. Binary search in a plain vector: few are alive, and it takes little code.
    nodes: KernelCell<Vec<(Key, Weak<Node>)>>,
    recent: Recent,
    /// How often a place that was seen under one name was seen under another.
    shifts: KernelValue<u64>,
    /// Directories of the volume laid over that are seen alone.
    alone: KernelCell<Vec<Arc<Node>>>,
    /// What the other side tells of.
    watched: watch::Outside,
    /// The folder that is asked by messages, if it is one.
    share: Option<&'static Share>,
}

/// What a node outside of the machine keeps.
pub struct ForeignNode {
    far: &'static dyn Foreign,
    /// Held as long as the node, unless it is that of an opening, which lends it.
    place: KernelValue<Handle>,
    device: (u32, u32),
    /// The directory in memory that is laid over this one.
    over: KernelCell<Option<Arc<Node>>>,
    /// Maps for reading and for writing, while they are used.
    maps: KernelCell<[Weak<ForeignMap>; 2]>,
    /// Holds the record locks of this machine's processes against those of others.
    lock_holder: KernelCell<Option<Handle>>,
    /// Of a file that is asked for by messages.
    shared: Option<SharedNode>,
    settled: Settled,
}

/// What is known of a file in a shared folder.
struct SharedNode {
    share: &'static Share,
    /// Its pages, while somebody maps them.
    pages: KernelCell<Weak<Pages>>,
    puts: Arc<Puts>,
    openings: KernelValue<usize>,
    /// Where it stands, by another name, since it was removed while it was open.
    hidden: KernelCell<Option<(Handle, Vec<u8>)>>,
}

impl Drop for ForeignNode {
    fn drop(&mut self) {
        let holder = self.lock_holder.borrow_mut().take();
        if let Some(holder) = holder {
            self.far.release(holder);
        }
        self.settled.end(self.far);
        self.far.release(self.place());
    }
}

/// The other side's error as a program sees it. A place that has gone has no name any more; descriptors of the other
/// side are not the program's.
pub(super) fn errno_of(Refused(number): Refused) -> Errno {
    match Errno::from_number(number) {
        Some(Errno::ESTALE) => Errno::ENOENT,
        Some(Errno::EMFILE) => Errno::ENFILE,
        Some(errno) => errno,
        None => Errno::EIO,
    }
}

pub(super) fn time_of((seconds, nanos): machine::Moment) -> Time {
    Time { seconds, nanos }
}

pub(super) fn kind_of(about: &About) -> NodeKind {
    let (major, minor) = about.special;
    match about.mode & 0o170_000 {
        0o010_000 => NodeKind::Fifo,
        0o020_000 => NodeKind::CharDevice(major, minor),
        0o040_000 => NodeKind::Directory,
        0o060_000 => NodeKind::BlockDevice(major, minor),
        0o120_000 => NodeKind::Symlink,
        0o140_000 => NodeKind::Socket,
        _ => NodeKind::Regular,
    }
}

impl ForeignTree {
    /// The trees that a machine finds outside. They are asked in the name of `identity`.
    pub fn new(far: &'static dyn Foreign, identity: Credentials) -> ForeignTree {
        ForeignTree {
            far,
            identity,
            nodes: KernelCell::new(Vec::new()),
            recent: Recent::new(),
            shifts: KernelValue::new(0),
            alone: KernelCell::new(Vec::new()),
            watched: watch::Outside::new(),
            share: None,
        }
    }

    /// The tree of a shared folder.
    pub fn of_share(share: &'static Share, identity: Credentials) -> Result<ForeignTree, Errno> {
        Ok(ForeignTree { share: Some(share), ..ForeignTree::new(share::carrier(share)?, identity) })
    }

    /// Asks the other side; if it has no descriptor left, once more after giving some back.
    pub(super) fn ask<T>(&self, question: impl Fn(&'static dyn Foreign) -> Result<T, Refused>) -> Result<T, Errno> {
        match question(self.far) {
            Err(Refused(number)) if number == Errno::EMFILE as u16 || number == Errno::ENFILE as u16 => {
                self.give_back();
                question(self.far).map_err(errno_of)
            }
            answer => answer.map_err(errno_of),
        }
    }

    /// Lets the other side have its places back that nobody uses.
    #[cold]
    fn give_back(&self) {
        self.recent.empty();
    }

    /// The node of a place; `place` is used up.
    fn adopt(&self, volume: &Arc<Volume>, place: Handle) -> Result<Arc<Node>, Errno> {
        match self.ask(|far| far.about(place)) {
            Ok(about) => self.adopt_known(volume, place, &about),
            Err(error) => {
                self.far.release(place);
                Err(error)
            }
        }
    }

    /// The same of a place that has been asked about.
    fn adopt_known(&self, volume: &Arc<Volume>, place: Handle, about: &About) -> Result<Arc<Node>, Errno> {
        let key = (about.device, about.number);
        let foreign = ForeignNode {
            far: self.far,
            place: KernelValue::new(place),
            device: about.device,
            over: KernelCell::new(None),
            maps: KernelCell::new([Weak::new(), Weak::new()]),
            lock_holder: KernelCell::new(None),
            shared: self.share.map(SharedNode::new).transpose()?,
            settled: Settled::new(),
        };
        if let Some(node) = self.known(key, about) {
            return Ok(node);
        }
        self.nodes.borrow_mut().room_for(1)?;
        let node = Node::kept(volume, about.number, kind_of(about), Box::new(foreign));
        let mut nodes = self.nodes.borrow_mut();
        match nodes.binary_search_by_key(&key, |(known, _)| *known) {
            // A thing of another kind has the number now.
            Ok(index) => nodes[index].1 = Arc::downgrade(&node),
            Err(index) => nodes.put_at(index, (key, Arc::downgrade(&node))),
        }
        Ok(node)
    }

    fn known(&self, key: Key, about: &About) -> Option<Arc<Node>> {
        let nodes = self.nodes.borrow();
        let index = nodes.binary_search_by_key(&key, |(known, _)| *known).ok()?;
        let node = nodes[index].1.upgrade()?;
        (node.kind() == kind_of(about)).then_some(node)
    }

    /// Called when a node goes.
    fn forget(&self, node: &Node) {
        let Ok(foreign) = foreign(node) else { return };
        let key = (foreign.device, node.number());
        let mut nodes = self.nodes.borrow_mut();
        if let Ok(index) = nodes.binary_search_by_key(&key, |(known, _)| *known)
            && core::ptr::eq(nodes[index].1.as_ptr(), node)
        {
            nodes.remove(index);
        }
    }

    pub(super) fn let_go(&self, node: &Arc<Node>) {
        self.recent.let_go(node);
    }

    /// `node`, a directory of the volume laid over, is seen alone.
    #[expect(clippy::disallowed_methods, reason = "at boot")]
    pub fn show_alone(&self, node: &Arc<Node>) {
        self.alone.borrow_mut().push(node.clone());
    }

    fn is_alone(&self, node: &Arc<Node>) -> bool {
        !node.is_directory() || self.alone.borrow().iter().any(|alone| Arc::ptr_eq(alone, node))
    }
}

impl ForeignTree {
    /// The top of tree `index` as a node of `volume`, which is this one's, with `over` laid over it.
    /// Error: `ENOENT` if there is no such tree.
    pub fn top(&self, volume: &Arc<Volume>, index: usize, over: Option<Arc<Node>>) -> Result<Arc<Node>, Errno> {
        let place = self.ask(|far| far.top(index))?;
        let node = self.adopt(volume, place)?;
        *foreign(&node)?.over.borrow_mut() = over;
        Ok(node)
    }

    /// What the other side says of a node there, now. One that cannot be asked has no links left.
    fn about(&self, node: &Node) -> About {
        let Ok(foreign) = foreign(node) else { return About::default() };
        let asked = self.ask(|far| far.about(foreign.place())).ok();
        let mut about = asked.unwrap_or(About { device: foreign.device, number: node.number(), ..About::default() });
        foreign.shared.iter().for_each(|shared| shared.settle_about(&mut about));
        about
    }
}

impl SharedNode {
    fn new(share: &'static Share) -> Result<SharedNode, NoMemory> {
        Ok(SharedNode {
            share,
            pages: KernelCell::new(Weak::new()),
            puts: Puts::new()?,
            openings: KernelValue::new(0),
            hidden: KernelCell::new(None),
        })
    }

    /// Somebody has it open, and it still has a name.
    fn is_needed(&self) -> bool {
        self.openings.get() > 0 && self.hidden.borrow().is_none()
    }

    fn pages(&self) -> Option<Arc<Pages>> {
        self.pages.borrow().upgrade()
    }

    /// What the server says, as it is for this machine.
    fn settle_about(&self, about: &mut About) {
        self.pages().iter().for_each(|pages| pages.note_size(about.bytes));
        if self.hidden.borrow().is_some() {
            about.links = about.links.saturating_sub(1);
        }
    }

    /// The file has so many bytes from now on.
    fn cut(&self, bytes: u64) {
        self.pages().iter().for_each(|pages| pages.cut(bytes));
    }

    /// An opening is gone. With the last one a file goes that was removed before.
    fn closed(&self) {
        self.openings.set(self.openings.get() - 1);
        if self.openings.get() == 0
            && let Some((directory, name)) = self.hidden.borrow_mut().take()
        {
            self.share.remove_hidden(directory, name);
        }
    }
}

/// What is kept of a node outside of the machine. Error: `EXDEV` for what is laid over it.
fn foreign(node: &Node) -> Result<&ForeignNode, Errno> {
    node.own().ok_or(Errno::EXDEV)
}

impl ForeignNode {
    fn place(&self) -> Handle {
        self.place.get()
    }

    /// Nothing in memory is laid over the first of `names` in this directory, so nothing is over what is below it.
    fn is_bare_at(&self, names: &[u8]) -> bool {
        let first = names.split(|byte| *byte == b'/').next().unwrap_or(names);
        self.over.borrow().as_ref().is_none_or(|over| over.child(first).err() == Some(Errno::ENOENT))
    }

    fn meta_of(about: &About) -> Meta {
        Meta {
            mode: about.mode & 0o7777,
            user: about.user,
            group: about.group,
            links: about.links,
            accessed: time_of(about.accessed),
            modified: time_of(about.modified),
            changed: time_of(about.changed),
            born: time_of(about.born),
        }
    }

    fn attributes_of(about: &About) -> Attributes {
        Attributes {
            volume_device: about.device,
            number: about.number,
            kind: kind_of(about),
            mode: about.mode & 0o7777,
            links: about.links,
            user: about.user,
            group: about.group,
            size_bytes: about.bytes,
            blocks_512: about.blocks_512,
            accessed: time_of(about.accessed),
            modified: time_of(about.modified),
            changed: time_of(about.changed),
            born: time_of(about.born),
        }
    }
}

/// Looking names up.
impl ForeignTree {
    /// The node called `name` in the directory `this`.
    fn child(&self, this: &Arc<Node>, name: &[u8], guess: Guess) -> Result<Arc<Node>, Errno> {
        let foreign = foreign(this)?;
        let over = foreign.over.borrow().as_ref().and_then(|over| over.child(name).ok());
        if let Some(laid) = over.as_ref().filter(|laid| self.is_alone(laid)) {
            laid.show_in(this, name);
            return Ok(laid.clone());
        }
        let found = self.find(this, foreign, name, guess);
        match (found, over) {
            (Ok(node), None) => Ok(node),
            (Ok(node), Some(over)) if node.is_directory() => {
                *self::foreign(&node)?.over.borrow_mut() = Some(over);
                Ok(node)
            }
            (Ok(_), Some(over)) | (Err(Errno::ENOENT), Some(over)) => {
                over.show_in(this, name);
                Ok(over)
            }
            (Err(error), _) => Err(error),
        }
    }

    /// What `names` below a directory lead to, through directories alone.
    fn glance(&self, directory: &ForeignNode, names: &[u8], last: FinalLink) -> Result<Glance, Errno> {
        let about = if names.contains(&b'/') {
            self.ask(|far| far.about_below(directory.place(), names))
        } else {
            self.ask(|far| far.about_name(directory.place(), names))
        };
        match about {
            Ok(about) if kind_of(&about) == NodeKind::Symlink && last == FinalLink::Follow => Ok(Glance::Walk),
            Ok(about) => Ok(Glance::Seen(ForeignNode::attributes_of(&about))),
            Err(error @ (Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES)) => Err(error),
            Err(_) => Ok(Glance::Walk),
        }
    }

    fn find(&self, this: &Arc<Node>, foreign: &ForeignNode, name: &[u8], guess: Guess) -> Result<Arc<Node>, Errno> {
        // Before the question, so that a move behind it counts.
        let moves = self.moves();
        if let Some(node) = self.recent.settled(this, name, moves) {
            return Ok(node);
        }
        let known = match guess {
            // By messages that is dearer than to take the place and give it back.
            Guess::Known if self.share.is_none() => {
                let about = self.ask(|far| far.about_name(foreign.place(), name))?;
                self.known((about.device, about.number), &about)
            }
            _ => None,
        };
        let node = match known {
            Some(node) => node,
            None => {
                let place = self.ask(|far| far.find(foreign.place(), name))?;
                self.adopt(this.volume(), place)?
            }
        };
        if node.parent().is_some() && !node.is_shown_in(this, name) {
            // Those above its place so far are held by it no more, and are not guarded for those who went past them.
            self.shifts.set(self.shifts.get() + 1);
        }
        node.show_in(this, name);
        if node.is_directory() || node.is_symlink() && self.share.is_none() {
            self.recent.keep(this, name, &node);
            self.note_place(foreign, name, &node, moves);
        }
        Ok(node)
    }

    /// Where a symlink leads, which nobody can change as long as its place is held.
    fn link_target(&self, foreign: &ForeignNode) -> Result<Arc<[u8]>, Errno> {
        if let Some(target) = foreign.settled.target() {
            return Ok(target);
        }
        let target = self.ask_target(foreign)?;
        if self.share.is_none() {
            foreign.settled.leads_to(target.clone());
        }
        Ok(target)
    }

    fn ask_target(&self, foreign: &ForeignNode) -> Result<Arc<[u8]>, Errno> {
        let target = try_filled(0, PATH_BYTES_MAX)?;
        // Only one question is asked at a time, so the buffer may be lent to it.
        let target = KernelCell::new(target);
        let bytes = self.ask(|far| far.link_target(foreign.place(), &mut target.borrow_mut()))?;
        Ok(try_arc_slice(&target.borrow()[..bytes])?)
    }
}
