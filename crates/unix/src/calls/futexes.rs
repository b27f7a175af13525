//! Futexes: sleeping on a word of program memory, and the barriers beside them.
//!
//! A word is known by where it is: the quaspace and the address, or the backing and the offset, so that
//! processes that show the same memory meet. Who says that a word is its process's own meets those alone who say so, too.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use abi::process::{
    FUTEX_BITSET_MATCH_ANY, FUTEX_CLOCK_REALTIME, FUTEX_CMP_REQUEUE, FUTEX_PRIVATE_FLAG, FUTEX_REQUEUE, FUTEX_WAIT,
    FUTEX_WAIT_BITSET, FUTEX_WAKE, FUTEX_WAKE_BITSET, FUTEX_WAKE_OP, FutexWaitv,
};
use abi::time::{CLOCK_MONOTONIC, CLOCK_REALTIME};
use kernel::call::Makers;
use kernel::futex::{Futexes, Word};
use kernel::schedule::Scheduler;
use kernel::space::{Identity, Space};
use kernel::thread::Thread;
use machine::{KernelCell, KernelValue, Nanos, NoMemory, Sorted, TryGrow};

use super::resume::interrupted_with;
use super::times;
use crate::call::Entry;
use crate::call::{Call, CallResult};
use crate::emulator::Unix;
use abi::nr;

/// Where a word is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Key {
    /// A quaspace, and a word that is said to be its own.
    Private(usize, Word),
    /// A quaspace, and an address where it shares nothing.
    Unshared(usize, u64),
    /// Shared anonymous memory and an offset.
    Anonymous(usize, u64),
    /// Device, inode and offset.
    File((u32, u32), u64, u64),
}

impl Key {
    /// The word, if code may know it.
    fn word(&self) -> Option<Word> {
        match self {
            Key::Private(_, word) => Some(*word),
            Key::Unshared(..) | Key::Anonymous(..) | Key::File(..) => None,
        }
    }
}

/// Where a waiter stands: at its key, behind all that came before.
type Place = (Key, u64);

struct Waiter {
    thread: Arc<Thread>,
    place: KernelValue<Place>,
    bits: u32,
    woken: KernelValue<bool>,
    /// It rests by code at another word, and was moved here.
    rests: bool,
    /// The one that is taken out together with it, and came before it.
    before: KernelCell<Option<Arc<Waiter>>>,
}

impl Waiter {
    fn new(thread: &Arc<Thread>, key: Key, bits: u32) -> Arc<Waiter> {
        Waiter::that(thread, key, bits, false)
    }

    fn that(thread: &Arc<Thread>, key: Key, bits: u32, rests: bool) -> Arc<Waiter> {
        let (thread, place, woken) = (thread.clone(), KernelValue::new((key, 0)), KernelValue::new(false));
        Arc::new(Waiter { thread, place, bits, woken, rests, before: KernelCell::new(None) })
    }

    /// It is woken.
    fn wake(&self, unix: &Unix) {
        self.woken.set(true);
        if self.rests {
            self.thread.tte().answer();
        }
        unix.scheduler.unblock(&self.thread);
    }
}

/// Who sleeps on which word, in the order they came. Invariants: a waiter stands at its place until it is woken or gives up; who rests
/// by code came before those that stand at the same word.
pub struct FutexTable {
    waiters: KernelCell<Waiters>,
    futexes: Futexes,
}

struct Waiters {
    standing: Sorted<Place, Arc<Waiter>>,
    /// Numbers given to waiters so far.
    came: u64,
    /// How many stand there that rest by code.
    resting: usize,
}

impl FutexTable {
    /// Nobody waits. `makers`: who makes the usual cases code.
    pub fn new(makers: Option<Makers>) -> FutexTable {
        let waiters = KernelCell::new(Waiters { standing: Sorted::new(), came: 0, resting: 0 });
        FutexTable { waiters, futexes: Futexes::new(makers) }
    }

    /// At `key` so many more wait in Rust, or fewer.
    fn count(&self, key: Key, more: i64) {
        key.word().into_iter().for_each(|word| self.futexes.count(word.address, more));
    }

