//! Advisory locks: record locks of fcntl, whole-file locks of flock.

use alloc::sync::Arc;

use abi::Errno;
use abi::file::{F_RDLCK, F_UNLCK, F_WRLCK, Flock, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN};
use kernel::file::{LockKind, LockRefused, Node, RecordLock};
use machine::{Hold, LockedRange, Nanos, TryGrow};

use crate::call::{Call, CallResult};
use crate::files::open_file::{Body, OpenFile};

/// Whose a record lock is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// POSIX locks: the process.
    Process,
    /// `F_OFD_…`: the open file.
    File,
}

/// Whether to sleep when a lock is in the way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    Yes,
    No,
}

impl Owner {
    /// Processes and open files cannot have the same number: one is small, the other an address.
    fn number(self, call: &Call<'_>, file: &Arc<OpenFile>) -> u64 {
        match self {
            Owner::Process => call.process().pid.into(),
            Owner::File => file.lock_owner(),
        }
    }
}

/// What a program asks for.
struct Asked {
    /// `None`: give up.
    kind: Option<LockKind>,
    first: u64,
    last: u64,
}

/// Errors: `EINVAL`, `EOVERFLOW`.
fn asked(file: &OpenFile, record: &Flock) -> Result<Asked, Errno> {
    let base = match record.l_whence {
        0 => 0,
        1 => file.position() as i64,
        2 => file.size() as i64,
        _ => return Err(Errno::EINVAL),
    };
    let start = base.checked_add(record.l_start).ok_or(Errno::EOVERFLOW)?;
    if start < 0 {
        return Err(Errno::EINVAL);
    }
    let (first, last) = match record.l_len {
        0 => (start, i64::MAX),
        1.. => (start, start.checked_add(record.l_len - 1).ok_or(Errno::EOVERFLOW)?),
        _ => (start.checked_add(record.l_len).filter(|first| *first >= 0).ok_or(Errno::EINVAL)?, start - 1),
    };
    let kind = match record.l_type {
        F_RDLCK => Some(LockKind::Shared),
        F_WRLCK => Some(LockKind::Exclusive),
        F_UNLCK => None,
        _ => return Err(Errno::EINVAL),
    };
    Ok(Asked { kind, first: first as u64, last: last as u64 })
}

fn read_record(call: &Call<'_>, address: u64, owner: Owner) -> Result<Flock, Errno> {
    let record: Flock = call.read(address)?;
    if owner == Owner::File && record.l_pid != 0 { Err(Errno::EINVAL) } else { Ok(record) }
}

/// `F_GETLK`: the first lock in the way, or `F_UNLCK`.
pub fn get(call: &Call<'_>, file: &Arc<OpenFile>, address: u64, owner: Owner) -> CallResult {
    let record = read_record(call, address, owner)?;
    let asked = asked(file, &record)?;
    let kind = asked.kind.ok_or(Errno::EINVAL)?;
    let wanted = lock(call, file, owner, &asked, kind);
    if let Some(opening) = file.outside().filter(|opening| owner == Owner::File && opening.locks_itself()) {
        let held = opening.lock_in_the_way(hold(Some(kind)), asked.first, asked.last)?.map(record_of);
        return call.write(address, &answer(&record, held)).map(|()| 0);
    }
    let mut conflict = file.node().and_then(|node| node.locks().borrow().conflict(&wanted));
    if let Some(node) = file.node().filter(|_| conflict.is_none() && file.outside().is_some()) {
        conflict = node.held_outside(hold(Some(kind)), asked.first, asked.last)?.map(record_of);
        node.settle_outside();
    }
    call.write(address, &answer(&record, conflict)).map(|()| 0)
}

fn answer(record: &Flock, conflict: Option<RecordLock>) -> Flock {
    match conflict {
        None => Flock { l_type: F_UNLCK, ..*record },
        Some(held) => Flock {
            l_type: if held.kind == LockKind::Shared { F_RDLCK } else { F_WRLCK },
            l_whence: 0,
            l_start: held.first as i64,
            l_len: if held.last == i64::MAX as u64 { 0 } else { (held.last - held.first + 1) as i64 },
            l_pid: held.process,
            ..*record
        },
    }
}

/// A lock of somebody outside of the machine; its owner has no number here.
fn record_of(held: LockedRange) -> RecordLock {
    let kind = if held.hold == Hold::Exclusive { LockKind::Exclusive } else { LockKind::Shared };
    RecordLock { owner: 0, process: held.process, kind, first: held.first, last: held.last }
}

fn hold(kind: Option<LockKind>) -> Hold {
    match kind {
        Some(LockKind::Shared) => Hold::Shared,
        Some(LockKind::Exclusive) => Hold::Exclusive,
        None => Hold::None,
    }
}

/// How long to wait before asking for a lock again that somebody outside of the machine has: nobody tells when it goes.
const ASK_AGAIN: Nanos = Nanos(2_000_000);

/// Tries until a lock that is settled outside of the machine is given, if the caller may wait.
fn settle(call: &Call<'_>, wait: Wait, attempt: impl Fn() -> Result<(), Errno>) -> CallResult {
    loop {
        match attempt() {
            Err(Errno::EAGAIN) if wait == Wait::Yes => wait_a_little(call)?,
            other => return other.map(|()| 0),
        }
    }
}

