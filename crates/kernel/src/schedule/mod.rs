//! The ready ring and its rules (S-57, S-70…S-73).
//!
//! ```text
//!        ┌────────── next ───────────┐
//!        ▼                           │
//!   ┌─ thread A ─┐  next  ┌─ thread B ─┐
//!   │ running    │ ─────► │ ready      │      idle is linked only while the ring is else empty
//!   └────────────┘        └────────────┘
//! ```
//! The ring is executable: each thread's `next` slot holds the address of its successor's `sw_in` or
//! `sw_in_mmu`, so leaving a thread is one jump. This module keeps the order and stores the links.
//! A thread that is unblocked is linked in directly behind the running one (S-73); a thread whose quantum
//! has passed stays where it is and its successor runs (round robin).

mod alarm;
mod bells;
mod idle;
mod processor;
pub mod timer;
mod waiting;

pub use alarm::{AlarmId, AlarmTarget, Alarms, Bell, Ring as AlarmCall};
pub use waiting::{WaitQueue, Woken};

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use machine::{
    AlarmEntry, Entry, Held, KernelCell, Machine, NEVER, Nanos, NoMemory, Place, QUANTUM_MOST_NS, ScheduleWords,
    TryGrow, TteId, failing, stretch, try_collect,
};
use queue::procedures::Runner;

use crate::call::Makers;
use crate::space::FramePool;
use crate::thread::{State, Thread};
use crate::trace::Trace;
use processor::{CHAINED_MOST, PerProcessor, Processors};
use timer::TimerCodes;

/// A timer interrupt that is so late is held off by the kernel.
const LATE_NS: u64 = 5_000_000;

pub struct Scheduler {
    machine: &'static dyn Machine,
    processors: Processors,
    threads: KernelCell<Vec<Option<Arc<Thread>>>>,
    /// Procedures for alarms.
    bells: KernelCell<Vec<Option<Arc<dyn AlarmCall>>>>,
    free_bells: KernelCell<Vec<Bell>>,
    trace: Trace,
    /// The frames that idle threads zero ahead (S-106).
    idle_pool: KernelCell<Option<&'static FramePool>>,
}

/// How long a thread sleeps that could not be noted where it waits.
const LOOK_AGAIN: Nanos = Nanos(1_000_000);

/// A wait that has begun: see [`Scheduler::begin_wait`].
pub struct Wait {
    thread: Arc<Thread>,
    /// Alarms that had rung inside of the kernel by then.
    inside: u64,
}

/// The idle thread needs its scheduler and gets no argument.
static THE: KernelCell<Option<&'static Scheduler>> = KernelCell::new(None);

impl Scheduler {
    /// The scheduler of this kernel, with an idle thread for each processor. Once per boot.
    pub fn start(machine: &'static dyn Machine) -> Result<&'static Scheduler, machine::NoFrames> {
        let scheduler = Box::leak(Box::new(Scheduler {
            machine,
            processors: Processors::new(machine)?,
            threads: KernelCell::new(Vec::new()),
            bells: KernelCell::new(Vec::new()),
            free_bells: KernelCell::new(Vec::new()),
            trace: Trace::new(machine),
            idle_pool: KernelCell::new(None),
        }));
        scheduler.enlist(scheduler.idle()).map_err(|_| machine::NoFrames)?;
        scheduler.allow_preemption();
        THE.set(Some(scheduler));
        Ok(scheduler)
    }

    /// What belongs to the processor that runs this.
    #[inline(always)]
    fn own(&self) -> &PerProcessor {
        self.processors.this(self.machine)
    }

    /// The scheduler that was started last.
    pub fn the() -> Option<&'static Scheduler> {
        THE.get()
    }

    /// The ready threads in the order in which they will run: for those who check the ring.
    pub fn ready_order(&self) -> Vec<TteId> {
        self.machine.ready_order()
    }

    /// All threads that can be found by their ids, the idle one too.
    pub fn known_threads(&self) -> Result<Vec<Arc<Thread>>, NoMemory> {
        self.threads.with(|threads| try_collect(threads.iter().flatten().cloned()))
    }

    /// How many there are.
    pub fn thread_count(&self) -> usize {
        self.threads.with(|threads| threads.iter().flatten().count())
    }

