//! What the kinds of System V objects have in common: numbers, keys, owners.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::process::{CAP_IPC_OWNER, CAP_SYS_ADMIN};
use abi::{Errno, Field};
use kernel::charge::{Bill, Held};
use kernel::file::Credentials;
use machine::{KernelValue, Ordered, TryGrow};

use crate::call::Call;

pub const IPC_CREAT: u32 = 0o1000;
pub const IPC_EXCL: u32 = 0o2000;
pub const IPC_NOWAIT: u32 = 0o4000;

pub const IPC_RMID: u32 = 0;
pub const IPC_SET: u32 = 1;
pub const IPC_STAT: u32 = 2;
pub const IPC_INFO: u32 = 3;

/// Rights, as one digit of a mode.
pub const READ: u32 = 4;
pub const WRITE: u32 = 2;

/// Places of objects; the rest of a number says which of those that had the place is meant (`IPCMNI_SHIFT`).
const PLACE_BITS: u32 = 15;
const TURNS: u32 = 1 << 16;

/// `struct ipc64_perm` (`asm-generic/ipcbuf.h`).
pub const OWNER_BYTES: usize = 48;

/// Whose an object is, and who may use it.
pub struct Owner {
    /// 0: only its number leads to it.
    pub key: u32,
    pub user: KernelValue<u32>,
    pub group: KernelValue<u32>,
    creator: (u32, u32),
    /// The process that made it.
    pub maker: u32,
    pub mode: KernelValue<u32>,
    /// Seconds since 1970 of its making or its last change.
    pub changed_at: KernelValue<i64>,
}

impl Owner {
    fn new(call: &Call<'_>, key: u32, flags: u32) -> Owner {
        let who = call.process().credentials.borrow();
        Owner {
            key,
            user: KernelValue::new(who.user),
            group: KernelValue::new(who.group),
            creator: (who.user, who.group),
            maker: call.process().pid,
            mode: KernelValue::new(flags & 0o777),
            changed_at: KernelValue::new(call.now().seconds),
        }
    }

