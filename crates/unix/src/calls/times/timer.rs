//! Something that goes off: the one mechanism below interval timers, POSIX timers and timer streams.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU64, Ordering};

use abi::Errno;
use abi::time::Itimerspec;
use codestore::Code;
use kernel::schedule::timer::{CountWords, TimerHandler};
use kernel::schedule::{AlarmCall, AlarmId, AlarmTarget, Bell};
use machine::{AlarmEntry, Entry, KernelCell, KernelValue, Nanos, NoMemory};

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

/// What a timer with an interval does when it has gone off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// Its alarm is set for the next time at once. For long intervals only.
    Again,
    /// It stays quiet until whoever it tells has taken note ([`Timer::go_on`]), and then counts what has passed. So a thousand
    /// timers of a microsecond that nobody reads cost a thousand alarms.
    Quiet,
}

/// Invariant: an alarm is set exactly while `at` is not zero, and the timer is not quiet.
pub struct Timer {
    unix: &'static Unix,
    clock: Clock,
    /// It was set for a time from then on, and does not care when the time of day is set meanwhile.
    is_relative: KernelValue<bool>,
    /// When the timer goes off by its clock, zero: it does not; and then every so often, zero: only once. Code that is bound
    /// changes `at`.
    at: AtomicU64,
    interval: KernelCell<Nanos>,
    alarm: KernelCell<Option<AlarmId>>,
    bell: Bell,
    after: After,
    /// Called with how often the timer has gone off since the last time; in interrupt context.
    expired: Box<dyn Fn(u64) + Send + Sync>,
    /// What the timer's interrupt does when a timer that goes off once, by the time since boot, is due.
    code: KernelCell<Option<Code<TimerHandler>>>,
    /// Its address, or 0.
    routine: KernelValue<Entry<AlarmEntry>>,
}

/// What the alarm keeps: it must not keep the timer itself.
struct Ringer(Weak<Timer>);

impl AlarmCall for Ringer {
    fn ring(&self, _now: Nanos) {
        if let Some(timer) = self.0.upgrade() {
            timer.alarm.set(None);
            if !timer.look() || timer.after == After::Again {
                timer.arm(Nanos(0));
            }
        }
    }
}

impl Timer {
    pub fn new(
        unix: &'static Unix,
        clock: Clock,
        after: After,
        expired: Box<dyn Fn(u64) + Send + Sync>,
    ) -> Result<Arc<Timer>, NoMemory> {
        unix.scheduler.make_bell_room()?;
        Ok(Arc::new_cyclic(|timer: &Weak<Timer>| Timer {
            unix,
            clock,
            is_relative: KernelValue::new(false),
            at: AtomicU64::new(0),
            interval: KernelCell::default(),
            alarm: KernelCell::new(None),
            bell: unix.scheduler.add_bell(Arc::new(Ringer(timer.clone()))),
            after,
            expired,
            code: KernelCell::new(None),
            routine: KernelValue::new(Entry::RUST),
        }))
    }

    /// Has the timer's interrupt count in these words, where it can, instead of calling `expired`. They live as long as the
    /// timer. `waiting` is the address of the word that says how many wait for it.
    pub fn count_by_code(&self, waiting: u64, unread: &AtomicU64, ever: &AtomicU64) {
        let scheduler = self.unix.scheduler;
        if let (Clock::Boot, Some(makers), Some(codes)) = (&self.clock, self.unix.makers(), scheduler.timer_codes()) {
            let counts = CountWords { waiting, unread, ever, at: &self.at };
            let code = codes.count(makers, &counts);
            self.routine.set(code.as_ref().map_or(Entry::RUST, |code| code.entry().under()));
            *self.code.borrow_mut() = code;
        }
    }

    /// What its times count by.
    fn clock(&self) -> &Clock {
        match &self.clock {
            Clock::Wall if self.is_relative.get() => &Clock::Boot,
            clock => clock,
        }
    }

    fn setting(&self) -> Setting {
        Setting { at: Nanos(self.at.load(Ordering::Relaxed)), interval: self.interval.get() }
    }

    /// What is left, and the interval. A timer that is due but has not rung yet has a nanosecond left.
    pub fn remaining(&self) -> (Nanos, Nanos) {
        let setting = self.setting();
        if setting.at == Nanos(0) {
            return (Nanos(0), setting.interval);
        }
        let (now, interval) = (self.clock().read(self.unix), setting.interval.0);
        let left = match now.0.checked_sub(setting.at.0) {
            // A quiet timer goes on as if it had rung.
            Some(late) if interval > 0 => interval - late % interval,
            _ => setting.at.saturating_sub(now).0,
        };
        (Nanos(left.max(1)), setting.interval)
    }

