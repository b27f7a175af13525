//! Semaphores in sets: semget, semop, semctl.
//!
//! ```text
//!   mod.rs        a set, and the calls that change values
//!   operation.rs  operations that are done together or not at all
//!   control.rs    semctl
//!   undo.rs       what a process's end takes back
//! ```
//! Who cannot go on waits in the set's list, in order of arrival. Whoever changes a value tries those whose operations stopped
//! at it, does them in their name, and wakes them: nobody can come in between.

pub(crate) mod control;
mod operation;
pub(crate) mod undo;

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::time::Timespec;
use abi::{Errno, Field};
use kernel::charge::{Bill, Held, Kept};
use machine::{KernelCell, KernelValue, Nanos, TryGrow, try_collect, try_filled};

use super::objects::{Kind, Objects, Owner, READ, WRITE};
use crate::call::{Call, CallResult};
use crate::calls::times;
use crate::emulator::Unix;

use operation::{Operation, Outcome, Pending, Where};
use undo::{UndoneBy, Undos};

/// The largest value of a semaphore, and of what is taken back at the end (`SEMVMX`, `SEMAEM`).
const VALUE_MAX: i32 = 32_767;

/// `struct sembuf`.
const OPERATION_BYTES: usize = 6;

#[derive(Clone, Copy, Default)]
pub struct Semaphore {
    value: u16,
    /// The process that changed it last.
    pid: u32,
}

pub struct Set {
    owner: Owner,
    semaphores: KernelCell<Vec<Semaphore>>,
    pending: KernelCell<Vec<Arc<Pending>>>,
    undos: KernelCell<Undos>,
    is_removed: KernelValue<bool>,
    operated_at: KernelValue<i64>,
}

impl Kind for Set {
    fn owner(&self) -> &Owner {
        &self.owner
    }

    fn held(&self) -> Held {
        Held::new(Kept::Semaphores, size_of::<Set>() + self.semaphores.borrow().capacity() * size_of::<Semaphore>())
    }

    fn is_only_of(&self, pid: u32) -> bool {
        self.pending.borrow().is_empty() && self.semaphores.borrow().iter().all(|one| one.pid == 0 || one.pid == pid)
    }
}

impl Sets {
    /// Adds what a process has made.
    pub fn bill(&self, pid: u32, bill: &mut Bill) {
        self.objects.borrow().charge(pid, bill);
    }
}

/// A process was killed for want of memory: the sets that only it has used go with it.
pub fn lose(unix: &Unix, pid: u32) {
    loop {
        let Some(id) = unix.families.semaphores.objects.borrow().only_of(pid) else { return };
        control::take_away(unix, id.into());
    }
}

/// All sets.
pub struct Sets {
    objects: KernelCell<Objects<Set>>,
    /// Semaphores in all sets.
    semaphores: KernelValue<u64>,
    undone: UndoneBy,
}

impl Sets {
    pub const fn new() -> Sets {
        Sets { objects: KernelCell::new(Objects::new()), semaphores: KernelValue::new(0), undone: UndoneBy::new() }
    }

    /// All sets with their numbers and how many semaphores each has.
    pub fn each(&self, mut show: impl FnMut(u32, &Owner, usize, [i64; 2])) {
        for (id, set) in self.objects.borrow().each() {
            let times = [set.operated_at.get(), set.owner.changed_at.get()];
            show(id, &set.owner, set.semaphores.borrow().len(), times);
        }
    }
}

impl Set {
    /// Error: `ENOMEM`.
    fn new(owner: Owner, count: usize) -> Result<Set, Errno> {
        let semaphores = try_filled(Semaphore::default(), count)?;
        Ok(Set {
            owner,
            semaphores: KernelCell::new(semaphores),
            pending: KernelCell::new(Vec::new()),
            undos: KernelCell::new(Undos::new()),
            is_removed: KernelValue::new(false),
            operated_at: KernelValue::new(0),
        })
    }

    fn count(&self) -> usize {
        self.semaphores.borrow().len()
    }

    /// Error: `EACCES`.
    fn permit(&self, call: &Call<'_>, wanted: u32) -> Result<(), Errno> {
        self.owner.permit(&call.process().credentials.borrow(), wanted)
    }

    /// Values have changed: those who waited for them go on, in their order, as long as one can.
    fn settle(&self, held: machine::Held<'_>, unix: &Unix) {
        const AT_ONCE: usize = 64;
        let mut place = 0;
        let mut tried = 0;
        loop {
            let Some(pending) = self.pending.borrow().get(place).cloned() else { return };
            place += 1;
            let outcome =
                if pending.may_go_on(&self.semaphores.borrow()) { self.try_all(&pending) } else { Outcome::Waits };
            if outcome != Outcome::Waits {
                self.pending.borrow_mut().retain(|other| !Arc::ptr_eq(other, &pending));
                pending.finish(unix, outcome);
                // What it changed may be what one before it waits for.
                place = 0;
            }
            tried += 1;
            if tried % AT_ONCE == 0 {
                unix.scheduler.let_others_run(held);
            }
        }
    }

