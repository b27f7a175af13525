//! Names of queues, and how large each may be.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::file::{O_ACCMODE, O_CLOEXEC, O_CREAT, O_EXCL, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY};
use abi::process::{CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_SYS_RESOURCE};
use abi::{Errno, Field};
use kernel::file::Credentials;
use machine::{KernelCell, TryGrow};

use super::queue::Queue;
use super::stream::OpenQueue;
use crate::call::{Call, CallResult};
use crate::calls::times::timerfd::add_file;
use crate::emulator::Unix;
use crate::files::open_file::OpenFile;

const NAME_BYTES_MAX: usize = 255;
/// What nobody may exceed (`HARD_MSGMAX`, `HARD_MSGSIZEMAX`).
const MESSAGES_HARD: u64 = 65_536;
const MESSAGE_BYTES_HARD: u64 = 16 << 20;
/// What Linux counts for each message that a queue may hold: its head, and its place among the priorities.
const HEAD_BYTES: u64 = 48;
const PLACE_BYTES: u64 = 48;
/// RLIMIT_MSGQUEUE.
const LIMIT: usize = 12;

/// The queues by name, and what each user's queues count.
pub struct QueueNames {
    names: KernelCell<Vec<(Vec<u8>, Arc<Queue>)>>,
    counted: KernelCell<Vec<(u32, u64)>>,
}

impl QueueNames {
    pub const fn new() -> QueueNames {
        QueueNames { names: KernelCell::new(Vec::new()), counted: KernelCell::new(Vec::new()) }
    }

    fn find(&self, name: &[u8]) -> Option<Arc<Queue>> {
        let names = self.names.borrow();
        let place = names.binary_search_by(|(other, _)| other[..].cmp(name)).ok()?;
        Some(names[place].1.clone())
    }

    fn remove(&self, name: &[u8]) -> Option<Arc<Queue>> {
        let mut names = self.names.borrow_mut();
        let place = names.binary_search_by(|(other, _)| other[..].cmp(name)).ok()?;
        let (gone, queue) = names.remove(place);
        drop(names);
        drop(gone);
        Some(queue)
    }

    fn add(&self, name: Vec<u8>, queue: &Arc<Queue>) -> Result<(), Errno> {
        let mut names = self.names.borrow_mut();
        let Err(place) = names.binary_search_by(|(other, _)| other.cmp(&name)) else { return Err(Errno::EEXIST) };
        names.try_insert(place, (name, queue.clone()))?;
        Ok(())
    }
}

/// What a queue counts against its user's limit, until it goes.
pub struct Charge {
    unix: &'static Unix,
    user: u32,
    bytes: u64,
}

impl Charge {
    /// Error: `EMFILE` for more than the limit.
    fn take(call: &Call<'_>, bytes: u64) -> Result<Charge, Errno> {
        let user = call.process().user_ids.get().real;
        let limit = call.process().limits.borrow().0[LIMIT].0;
        let mut counted = call.unix.families.queue_names.counted.borrow_mut();
        let place = match counted.iter().position(|(whose, _)| *whose == user) {
            Some(place) => place,
            None => {
                counted.try_push((user, 0))?;
                counted.len() - 1
            }
        };
        let sum = counted[place].1.checked_add(bytes).filter(|sum| *sum <= limit);
        if let Some(sum) = sum {
            counted[place].1 = sum;
        }
        counted.retain(|(_, bytes)| *bytes > 0);
        sum.map(|_| Charge { unix: call.unix, user, bytes }).ok_or(Errno::EMFILE)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut counted = self.unix.families.queue_names.counted.borrow_mut();
        if let Some((_, bytes)) = counted.iter_mut().find(|(whose, _)| *whose == self.user) {
            *bytes -= self.bytes;
        }
        counted.retain(|(_, bytes)| *bytes > 0);
    }
}

/// Errors: `ENOENT` for an empty name, `EACCES` for one with a slash, `ENAMETOOLONG`, `EFAULT`.
fn read_name(call: &Call<'_>, address: u64) -> Result<Vec<u8>, Errno> {
    let name = call.read_path(address)?;
    match &name[..] {
        [] => Err(Errno::ENOENT),
        b"." | b".." => Err(Errno::EACCES),
        name if name.contains(&b'/') => Err(Errno::EACCES),
        name if name.len() > NAME_BYTES_MAX => Err(Errno::ENAMETOOLONG),
        _ => Ok(name),
    }
}

