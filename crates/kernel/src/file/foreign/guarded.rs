//! What is remembered of places outside of the machine, and why that is right: the other side tells when a directory or a symlink
//! that is guarded gets another place, goes, or gets other rights ([`Foreign::guard`]). What a name led to is believed as long as
//! nothing that is guarded has moved; the question that found it was asked after the guard was set.

use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::{About, Foreign, KernelCell, KernelValue, TryGrow};

use super::super::node::Node;
use super::{ForeignNode, ForeignTree, foreign};

/// Directories and symlinks that are kept though nobody uses them, so that walking through them is cheap. Files are not kept: what
/// was removed on the other side could not be freed there.
const RECENT_MAX: usize = 1024;

/// Looked up so often a place is guarded: most are walked through once.
const LOOKUPS_UNTIL_GUARDED: u32 = 2;

/// What is known of the place of a node.
pub(super) struct Settled {
    /// Under which number the other side guards it.
    guard: KernelValue<Option<i32>>,
    lookups: KernelValue<u32>,
    /// [`Foreign::moves`] when its name led to it last; 0: that is not believed.
    at_moves: KernelValue<u64>,
    /// Where it leads, if it is a symlink.
    target: KernelCell<Option<Arc<[u8]>>>,
}

impl Settled {
    pub(super) fn new() -> Settled {
        Settled {
            guard: KernelValue::new(None),
            lookups: KernelValue::new(0),
            at_moves: KernelValue::new(0),
            target: KernelCell::new(None),
        }
    }

    pub(super) fn target(&self) -> Option<Arc<[u8]>> {
        self.target.borrow().clone()
    }

    pub(super) fn leads_to(&self, target: Arc<[u8]>) {
        *self.target.borrow_mut() = Some(target);
    }

    /// The place is given up.
    pub(super) fn end(&self, far: &'static dyn Foreign) {
        if let Some(number) = self.guard.replace(None) {
            far.unguard(number);
        }
    }
}

struct Kept {
    /// Of its directory and its name.
    hash: u64,
    node: Arc<Node>,
}

/// By the hash of directory and name: what comes to a place takes it.
pub(super) struct Recent(KernelCell<Vec<Option<Kept>>>);

/// FNV-1a over the name, from the directory's address.
fn hash(directory: &Arc<Node>, name: &[u8]) -> u64 {
    let start = 0xCBF2_9CE4_8422_2325 ^ Arc::as_ptr(directory) as u64;
    name.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3))
}

fn place(hash: u64) -> usize {
    (hash >> 20) as usize % RECENT_MAX
}

impl Recent {
    pub(super) const fn new() -> Recent {
        Recent(KernelCell::new(Vec::new()))
    }

    pub(super) fn empty(&self) {
        let kept = core::mem::take(&mut *self.0.borrow_mut());
        drop(kept);
    }

    pub(super) fn keep(&self, directory: &Arc<Node>, name: &[u8], node: &Arc<Node>) {
        let hash = hash(directory, name);
        let before = {
            let mut kept = self.0.borrow_mut();
            if kept.is_empty() {
                let Ok(()) = kept.room_for_exact(RECENT_MAX) else { return };
                (0..RECENT_MAX).for_each(|_| kept.put(None));
            }
            kept[place(hash)].replace(Kept { hash, node: node.clone() })
        };
        drop(before);
    }

    pub(super) fn let_go(&self, node: &Arc<Node>) {
        let is_it = |kept: &mut Kept| Arc::ptr_eq(&kept.node, node);
        let count = self.0.borrow().len();
        for place in 0..count {
            let gone = self.0.borrow_mut()[place].take_if(is_it);
            drop(gone);
        }
    }

    /// What a name in a directory led to, if nothing has moved since.
    pub(super) fn settled(&self, directory: &Arc<Node>, name: &[u8], moves: u64) -> Option<Arc<Node>> {
        let hash = hash(directory, name);
        let kept = self.0.borrow();
        let kept = kept.get(place(hash))?.as_ref().filter(|kept| kept.hash == hash)?;
        is_at(&kept.node, directory, name, moves).then(|| kept.node.clone())
    }
}

fn is_at(node: &Node, directory: &Arc<Node>, name: &[u8], moves: u64) -> bool {
    foreign(node).is_ok_and(|foreign| foreign.settled.at_moves.get() == moves) && node.is_shown_in(directory, name)
}

impl ForeignTree {
    /// `name` in `directory` has led to the node when nothing had moved since `moves`. Where a guard is set now, it is asked once more:
    /// only an answer behind that is believed.
    pub(super) fn note_place(&self, directory: &ForeignNode, name: &[u8], node: &Node, moves: u64) {
        let Ok(foreign) = foreign(node) else { return };
        let settled = &foreign.settled;
        if settled.guard.get().is_some() {
            settled.at_moves.set(moves);
            return;
        }
        settled.lookups.set(settled.lookups.get() + 1);
        if settled.lookups.get() != LOOKUPS_UNTIL_GUARDED || self.share.is_some() {
            return;
        }
        settled.guard.set(self.far.guard(foreign.place()).ok());
        let moves = self.moves();
        let is_it = |about: About| (about.device, about.number) == (foreign.device, node.number());
        if settled.guard.get().is_some() && self.far.about_name(directory.place(), name).is_ok_and(is_it) {
            settled.at_moves.set(moves);
        }
    }

    /// Differs from before if what was settled may be so no more.
    pub(super) fn moves(&self) -> u64 {
        self.far.moves() + self.shifts.get()
    }

    /// Nobody tells that a directory is removed as long as its place is held; but it has no links then.
    pub(super) fn is_gone(&self, directory: &Node) -> bool {
        let is_guarded = foreign(directory).is_ok_and(|foreign| foreign.settled.guard.get().is_some());
        let is_gone = is_guarded && self.about(directory).links == 0;
        if is_gone {
            self.shifts.set(self.shifts.get() + 1);
        }
        is_gone
    }

    /// Nothing has moved since the name of this node led to it.
    pub(super) fn is_settled(&self, node: &Node) -> bool {
        foreign(node).is_ok_and(|foreign| foreign.settled.at_moves.get() == self.moves())
    }
}
