//! What a file that is kept elsewhere knows of its pages (the file's tree has those that are here).
//!
//! ```text
//!              fetch                     write, map for writing
//!   absent ───────────► Fetching ──► clean ───────────────────► Dirty ◄──────────┐
//!     ▲                                │ ▲ ◄──── nothing new ──┐  │ put           │ written meanwhile, or it failed
//!     └────── released, nobody shows ──┘ │                     └ Putting ─────────┘
//!                              remember  ▼
//!                                       Seen: it is in the file's map, and a routine may write
//! ```
//! *Seen* becomes clean or dirty by one word of the file that a writing routine stores anyway (`written_at`).

use alloc::sync::Arc;
use core::ops::{Bound, Range};

use abi::Errno;
use machine::{KernelCell, KernelValue, NoMemory, Ordered};

use super::page_store::{Fresh, PageStore};
use crate::space::{Arrival, Coming, Page};

/// The other end of a file's pages.
pub(super) struct Kept {
    store: Arc<dyn PageStore>,
    file: u64,
    states: KernelCell<Ordered<u64, State>>,
    /// A routine has written since the seen pages were looked at.
    has_written: KernelValue<bool>,
}

/// A page that is neither absent nor clean.
enum State {
    /// On its way here, and not in the tree before somebody asks for it again.
    Fetching(Coming, Page),
    Seen,
    Dirty,
    /// On its way to the store.
    Putting {
        coming: Coming,
        is_changed: bool,
    },
}

/// What is to be done about an absent page.
pub(super) enum Fetched {
    Here(Page),
    Hole,
    Wait(Coming),
    /// Nobody has asked for it yet.
    Ask,
}

/// The next step on the way to having a range kept.
pub(super) enum Flush {
    /// Nothing from here on.
    Done,
    /// Page `index` shall go to the store.
    Put(u64),
    /// Page `index` is on its way; `true`: and must go again.
    Wait(u64, Coming, bool),
}

impl Kept {
    pub(super) fn new(store: &Arc<dyn PageStore>, file: u64) -> Kept {
        Kept {
            store: store.clone(),
            file,
            states: KernelCell::new(Ordered::new()),
            has_written: KernelValue::new(false),
        }
    }

    pub(super) fn holds(&self, index: u64) -> bool {
        self.store.holds(self.file, index)
    }

    pub(super) fn next_page(&self, from: u64) -> Option<u64> {
        self.store.next_page(self.file, from)
    }

    pub(super) fn pages(&self) -> u64 {
        self.store.pages(self.file)
    }

    /// Looks for a page that is not in the tree. One that has come is the caller's to put there.
    pub(super) fn look_for(&self, index: u64) -> Fetched {
        let mut states = self.states.borrow_mut();
        let Some(State::Fetching(coming, page)) = states.get(&index) else {
            drop(states);
            return if self.holds(index) { Fetched::Ask } else { Fetched::Hole };
        };
        let found = match coming.outcome() {
            None => return Fetched::Wait(coming.clone()),
            Some(Ok(())) => Fetched::Here(page.clone()),
            // Who waited knows that it failed; who asks now tries again.
            Some(Err(_)) => Fetched::Ask,
        };
        states.remove(&index);
        found
    }

    /// See [`PageStore::prepare`].
    pub(super) fn prepare(&self) -> Result<Option<Fresh>, Errno> {
        self.store.prepare(self.file)
    }

    pub(super) fn is_written(&self) -> bool {
        self.store.is_written()
    }

    pub(super) fn ahead(&self) -> u64 {
        self.store.ahead()
    }

    /// All that was asked for is on its way afterwards.
    pub(super) fn go(&self) {
        self.store.go();
    }

    /// Has the store fill a page of somebody else's.
    pub(super) fn hand(&self, index: u64, arrival: Arrival) {
        self.store.fetch(self.file, index, arrival);
        self.store.go();
    }

    /// Nothing has been asked for, nor changed.
    pub(super) fn is_untouched(&self) -> bool {
        self.states.borrow().is_empty()
    }

    /// Has the store fill `page`.
    pub(super) fn fetch(&self, index: u64, page: Page) -> Result<(), NoMemory> {
        let (coming, arrival) = Coming::new(page.clone())?;
        self.states.borrow_mut().try_insert(index, State::Fetching(coming, page))?;
        self.store.fetch(self.file, index, arrival);
        Ok(())
    }

