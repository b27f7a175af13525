//! POSIX timers: `timer_create` and its kin.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};

use abi::Errno;
use abi::siginfo::{Cause, SI_TIMER, SigInfo};
use abi::signal::SIGALRM;
use abi::time::{CLOCK_MONOTONIC_COARSE, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, Itimerspec, TIMER_ABSTIME};
use machine::{KernelCell, Nanos, NoMemory};

use super::clock::Clock;
use super::timer::{After, Timer, durations};
use crate::call::{Call, CallResult};
use crate::calls::signals::send::{send_to_process, send_to_task};
use crate::emulator::Unix;
use crate::task::process::Process;
use crate::task::thread::Task;

const SIGEV_SIGNAL: i32 = 0;
const SIGEV_NONE: i32 = 1;
const SIGEV_THREAD: i32 = 2;
const SIGEV_THREAD_ID: i32 = 4;

/// Timers a process may have; then `EAGAIN`.
const TIMERS_MAX: usize = 1024;

pub struct PosixTimer {
    timer: Arc<Timer>,
    signal: u32,
    /// How often it has gone off beside the last signal that was taken.
    overrun: KernelCell<i32>,
    /// Nobody is told: only `timer_gettime` shows it.
    silent: bool,
}

/// Whom a timer tells.
enum Receiver {
    Nobody,
    Process(Weak<Process>),
    Task(Weak<Task>),
}

struct Event {
    signal: u32,
    value: u64,
    receiver: Receiver,
}

/// Errors: `EFAULT`, `EINVAL` for an unknown clock or event, `EOPNOTSUPP` for a clock without timers, `EAGAIN`.
pub fn timer_create(call: &Call<'_>, id: i32, event: u64, into: u64) -> CallResult {
    let given: Option<[u8; 64]> = if event == 0 { None } else { Some(call.read(event)?) };
    let clock = Clock::named(call, id)?;
    const TIMERLESS: [u32; 3] = [CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE];
    if TIMERLESS.iter().any(|timerless| *timerless as i32 == id) {
        return Err(Errno::ENOTSUP);
    }
    let timers = &call.process().timers;
    if timers.posix.borrow().entries().len() >= TIMERS_MAX {
        return Err(Errno::EAGAIN);
    }
    let number = timers.next_id.get();
    let event = match given {
        Some(given) => event_of(call, &given)?,
        None => {
            let receiver = Receiver::Process(Arc::downgrade(call.process()));
            Event { signal: SIGALRM, value: number as u32 as u64, receiver }
        }
    };
    let timer = Arc::new(make(call.unix, clock, number, event)?);
    call.write(into, &number)?;
    timers.posix.borrow_mut().try_insert(number, timer)?;
    timers.next_id.set((number + 1) & i32::MAX);
    Ok(0)
}

/// `struct sigevent`: value, signal, way of telling, thread id.
fn event_of(call: &Call<'_>, record: &[u8; 64]) -> Result<Event, Errno> {
    let word = |at: usize| i32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
    let (signal, notify, tid) = (word(8), word(12), word(16));
    let mut value = [0; 8];
    value.copy_from_slice(&record[..8]);
    let receiver = match notify {
        SIGEV_NONE => Receiver::Nobody,
        SIGEV_SIGNAL | SIGEV_THREAD => Receiver::Process(Arc::downgrade(call.process())),
        SIGEV_THREAD_ID => {
            let task = call.unix.tasks.task(tid as u32);
            let task = task.filter(|task| Arc::ptr_eq(&task.process, call.process())).ok_or(Errno::EINVAL)?;
            Receiver::Task(Arc::downgrade(&task))
        }
        _ => return Err(Errno::EINVAL),
    };
    if notify != SIGEV_NONE && !(1..=64).contains(&signal) {
        return Err(Errno::EINVAL);
    }
    Ok(Event { signal: signal as u32, value: u64::from_le_bytes(value), receiver })
}

