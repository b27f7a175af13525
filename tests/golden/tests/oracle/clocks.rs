//! The timer's interrupt as code against the alarms in Rust: timers that count and alarms of the kernel, people who wait, other
//! threads.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use codestore::Code;
use golden::{Clock, KernelEntry, bench};
use kernel::schedule::timer::{CountWords, TimerCodes, TimerHandler};
use kernel::schedule::{AlarmId, AlarmTarget, Alarms};
use machine::{NEVER, Nanos, Samples, ScheduleWords, TteId};

use crate::race::Race;

const TIMERS: usize = 5;

/// A timer that counts, and what its twin would have counted.
#[derive(Default)]
struct Timer {
    waiting: AtomicU64,
    unread: AtomicU64,
    ever: AtomicU64,
    at: AtomicU64,
    counted: u64,
    /// Set in both lists of alarms; by code, or as an alarm of Rust.
    set: Option<([AlarmId; 2], bool)>,
}

pub struct Clocks {
    clock: &'static Clock,
    words: &'static ScheduleWords,
    handlers: TimerCodes,
    _kernel: Code<KernelEntry>,
    code: Alarms,
    twin: Alarms,
    timers: &'static mut [Timer; TIMERS],
    codes: Vec<Code<TimerHandler>>,
}

impl Clocks {
    pub fn new() -> Clocks {
        let clock: &'static Clock = Box::leak(Box::default());
        let (words, twin_words): (&ScheduleWords, &ScheduleWords) =
            (Box::leak(Box::default()), Box::leak(Box::default()));
        let (code, _kernel) = clock.code();
        let makers = bench().makers();
        let handlers = TimerCodes::synthesize(makers, &code, words).expect("room for code");
        let timers: &'static mut [Timer; TIMERS] = Box::leak(Box::default());
        let count = |timer: &Timer| {
            let Timer { waiting, unread, ever, at, .. } = timer;
            let counts = CountWords { waiting: core::ptr::from_ref(waiting) as u64, unread, ever, at };
            handlers.count(makers, &counts).expect("room for code")
        };
        let codes = timers.iter().map(count).collect();
        let mut code = Alarms::new(words);
        code.set_kernel(handlers.kernel());
        Clocks { clock, words, handlers, _kernel, code, twin: Alarms::new(twin_words), timers, codes }
    }

    pub fn step(&mut self, race: &mut Race) {
        let which = race.random.below(TIMERS as u64) as usize;
        match race.random.below(6) {
            0 | 1 => self.set(which, race),
            2 => self.cancel(which),
            3 => self.timers[which].waiting.store(race.random.below(3) / 2, Relaxed),
            4 => self.words.ready.store(race.random.below(8) / 3, Relaxed),
            _ => self.interrupt(race),
        }
        assert_eq!(self.code.next(), self.twin.next(), "{}: the next alarm", race.place());
        assert_eq!(self.words.due.load(Relaxed), self.twin.next(), "{}: when it is due", race.place());
        for timer in self.timers.iter() {
            let (unread, ever) = (timer.unread.load(Relaxed), timer.ever.load(Relaxed));
            assert_eq!((unread, ever), (timer.counted, timer.counted), "{}: what is counted", race.place());
        }
    }

    fn set(&mut self, which: usize, race: &mut Race) {
        self.cancel(which);
        let far = race.random.pick(&[3, 50, 1 << 40]);
        let at = Nanos(self.clock.now.load(Relaxed) + race.random.below(far));
        let by_code = !race.random.once_in(3);
        let target = AlarmTarget::Thread(TteId(which as u32));
        let routine = if by_code { self.codes[which].entry().under() } else { machine::Entry::RUST };
        self.timers[which].at.store(1, Relaxed);
        let ids = [self.code.set(at, target, routine), self.twin.set(at, target, machine::Entry::RUST)];
        self.timers[which].set = Some((ids, by_code));
    }

    fn cancel(&mut self, which: usize) {
        if let Some(([code, twin], _)) = self.timers[which].set.take() {
            self.code.cancel(code);
            self.twin.cancel(twin);
        }
    }

    /// What the interrupt does is decided by Rust; then both lists are looked at.
    fn interrupt(&mut self, race: &mut Race) {
        let now = self.clock.now.load(Relaxed) + race.random.below(30);
        self.clock.now.store(now, Relaxed);
        let slot = bench().sample_clock().expect("the bench has one").slot;
        let handler = race.random.pick(&[self.handlers.interrupt.entry(), self.handlers.nesting.entry()]);
        let before = slot.entry();
        // SAFETY: the handler ends as one of samples does.
        slot.store(unsafe { machine::Entry::new(handler.address()) });
        assert!(golden::raise_sample(), "{}: the handler has lost a register", race.place());
        slot.store(before);
        let (kernel, count) = self.clock.take();
        let due = self.twin.take_due(Nanos(now)).map(|target| match target {
            AlarmTarget::Thread(id) => id.0 as usize,
            AlarmTarget::Call(_) => unreachable!("no such alarm is set"),
        });
        let rings = due.filter(|which| {
            let timer = &self.timers[*which];
            let (_, by_code) = timer.set.expect("it was due");
            by_code && timer.waiting.load(Relaxed) == 0 && self.words.ready.load(Relaxed) <= 1
        });
        let Some(which) = rings else {
            assert_eq!((kernel, count), (1, 0), "{}: the interrupt is the kernel's", race.place());
            let taken = self.code.take_due(Nanos(now)).is_some();
            assert_eq!(taken, due.is_some(), "{}: what is due", race.place());
            due.into_iter().for_each(|which| self.timers[which].set = None);
            return;
        };
        let timer = &mut self.timers[which];
        (timer.counted, timer.set) = (timer.counted + 1, None);
        let left = match self.twin.next() {
            NEVER => 0,
            next => next.saturating_sub(now).clamp(1, u64::from(u32::MAX)) as u32,
        };
        assert_eq!((kernel, count), (0, left), "{}: the timer is set again", race.place());
        assert_eq!(timer.at.load(Relaxed), 0, "{}: the timer does not know that it rang", race.place());
        assert_eq!(self.words.armed.load(Relaxed), self.twin.next(), "{}: as the scheduler sees it", race.place());
    }
}