    /// Who rests by code at `key`.
    fn resting(&self, scheduler: &Scheduler, key: Key) -> Option<Arc<Thread>> {
        self.futexes.resting(scheduler, key.word()?)
    }

    /// Lets `thread`, which rests by code, wait at `key`, behind the others.
    ///
    /// Error: there is no room; it waits where it was.
    fn move_resting(&self, thread: &Arc<Thread>, key: Key) -> Result<(), NoMemory> {
        if !key.word().is_some_and(|word| self.futexes.move_to(thread, word)) {
            self.add(&Waiter::that(thread, key, FUTEX_BITSET_MATCH_ANY, true), key)?;
            self.futexes.move_away(thread);
        }
        Ok(())
    }

    /// Lets a waiter stand at `key`, behind the others.
    ///
    /// Error: `ENOMEM`.
    fn add(&self, waiter: &Arc<Waiter>, key: Key) -> Result<(), NoMemory> {
        self.waiters.borrow_mut().standing.room_for(1)?;
        self.stand(waiter.clone(), key);
        Ok(())
    }

    fn stand(&self, waiter: Arc<Waiter>, key: Key) {
        self.count(key, 1);
        let mut waiters = self.waiters.borrow_mut();
        waiters.came += 1;
        waiters.resting += usize::from(waiter.rests);
        waiter.place.set((key, waiters.came));
        waiters.standing.put(waiter.place.get(), waiter);
    }

    /// Lets up to `count` waiters stand at another key, in their order; where they stood there is room. How many there were.
    fn requeue(&self, from: Key, to: Key, count: usize) -> u64 {
        let (mut last, mut first, mut moved) = (self.take((from, u64::MAX), count, FUTEX_BITSET_MATCH_ANY), None, 0);
        while let Some(waiter) = last {
            last = core::mem::replace(&mut *waiter.before.borrow_mut(), first);
            first = Some(waiter);
        }
        while let Some(waiter) = first {
            first = waiter.before.borrow_mut().take();
            self.stand(waiter, to);
            moved += 1;
        }
        moved
    }

    fn remove(&self, waiter: &Waiter) {
        let place = waiter.place.get();
        if self.waiters.borrow_mut().standing.remove(&place).is_some() {
            self.count(place.0, -1);
        }
    }

    /// `thread`, which rested by code and was moved, is here to be done with.
    fn forget_resting(&self, thread: &Arc<Thread>) {
        let mut waiters = self.waiters.borrow_mut();
        if waiters.resting == 0 {
            return;
        }
        let mut standing = waiters.standing.entries().iter();
        let place =
            standing.find(|(_, waiter)| waiter.rests && Arc::ptr_eq(&waiter.thread, thread)).map(|(place, _)| *place);
        if let Some(place) = place {
            waiters.standing.remove(&place);
            waiters.resting -= 1;
            drop(waiters);
            self.count(place.0, -1);
        }
    }

    /// The number of who comes next.
    fn next(&self) -> u64 {
        self.waiters.borrow().came + 1
    }

    /// Takes out up to `count` waiters before a place of a key that wait for one of `bits`, those first who came first. The last of
    /// them, which leads to the one before it, and so on: to wake asks for no memory.
    fn take(&self, end: Place, count: usize, bits: u32) -> Option<Arc<Waiter>> {
        let mut waiters = self.waiters.borrow_mut();
        if waiters.standing.entries().is_empty() {
            return None;
        }
        let (mut last, mut taken, mut resting) = (None, 0, 0);
        let (key, first) = (end.0, (end.0, 0));
        for waiter in waiters.standing.extract(&first, &end, |waiter| waiter.bits & bits != 0).take(count) {
            *waiter.before.borrow_mut() = last.take();
            resting += usize::from(waiter.rests);
            taken += 1;
            last = Some(waiter);
        }
        waiters.resting -= resting;
        self.count(key, -taken);
        last
    }
}

/// Wakes up to `count`; returns how many. The longest waiter runs first.
fn wake(unix: &Unix, key: Key, count: usize, bits: u32) -> u64 {
    wake_of(unix, (key, u64::MAX), count, bits)
}