    /// Does the operations, or nothing.
    fn try_all(&self, pending: &Pending) -> Outcome {
        let mut semaphores = self.semaphores.borrow_mut();
        let mut undos = self.undos.borrow_mut();
        let outcome = operation::apply(&pending.operations, &mut semaphores, undos.of(pending.pid));
        match outcome {
            Outcome::Done => {
                for operation in &pending.operations {
                    semaphores[operation.semaphore as usize].pid = pending.pid;
                }
            }
            Outcome::Blocked(at) => {
                pending.stops_at.set(at);
                return Outcome::Waits;
            }
            _ => {}
        }
        outcome
    }
}

/// Errors: `EINVAL` for no or too many semaphores, `EEXIST`, `ENOENT`, `EACCES`, `ENOSPC`, `ENOMEM`.
pub fn semget(call: &Call<'_>, key: u64, count: u64, flags: u64) -> CallResult {
    let tunables = &call.unix.families.tunables;
    let count = usize::try_from(count as i32).map_err(|_| Errno::EINVAL)?;
    if count as u64 > tunables.semaphores_per_set.get() {
        return Err(Errno::EINVAL);
    }
    let sets = &call.unix.families.semaphores;
    let fits = |set: &Set| if count > set.count() { Err(Errno::EINVAL) } else { Ok(()) };
    let make = |owner| {
        if count == 0 {
            return Err(Errno::EINVAL);
        }
        if sets.semaphores.get() + count as u64 > tunables.semaphores.get() {
            return Err(Errno::ENOSPC);
        }
        Set::new(owner, count)
    };
    let before = sets.objects.borrow().count;
    let mut objects = sets.objects.borrow_mut();
    let id = objects.get_or_make(call, (key as u32, flags as u32), tunables.semaphore_sets.get(), fits, make)?;
    if objects.count > before {
        sets.semaphores.set(sets.semaphores.get() + count as u64);
    }
    Ok(id.into())
}

/// The deadline of `semtimedop`. Errors: `EFAULT`, `EINVAL`.
fn deadline(call: &Call<'_>, address: u64) -> Result<Option<Nanos>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    let nanos = times::nanos_of(call.read::<Timespec>(address)?)?;
    Ok(Some(crate::calls::times::sleeps::deadline_after(call, nanos)))
}

/// Errors: `EINVAL`, `E2BIG`, `EFAULT`, `EFBIG`, `EACCES`, `ERANGE`, `EAGAIN`, `EIDRM`, `EINTR`, `ENOMEM`.
pub fn semtimedop(call: &Call<'_>, id: u64, operations: u64, count: u64, time: u64) -> CallResult {
    let count = count as u32 as usize;
    if count < 1 || (id as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    if count as u64 > call.unix.families.tunables.semaphore_operations.get() {
        return Err(Errno::E2BIG);
    }
    let record = call.read_bytes(operations, count * OPERATION_BYTES)?;
    let deadline = deadline(call, time)?;
    let parts = record.chunks_exact(OPERATION_BYTES);
    let operations = try_collect(parts.map(|bytes| Operation::from_words(Field::get(bytes))))?;
    let set = call.unix.families.semaphores.objects.borrow().get(id)?;
    if operations.iter().any(|operation| usize::from(operation.semaphore) >= set.count()) {
        return Err(Errno::EFBIG);
    }
    let alters = operations.iter().any(|operation| operation.change != 0);
    set.permit(call, if alters { WRITE } else { READ })?;
    let pid = call.process().pid;
    if operations.iter().any(|operation| operation.takes_back) {
        call.unix.families.semaphores.prepare_undo(&set, id, pid)?;
    }
    let pending = Pending::new(operations, pid);
    match set.try_all(&pending) {
        Outcome::Done => {
            set.operated_at.set(call.now().seconds);
            if alters {
                set.settle(call.held, call.unix);
            }
            Ok(0)
        }
        Outcome::Failed(error) => Err(error),
        _ if pending.stop_is_refused() => Err(Errno::EAGAIN),
        _ => wait(call, &set, pending, deadline),
    }
}

/// Somebody else does the operations, or they are given up.
fn wait(call: &Call<'_>, set: &Set, pending: Pending, deadline: Option<Nanos>) -> CallResult {
    let pending = Arc::new(pending);
    set.pending.borrow_mut().try_push(pending.clone())?;
    loop {
        call.unix.scheduler.sleep(call.held, &[&pending.woken], deadline);
        let reason = match pending.result.get() {
            Some(Ok(())) => {
                set.operated_at.set(call.now().seconds);
                return Ok(0);
            }
            Some(Err(error)) => return Err(error),
            None if call.task.is_interrupted() => Errno::EINTR,
            None if deadline.is_some_and(|deadline| deadline <= call.unix.machine.now()) => Errno::EAGAIN,
            None => continue,
        };
        set.pending.borrow_mut().retain(|other| !Arc::ptr_eq(other, &pending));
        return Err(reason);
    }
}

/// How many wait for a semaphore to grow, or to be 0.
fn waiting(set: &Set, semaphore: u16, what: Where) -> u64 {
    let pending = set.pending.borrow();
    let waits = |pending: &&Arc<Pending>| {
        let at = pending.operations[pending.stops_at.get()];
        at.semaphore == semaphore && (at.change == 0) == (what == Where::Zero)
    };
    pending.iter().filter(waits).count() as u64
}