    /// Error: `EACCES` when the mode does not grant all of `wanted`, as in one digit.
    pub fn permit(&self, who: &Credentials, wanted: u32) -> Result<(), Errno> {
        let granted = if who.user == self.user.get() || who.user == self.creator.0 {
            self.mode.get() >> 6
        } else if who.in_group(self.group.get()) || who.in_group(self.creator.1) {
            self.mode.get() >> 3
        } else {
            self.mode.get()
        };
        if who.can(CAP_IPC_OWNER) || wanted & !granted & 7 == 0 { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Error: `EPERM`.
    pub fn check_owner(&self, who: &Credentials) -> Result<(), Errno> {
        let owns = who.can(CAP_SYS_ADMIN) || who.user == self.user.get() || who.user == self.creator.0;
        if owns { Ok(()) } else { Err(Errno::EPERM) }
    }

    /// Takes owner, group and mode from a program's `ipc64_perm`.
    pub fn set(&self, words: &[u32; 12], now_seconds: i64) {
        self.user.set(words[1]);
        self.group.set(words[2]);
        self.mode.set(words[5] & 0o777);
        self.changed_at.set(now_seconds);
    }

    pub fn put(&self, id: u32, into: &mut [u8]) {
        let words = [self.key, self.user.get(), self.group.get(), self.creator.0, self.creator.1, self.mode.get()];
        words.put(into);
        // Which of those that had the place.
        ((id >> PLACE_BITS) as u16).put(&mut into[24..]);
    }

    /// Users and groups, as /proc/sysvipc shows them.
    pub fn ids(&self) -> [u32; 4] {
        [self.user.get(), self.group.get(), self.creator.0, self.creator.1]
    }
}

/// What all objects of a kind are found by.
pub struct Objects<T> {
    slots: Vec<Slot<T>>,
    /// Places by key.
    keys: Ordered<u32, u32>,
    pub count: usize,
    last_place: usize,
}

struct Slot<T> {
    turn: u32,
    object: Option<Arc<T>>,
}

/// A kind of object.
pub trait Kind {
    fn owner(&self) -> &Owner;
    fn held(&self) -> Held;
    /// Nobody but this process has used it.
    fn is_only_of(&self, pid: u32) -> bool;
}

impl<T: Kind> Objects<T> {
    /// Adds what a process has made.
    pub fn charge(&self, pid: u32, bill: &mut Bill) {
        let made = self.each().filter(|(_, object)| object.owner().maker == pid);
        made.for_each(|(_, object)| bill.add(object.held()));
    }

    /// An object that a process has made and nobody else has used.
    pub fn only_of(&self, pid: u32) -> Option<u32> {
        let mut all = self.each();
        all.find(|(_, object)| object.owner().maker == pid && object.is_only_of(pid)).map(|(id, _)| id)
    }

    pub const fn new() -> Objects<T> {
        Objects { slots: Vec::new(), keys: Ordered::new(), count: 0, last_place: 0 }
    }

    /// Error: `EINVAL` for a number that no object has.
    pub fn get(&self, id: u64) -> Result<Arc<T>, Errno> {
        let id = u32::try_from(id as i32).map_err(|_| Errno::EINVAL)?;
        let slot = self.slots.get((id & ((1 << PLACE_BITS) - 1)) as usize).ok_or(Errno::EINVAL)?;
        slot.object.clone().filter(|_| slot.turn == id >> PLACE_BITS).ok_or(Errno::EINVAL)
    }

    /// The object at a place, and its number. Error: `EINVAL`.
    pub fn at(&self, place: u64) -> Result<(u32, Arc<T>), Errno> {
        let slot = usize::try_from(place as i32).ok().and_then(|place| self.slots.get(place)).ok_or(Errno::EINVAL)?;
        let object = slot.object.clone().ok_or(Errno::EINVAL)?;
        Ok((slot.turn << PLACE_BITS | place as u32, object))
    }

    /// All objects, with their numbers.
    pub fn each(&self) -> impl Iterator<Item = (u32, &Arc<T>)> {
        let objects = self.slots.iter().enumerate();
        objects.filter_map(|(place, slot)| Some((slot.turn << PLACE_BITS | place as u32, slot.object.as_ref()?)))
    }

    /// The highest place in use, 0 when there is none.
    pub fn last(&self) -> u64 {
        self.slots.iter().rposition(|slot| slot.object.is_some()).unwrap_or(0) as u64
    }

    /// Finds the object of a key, or has one made, as the flags say.
    ///
    /// Errors: `EEXIST`, `ENOENT`, `EACCES`, `ENOSPC` for more than `most`, `ENOMEM`; those of `fits` and `make`.
    pub fn get_or_make(
        &mut self,
        call: &Call<'_>,
        (key, flags): (u32, u32),
        most: u64,
        fits: impl FnOnce(&T) -> Result<(), Errno>,
        make: impl FnOnce(Owner) -> Result<T, Errno>,
    ) -> Result<u32, Errno> {
        let found = self.keys.get(&key).and_then(|place| self.at(u64::from(*place)).ok());
        if let Some((id, object)) = found {
            if flags & (IPC_CREAT | IPC_EXCL) == IPC_CREAT | IPC_EXCL {
                return Err(Errno::EEXIST);
            }
            fits(&object)?;
            let who = call.process().credentials.borrow();
            object.owner().permit(&who, flags >> 6 | flags >> 3 | flags)?;
            return Ok(id);
        }
        if key != 0 && flags & IPC_CREAT == 0 {
            return Err(Errno::ENOENT);
        }
        let object = make(Owner::new(call, key, flags))?;
        if self.count as u64 >= most {
            return Err(Errno::ENOSPC);
        }
        self.add(object)
    }

    /// Error: `ENOMEM`.
    fn add(&mut self, object: T) -> Result<u32, Errno> {
        let free = |from: usize| Some(from + self.slots.get(from..)?.iter().position(|slot| slot.object.is_none())?);
        // Places come round, so that a number is not another object's soon.
        let place = free(self.last_place).or_else(|| if self.count < self.slots.len() { free(0) } else { None });
        let place = match place {
            Some(place) => place,
            None => {
                self.slots.try_push(Slot { turn: TURNS - 1, object: None })?;
                self.slots.len() - 1
            }
        };
        if object.owner().key != 0 {
            self.keys.try_insert(object.owner().key, place as u32).map_err(|_| Errno::ENOMEM)?;
        }
        let slot = &mut self.slots[place];
        slot.turn = (slot.turn + 1) % TURNS;
        slot.object = Some(Arc::new(object));
        self.count += 1;
        self.last_place = place;
        Ok(slot.turn << PLACE_BITS | place as u32)
    }

    /// The number leads nowhere from now on.
    pub fn remove(&mut self, id: u64) -> Option<Arc<T>> {
        let object = self.get(id).ok()?;
        self.keys.remove(&object.owner().key);
        self.count -= 1;
        self.slots[id as usize & ((1 << PLACE_BITS) - 1)].object.take()
    }
}
