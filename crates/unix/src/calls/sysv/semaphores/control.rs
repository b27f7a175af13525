//! semctl.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::{Errno, Field};

use super::operation::Where;
use super::{Set, VALUE_MAX, waiting};
use crate::call::{Call, CallResult};
use crate::calls::sysv::objects::{IPC_INFO, IPC_RMID, IPC_SET, IPC_STAT, OWNER_BYTES, READ, WRITE};
use crate::emulator::Unix;

const GETPID: u32 = 11;
const GETVAL: u32 = 12;
const GETALL: u32 = 13;
const GETNCNT: u32 = 14;
const GETZCNT: u32 = 15;
const SETVAL: u32 = 16;
const SETALL: u32 = 17;
const SEM_STAT: u32 = 18;
const SEM_INFO: u32 = 19;
const SEM_STAT_ANY: u32 = 20;

/// `struct semid64_ds` (`asm/sembuf.h`).
const STATUS_BYTES: usize = 104;

/// Errors: `EINVAL`, `EFAULT`, `EACCES`, `EPERM`, `ERANGE`, `EIDRM`, `ENOMEM`.
pub fn semctl(call: &Call<'_>, id: u64, semaphore: u64, command: u32, argument: u64) -> CallResult {
    if (id as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    match command {
        IPC_INFO | SEM_INFO => tell_limits(call, command, argument),
        IPC_STAT => {
            let set = find(call, id)?;
            tell_status(call, id as u32, &set, READ, argument).map(|_| 0)
        }
        SEM_STAT | SEM_STAT_ANY => {
            let (id, set) = call.unix.families.semaphores.objects.borrow().at(id)?;
            tell_status(call, id, &set, if command == SEM_STAT { READ } else { 0 }, argument)
        }
        GETALL => all_values(call, &*find(call, id)?, argument),
        SETALL => set_all(call, &*find(call, id)?, argument),
        GETVAL | GETPID | GETNCNT | GETZCNT => ask(call, &*find(call, id)?, semaphore, command),
        SETVAL => set_value(call, &*find(call, id)?, semaphore, argument as i32),
        IPC_RMID => remove(call, id),
        IPC_SET => {
            let mut record = [0; STATUS_BYTES];
            call.copy_in(argument, &mut record)?;
            let set = find(call, id)?;
            set.owner.check_owner(&call.process().credentials.borrow())?;
            set.owner.set(&<[u32; 12]>::get(&record), call.now().seconds);
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

fn find(call: &Call<'_>, id: u64) -> Result<Arc<Set>, Errno> {
    call.unix.families.semaphores.objects.borrow().get(id)
}

/// Error: `EINVAL` for a number that the set has not.
fn place(set: &Set, semaphore: u64) -> Result<usize, Errno> {
    usize::try_from(semaphore as i32).ok().filter(|place| *place < set.count()).ok_or(Errno::EINVAL)
}

fn ask(call: &Call<'_>, set: &Set, semaphore: u64, command: u32) -> CallResult {
    set.permit(call, READ)?;
    let place = place(set, semaphore)?;
    let found = set.semaphores.borrow()[place];
    Ok(match command {
        GETVAL => found.value.into(),
        GETPID => found.pid.into(),
        GETNCNT => waiting(set, place as u16, Where::Growth),
        _ => waiting(set, place as u16, Where::Zero),
    })
}

fn all_values(call: &Call<'_>, set: &Set, address: u64) -> CallResult {
    set.permit(call, READ)?;
    let mut values = call.buffer(set.count() * 2)?;
    for (semaphore, bytes) in set.semaphores.borrow().iter().zip(values.chunks_exact_mut(2)) {
        semaphore.value.put(bytes);
    }
    call.copy_out(address, &values)?;
    Ok(0)
}

fn set_all(call: &Call<'_>, set: &Set, address: u64) -> CallResult {
    set.permit(call, WRITE)?;
    let values: Vec<u8> = call.read_bytes(address, set.count() * 2)?;
    let value_of = |bytes: &[u8]| u16::get(bytes);
    if values.chunks_exact(2).any(|bytes| i32::from(value_of(bytes)) > VALUE_MAX) {
        return Err(Errno::ERANGE);
    }
    if set.is_removed.get() {
        return Err(Errno::EIDRM);
    }
    for (semaphore, bytes) in set.semaphores.borrow_mut().iter_mut().zip(values.chunks_exact(2)) {
        (semaphore.value, semaphore.pid) = (value_of(bytes), call.process().pid);
    }
    set.undos.borrow_mut().forget_all();
    changed(call, set);
    Ok(0)
}

fn set_value(call: &Call<'_>, set: &Set, semaphore: u64, value: i32) -> CallResult {
    if !(0..=VALUE_MAX).contains(&value) {
        return Err(Errno::ERANGE);
    }
    let place = place(set, semaphore)?;
    set.permit(call, WRITE)?;
    let pid = call.process().pid;
    (set.semaphores.borrow_mut()[place].value, set.semaphores.borrow_mut()[place].pid) = (value as u16, pid);
    set.undos.borrow_mut().forget(place);
    changed(call, set);
    Ok(0)
}

fn changed(call: &Call<'_>, set: &Set) {
    set.owner.changed_at.set(call.now().seconds);
    set.settle(call.held, call.unix);
}

fn remove(call: &Call<'_>, id: u64) -> CallResult {
    let set = find(call, id)?;
    set.owner.check_owner(&call.process().credentials.borrow())?;
    take_away(call.unix, id);
    Ok(0)
}

/// Its number leads nowhere from now on, and who waits learns that.
pub fn take_away(unix: &Unix, id: u64) {
    let sets = &unix.families.semaphores;
    let Some(set) = sets.objects.borrow_mut().remove(id) else { return };
    sets.semaphores.set(sets.semaphores.get() - set.count() as u64);
    set.is_removed.set(true);
    let waiting = core::mem::take(&mut *set.pending.borrow_mut());
    for pending in waiting {
        pending.finish(unix, crate::calls::sysv::semaphores::operation::Outcome::Failed(Errno::EIDRM));
    }
}

fn tell_status(call: &Call<'_>, id: u32, set: &Set, wanted: u32, address: u64) -> CallResult {
    set.permit(call, wanted)?;
    let mut bytes = [0; STATUS_BYTES];
    set.owner.put(id, &mut bytes);
    set.operated_at.get().put(&mut bytes[OWNER_BYTES..]);
    set.owner.changed_at.get().put(&mut bytes[64..]);
    (set.count() as u64).put(&mut bytes[80..]);
    call.copy_out(address, &bytes)?;
    Ok(id.into())
}

/// `struct seminfo`: 10 words.
fn tell_limits(call: &Call<'_>, command: u32, address: u64) -> CallResult {
    const UNDO_BYTES: u32 = 20;
    let tunables = &call.unix.families.tunables;
    let [per_set, all, operations, sets] =
        [&tunables.semaphores_per_set, &tunables.semaphores, &tunables.semaphore_operations, &tunables.semaphore_sets]
            .map(|limit| limit.get() as u32);
    let kept = &call.unix.families.semaphores;
    let last = kept.objects.borrow().last();
    let (used, largest) = if command == SEM_INFO {
        (kept.objects.borrow().count as u32, kept.semaphores.get() as u32)
    } else {
        (UNDO_BYTES, VALUE_MAX as u32)
    };
    // Map, sets, semaphores, undo structures, semaphores of a set, operations, undo entries; then what is used.
    let words = [1_024_000_000, sets, all, 1_024_000_000, per_set, operations, 500, used, VALUE_MAX as u32, largest];
    call.write(address, &words)?;
    Ok(last)
}