/// Errors: `EACCES`.
fn permit(who: &Credentials, queue: &Queue, flags: u32) -> Result<(), Errno> {
    let (user, group, mode) = queue.owner;
    let granted = match () {
        _ if who.user == user => mode >> 6,
        _ if who.in_group(group) => mode >> 3,
        _ => mode,
    };
    let wanted = match flags & O_ACCMODE {
        O_RDONLY => 4,
        O_WRONLY => 2,
        _ => 6,
    };
    if who.can(CAP_DAC_OVERRIDE) || wanted & !granted == 0 { Ok(()) } else { Err(Errno::EACCES) }
}

/// Errors: `EINVAL`, `EFAULT`, `EACCES`, `EEXIST`, `ENOENT`, `ENAMETOOLONG`, `EMFILE`, `ENOSPC`, `ENOMEM`.
pub fn mq_open(call: &Call<'_>, name: u64, flags: u32, mode: u32, attributes: u64) -> CallResult {
    let wanted = if attributes != 0 { Some(read_attributes(call, attributes)?) } else { None };
    let name = read_name(call, name)?;
    let limit = call.process().limits.borrow().descriptors();
    if !call.files().has_free(limit) {
        return Err(Errno::EMFILE);
    }
    let names = &call.unix.families.queue_names;
    let queue = match names.find(&name) {
        Some(_) if flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL => return Err(Errno::EEXIST),
        Some(_) if flags & O_ACCMODE == O_ACCMODE => return Err(Errno::EINVAL),
        Some(queue) => {
            permit(&call.process().credentials.borrow(), &queue, flags)?;
            queue
        }
        None if flags & O_CREAT == 0 => return Err(Errno::ENOENT),
        None => {
            let queue = Arc::new(make(call, mode, wanted)?);
            names.add(name, &queue)?;
            if flags & O_ACCMODE == O_ACCMODE {
                return Err(Errno::EINVAL);
            }
            queue
        }
    };
    let access = match flags & O_ACCMODE {
        access @ (O_RDONLY | O_WRONLY) => access,
        _ => O_RDWR,
    };
    let file = OpenFile::stream(OpenQueue::new(&queue), access | flags & O_NONBLOCK);
    // Linux closes queues at `exec`, whatever the flags say.
    let _ = O_CLOEXEC;
    add_file(call, file, true)
}

/// How many messages, and how large: the second and third word of `struct mq_attr`.
fn read_attributes(call: &Call<'_>, address: u64) -> Result<(i64, i64), Errno> {
    let mut record = [0; 64];
    call.copy_in(address, &mut record)?;
    Ok((i64::get(&record[8..]), i64::get(&record[16..])))
}

fn make(call: &Call<'_>, mode: u32, wanted: Option<(i64, i64)>) -> Result<Queue, Errno> {
    let tunables = &call.unix.families.tunables;
    let who = call.process().credentials.borrow().clone();
    let count = call.unix.families.queue_names.names.borrow().len() as u64;
    if count >= tunables.queues.get() && !who.can(CAP_SYS_RESOURCE) {
        return Err(Errno::ENOSPC);
    }
    let (messages, bytes) = match wanted {
        None => (
            tunables.queue_messages.get().min(tunables.queue_messages_default.get()),
            tunables.queue_bytes.get().min(tunables.queue_bytes_default.get()),
        ),
        Some((messages, bytes)) if messages <= 0 || bytes <= 0 => return Err(Errno::EINVAL),
        Some((messages, bytes)) => (messages as u64, bytes as u64),
    };
    let is_free = who.can(CAP_SYS_RESOURCE);
    let most = if is_free { MESSAGES_HARD } else { tunables.queue_messages.get() };
    let bytes_most = if is_free { MESSAGE_BYTES_HARD } else { tunables.queue_bytes.get() };
    if wanted.is_some() && (messages > most || bytes > bytes_most) {
        return Err(Errno::EINVAL);
    }
    let per_message = HEAD_BYTES + bytes;
    let places = messages.min(super::PRIORITIES.into()) * PLACE_BYTES;
    let charge = Charge::take(call, messages * per_message + places)?;
    let mode = mode & 0o777 & !call.process().place.borrow().borrow().umask;
    Ok(Queue::new((messages as usize, bytes as usize), (who.user, who.group, mode), charge))
}

/// Errors: `ENOENT`, `EACCES`, `ENAMETOOLONG`, `EFAULT`, `EPERM` for another user's.
pub fn mq_unlink(call: &Call<'_>, name: u64) -> CallResult {
    let name = read_name(call, name)?;
    let names = &call.unix.families.queue_names;
    let queue = names.find(&name).ok_or(Errno::ENOENT)?;
    let who = call.process().credentials.borrow();
    if !who.can(CAP_FOWNER) && who.user != queue.owner.0 {
        return Err(Errno::EPERM);
    }
    drop(names.remove(&name));
    Ok(0)
}