    /// When the next alarm is due.
    pub fn next_alarm(&self) -> Option<Nanos> {
        Some(Nanos(self.own().alarms.with(|alarms| alarms.next()))).filter(|at| at.0 != NEVER)
    }

    /// From now on the timer's interrupt goes to a handler that is code, if the machine and the store can.
    pub fn bind_timer(&self, makers: Makers) {
        let Some(code) = self.machine.timer_code() else { return };
        if let Some(codes) = TimerCodes::synthesize(makers, &code, self.own().words) {
            self.own().alarms.with(|alarms| alarms.set_kernel(codes.kernel()));
            self.machine.bind_timer(codes.interrupt.entry().under(), codes.nesting.entry().under());
            self.own().timer_codes.set(Some(Box::leak(Box::new(codes))));
        }
    }

    /// The timer's handler, if it is code.
    pub fn timer_codes(&self) -> Option<&'static TimerCodes> {
        self.own().timer_codes.get()
    }

    /// The words shared with the timer's interrupt.
    pub fn words(&self) -> &'static ScheduleWords {
        self.own().words
    }

    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    pub fn machine(&self) -> &'static dyn Machine {
        self.machine
    }

    pub fn idle(&self) -> &Arc<Thread> {
        &self.own().idle
    }

    /// From now on the idle thread zeroes free frames of `pool` ahead of their use.
    pub fn zero_when_idle(&self, pool: &'static FramePool) {
        self.idle_pool.set(Some(pool));
    }

    /// Has `call(argument)` done at the end of what the kernel does now, or by the thread that this one leaves for:
    /// procedure chaining. A machine that cannot ask itself does it at the next timer interrupt. The procedure must not
    /// sleep. False: too much is chained already.
    pub fn chain(&self, call: fn(usize), argument: usize) -> bool {
        self.chain_with(call, argument, || ())
    }

    /// The same, with `between` done in the midst of it, as an interrupt may be, so that there is a second try.
    #[inline]
    pub fn chain_with(&self, call: fn(usize), argument: usize, between: impl FnOnce()) -> bool {
        let is_chained = self.own().chain.chain_with(call, argument, between).is_ok();
        self.machine.ask_for_chained();
        is_chained
    }

    /// Does what is chained, in order.
    pub fn run_chained(&self) {
        for _ in 0..CHAINED_MOST {
            let next = self.own().chained.with(Runner::take);
            let Some(procedure) = next else { return };
            (procedure.call)(procedure.argument);
            if self.own().chained.borrow().is_empty() {
                return;
            }
        }
    }

    /// Does a small piece of idle work; `false` when there is none.
    fn work_ahead(&self) -> bool {
        self.idle_pool.get().is_some_and(FramePool::zero_one_ahead)
    }

    /// Makes a thread known, so that it can be found by its id, and may have an alarm.
    pub fn enlist(&self, thread: &Arc<Thread>) -> Result<(), NoMemory> {
        let index = thread.id().0 as usize;
        self.threads.with(|threads| {
            if threads.len() <= index {
                threads.try_resize(index + 1, None)?;
            }
            threads[index] = Some(thread.clone());
            Ok(())
        })
    }

    /// Forgets an ended thread.
    pub fn discharge(&self, id: TteId) -> Option<Arc<Thread>> {
        self.threads.with(|threads| threads[id.0 as usize].take())
    }

    /// The running thread.
    pub fn current(&self) -> Arc<Thread> {
        let id = self.machine.current_tte();
        self.thread(id).expect("the running thread is enlisted")
    }

    pub fn thread(&self, id: TteId) -> Option<Arc<Thread>> {
        self.threads.with(|threads| threads.get(id.0 as usize)?.clone())
    }

    /// Threads in the ring, idle not counted.
    pub fn ready_count(&self) -> usize {
        self.own().words.ready.load(Relaxed) as usize
    }

    pub fn switch_count(&self) -> u64 {
        self.own().words.switches.load(Relaxed) + self.preemption_count()
    }

    /// Those switches among them that the timer's interrupt made without the kernel (S-81).
    pub fn preemption_count(&self) -> u64 {
        self.own().words.preemptions.load(Relaxed)
    }

    /// Links a thread in behind the running one (S-73); does nothing if it is ready already, or stopped.
    pub fn unblock(&self, thread: &Arc<Thread>) {
        self.link_in(thread, State::Asleep);
    }

    /// Links a thread in that stands in `state`; does nothing in any other.
    pub(crate) fn link_in(&self, thread: &Arc<Thread>, state: State) {
        if thread.state() != state {
            thread.note_wake();
            return;
        }
        thread.set_state(State::Ready);
        thread.tte().link_in(if self.own().is_timer_late.get() { Place::Last } else { Place::Next });
        // With the second thread the quantum begins to count.
        if self.ready_count() == 2 {
            if self.own().words.armed.load(Relaxed) > self.own().charged_at.get().0 + QUANTUM_MOST_NS {
                self.set_timer_before(self.machine.now().0 + QUANTUM_MOST_NS);
            }
            // From now on code may do the same, as long as nobody sets the timer anew.
            self.own().words.soon.store(self.own().words.armed.load(Relaxed), Relaxed);
        }
    }

    /// Takes the running thread out of the ring and runs the next; returns when it is unblocked.
    pub fn block(&self, held: Held<'_>) {
        self.leave(held, State::Asleep);
    }

    /// Where the running thread may stand still: it is about to go back to its program, or holds nothing that others
    /// wait for. If somebody has asked it to stop (`Thread::stop`), returns when it is started.
    pub fn safe_point(&self, held: Held<'_>) {
        while self.current().shall_stop() {
            self.leave(held, State::Stopped);
        }
    }

    /// Ends the running thread after `last`: it never runs again. Its TTE is dropped by `discharge` later, from
    /// another thread.
    pub fn end_with(&self, held: Held<'_>, last: impl FnOnce()) -> ! {
        last();
        self.leave(held, State::Ended);
        unreachable!("an ended thread ran again")
    }

    fn leave(&self, held: Held<'_>, state: State) {
        let current = self.current();
        current.set_state(state);
        current.tte().link_out();
        self.account_current();
        self.serve_late_timer();
        // If its own alarm has just woken the thread, it is in the ring again, and its link is the ring's.
        if current.state() == state {
            let (successor, quantum) = self.machine.successor();
            self.shorten_turn(quantum);
            self.trace.switch(current.id(), successor, true);
        }
        drop(current);
        self.switch(held);
        failing::safe_point();
    }

    /// Threads that wake each other without going back to their programs hold the timer's interrupt off. Then the alarms
    /// ring here, and until the interrupt comes, who is woken runs last instead of next: so everybody has a turn.
    fn serve_late_timer(&self) {
        let latest = self.own().charged_at.get().saturating_sub(Nanos(LATE_NS));
        if self.own().words.armed.load(Relaxed) < latest.0 {
            self.own().is_timer_late.set(true);
            self.ring_alarms();
            // `timer` must see the interrupt.
            self.allow_preemption();
        }
    }

    /// A safe point in the middle of work that takes long (R9): interrupts that wait come in, and if the thread's quantum is
    /// over, others have their turn. Nothing is borrowed meanwhile, and what was looked at before may be another thing now.
    #[inline]
    pub fn breathe(&self, held: Held<'_>) {
        stretch::interrupted_by(|| self.machine.serve_interrupts(held));
    }

    /// In the middle of work that takes long: alarms that are due ring, and others have their turn.
    pub fn let_others_run(&self, held: Held<'_>) {
        // A timer interrupt that waits would end the next thread's turn as it begins.
        self.breathe(held);
        self.account_current();
        self.serve_late_timer();
        self.yield_now(held);
    }

    /// Lets the next ready thread run; returns when the ring comes round.
    pub fn yield_now(&self, held: Held<'_>) {
        if self.ready_count() > 1 || self.machine.current_tte() == self.own().idle.id() {
            self.account_current();
            self.yield_charged(held);
        }
    }

    /// The same when the running thread's account is up to date.
    fn yield_charged(&self, held: Held<'_>) {
        if self.trace.is_on() {
            self.trace.switch(self.machine.current_tte(), self.machine.successor().0, false);
        }
        self.switch(held);
    }

    /// In line, so that registers are saved once, by the function that leaves.
    #[inline(always)]
    fn switch(&self, held: Held<'_>) {
        self.own().words.switches.store(self.own().words.switches.load(Relaxed) + 1, Relaxed);
        stretch::interrupted_by(|| self.machine.switch_out().leave(held));
    }

    /// Brings the running thread's account up to now. Every switch does.
    pub fn account_current(&self) {
        self.own().charged_at.set(self.machine.charge());
    }

    /// How long a thread has been the running one, program and kernel together.
    pub fn ran(&self, thread: &Thread) -> Nanos {
        if thread.id() == self.machine.current_tte() {
            self.account_current();
        }
        thread.ran()
    }

    /// The timer went off: expired alarms, then the quantum. `running_program`: the interrupted thread was
    /// in its program and may be left.
    pub fn timer(&self, held: Held<'_>) {
        self.own().words.armed.store(NEVER, Relaxed);
        self.own().is_timer_late.set(false);
        self.ring_alarms();
        self.run_chained();
        self.allow_preemption();
        let is_contested = self.ready_count() > 1;
        if is_contested {
            self.account_current();
            self.shorten_turn(self.machine.successor().1);
        }
        self.arm();
        if is_contested && self.machine.current_tte() != self.own().idle.id() {
            self.yield_charged(held);
        }
    }

    fn ring_alarms(&self) {
        let now = self.machine.now();
        loop {
            let due = self.own().alarms.with(|alarms| alarms.take_due(now));
            match due {
                None => break,
                Some(AlarmTarget::Thread(id)) => {
                    if let Some(thread) = self.thread(id) {
                        self.unblock(&thread);
                    }
                }
                Some(AlarmTarget::Call(bell)) => {
                    let call = self.bells.with(|bells| bells.get(bell.0 as usize).cloned().flatten());
                    call.into_iter().for_each(|call| call.ring(now));
                }
            }
        }
    }

    /// Sets an alarm (S-77) at `at`.
    pub fn set_alarm(&self, at: Nanos, target: AlarmTarget) -> AlarmId {
        let id = self.own().alarms.with(|alarms| alarms.set(at, target, Entry::RUST));
        self.arm_for(at);
        id
    }

    /// The same for an alarm whose usual case is code: `routine`, where it is not Rust's, is done by the timer's interrupt. `old` is
    /// taken back, and `meanwhile` done when it can ring no more.
    #[inline]
    pub fn set_alarm_anew(
        &self,
        old: Option<AlarmId>,
        at: Nanos,
        target: AlarmTarget,
        routine: Entry<AlarmEntry>,
        meanwhile: impl FnOnce() + Send,
    ) -> AlarmId {
        let id = self.own().alarms.with(|alarms| alarms.replace(old, at, target, routine, meanwhile));
        self.arm_for(at);
        id
    }

    #[inline(always)]
    fn arm_for(&self, at: Nanos) {
        let armed = self.own().words.armed.load(Relaxed);
        if armed == NEVER {
            self.arm();
        } else if at.0 < armed {
            self.set_timer(at);
        }
    }

    pub fn cancel_alarm(&self, id: AlarmId) {
        self.own().alarms.with(|alarms| alarms.cancel(id));
    }

    /// The timer's interrupt is left to the machine as long as it cannot mean an alarm: a quantum later it comes again, and
    /// then the alarm must not be due yet. A cancelled alarm is forgotten at the next interrupt that the kernel sees.
    pub fn allow_preemption(&self) {
        let is_forced = self.own().is_timer_late.get() || self.trace.is_on();
        self.own().alarms.with(|alarms| alarms.force(is_forced));
    }

    /// Sees that the timer goes off no later than the next alarm, and within a quantum if threads compete.
    fn arm(&self) {
        let mut wanted = self.own().alarms.with(|alarms| alarms.next());
        if self.ready_count() > 1 {
            wanted = wanted.min(self.machine.now().0 + QUANTUM_MOST_NS);
        }
        if wanted < self.own().words.armed.load(Relaxed) {
            self.set_timer(Nanos(wanted));
        }
    }

    /// The timer is set for who leaves; the successor's quantum may end before.
    fn shorten_turn(&self, quantum: Nanos) {
        if self.ready_count() < 2 {
            return;
        }
        let end = self.own().charged_at.get().saturating_add(quantum);
        self.set_timer_before(end.0);
    }

    /// Sees that the timer goes off by `end`.
    fn set_timer_before(&self, end: u64) {
        if self.own().words.armed.load(Relaxed) > end {
            // After a pre-emption nothing is armed for an alarm that was too far away then.
            self.set_timer(Nanos(self.own().alarms.with(|alarms| alarms.next()).min(end)));
        }
    }

    fn set_timer(&self, at: Nanos) {
        self.own().words.armed.store(at.0, Relaxed);
        self.machine.set_alarm(at);
    }

    /// The running thread's quaspace changed: its neighbours' links may need the other entry.
    pub fn quaspace_changed(&self) {
        self.current().tte().relink();
    }

    /// Sleeps until one of `queues` is woken, the deadline passes, or somebody unblocks the thread for
    /// another reason (a signal). The caller looks again at what it waits for.
    pub fn sleep(&self, held: Held<'_>, queues: &[&WaitQueue], deadline: Option<Nanos>) -> Woken {
        let current = self.current();
        if deadline.is_some_and(|at| at <= self.machine.now()) {
            return Woken::Deadline;
        }
        let mut until = deadline;
        for queue in queues {
            if queue.enter(&current).is_err() {
                until = self.soon(until);
            }
        }
        let alarm = until.map(|at| self.set_alarm(at, AlarmTarget::Thread(current.id())));
        // An alarm that rang in the midst of the kernel may have been what the caller looked for in vain.
        let inside = self.own().words.rung_inside.load(Relaxed);
        if queues.is_empty() || inside == self.own().inside_seen.get() {
            self.block(held);
        }
        self.own().inside_seen.set(inside);
        for queue in queues {
            queue.leave(&current);
        }
        if let Some(alarm) = alarm {
            self.cancel_alarm(alarm);
        }
        match deadline {
            Some(at) if at <= self.machine.now() => Woken::Deadline,
            _ => Woken::Event,
        }
    }

    /// `thread`, which sleeps for several reasons, is woken by `queue`, too, once. False: it stands there already, so that the
    /// queue was not woken since. Error: no room; nobody wakes it.
    pub fn listen(&self, queue: &WaitQueue, thread: &Arc<Thread>) -> Result<bool, NoMemory> {
        queue.enter_once(thread)
    }

    /// The running thread is going to wait in many queues: from now on it is remembered who wakes it.
    pub fn begin_wait(&self) -> Wait {
        let thread = self.current();
        thread.forget_wakes();
        Wait { thread, inside: self.own().words.rung_inside.load(Relaxed) }
    }

    /// Enters a queue on the way to [`Scheduler::sleep_unless_woken`].
    ///
    /// Error: no room; nobody wakes it there.
    pub fn enter_queue(&self, queue: &WaitQueue) -> Result<(), NoMemory> {
        queue.enter(&self.current())
    }

    /// Leaves it afterwards.
    pub fn leave_queue(&self, queue: &WaitQueue) {
        queue.leave(&self.current());
    }

    /// As [`Scheduler::sleep`], in all queues that the thread is in; not at all if it has been woken since the wait began.
    pub fn sleep_unless_woken(&self, held: Held<'_>, wait: Wait, deadline: Option<Nanos>) {
        if wait.thread.was_woken() || self.own().words.rung_inside.load(Relaxed) != wait.inside {
            return;
        }
        let alarm = deadline.map(|at| self.set_alarm(at, AlarmTarget::Thread(wait.thread.id())));
        self.block(held);
        alarm.into_iter().for_each(|alarm| self.cancel_alarm(alarm));
    }

    /// When to look again where nobody wakes the thread, because there was no memory to note that it waits.
    #[cold]
    fn soon(&self, until: Option<Nanos>) -> Option<Nanos> {
        let soon = self.machine.now().saturating_add(LOOK_AGAIN);
        Some(until.map_or(soon, |until| until.min(soon)))
    }

    /// Wakes everyone who waits at `queue`.
    pub fn wake(&self, queue: &WaitQueue) {
        self.sleeper(queue).iter().for_each(|thread| self.unblock(thread));
        queue.drain(|thread| self.unblock(thread));
    }

    /// Who sleeps in `queue` by code, or is woken and has not run yet.
    pub fn sleeper(&self, queue: &WaitQueue) -> Option<Arc<Thread>> {
        self.thread(self.machine.sleeper(queue.sleeper()?))
    }
}