/// The same of those that stand before a place of their key, and of one that rests.
fn wake_of(unix: &Unix, end: Place, count: usize, bits: u32) -> u64 {
    let first = if count > 0 { unix.futexes.resting(unix.scheduler, end.0) } else { None };
    let (mut next, mut woken) = (unix.futexes.take(end, count - usize::from(first.is_some()), bits), 0);
    while let Some(waiter) = next {
        waiter.wake(unix);
        next = waiter.before.borrow_mut().take();
        woken += 1;
    }
    woken + first.map_or(0, |thread| wake_resting(unix, &thread))
}

/// Wakes who rests by code: one.
fn wake_resting(unix: &Unix, thread: &Arc<Thread>) -> u64 {
    thread.tte().answer();
    unix.scheduler.unblock(thread);
    1
}

/// The key of a word. Errors: `EINVAL` for an unaligned address, `EFAULT` where nothing is mapped, or what is there
/// cannot be used so: private memory must be writable, shared memory readable, if the word is not said to be private.
fn key_in(space: &Arc<KernelCell<Space>>, address: u64, private: bool) -> Result<Key, Errno> {
    if address & 3 != 0 {
        return Err(Errno::EINVAL);
    }
    if address >= kernel::space::USER_LIMIT {
        return Err(Errno::EFAULT);
    }
    let at = Arc::as_ptr(space) as usize;
    let space = space.borrow();
    if private {
        return Ok(Key::Private(at, Word { quaspace: space.translation().number(), address }));
    }
    let (identity, may) = space.identity_and_protection(address).ok_or(Errno::EFAULT)?;
    match identity {
        Identity::Private if !may.write => Err(Errno::EFAULT),
        Identity::Shared { .. } if !may.read => Err(Errno::EFAULT),
        Identity::Private => Ok(Key::Unshared(at, address)),
        Identity::Shared { backing, offset_bytes } => {
            let identity = backing.identity();
            Ok(if identity.inode == 0 {
                Key::Anonymous(Arc::as_ptr(&backing).cast::<()>() as usize, offset_bytes)
            } else {
                Key::File((identity.device_major, identity.device_minor), identity.inode, offset_bytes)
            })
        }
    }
}

/// As `key_in`, of the caller's own word. One that others may share must be there: its file may have become shorter.
fn key(call: &Call<'_>, address: u64, operation: u32) -> Result<Key, Errno> {
    let space = call.process().space().ok_or(Errno::EFAULT)?;
    let private = operation & FUTEX_PRIVATE_FLAG != 0;
    let key = key_in(&space, address, private)?;
    if !private {
        call.read::<u32>(address)?;
    }
    Ok(key)
}

/// Wakes sleepers on a word of `space`, as the end of a thread does (`set_tid_address`). Words in shared memory
/// count too.
pub fn wake_address(unix: &Unix, space: &Arc<KernelCell<Space>>, address: u64, count: u32) {
    if let Ok(key) = key_in(space, address, false) {
        wake(unix, key, count as usize, FUTEX_BITSET_MATCH_ANY);
    }
}

/// `futex`. The priority-inheriting operations are not there (`ENOSYS`, as on a Linux built without them).
pub fn futex(call: &Call<'_>, [word, operation, value, fourth, second, third]: [u64; 6]) -> CallResult {
    let (operation, value, third) = (operation as u32, value as u32, third as u32);
    if operation & FUTEX_PRIVATE_FLAG != 0 && call.unix.futexes.futexes.has_code() {
        call.task.thread.tte().bind_common_call(nr::FUTEX as usize);
    }
    let kind = operation & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    let deadline = match kind {
        FUTEX_WAIT | FUTEX_WAIT_BITSET if fourth != 0 => Some(deadline(call, kind, operation, fourth)?),
        _ => None,
    };
    if operation & FUTEX_CLOCK_REALTIME != 0 && kind != FUTEX_WAIT_BITSET {
        return Err(Errno::ENOSYS);
    }
    match kind {
        FUTEX_WAIT => wait_until(call, word, operation, value, FUTEX_BITSET_MATCH_ANY, deadline),
        FUTEX_WAIT_BITSET => wait_until(call, word, operation, value, third, deadline),
        FUTEX_WAKE => wake_bits(call, word, operation, value, FUTEX_BITSET_MATCH_ANY),
        FUTEX_WAKE_BITSET => wake_bits(call, word, operation, value, third),
        FUTEX_REQUEUE => requeue(call, (word, second), operation, (value, fourth as u32), None),
        FUTEX_CMP_REQUEUE => requeue(call, (word, second), operation, (value, fourth as u32), Some(third)),
        FUTEX_WAKE_OP => wake_op(call, (word, second), operation, (value, fourth as u32), third),
        _ => Err(Errno::ENOSYS),
    }
}

