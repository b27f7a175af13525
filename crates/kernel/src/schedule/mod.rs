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
mod ring;
mod waiting;

pub use alarm::{AlarmId, AlarmTarget, Ring as AlarmCall};
pub use waiting::{WaitQueue, Woken};

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use machine::{KernelCell, Machine, Nanos, QUANTUM_MOST_NS, Start, TteId};
use queue::procedures::{self, Chain, Runner};

use crate::space::FramePool;
use crate::thread::{State, Thread};
use crate::trace::Trace;
use alarm::Alarms;
use ring::Ring;

/// A timer interrupt that is so late is held off by the kernel.
const LATE_NS: u64 = 5_000_000;

pub struct Scheduler {
    machine: &'static dyn Machine,
    idle: Arc<Thread>,
    ring: KernelCell<Ring>,
    threads: KernelCell<Vec<Option<Arc<Thread>>>>,
    alarms: KernelCell<Alarms>,
    /// When the machine's timer is set to go off, as far as the kernel knows: see `armed_time`.
    armed: KernelCell<Option<Nanos>>,
    /// Switches by the machine alone (S-81), and how many there were when `armed` was set.
    preemptions: &'static AtomicU64,
    preemptions_seen: KernelCell<u64>,
    /// The interrupt that `armed` stands for is overdue; see `serve_late_timer`.
    is_timer_late: KernelCell<bool>,
    switches: KernelCell<u64>,
    /// When the running thread's account was last brought up to date.
    charged_at: KernelCell<Nanos>,
    trace: Trace,
    /// The frames that the idle thread zeroes ahead (S-106).
    idle_pool: KernelCell<Option<&'static FramePool>>,
    /// What is to be done by somebody else, soon (S-44, S-47).
    chain: Chain,
    chained: KernelCell<Runner>,
}

/// Procedures that can wait for the idle thread or the next timer interrupt.
const CHAINED_MOST: usize = 64;

/// The idle thread needs its scheduler and gets no argument.
static THE: KernelCell<Option<&'static Scheduler>> = KernelCell::new(None);

impl Scheduler {
    /// The scheduler of this kernel, with its idle thread. Once per boot.
    pub fn start(machine: &'static dyn Machine) -> Result<&'static Scheduler, machine::NoFrames> {
        let idle = Thread::new(machine.create_tte(Start::Kernel(idle))?);
        let (chain, chained) = procedures::pair(CHAINED_MOST);
        let scheduler = alloc::boxed::Box::leak(alloc::boxed::Box::new(Scheduler {
            machine,
            idle: idle.clone(),
            ring: KernelCell::new(Ring::new()),
            threads: KernelCell::new(Vec::new()),
            alarms: KernelCell::new(Alarms::new()),
            armed: KernelCell::new(None),
            preemptions: machine.preemptions(),
            preemptions_seen: KernelCell::new(0),
            is_timer_late: KernelCell::new(false),
            switches: KernelCell::new(0),
            charged_at: KernelCell::new(machine.now()),
            trace: Trace::new(machine),
            idle_pool: KernelCell::new(None),
            chain,
            chained: KernelCell::new(chained),
        }));
        scheduler.enlist(&idle);
        scheduler.allow_preemption();
        THE.set(Some(scheduler));
        Ok(scheduler)
    }

    /// The scheduler that was started last.
    pub fn the() -> Option<&'static Scheduler> {
        THE.get()
    }

    /// The ready threads in the order in which they will run: for those who check the ring.
    pub fn ready_order(&self) -> Vec<TteId> {
        self.ring.borrow().order()
    }

    /// All threads that can be found by their ids, the idle one too.
    pub fn known_threads(&self) -> Vec<Arc<Thread>> {
        self.threads.borrow().iter().flatten().cloned().collect()
    }