    /// The page, which is here, is about to change. Error: `ENOSPC` without memory to remember it, and then it must not.
    pub(super) fn will_change(&self, index: u64) -> Result<(), Errno> {
        let mut states = self.states.borrow_mut();
        if let Some(State::Putting { is_changed, .. }) = states.get_mut(&index) {
            *is_changed = true;
            return Ok(());
        }
        states.try_insert(index, State::Dirty).map(drop).map_err(|_| Errno::ENOSPC)
    }

    /// A window is about to know the page, which is here. False: it must not.
    pub(super) fn will_be_seen(&self, index: u64) -> bool {
        let mut states = self.states.borrow_mut();
        match states.get_mut(&index) {
            Some(State::Putting { is_changed, .. }) => *is_changed = true,
            Some(_) => {}
            None => return states.try_insert(index, State::Seen).is_ok(),
        }
        true
    }

    /// A routine has left the time of its write, which is taken away now.
    pub(super) fn note_written(&self) {
        self.has_written.set(true);
    }

    /// The windows have forgotten all pages: those they knew are dirty if a routine has written, else clean.
    pub(super) fn settle_seen(&self, has_written: bool) {
        let mut states = self.states.borrow_mut();
        if has_written | self.has_written.take() {
            states.values_mut().filter(|state| matches!(state, State::Seen)).for_each(|state| *state = State::Dirty);
        } else {
            states.retain(|state| !matches!(state, State::Seen));
        }
    }

    /// There is no such page after all.
    pub(super) fn forget(&self, index: u64) {
        self.states.borrow_mut().remove(&index);
    }

    /// The page is here and as the store has it.
    pub(super) fn is_clean(&self, index: u64) -> bool {
        self.states.borrow().get(&index).is_none()
    }

    /// What is to be done next to have the dirty pages of `range` kept.
    pub(super) fn next_flush(&self, range: Range<u64>) -> Flush {
        let mut states = self.states.borrow_mut();
        let mut clean = None;
        let mut found = Flush::Done;
        for (&index, state) in states.range_mut(Bound::Included(&range.start)) {
            if index >= range.end {
                break;
            }
            match state {
                State::Fetching(..) | State::Seen => continue,
                State::Dirty => found = Flush::Put(index),
                State::Putting { coming, is_changed } => match coming.outcome() {
                    None => found = Flush::Wait(index, coming.clone(), *is_changed),
                    Some(Ok(())) if !*is_changed => {
                        clean = Some(index);
                        found = Flush::Wait(index, coming.clone(), false);
                    }
                    Some(_) => {
                        *state = State::Dirty;
                        found = Flush::Put(index);
                    }
                },
            }
            break;
        }
        clean.map(|index| states.remove(&index));
        found
    }

    /// Has the store keep `page`, which is dirty. One that programs may change unseen (`stays_dirty`) is so afterwards.
    pub(super) fn put(&self, index: u64, page: Page, stays_dirty: bool) -> Result<Coming, NoMemory> {
        let (coming, arrival): (Coming, Arrival) = Coming::new(page)?;
        if let Some(state) = self.states.borrow_mut().get_mut(&index) {
            *state = State::Putting { coming: coming.clone(), is_changed: stays_dirty };
        }
        self.store.put(self.file, index, arrival);
        Ok(coming)
    }

    /// The pages that have been put: those that nobody has changed since are clean.
    pub(super) fn settle_put(&self) {
        let mut states = self.states.borrow_mut();
        for state in states.values_mut() {
            if let State::Putting { coming, is_changed } = state
                && let Some(outcome) = coming.outcome()
                && (outcome.is_err() || *is_changed)
            {
                *state = State::Dirty;
            }
        }
        states.retain(|state| !matches!(state, State::Putting { coming, .. } if coming.outcome().is_some()));
    }

    /// The pages leave the file.
    pub(super) fn cut(&self, range: Range<u64>) {
        let mut states = self.states.borrow_mut();
        loop {
            let next = states.range(Bound::Included(&range.start)).next().map(|(index, _)| *index);
            let Some(index) = next.filter(|index| *index < range.end) else { break };
            states.remove(&index);
        }
        drop(states);
        self.store.cut(self.file, range);
    }
}
