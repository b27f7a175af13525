//! Something that goes off: the one mechanism below interval timers, POSIX timers and timer streams.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU32, Ordering};

use abi::Errno;
use abi::time::Itimerspec;
use kernel::schedule::{AlarmCall, AlarmId, AlarmTarget};
use machine::{KernelCell, Nanos};

use super::clock::Clock;
use super::{nanos_of, timespec_of};
use crate::emulator::Unix;

/// When a timer goes off, by its clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Setting {
    /// Zero: it does not.
    pub at: Nanos,
    /// Then every so often; zero: only once.
    pub interval: Nanos,
}

impl Setting {
    fn is_quick(&self) -> bool {
        self.at != Nanos(0) && (1..QUICK_NS).contains(&self.interval.0)
    }
}

/// Timers with a shorter interval are counted.
const QUICK_NS: u64 = 1_000_000;
static QUICK: AtomicU32 = AtomicU32::new(0);
/// All quick timers together ring once in so long: a program that asks for a nanosecond's interval must leave time for
/// the others. What was missed in between is counted, so the program sees it as overruns.
const PAUSE_NS: u64 = 50_000;

/// How long a timer that has rung stays quiet.
fn pause() -> Nanos {
    Nanos(PAUSE_NS * u64::from(QUICK.load(Ordering::Relaxed).max(1)))
}

/// Invariant: an alarm is set exactly while `setting.at` is not zero.
pub struct Timer {
    unix: &'static Unix,
    clock: Clock,
    setting: KernelCell<Setting>,
    alarm: KernelCell<Option<AlarmId>>,
    bell: Arc<Bell>,
    /// Called with how often the timer has gone off since the last time; in interrupt context.
    expired: Box<dyn Fn(u64)>,
}

/// What the alarm keeps: it must not keep the timer itself.
struct Bell(Weak<Timer>);

impl AlarmCall for Bell {
    fn ring(&self, _now: Nanos) {
        if let Some(timer) = self.0.upgrade() {
            timer.alarm.set(None);
            timer.look();
            timer.arm(timer.unix.machine.now().saturating_add(pause()));
        }
    }
}

impl Timer {
    pub fn new(unix: &'static Unix, clock: Clock, expired: Box<dyn Fn(u64)>) -> Arc<Timer> {
        Arc::new_cyclic(|timer| Timer {
            unix,
            clock,
            setting: KernelCell::new(Setting::default()),
            alarm: KernelCell::new(None),
            bell: Arc::new(Bell(timer.clone())),
            expired,
        })
    }

    /// What is left, and the interval. A timer that is due but has not rung yet has a nanosecond left.
    pub fn remaining(&self) -> (Nanos, Nanos) {
        let setting = self.setting.get();
        if setting.at == Nanos(0) {
            return (Nanos(0), setting.interval);
        }
        (setting.at.saturating_sub(self.clock.read(self.unix)).max(Nanos(1)), setting.interval)
    }

    /// As the calls show it.
    pub fn record(&self) -> Itimerspec {
        let (value, interval) = self.remaining();
        Itimerspec { it_interval: timespec_of(interval), it_value: timespec_of(value) }
    }

    /// Sets the timer to go off `value` from now, or at `value` if `absolute`; zero stops it.
    pub fn set(&self, value: Nanos, interval: Nanos, absolute: bool) {
        self.cancel();
        let at = match (value, absolute) {
            (Nanos(0), _) | (_, true) => value,
            _ => self.clock.read(self.unix).saturating_add(value),
        };
        self.change(Setting { at, interval });
        self.look();
        self.arm(Nanos(0));
    }

    pub fn stop(&self) {
        self.set(Nanos(0), Nanos(0), false);
    }

    /// Counts what has passed by now.
    fn look(&self) {
        let Setting { at, interval } = self.setting.get();
        let now = self.clock.read(self.unix);
        if at == Nanos(0) || now < at {
            return;
        }
        let (next, times) = match interval.0 {
            0 => (Nanos(0), 1),
            interval => {
                let times = (now.0 - at.0) / interval + 1;
                (Nanos(at.0.saturating_add(times.saturating_mul(interval))), times)
            }
        };
        // A timer that went off for good keeps its interval for those who ask.
        self.change(Setting { at: next, interval });
        (self.expired)(times);
    }

    fn change(&self, setting: Setting) {
        let old = self.setting.get();
        self.setting.set(setting);
        if old.is_quick() && !setting.is_quick() {
            QUICK.fetch_sub(1, Ordering::Relaxed);
        } else if !old.is_quick() && setting.is_quick() {
            QUICK.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sets the alarm, but not for a time before `soonest`.
    fn arm(&self, soonest: Nanos) {
        let at = self.setting.get().at;
        if at != Nanos(0) && self.alarm.get().is_none() {
            let when = self.clock.earliest(self.unix, at).max(soonest);
            let alarm = self.unix.scheduler.set_alarm(when, AlarmTarget::Call(self.bell.clone()));
            self.alarm.set(Some(alarm));
        }
    }

    fn cancel(&self) {
        if let Some(alarm) = self.alarm.get() {
            self.unix.scheduler.cancel_alarm(alarm);
            self.alarm.set(None);
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.cancel();
        self.change(Setting::default());
    }
}

/// Value and interval of a record. Error: `EINVAL`.
pub fn durations(record: &Itimerspec) -> Result<(Nanos, Nanos), Errno> {
    Ok((nanos_of(record.it_value)?, nanos_of(record.it_interval)?))
}
