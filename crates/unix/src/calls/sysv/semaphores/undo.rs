//! What the end of a process takes back (`SEM_UNDO`).

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use machine::{Held, KernelCell, TryGrow, try_filled};

use super::{Set, Sets, VALUE_MAX};
use crate::emulator::Unix;

/// By process, what is to be added to each semaphore of one set.
pub struct Undos(Vec<(u32, Vec<i16>)>);

impl Undos {
    pub const fn new() -> Undos {
        Undos(Vec::new())
    }

    pub fn of(&mut self, pid: u32) -> Option<&mut [i16]> {
        self.0.iter_mut().find(|(whose, _)| *whose == pid).map(|(_, changes)| &mut changes[..])
    }

    /// Room for a process's changes; whether it is new. Error: `ENOMEM`.
    fn prepare(&mut self, pid: u32, count: usize) -> Result<bool, Errno> {
        if self.of(pid).is_some() {
            return Ok(false);
        }
        self.0.try_push((pid, try_filled(0, count)?))?;
        Ok(true)
    }

    fn take(&mut self, pid: u32) -> Option<Vec<i16>> {
        let place = self.0.iter().position(|(whose, _)| *whose == pid)?;
        Some(self.0.swap_remove(place).1)
    }

    /// Somebody has set the value of a semaphore: nothing is taken back of it any more.
    pub fn forget(&mut self, semaphore: usize) {
        self.0.iter_mut().for_each(|(_, changes)| changes[semaphore] = 0);
    }

    pub fn forget_all(&mut self) {
        self.0.iter_mut().for_each(|(_, changes)| changes.fill(0));
    }
}

/// Which processes have something to be taken back, and of which sets.
pub struct UndoneBy(KernelCell<Vec<(u32, Vec<u32>)>>);

impl UndoneBy {
    pub const fn new() -> UndoneBy {
        UndoneBy(KernelCell::new(Vec::new()))
    }

    fn note(&self, pid: u32, id: u32) -> Result<(), Errno> {
        let mut all = self.0.borrow_mut();
        let place = match all.binary_search_by_key(&pid, |(whose, _)| *whose) {
            Ok(place) => place,
            Err(place) => {
                all.try_insert(place, (pid, Vec::new()))?;
                place
            }
        };
        Ok(all[place].1.try_push(id)?)
    }

    fn take(&self, pid: u32) -> Option<Vec<u32>> {
        let mut all = self.0.borrow_mut();
        let place = all.binary_search_by_key(&pid, |(whose, _)| *whose).ok()?;
        Some(all.remove(place).1)
    }
}

impl Sets {
    /// Room to note what the process's end takes back. Error: `ENOMEM`.
    pub(super) fn prepare_undo(&self, set: &Arc<Set>, id: u64, pid: u32) -> Result<(), Errno> {
        if set.undos.borrow_mut().prepare(pid, set.count())? {
            self.undone.note(pid, id as u32).inspect_err(|_| drop(set.undos.borrow_mut().take(pid)))?;
        }
        Ok(())
    }
}

/// The process has ended: what it did to semaphores is taken back where it asked for that.
pub fn process_ended(held: Held<'_>, unix: &Unix, pid: u32) {
    let sets = &unix.families.semaphores;
    for id in sets.undone.take(pid).into_iter().flatten() {
        let set = sets.objects.borrow().get(id.into());
        let Ok(set) = set else { continue };
        let changes = set.undos.borrow_mut().take(pid);
        let mut has_changed = false;
        for (semaphore, change) in set.semaphores.borrow_mut().iter_mut().zip(changes.iter().flatten()) {
            if *change != 0 {
                let value = i32::from(semaphore.value) + i32::from(*change);
                (semaphore.value, semaphore.pid) = (value.clamp(0, VALUE_MAX) as u16, pid);
                has_changed = true;
            }
        }
        if has_changed {
            set.operated_at.set(unix.wall_time().seconds);
            set.settle(held, unix);
        }
    }
}