fn make(unix: &'static Unix, clock: Clock, number: i32, event: Event) -> Result<PosixTimer, NoMemory> {
    let (signal, silent) = (event.signal, matches!(event.receiver, Receiver::Nobody));
    let expired = move |times: u64| {
        let more = i32::try_from(times - 1).unwrap_or(i32::MAX);
        let cause = Cause::Timer { id: number, overrun: more, value: event.value };
        let info = SigInfo { signo: event.signal as i32, errno: 0, code: SI_TIMER, cause };
        match &event.receiver {
            Receiver::Nobody => {}
            Receiver::Process(process) => {
                if let Some(process) = process.upgrade() {
                    send_to_process(unix, &process, &info);
                }
            }
            Receiver::Task(task) => {
                if let Some(task) = task.upgrade() {
                    send_to_task(unix, &task, &info);
                }
            }
        }
    };
    let timer = Timer::new(unix, clock, After::Quiet, Box::new(expired))?;
    Ok(PosixTimer { timer, signal, overrun: KernelCell::new(0), silent })
}

/// Error: `EINVAL`.
fn find(call: &Call<'_>, number: i32) -> Result<Arc<PosixTimer>, Errno> {
    call.process().timers.posix.borrow().get(&number).cloned().ok_or(Errno::EINVAL)
}

pub fn timer_settime(call: &Call<'_>, number: i32, flags: u32, from: u64, old: u64) -> CallResult {
    if from == 0 {
        return Err(Errno::EINVAL);
    }
    let record: Itimerspec = call.read(from)?;
    let (value, interval) = durations(&record)?;
    let timer = find(call, number)?;
    let before = timer.timer.record();
    timer.overrun.set(0);
    timer.timer.set(value, interval, flags & TIMER_ABSTIME != 0);
    call.write_if(old, &before)?;
    Ok(0)
}

pub fn timer_gettime(call: &Call<'_>, number: i32, into: u64) -> CallResult {
    let timer = find(call, number)?;
    let mut record = timer.timer.record();
    if timer.silent && record.it_value.tv_sec == 0 && record.it_value.tv_nsec == 1 {
        record.it_value.tv_nsec = 0;
    }
    call.write(into, &record)?;
    Ok(0)
}

/// A timer's signal has been taken: it tells how often the timer has gone off by now, and the timer goes on.
pub fn taken(process: &Process, info: &mut SigInfo, soonest: Nanos) {
    let Cause::Timer { id, overrun, .. } = &mut info.cause else { return };
    let timer = process.timers.posix.borrow().get(id).cloned();
    if let Some(timer) = timer {
        *overrun = overrun.saturating_add(i32::try_from(timer.timer.go_on(soonest)).unwrap_or(i32::MAX));
        timer.overrun.set(*overrun);
    }
}

/// A signal is ignored no more: timers that stayed quiet since they sent it go on.
pub fn heeded(unix: &Unix, process: &Process, signal: u32) {
    let of_signal = |timer: &&Arc<PosixTimer>| timer.signal == signal && timer.timer.is_quiet();
    let timers = process.timers.posix.borrow();
    let pending = process.pending.borrow().set().contains(signal);
    for timer in timers.entries().iter().map(|(_, timer)| timer).filter(of_signal).filter(|_| !pending) {
        let _ = timer.timer.go_on(unix.machine.now());
    }
}

/// How many expirations the last signal stood for beside its own.
pub fn timer_getoverrun(call: &Call<'_>, number: i32) -> CallResult {
    Ok(find(call, number)?.overrun.get() as u64)
}

pub fn timer_delete(call: &Call<'_>, number: i32) -> CallResult {
    let timer = call.process().timers.posix.borrow_mut().remove(&number).ok_or(Errno::EINVAL)?;
    timer.timer.stop();
    Ok(0)
}

/// `execve` deletes the POSIX timers of its process.
pub fn delete_all(process: &Process) {
    let timers = core::mem::take(&mut *process.timers.posix.borrow_mut());
    timers.entries().iter().for_each(|(_, timer)| timer.timer.stop());
    process.timers.next_id.set(0);
}
