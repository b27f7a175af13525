//! /proc/synthesis/interrupts: what handling interrupts costs, the rows of SOSP'89's table 5 one by one.
//!
//! `echo 'thread 1000' > /proc/synthesis/interrupts` does it a thousand times; reading tells how long that took:
//!
//! ```text
//!   tty COUNT         the raw tty's interrupt, with a byte in the ring of a device that is none
//!   set COUNT         sets an alarm, each earlier than the one before
//!   procedure COUNT   chains a procedure
//!   retry COUNT       the same when somebody else chains one in between
//!   thread COUNT      chains a signal to a thread that sleeps, until it is in the ready ring
//! ```
//! Reading also tells how many alarms have rung in the timer's interrupt alone, and how many of them in the midst of the kernel.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use abi::Errno;
use kernel::schedule::{AlarmCall, AlarmTarget, Scheduler, WaitQueue};
use kernel::thread::Thread;
use kernel::tty::raw;
use machine::{Held, KernelCell, Nanos, Start};

use super::text::written;
use super::tree::Whole;
use crate::emulator::Unix;

/// More would hold everybody else up.
const COUNT_MOST: u32 = 8000;

/// What was measured last: how often, how long it took.
static LAST: KernelCell<(u32, Nanos)> = KernelCell::new((0, Nanos(0)));

pub fn show(unix: &'static Unix, _: &Whole) -> Result<Vec<u8>, Errno> {
    let (count, ns) = LAST.get();
    let words = unix.scheduler.words();
    let [rung, inside] = [&words.rung, &words.rung_inside].map(|word| word.load(Relaxed));
    written(format_args!("count {count} ns {}\nalarms_by_code {rung} inside_the_kernel {inside}\n", ns.0))
}

/// Errors: `EINVAL` for what is no command; `EBUSY` while samples come, which would be counted too; `ENOTSUP` on a machine
/// without such interrupts; `ENOMEM`.
pub fn command(held: Held<'_>, unix: &'static Unix, _: &Whole, text: &[u8]) -> Result<(), Errno> {
    let text = core::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
    let (name, count) = text.trim_end().split_once(' ').ok_or(Errno::EINVAL)?;
    let count = count.parse().ok().filter(|count| *count <= COUNT_MOST).ok_or(Errno::EINVAL)?;
    if unix.sound.as_ref().is_some_and(|sound| !sound.activity().is_silent()) {
        return Err(Errno::EBUSY);
    }
    let ns = match name {
        "tty" => raw::measure(unix.makers().ok_or(Errno::ENOTSUP)?, count).ok_or(Errno::ENOTSUP)?,
        "set" => set_alarm(unix, count)?,
        "procedure" => procedure(unix, count),
        "retry" => retry(unix, count),
        "thread" => thread(held, unix, count)?,
        _ => return Err(Errno::EINVAL),
    };
    LAST.set((count, ns));
    Ok(())
}

/// Does `act` so often, with `undo` behind it, and adds up how long `act` takes alone.
fn timed(unix: &Unix, count: u32, mut act: impl FnMut(), mut undo: impl FnMut()) -> Nanos {
    let now = || unix.machine.now().0;
    let (start, end) = (now(), now());
    let mut ns = 0;
    for _ in 0..count {
        let before = now();
        act();
        ns += (now() - before).saturating_sub(end - start);
        undo();
    }
    Nanos(ns)
}

struct Nothing;

impl AlarmCall for Nothing {
    fn ring(&self, _: Nanos) {}
}

fn set_alarm(unix: &Unix, count: u32) -> Result<Nanos, Errno> {
    unix.scheduler.make_bell_room()?;
    let bell = unix.scheduler.add_bell(Arc::new(Nothing));
    let set = KernelCell::new(None);
    // Each is the first of all, and earlier than the timer is set for, so that it is set, too.
    let armed = unix.scheduler.words().armed.load(Relaxed);
    let mut at = unix.machine.now().saturating_add(Nanos(Nanos::PER_SECOND / 2)).min(Nanos(armed));
    let act = || {
        at = at.saturating_sub(Nanos(1000));
        set.set(Some(unix.scheduler.set_alarm(at, AlarmTarget::Call(bell))));
    };
    let ns = timed(unix, count, act, || set.get().into_iter().for_each(|id| unix.scheduler.cancel_alarm(id)));
    unix.scheduler.remove_bell(bell);
    Ok(ns)
}

fn procedure(unix: &Unix, count: u32) -> Nanos {
    let chain = || {
        unix.scheduler.chain(|_| (), 0);
    };
    timed(unix, count, chain, || unix.scheduler.run_chained())
}

/// The procedure that comes in between is not counted.
fn retry(unix: &Unix, count: u32) -> Nanos {
    let between = || {
        unix.scheduler.chain(|_| (), 0);
    };
    let both = timed(
        unix,
        count,
        || {
            unix.scheduler.chain_with(|_| (), 0, between);
        },
        || unix.scheduler.run_chained(),
    );
    both.saturating_sub(procedure(unix, count))
}

/// Where the thread sleeps that is signalled, until it shall end.
static SLEEPS: WaitQueue = WaitQueue::new();
static ENDS: KernelCell<bool> = KernelCell::new(false);

fn sleeper(held: Held<'_>) -> ! {
    let scheduler = Scheduler::the().expect("threads have a scheduler");
    while !ENDS.get() {
        scheduler.sleep(held, &[&SLEEPS], None);
    }
    scheduler.end_with(held, || ())
}

fn signal(_: usize) {
    if let Some(scheduler) = Scheduler::the() {
        scheduler.wake(&SLEEPS);
    }
}

fn thread(held: Held<'_>, unix: &'static Unix, count: u32) -> Result<Nanos, Errno> {
    let scheduler = unix.scheduler;
    let thread = Thread::new(unix.machine.create_tte(Start::Kernel(sleeper)).map_err(|_| Errno::ENOMEM)?);
    ENDS.set(false);
    scheduler.enlist(&thread)?;
    scheduler.unblock(&thread);
    scheduler.yield_now(held);
    let chain = || {
        scheduler.chain(signal, 0);
        unix.machine.serve_interrupts(held);
    };
    // It runs, and sleeps again.
    let ns = timed(unix, count, chain, || scheduler.yield_now(held));
    ENDS.set(true);
    scheduler.wake(&SLEEPS);
    scheduler.yield_now(held);
    scheduler.discharge(thread.id());
    Ok(ns)
}
