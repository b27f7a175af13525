//! How many instances and watches each user has, and who else tells what happened.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use kernel::file::Volume;
use machine::{KernelCell, TryGrow};

/// What one user has.
#[derive(Clone, Copy, Default)]
struct Count {
    user: u32,
    instances: u32,
    watches: u32,
}

pub struct InotifyUsers {
    /// Users that have any.
    counts: KernelCell<Vec<Count>>,
    /// A volume outside of the machine of which something is or was watched.
    outside: KernelCell<Option<Arc<Volume>>>,
}

impl InotifyUsers {
    pub const fn new() -> InotifyUsers {
        InotifyUsers { counts: KernelCell::new(Vec::new()), outside: KernelCell::new(None) }
    }

    /// Something of a volume outside of the machine is watched.
    pub fn watch_outside(&self, volume: &Arc<Volume>) {
        *self.outside.borrow_mut() = Some(volume.clone());
    }

    /// Takes what others have to tell.
    pub fn pull(&self) {
        let outside = self.outside.borrow().clone();
        if let Some(volume) = outside {
            volume.pull_events();
        }
    }

    fn change<R>(&self, user: u32, change: impl FnOnce(&mut Count) -> R) -> Result<R, Errno> {
        let mut counts = self.counts.borrow_mut();
        let place = match counts.iter().position(|count| count.user == user) {
            Some(place) => place,
            None => {
                counts.try_push(Count { user, ..Count::default() })?;
                counts.len() - 1
            }
        };
        let result = change(&mut counts[place]);
        if counts[place].instances == 0 && counts[place].watches == 0 {
            counts.swap_remove(place);
        }
        Ok(result)
    }

    /// One more instance. Error: `EMFILE` for more than `most`.
    pub fn add_instance(&self, user: u32, most: u64) -> Result<(), Errno> {
        self.change(user, |count| {
            if u64::from(count.instances) >= most {
                return Err(Errno::EMFILE);
            }
            count.instances += 1;
            Ok(())
        })?
    }

    /// One more watch. Error: `ENOSPC` for more than `most`.
    pub fn add_watch(&self, user: u32, most: u64) -> Result<(), Errno> {
        self.change(user, |count| {
            if u64::from(count.watches) >= most {
                return Err(Errno::ENOSPC);
            }
            count.watches += 1;
            Ok(())
        })?
    }

    pub fn remove_instance(&self, user: u32) {
        let _ = self.change(user, |count| count.instances -= 1);
    }

    pub fn remove_watch(&self, user: u32) {
        let _ = self.change(user, |count| count.watches -= 1);
    }
}
