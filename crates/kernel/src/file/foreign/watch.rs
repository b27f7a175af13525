//! Watching what is outside of the machine: the other side tells what anybody does there, this machine's programs as well.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use abi::poll::InotifyEvent;
use machine::{KernelCell, TryGrow};

use super::super::node::Node;
use super::super::volume::Volume;
use super::super::watch::{ENDED, Happened};
use super::Key;

/// Numbers of the other side's watches, which rise, and what they are of.
pub(in super::super) struct Outside(KernelCell<Vec<(i32, Key)>>);

impl Outside {
    pub(super) const fn new() -> Outside {
        Outside(KernelCell::new(Vec::new()))
    }

    fn note(&self, number: i32, key: Key) -> Result<(), Errno> {
        let mut watched = self.0.borrow_mut();
        if let Err(place) = watched.binary_search_by_key(&number, |(known, _)| *known) {
            watched.try_insert(place, (number, key))?;
        }
        Ok(())
    }

    fn key(&self, number: i32) -> Option<Key> {
        let watched = self.0.borrow();
        let place = watched.binary_search_by_key(&number, |(known, _)| *known).ok()?;
        Some(watched[place].1)
    }

    fn forget(&self, number: i32) {
        self.0.borrow_mut().retain(|(known, _)| *known != number);
    }

    fn take(&self, key: &Key) -> Option<i32> {
        let mut watched = self.0.borrow_mut();
        let place = watched.iter().position(|(_, known)| known == key)?;
        Some(watched.remove(place).0)
    }
}

impl Volume {
    /// Has the other side tell what is asked of this node. Errors: the other side's, `ENOMEM`.
    pub(in super::super) fn watch_outside(&self, node: &Node, key: Key, events: u32) -> Result<(), Errno> {
        let Some((foreign, tree)) = node.abroad() else { return Ok(()) };
        let number = tree.ask(|far| far.watch(foreign.place, events))?;
        tree.watched.note(number, key).inspect_err(|_| tree.far.unwatch(number))
    }

    /// Nobody asks any more.
    pub(in super::super) fn unwatch_outside(&self, key: &Key) {
        if let Some(tree) = self.foreign()
            && let Some(number) = tree.watched.take(key)
        {
            tree.far.unwatch(number);
        }
    }

    /// Takes what the other side has to tell, and tells those who watch.
    pub fn pull_events(self: &Arc<Volume>) {
        const PIECE_BYTES: usize = 1024;
        let Some(tree) = self.foreign() else { return };
        let mut piece = [0; PIECE_BYTES];
        loop {
            let bytes = tree.far.take_events(&mut piece);
            let mut rest = &piece[..bytes.min(PIECE_BYTES)];
            if rest.is_empty() {
                return;
            }
            while let Some((head, behind)) = rest.split_first_chunk::<{ InotifyEvent::BYTES }>() {
                let event = InotifyEvent::from_bytes(head);
                let (name, next) = behind.split_at((event.len as usize).min(behind.len()));
                let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
                self.tell_of_outside(&event, &name[..end]);
                rest = next;
            }
        }
    }

    fn tell_of_outside(&self, event: &InotifyEvent, name: &[u8]) {
        let Some(tree) = self.foreign() else { return };
        let happened = Happened { mask: event.mask, cookie: event.cookie, name };
        match tree.watched.key(event.wd) {
            Some(key) if event.mask & ENDED != 0 => {
                tree.watched.forget(event.wd);
                self.end_watches_of(&key);
            }
            Some(key) => self.tell_watches_of(&key, &happened),
            None if event.wd < 0 => self.tell_all_watches(&happened),
            None => {}
        }
    }
}