    /// When the next alarm is due.
    pub fn next_alarm(&self) -> Option<Nanos> {
        self.alarms.borrow().next()
    }

    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    pub fn machine(&self) -> &'static dyn Machine {
        self.machine
    }

    pub fn idle(&self) -> &Arc<Thread> {
        &self.idle
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
        let is_chained = self.chain.chain_with(call, argument, between).is_ok();
        self.machine.ask_for_chained();
        is_chained
    }

    /// Does what is chained, in order.
    pub fn run_chained(&self) {
        for _ in 0..CHAINED_MOST {
            let next = self.chained.borrow_mut().take();
            match next {
                Some(procedure) => (procedure.call)(procedure.argument),
                None => return,
            }
        }
    }

    /// Does a small piece of idle work; `false` when there is none.
    fn work_ahead(&self) -> bool {
        self.idle_pool.get().is_some_and(FramePool::zero_one_ahead)
    }

    /// Makes a thread known, so that it can be found by its id.
    pub fn enlist(&self, thread: &Arc<Thread>) {
        let mut threads = self.threads.borrow_mut();
        let index = thread.id().0 as usize;
        if threads.len() <= index {
            threads.resize(index + 1, None);
        }
        threads[index] = Some(thread.clone());
    }

    /// Forgets an ended thread.
    pub fn discharge(&self, id: TteId) -> Option<Arc<Thread>> {
        self.threads.borrow_mut()[id.0 as usize].take()
    }

    /// The running thread.
    pub fn current(&self) -> Arc<Thread> {
        let id = self.machine.current_tte();
        self.thread(id).expect("the running thread is enlisted")
    }

    pub fn thread(&self, id: TteId) -> Option<Arc<Thread>> {
        self.threads.borrow().get(id.0 as usize)?.clone()
    }

    /// Threads in the ring, idle not counted.
    pub fn ready_count(&self) -> usize {
        self.ring.borrow().len()
    }

    pub fn switch_count(&self) -> u64 {
        self.switches.get() + self.preemptions.load(Ordering::Relaxed)
    }

    /// Those switches among them that the timer's interrupt made without the kernel (S-81).
    pub fn preemption_count(&self) -> u64 {
        self.preemptions.load(Ordering::Relaxed)
    }

    /// Links a thread in behind the running one (S-73); does nothing if it is ready already, or stopped.
    pub fn unblock(&self, thread: &Arc<Thread>) {
        self.link_in(thread, State::Asleep);
    }

    /// Links a thread in that stands in `state`; does nothing in any other.
    pub(crate) fn link_in(&self, thread: &Arc<Thread>, state: State) {
        if thread.state() != state {
            return;
        }
        thread.set_state(State::Ready);
        let current = self.machine.current_tte();
        if self.is_timer_late.get() {
            self.ring.borrow_mut().insert_before(current, thread.id());
        } else {
            self.ring.borrow_mut().insert_after(current, thread.id());
        }
        self.relink();
        self.arm();
    }

    /// Takes the running thread out of the ring and runs the next; returns when it is unblocked.
    pub fn block(&self) {
        self.leave(State::Asleep);
    }

    /// Where the running thread may stand still: it is about to go back to its program, or holds nothing that others
    /// wait for. If somebody has asked it to stop (`Thread::stop`), returns when it is started.
    pub fn safe_point(&self) {
        while self.current().shall_stop() {
            self.leave(State::Stopped);
        }
    }

    /// Ends the running thread after `last`: it never runs again. Its TTE is dropped by `discharge` later, from
    /// another thread.
    pub fn end_with(&self, last: impl FnOnce()) -> ! {
        last();
        self.leave(State::Ended);
        unreachable!("an ended thread ran again")
    }

    fn leave(&self, state: State) {
        let current = self.current();
        current.set_state(state);
        self.ring.borrow_mut().remove(current.id());
        self.relink();
        self.account_current();
        self.serve_late_timer();
        // If its own alarm has just woken the thread, it is in the ring again, and its link is the ring's.
        if current.state() == state {
            let successor =
                self.ring.borrow().any().and_then(|id| self.thread(id)).unwrap_or_else(|| self.idle.clone());
            current.tte().link_next(successor.tte());
            self.shorten_turn(&successor);
            self.trace.switch(current.id(), successor.id(), true);
        }
        drop(current);
        self.switch();
    }

    /// Threads that wake each other without going back to their programs hold the timer's interrupt off. Then the alarms
    /// ring here, and until the interrupt comes, who is woken runs last instead of next: so everybody has a turn.
    fn serve_late_timer(&self) {
        let latest = self.charged_at.get().saturating_sub(Nanos(LATE_NS));
        if self.armed_time().is_some_and(|armed| armed < latest) {
            self.is_timer_late.set(true);
            // `timer` must see the interrupt.
            self.machine.preempt_until(Nanos(0));
            self.ring_alarms();
        }
    }

    /// In the middle of work that takes long: alarms that are due ring, and others have their turn.
    pub fn let_others_run(&self) {
        self.account_current();
        self.serve_late_timer();
        self.yield_now();
    }

    /// Lets the next ready thread run; returns when the ring comes round.
    pub fn yield_now(&self) {
        if self.ring.borrow().len() > 1 || self.machine.current_tte() == self.idle.id() {
            self.account_current();
            if self.trace.is_on() {
                let current = self.machine.current_tte();
                let next = self.ring.borrow().after(current).unwrap_or(self.idle.id());
                self.trace.switch(current, next, false);
            }
            self.switch();
        }
    }

    /// In line, so that registers are saved once, by the function that leaves.
    #[inline(always)]
    fn switch(&self) {
        self.switches.set(self.switches.get() + 1);
        self.machine.switch_out().leave();
    }

    /// Brings the running thread's account up to now. Every switch does.
    pub fn account_current(&self) {
        self.charged_at.set(self.machine.charge());
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
    pub fn timer(&self) {
        self.armed.set(None);
        self.is_timer_late.set(false);
        self.ring_alarms();
        self.run_chained();
        self.allow_preemption();
        let current = self.machine.current_tte();
        let next = self.ring.borrow().after(current);
        if let Some(successor) = next.and_then(|id| self.thread(id)) {
            self.account_current();
            self.shorten_turn(&successor);
        }
        self.arm();
        if current != self.idle.id() {
            self.yield_now();
        }
    }

    fn ring_alarms(&self) {
        let now = self.machine.now();
        loop {
            let due = self.alarms.borrow_mut().take_due(now);
            match due {
                None => break,
                Some(AlarmTarget::Thread(id)) => {
                    if let Some(thread) = self.thread(id) {
                        self.unblock(&thread);
                    }
                }
                Some(AlarmTarget::Call(target)) => target.ring(now),
            }
        }
    }

    /// Sets an alarm (S-77) at `at`.
    pub fn set_alarm(&self, at: Nanos, target: AlarmTarget) -> AlarmId {
        let mut alarms = self.alarms.borrow_mut();
        let is_first = alarms.next().is_none_or(|first| at < first);
        let id = alarms.set(at, target);
        drop(alarms);
        if is_first {
            self.allow_preemption();
        }
        self.arm();
        id
    }

    pub fn cancel_alarm(&self, id: AlarmId) {
        self.alarms.borrow_mut().cancel(id);
    }

    /// The timer's interrupt is left to the machine as long as it cannot mean an alarm: a quantum later it comes again, and
    /// then the alarm must not be due yet. A cancelled alarm is forgotten at the next interrupt that the kernel sees.
    pub fn allow_preemption(&self) {
        let until = match self.alarms.borrow().next() {
            _ if self.is_timer_late.get() || self.trace.is_on() => Nanos(0),
            None => Nanos(u64::MAX),
            Some(at) => at.saturating_sub(Nanos(QUANTUM_MOST_NS)),
        };
        self.machine.preempt_until(until);
    }

    /// When the timer is set to go off. Unknown after a pre-emption, which sets it for one quantum.
    fn armed_time(&self) -> Option<Nanos> {
        let is_known = self.preemptions.load(Ordering::Relaxed) == self.preemptions_seen.get();
        self.armed.get().filter(|_| is_known)
    }

    /// Sees that the timer goes off no later than the next alarm, and within a quantum if threads compete.
    fn arm(&self) {
        let quantum = (self.ring.borrow().len() > 1).then(|| self.machine.now().saturating_add(Nanos(QUANTUM_MOST_NS)));
        let alarm = self.alarms.borrow().next();
        let wanted = match (quantum, alarm) {
            (Some(quantum), Some(alarm)) => quantum.min(alarm),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => return,
        };
        if self.armed_time().is_some_and(|armed| armed <= wanted) {
            return;
        }
        self.set_timer(wanted);
    }

    /// The timer is set for who leaves; the successor's quantum may end before.
    fn shorten_turn(&self, successor: &Thread) {
        if self.ring.borrow().len() < 2 {
            return;
        }
        let end = self.charged_at.get().saturating_add(successor.tte().quantum());
        if self.armed_time().is_none_or(|armed| armed > end) {
            // After a pre-emption nothing is armed for an alarm that was too far away then.
            let alarm = self.alarms.borrow().next();
            self.set_timer(alarm.map_or(end, |alarm| alarm.min(end)));
        }
    }

    fn set_timer(&self, at: Nanos) {
        self.armed.set(Some(at));
        self.preemptions_seen.set(self.preemptions.load(Ordering::Relaxed));
        self.machine.set_alarm(Some(at));
    }

    /// Stores the links that the last change of the ring made necessary.
    fn relink(&self) {
        let changed = self.ring.borrow_mut().take_changed();
        for (from, to) in changed.into_iter().flatten() {
            let from = self.thread(from).unwrap_or_else(|| self.idle.clone());
            let to = to.and_then(|to| self.thread(to)).unwrap_or_else(|| self.idle.clone());
            from.tte().link_next(to.tte());
        }
        // The idle thread always leads to some ready thread, or to itself.
        let first = self.ring.borrow().any().and_then(|id| self.thread(id)).unwrap_or_else(|| self.idle.clone());
        self.idle.tte().link_next(first.tte());
    }

    /// The running thread's quaspace changed: its neighbours' links may need the other entry.
    pub fn quaspace_changed(&self) {
        let id = self.machine.current_tte();
        self.ring.borrow_mut().touch(id);
        self.relink();
    }

    /// Sleeps until one of `queues` is woken, the deadline passes, or somebody unblocks the thread for
    /// another reason (a signal). The caller looks again at what it waits for.
    pub fn sleep(&self, queues: &[&WaitQueue], deadline: Option<Nanos>) -> Woken {
        let current = self.current();
        if deadline.is_some_and(|at| at <= self.machine.now()) {
            return Woken::Deadline;
        }
        for queue in queues {
            queue.enter(&current);
        }
        let alarm = deadline.map(|at| self.set_alarm(at, AlarmTarget::Thread(current.id())));
        self.block();
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

    /// Wakes everyone who waits at `queue`.
    pub fn wake(&self, queue: &WaitQueue) {
        queue.drain(|thread| self.unblock(thread));
    }
}

/// The idle thread (S-3): runs when nobody else can, and waits for interrupts.
fn idle() -> ! {
    let scheduler = THE.get().expect("idle runs under a scheduler");
    loop {
        while scheduler.ready_count() > 0 {
            scheduler.yield_now();
        }
        scheduler.run_chained();
        if scheduler.work_ahead() {
            scheduler.machine.serve_interrupts();
        } else {
            scheduler.machine.wait_for_interrupt();
        }
    }
}