fn wait_a_little(call: &Call<'_>) -> Result<(), Errno> {
    let deadline = call.unix.machine.now().saturating_add(ASK_AGAIN);
    call.with_io(false, |io| io.wait_until(&call.unix.lock_waits.released, Some(deadline)))
}

/// Takes a lock of a process here, and against others outside of the machine.
fn try_lock(node: &Node, wanted: RecordLock) -> Result<(), LockRefused> {
    let conflict = node.locks().borrow().conflict(&wanted);
    if let Some(held) = conflict {
        return Err(LockRefused::Conflict(held));
    }
    match node.hold_outside(hold(Some(wanted.kind)), wanted.first, wanted.last) {
        Ok(()) => {}
        Err(Errno::EAGAIN | Errno::EACCES) => {
            node.settle_outside();
            return Err(LockRefused::Outside);
        }
        Err(_) => return Err(LockRefused::TooMany),
    }
    let locked = node.locks().borrow_mut().lock(wanted);
    if locked.is_err() {
        node.settle_outside();
    }
    locked
}

fn lock(call: &Call<'_>, file: &Arc<OpenFile>, owner: Owner, asked: &Asked, kind: LockKind) -> RecordLock {
    let process = if owner == Owner::File { -1 } else { call.process().pid as i32 };
    RecordLock { owner: owner.number(call, file), process, kind, first: asked.first, last: asked.last }
}

/// Errors: `EAGAIN`, `EBADF` when not open for what the lock protects, `EDEADLOCK`, `EINTR`, `ENOLCK`, `EINVAL`.
pub fn set(call: &Call<'_>, file: &Arc<OpenFile>, address: u64, owner: Owner, wait: Wait) -> CallResult {
    let record = read_record(call, address, owner)?;
    let asked = asked(file, &record)?;
    let allowed = match asked.kind {
        Some(LockKind::Shared) => file.is_readable(),
        Some(LockKind::Exclusive) => file.is_writable(),
        None => true,
    };
    if !allowed {
        return Err(Errno::EBADF);
    }
    // Nobody else can name a stream without a node, so nobody can be in the way.
    let Some(node) = file.node() else { return Ok(0) };
    if let Some(opening) = file.outside().filter(|opening| owner == Owner::File && opening.locks_itself()) {
        return settle(call, wait, || opening.lock(hold(asked.kind), asked.first, asked.last));
    }
    let Some(kind) = asked.kind else {
        node.locks().borrow_mut().unlock(owner.number(call, file), asked.first, asked.last)?;
        node.settle_outside();
        call.unix.scheduler.wake(&call.unix.lock_waits.released);
        return Ok(0);
    };
    let wanted = lock(call, file, owner, &asked, kind);
    match wait {
        Wait::No => try_lock(node, wanted).map(|()| 0).map_err(Errno::from),
        Wait::Yes => set_waiting(call, node, wanted, owner),
    }
}

fn set_waiting(call: &Call<'_>, node: &Node, wanted: RecordLock, owner: Owner) -> CallResult {
    let waits = &call.unix.lock_waits;
    loop {
        let refused = try_lock(node, wanted);
        let held = match refused {
            Ok(()) => {
                // A change from exclusive to shared lets others in.
                call.unix.scheduler.wake(&waits.released);
                return Ok(0);
            }
            Err(LockRefused::Conflict(held)) => held,
            Err(LockRefused::Outside) => {
                wait_a_little(call)?;
                continue;
            }
            Err(refused) => return Err(refused.into()),
        };
        if owner == Owner::Process && waits.closes_circle(wanted.owner, held.owner) {
            return Err(Errno::EDEADLOCK);
        }
        waits.edges.borrow_mut().try_push((wanted.owner, held.owner))?;
        let waited = call.with_io(false, |io| io.wait(&waits.released));
        let mut edges = waits.edges.borrow_mut();
        if let Some(index) = edges.iter().position(|edge| *edge == (wanted.owner, held.owner)) {
            edges.swap_remove(index);
        }
        drop(edges);
        waited?;
    }
}

/// Errors: `EBADF`, `EINVAL`, `EAGAIN`, `EINTR`, `ENOLCK`.
pub fn flock(call: &Call<'_>, descriptor: u64, operation: u32) -> CallResult {
    let kind = match operation & !LOCK_NB {
        LOCK_SH => Some(LockKind::Shared),
        LOCK_EX => Some(LockKind::Exclusive),
        LOCK_UN => None,
        _ => return Err(Errno::EINVAL),
    };
    let file = call.file(descriptor)?;
    if let Body::File(opening) = &file.body
        && opening.locks_itself()
    {
        let wait = if operation & LOCK_NB != 0 { Wait::No } else { Wait::Yes };
        return settle(call, wait, || opening.lock_whole(hold(kind)));
    }
    let Some(node) = file.node() else { return Ok(0) };
    let (owner, waits) = (file.lock_owner(), &call.unix.lock_waits);
    let Some(kind) = kind else {
        node.locks().borrow_mut().unlock_whole(owner);
        call.unix.scheduler.wake(&waits.released);
        return Ok(0);
    };
    loop {
        let locked = node.locks().borrow_mut().lock_whole(owner, kind);
        // A change gives the old lock up first, so others may go on whether it succeeded or not.
        call.unix.scheduler.wake(&waits.released);
        match locked {
            Err(Errno::EAGAIN) if operation & LOCK_NB == 0 => {
                call.with_io(false, |io| io.wait(&waits.released))?;
            }
            other => return other.map(|()| 0),
        }
    }
}