    /// As the calls show it.
    pub fn record(&self) -> Itimerspec {
        let (value, interval) = self.remaining();
        Itimerspec { it_interval: timespec_of(interval), it_value: timespec_of(value) }
    }

    /// Sets the timer to go off `value` from now, or at `value` if `absolute`; zero stops it.
    pub fn set(&self, value: Nanos, interval: Nanos, absolute: bool) {
        self.set_meanwhile(value, interval, absolute, || ());
    }

    /// The same; `meanwhile` is done when the old setting goes off no more, and the new one not yet.
    #[inline]
    pub fn set_meanwhile(&self, value: Nanos, interval: Nanos, absolute: bool, meanwhile: impl FnOnce() + Send) {
        let routine = self.routine.get();
        if routine != Entry::RUST && value != Nanos(0) && interval == Nanos(0) && self.interval.get() == interval {
            let now = self.unix.machine.now();
            let at = if absolute { value } else { now.saturating_add(value) };
            if at > now {
                let target = AlarmTarget::Call(self.bell);
                let meanwhile = || {
                    meanwhile();
                    self.at.store(at.0, Ordering::Relaxed);
                };
                let scheduler = self.unix.scheduler;
                self.alarm.set(Some(scheduler.set_alarm_anew(self.alarm.get(), at, target, routine, meanwhile)));
                return;
            }
        }
        self.cancel();
        meanwhile();
        self.set_stopped(value, interval, absolute);
    }

    fn set_stopped(&self, value: Nanos, interval: Nanos, absolute: bool) {
        if value == Nanos(0) {
            self.change(Setting { at: value, interval });
            return;
        }
        self.is_relative.set(!absolute);
        let now = self.clock().read(self.unix);
        let at = if absolute { value } else { now.saturating_add(value) };
        self.change(Setting { at, interval });
        let has_expired = at <= now && self.look();
        if !has_expired || self.after == After::Again {
            self.arm(Nanos(0));
        }
    }

    pub fn stop(&self) {
        self.set(Nanos(0), Nanos(0), false);
    }

    /// Tells what has passed by now, if anything.
    fn look(&self) -> bool {
        let times = self.count();
        if times > 0 {
            (self.expired)(times);
        }
        times > 0
    }

    /// How often it has gone off since the last time; the next time is the one after now.
    fn count(&self) -> u64 {
        let Setting { at, interval } = self.setting();
        let now = self.clock().read(self.unix);
        if at == Nanos(0) || now < at {
            return 0;
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
        times
    }

    /// Whether it has gone off and waits for somebody to take note.
    pub fn is_quiet(&self) -> bool {
        self.at.load(Ordering::Relaxed) != 0 && self.alarm.get().is_none()
    }

    /// Whoever it tells has taken note: it rings again, but not before `soonest`. How often it has gone off while it was quiet.
    pub fn go_on(&self, soonest: Nanos) -> u64 {
        if !self.is_quiet() {
            return 0;
        }
        let times = self.count();
        self.arm(soonest);
        times
    }

    fn change(&self, setting: Setting) {
        self.at.store(setting.at.0, Ordering::Relaxed);
        self.interval.set(setting.interval);
    }

    /// Sets the alarm, but not for a time before `soonest`.
    fn arm(&self, soonest: Nanos) {
        let Setting { at, interval } = self.setting();
        if at == Nanos(0) || self.alarm.get().is_some() {
            return;
        }
        let when = if let Clock::Boot = self.clock() { at } else { self.clock().earliest(self.unix, at) };
        let routine = if interval == Nanos(0) { self.routine.get() } else { Entry::RUST };
        let target = AlarmTarget::Call(self.bell);
        let when = when.max(soonest);
        self.alarm.set(Some(self.unix.scheduler.set_alarm_anew(None, when, target, routine, || ())));
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
        self.unix.scheduler.remove_bell(self.bell);
    }
}

/// Value and interval of a record. Error: `EINVAL`.
pub fn durations(record: &Itimerspec) -> Result<(Nanos, Nanos), Errno> {
    Ok((nanos_of(record.it_value)?, nanos_of(record.it_interval)?))
}
