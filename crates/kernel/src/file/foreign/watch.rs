//! Watching what is outside of the machine: the other side tells what anybody does there, this machine's programs as well.

use alloc::vec::Vec;

use abi::Errno;
use abi::poll::InotifyEvent;
use machine::{KernelCell, TryGrow};

use super::super::store::WatchKey as Key;
use super::super::volume::Volume;
use super::super::watch::{ENDED, Happened};
use super::{ForeignNode, ForeignTree};

/// Numbers of the other side's watches, which rise, and what they are of.
pub(super) struct Outside(KernelCell<Vec<(i32, Key)>>);

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

impl ForeignTree {
    /// Has the other side tell what is asked of this node. Errors: the other side's, `ENOMEM`.
    pub(super) fn watch(&self, node: &ForeignNode, key: Key, events: u32) -> Result<(), Errno> {
        let number = self.ask(|far| far.watch(node.place(), events))?;
        self.watched.note(number, key).inspect_err(|_| self.far.unwatch(number))
    }

    /// Nobody asks any more.
    pub(super) fn unwatch(&self, key: &Key) {
        if let Some(number) = self.watched.take(key) {
            self.far.unwatch(number);
        }
    }

    /// Takes what the other side has to tell, and tells those who watch.
    pub(super) fn pull_events(&self, volume: &Volume) {
        const PIECE_BYTES: usize = 1024;
        let mut piece = [0; PIECE_BYTES];
        loop {
            let bytes = self.far.take_events(&mut piece);
            let mut rest = &piece[..bytes.min(PIECE_BYTES)];
            if rest.is_empty() {
                return;
            }
            while let Some((head, behind)) = rest.split_first_chunk::<{ InotifyEvent::BYTES }>() {
                let event = InotifyEvent::from_bytes(head);
                let (name, next) = behind.split_at((event.len as usize).min(behind.len()));
                let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
                self.tell(volume, &event, &name[..end]);
                rest = next;
            }
        }
    }

    fn tell(&self, volume: &Volume, event: &InotifyEvent, name: &[u8]) {
        let happened = Happened { mask: event.mask, cookie: event.cookie, name };
        match self.watched.key(event.wd) {
            Some(key) if event.mask & ENDED != 0 => {
                self.watched.forget(event.wd);
                volume.end_watches_of(&key);
            }
            Some(key) => volume.tell_watches_of(&key, &happened),
            None if event.wd < 0 => volume.tell_all_watches(&happened),
            None => {}
        }
    }
}