/// The time of `FUTEX_WAIT` is relative, that of `FUTEX_WAIT_BITSET` absolute.
fn deadline(call: &Call<'_>, kind: u32, operation: u32, address: u64) -> Result<Nanos, Errno> {
    let time = times::nanos_of(call.read(address)?)?;
    Ok(match kind {
        FUTEX_WAIT => crate::calls::times::sleeps::deadline_after(call, time),
        _ if operation & FUTEX_CLOCK_REALTIME != 0 => time.saturating_sub(call.unix.epoch.get()),
        _ => time,
    })
}

/// Sleeps while the word is `value`.
///
/// Errors: `EAGAIN` when it is not, `ETIMEDOUT`, `EINTR`, `EINVAL` for no bits, `EFAULT`.
fn wait_until(
    call: &Call<'_>,
    word: u64,
    operation: u32,
    value: u32,
    bits: u32,
    deadline: Option<Nanos>,
) -> CallResult {
    // It rested by code, and was woken: what is here now is for whatever else waits for it.
    if call.task.thread.tte().take_answer() {
        return Ok(0);
    }
    call.unix.futexes.forget_resting(&call.task.thread);
    if bits == 0 {
        return Err(Errno::EINVAL);
    }
    let key = key(call, word, operation)?;
    if call.read::<u32>(word)? != value {
        return Err(Errno::EAGAIN);
    }
    let waiter = Waiter::new(&call.task.thread, key, bits);
    call.unix.futexes.add(&waiter, key)?;
    loop {
        if waiter.woken.get() {
            return Ok(0);
        }
        if deadline.is_some_and(|deadline| deadline <= call.unix.machine.now()) {
            call.unix.futexes.remove(&waiter);
            return Err(Errno::ETIMEDOUT);
        }
        if call.task.is_interrupted() {
            call.unix.futexes.remove(&waiter);
            let Some(deadline) = deadline else { return Err(Errno::EINTR) };
            let arguments = [word, operation.into(), value.into(), bits.into(), deadline.0, 0];
            return Err(interrupted_with(call, wait_again, arguments));
        }
        call.unix.scheduler.sleep(call.held, &[], deadline);
    }
}

fn wait_again(call: &mut Call<'_>, [word, operation, value, bits, deadline, _]: [u64; 6]) -> CallResult {
    wait_until(call, word, operation as u32, value as u32, bits as u32, Some(Nanos(deadline)))
}

/// How many to wake: Linux wakes one even when asked for none.
fn at_least_one(count: u32) -> usize {
    (count as i32).max(1) as usize
}

fn wake_bits(call: &Call<'_>, word: u64, operation: u32, count: u32, bits: u32) -> CallResult {
    if bits == 0 {
        return Err(Errno::EINVAL);
    }
    let key = key(call, word, operation)?;
    let all = at_least_one(count);
    if all <= PART {
        return Ok(wake(call.unix, key, all, bits));
    }
    let (end, mut woken) = (call.unix.futexes.next(), 0);
    loop {
        let part = wake_of(call.unix, (key, end), PART.min(all - woken as usize), bits);
        woken += part;
        if (part as usize) < PART || woken as usize == all {
            return Ok(woken);
        }
        call.unix.scheduler.breathe(call.held);
    }
}

/// Threads that one call wakes between two safe points.
const PART: usize = 64;

/// Wakes some sleepers on the first word and lets others sleep on the second; returns how many in all.
///
/// Errors: `EAGAIN` when the first word is not `expected`, `EINVAL`, `EFAULT`.
fn requeue(
    call: &Call<'_>,
    (from, to): (u64, u64),
    operation: u32,
    (wakes, moves): (u32, u32),
    expected: Option<u32>,
) -> CallResult {
    if (wakes as i32) < 0 || (moves as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    let (from_key, to_key) = (key(call, from, operation)?, key(call, to, operation)?);
    if let Some(expected) = expected
        && call.read::<u32>(from)? != expected
    {
        return Err(Errno::EAGAIN);
    }
    let woken = if wakes > 0 { wake(call.unix, from_key, wakes as usize, FUTEX_BITSET_MATCH_ANY) } else { 0 };
    let first = if moves > 0 { call.unix.futexes.resting(call.unix.scheduler, from_key) } else { None };
    first.iter().try_for_each(|thread| call.unix.futexes.move_resting(thread, to_key))?;
    let moved = usize::from(first.is_some());
    Ok(woken + moved as u64 + call.unix.futexes.requeue(from_key, to_key, moves as usize - moved))
}

/// Changes the second word, wakes sleepers on the first, and on the second if its old value compares so.
///
/// Errors: `ENOSYS` for an unknown change or comparison, `EINVAL`, `EFAULT`.
fn wake_op(
    call: &Call<'_>,
    (first, second): (u64, u64),
    operation: u32,
    (wakes, second_wakes): (u32, u32),
    encoded: u32,
) -> CallResult {
    let (first_key, second_key) = (key(call, first, operation)?, key(call, second, operation)?);
    let sign_extended = |shift: u32| ((encoded << shift) as i32) >> 20;
    let mut argument = sign_extended(8) as u32;
    if encoded & 1 << 31 != 0 {
        argument = 1u32.wrapping_shl(argument);
    }
    let old: u32 = call.read(second)?;
    let new = match encoded >> 28 & 7 {
        0 => argument,
        1 => old.wrapping_add(argument),
        2 => old | argument,
        3 => old & !argument,
        4 => old ^ argument,
        _ => return Err(Errno::ENOSYS),
    };
    call.write(second, &new)?;
    let (old, compared) = (old as i32, sign_extended(20));
    let also = match encoded >> 24 & 15 {
        0 => old == compared,
        1 => old != compared,
        2 => old < compared,
        3 => old <= compared,
        4 => old > compared,
        5 => old >= compared,
        _ => return Err(Errno::ENOSYS),
    };
    let mut woken = wake(call.unix, first_key, at_least_one(wakes), FUTEX_BITSET_MATCH_ANY);
    if also {
        woken += wake(call.unix, second_key, at_least_one(second_wakes), FUTEX_BITSET_MATCH_ANY);
    }
    Ok(woken)
}

/// Sleeps while all of several words are what is expected; returns the place of one that was woken.
///
/// Errors: `EINVAL` for flags, no words or more than [`WORDS_MAX`], other sizes than four bytes, another clock; `EAGAIN` when a
/// word is something else; `ETIMEDOUT`, `EINTR`, `EFAULT`, `ENOMEM`.
fn waitv(call: &Call<'_>, [vector, count, flags, time, clock, _]: [u64; 6]) -> CallResult {
    let count = count as u32 as usize;
    if flags as u32 != 0 || !(1..=WORDS_MAX).contains(&count) {
        return Err(Errno::EINVAL);
    }
    let deadline = if time == 0 { None } else { Some(absolute(call, clock as u32, time)?) };
    let mut waiters = Vec::new();
    waiters.room_for_exact(count)?;
    for index in 0..count {
        waiters.put(waiter_of(call, vector.wrapping_add((index * FutexWaitv::BYTES) as u64))?);
    }
    let stood = waiters.iter().try_for_each(|waiter| call.unix.futexes.add(waiter, waiter.place.get().0));
    let result = stood.map_err(Errno::from).and_then(|()| wait_for_any(call, &waiters, deadline));
    // Those that were woken have been taken out.
    waiters.iter().filter(|waiter| !waiter.woken.get()).for_each(|waiter| call.unix.futexes.remove(waiter));
    result
}

/// Most words of `futex_waitv` (Linux `FUTEX_WAITV_MAX`).
const WORDS_MAX: usize = 128;
/// `FUTEX2_SIZE_U32`, the size that every word has.
const SIZE_U32: u32 = 2;

/// The deadline at `address`. Errors: `EFAULT`, `EINVAL`.
fn absolute(call: &Call<'_>, clock: u32, address: u64) -> Result<Nanos, Errno> {
    let time = times::nanos_of(call.read(address)?)?;
    match clock {
        CLOCK_MONOTONIC => Ok(time),
        CLOCK_REALTIME => Ok(time.saturating_sub(call.unix.epoch.get())),
        _ => Err(Errno::EINVAL),
    }
}

fn waiter_of(call: &Call<'_>, address: u64) -> Result<Arc<Waiter>, Errno> {
    let FutexWaitv { value, address, flags, reserved } = call.read(address)?;
    if flags & !FUTEX_PRIVATE_FLAG != SIZE_U32 || reserved != 0 {
        return Err(Errno::EINVAL);
    }
    let key = key(call, address, flags)?;
    if call.read::<u32>(address)? != value as u32 {
        return Err(Errno::EAGAIN);
    }
    Ok(Waiter::new(&call.task.thread, key, FUTEX_BITSET_MATCH_ANY))
}

fn wait_for_any(call: &Call<'_>, waiters: &[Arc<Waiter>], deadline: Option<Nanos>) -> CallResult {
    loop {
        if let Some(place) = waiters.iter().position(|waiter| waiter.woken.get()) {
            return Ok(place as u64);
        }
        if deadline.is_some_and(|deadline| deadline <= call.unix.machine.now()) {
            return Err(Errno::ETIMEDOUT);
        }
        if call.task.is_interrupted() {
            return Err(Errno::EINTR);
        }
        call.unix.scheduler.sleep(call.held, &[], deadline);
    }
}

machine::relies_on_one_processor!("`membarrier` would have to reach the other processors");

/// Every memory barrier is met by entering the kernel, and leaving it makes the processor serialize
/// (`iretq`, `wrmsr`) where it leads to another thread. What a process registers for is kept as on Linux, for programs ask.
///
/// Errors: `EINVAL` for unknown commands and flags; `EPERM` for what the process has not registered for.
fn membarrier(call: &Call<'_>, command: i32, flags: u32) -> CallResult {
    use abi::process::*;
    const ALL: u32 = MEMBARRIER_CMD_GET_REGISTRATIONS * 2 - 1;
    let command = command as u32;
    // One processor may be named for this command.
    let is_of_one = command == MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ && flags == MEMBARRIER_CMD_FLAG_CPU;
    if flags != 0 && !is_of_one {
        return Err(Errno::EINVAL);
    }
    let mut settings = call.process().settings.borrow_mut();
    let needs = match command {
        0 => return Ok(ALL.into()),
        MEMBARRIER_CMD_GLOBAL | MEMBARRIER_CMD_GLOBAL_EXPEDITED => return Ok(0),
        MEMBARRIER_CMD_GET_REGISTRATIONS => return Ok(settings.barriers.into()),
        MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED
        | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
        | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE
        | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ => {
            settings.barriers |= command;
            return Ok(0);
        }
        MEMBARRIER_CMD_PRIVATE_EXPEDITED
        | MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE
        | MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ => command << 1,
        _ => return Err(Errno::EINVAL),
    };
    if settings.barriers & needs == 0 { Err(Errno::EPERM) } else { Ok(0) }
}

pub const CALLS: &[Entry] = &[
    (nr::FUTEX, |call, arguments| futex(call, arguments)),
    (nr::FUTEX_WAITV, |call, arguments| waitv(call, arguments)),
    (nr::MEMBARRIER, |call, [a, b, ..]| membarrier(call, a as i32, b as u32)),
];
