//! The machine: time, interrupts, and the traits.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::Weak;
use std::sync::atomic::Ordering;

use machine::{
    Channel, Channels, Clock, Dma, Entered, Entry, FileEntry, FrameNumber, Held, LocalCell, LocalValue, Machine,
    Memory, NEVER, Nanos, NoFrames, Processor, ProcessorNumber, QUANTUM_MOST_NS, Received, Ring, Samples,
    ScheduleWords, Start, SwitchOut, Threads, Translation, Tte, TteId, Upcalls,
};
use means::Random;
use synth::Template;

use crate::baton::{self, Baton, End, Outcome};
use crate::channels::{Channels as Pipes, News};
use crate::entry::entered;
use crate::lines::SimLines;
use crate::memory::Frames;
use crate::program::Program;
use crate::trace::Trace;
use crate::translation::SimTranslation;
use crate::tte::{Record, SimTte, VECTOR_BYTES, VECTOR_FEATURES};

/// Looks at the machine; an error says what is wrong.
pub type Check = fn(&SimMachine) -> Result<(), String>;

/// What a run is made of. The same plan makes the same run.
#[derive(Clone)]
pub struct Plan {
    pub seed: u64,
    pub frames: usize,
    /// Steps of programs and switches after which a run is given up.
    pub steps_max: u64,
    /// In one of how many steps the timer goes off without reason.
    pub preempt_once_in: u64,
    /// The programs' functions. The first program begins with the first.
    pub programs: Vec<Program>,
    /// What arrives, in nanoseconds, and where. No bytes: the other side closes.
    pub input: Vec<(u64, Channel, Vec<u8>)>,
    /// When which line is raised, in nanoseconds, ascending.
    pub lines: Vec<(u64, u32)>,
    /// Called at every step; an error ends the run.
    pub check: Option<Check>,
}

impl Plan {
    /// Of a run in which nothing happens.
    pub fn new(seed: u64) -> Plan {
        Plan {
            seed,
            frames: 16,
            steps_max: 1000,
            preempt_once_in: 7,
            programs: Vec::new(),
            input: Vec::new(),
            lines: Vec::new(),
            check: None,
        }
    }
}

/// One run's machine. It is never freed, but its frames are when the run is over.
pub struct SimMachine {
    pub(crate) plan: Plan,
    pub(crate) baton: Baton,
    /// How many frames `take_frames` will give.
    pub(crate) unowned: LocalValue<u32>,
    pub(crate) frames: Frames,
    pub(crate) device_frames: LocalCell<machine::Frames>,
    pub(crate) lines: SimLines,
    /// How many of the plan's lines have been raised.
    raised: LocalValue<usize>,
    state: LocalCell<State>,
    records: LocalCell<Vec<Option<Record>>>,
    spaces: LocalCell<Vec<Weak<SimTranslation>>>,
    channels: LocalCell<Pipes>,
    trace: LocalCell<Trace>,
    upcalls: LocalCell<Option<&'static dyn Upcalls>>,
    words: ScheduleWords,
    ready: LocalCell<Ready>,
    /// For the traits' functions, which get no `'static` reference.
    own: OnceLock<&'static SimMachine>,
}

/// The ready ring.
#[derive(Default)]
struct Ready {
    ring: Ring,
    idle: Option<TteId>,
}

struct State {
    now: Nanos,
    random: Random,
    alarm: Option<Nanos>,
    charged_at: Nanos,
    current: TteId,
    root: u64,
    steps: u64,
    end: Option<End>,
}

impl SimMachine {
    pub fn new(plan: Plan) -> &'static SimMachine {
        let state = State {
            now: Nanos(1_000),
            random: Random::new(plan.seed),
            alarm: None,
            charged_at: Nanos(0),
            current: TteId(u32::MAX),
            root: 0,
            steps: 0,
            end: None,
        };
        let mut channels = Pipes::default();
        for (at, channel, bytes) in &plan.input {
            let bytes = bytes.clone();
            let news = if bytes.is_empty() { News::End(*channel) } else { News::Input(*channel, bytes) };
            channels.plan(Nanos(*at), news);
        }
        let machine: &'static SimMachine = Box::leak(Box::new(SimMachine {
            baton: Baton::new(),
            frames: Frames::new(plan.frames),
            device_frames: LocalCell::new(machine::Frames::none()),
            lines: SimLines::default(),
            raised: LocalValue::new(0),
            unowned: LocalValue::new(plan.frames as u32),
            state: LocalCell::new(state),
            records: LocalCell::default(),
            spaces: LocalCell::default(),
            channels: LocalCell::new(channels),
            trace: LocalCell::new(Trace::new()),
            upcalls: LocalCell::new(None),
            words: ScheduleWords::new(),
            ready: LocalCell::default(),
            own: OnceLock::new(),
            plan,
        }));
        machine.own.get_or_init(|| machine);
        machine
    }

    /// Runs the kernel from its first program's thread on, to the end.
    pub fn run(&'static self, first: &dyn Tte, entered: Entered) -> Outcome {
        RUNNING.set(Some(self));
        drop(entered);
        self.go_on_as(first.id());
        self.run_hosts(self.host_of(first.id()));
        baton::part();
        self.frames.release();
        let state = self.state.borrow();
        let trace = self.trace.borrow();
        Outcome {
            end: state.end.clone().unwrap_or(End::Off),
            hash: trace.hash(),
            trace: trace.last(),
            terminal: self.channels.borrow_mut().sent(Channel::Terminal),
            steps: state.steps,
            now_ns: state.now.0,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.baton.is_over()
    }

    /// The first reason counts.
    pub(crate) fn set_end(&self, end: End) {
        self.state.borrow_mut().end.get_or_insert(end);
    }

    pub(crate) fn kernel(&self) -> &'static dyn Upcalls {
        self.upcalls.borrow().expect("the kernel is there")
    }

    pub(crate) fn current(&self) -> TteId {
        self.state.borrow().current
    }

    /// A number of the seed.
    pub(crate) fn below(&self, limit: u64) -> u64 {
        self.state.borrow_mut().random.below(limit)
    }

    pub(crate) fn note(&self, event: std::fmt::Arguments<'_>) {
        let (now, current) = (self.state.borrow().now, self.current());
        self.trace.borrow_mut().note(now, current, event);
    }

    pub(crate) fn with_record<R>(&self, id: TteId, act: impl FnOnce(&mut Record) -> R) -> R {
        act(self.records.borrow_mut()[id.0 as usize].as_mut().expect("the thread has a record"))
    }

    pub(crate) fn free_record(&self, id: TteId) {
        let mut records = self.records.borrow_mut();
        assert!(!self.is_ahead(&records, id), "thread {} is dropped while it is linked", id.0);
        records[id.0 as usize] = None;
    }

    /// Whether following the links from the running thread leads to `id`.
    fn is_ahead(&self, records: &[Option<Record>], id: TteId) -> bool {
        let mut at = self.current();
        for _ in 0..records.len() {
            match records[at.0 as usize].as_ref().and_then(|record| record.next) {
                Some(next) if next == id => return true,
                Some(next) => at = next,
                None => return false,
            }
        }
        false
    }

    pub(crate) fn active_translation(&self) -> Option<Arc<SimTranslation>> {
        let root = self.state.borrow().root;
        self.spaces.borrow().get(root.checked_sub(1)? as usize)?.upgrade()
    }

    /// The successor of each thread from the running one on, until it comes round: the ring as code would run it.
    pub fn ring(&self) -> Vec<TteId> {
        let records = self.records.borrow();
        let start = self.current();
        let mut order = vec![start];
        let mut at = start;
        for _ in 0..records.len() {
            match records[at.0 as usize].as_ref().and_then(|record| record.next) {
                Some(next) if next != start => order.push(next),
                _ => break,
            }
            at = order[order.len() - 1];
        }
        order
    }

    /// Changes the ready ring, and stores the links that this makes necessary.
    pub(crate) fn change_ring(&self, change: impl FnOnce(&mut Ring)) {
        let (changed, was_empty, idle) = {
            let mut ready = self.ready.borrow_mut();
            let was_empty = ready.ring.any().is_none();
            change(&mut ready.ring);
            (ready.ring.take_changed(), was_empty, ready.idle)
        };
        self.words.ready.store(self.ready_order().len() as u64, Ordering::Relaxed);
        for (from, to) in changed.into_iter().flatten() {
            self.with_record(from, |record| record.next = to.or(idle));
        }
        // Who is about to leave does not go round by the idle thread.
        let leaver = Some(self.current()).filter(|current| was_empty && current.0 != u32::MAX);
        idle.into_iter().chain(leaver).for_each(|id| self.follow(id));
    }

    /// A thread outside of the ring leads to the first that is in it, or to the idle thread.
    pub(crate) fn follow(&self, id: TteId) {
        let (first, idle) = (self.ready.borrow().ring.any(), self.ready.borrow().idle);
        self.with_record(id, |record| record.next = first.or(idle));
    }

    fn go_on_as(&self, id: TteId) {
        let root = self.with_record(id, |record| record.root);
        let mut state = self.state.borrow_mut();
        state.current = id;
        if root != 0 {
            state.root = root;
        }
    }

    fn pass_time(&self, most_ns: u64) {
        let mut state = self.state.borrow_mut();
        let ns = 1 + state.random.below(most_ns);
        state.now = state.now.saturating_add(Nanos(ns));
    }

    /// A place where the processor takes interrupts, in a program.
    pub(crate) fn step(&'static self) {
        let is_slow = self.below(50) == 0;
        self.pass_time(if is_slow { 400_000 } else { 3_000 });
        self.count_step();
        {
            let _entered = entered();
            self.serve_devices();
        }
        let forced = self.below(self.plan.preempt_once_in) == 0;
        let now = self.state.borrow().now;
        let due = self.state.borrow().alarm.is_some_and(|at| at <= now);
        if due || forced {
            self.timer();
        }
        let checked = {
            let _entered = entered();
            self.plan.check.map_or(Ok(()), |check| check(self))
        };
        if let Err(what) = checked {
            self.note(format_args!("check: {what}"));
            self.stop(End::Panic(what));
        }
    }

    fn count_step(&self) {
        let steps = {
            let mut state = self.state.borrow_mut();
            state.steps += 1;
            state.steps
        };
        if steps > self.plan.steps_max {
            self.stop(End::TooLong);
        }
    }

    /// The plan's lines that are due by `now` are raised, and what they chain to is done.
    pub fn raise_planned(&self, now: Nanos) {
        for &(at, number) in self.plan.lines[self.raised.get()..].iter().take_while(|(at, _)| *at <= now.0) {
            self.note(format_args!("interrupt: line {number} of {at} ns"));
            self.raised.set(self.raised.get() + 1);
            self.lines.raise(number);
        }
        self.lines.serve();
    }

    fn serve_devices(&self) {
        let now = self.state.borrow().now;
        self.raise_planned(now);
        let mut has_news = false;
        loop {
            let news = self.channels.borrow_mut().take_news(now);
            let Some(news) = news else { break };
            self.note(format_args!("interrupt: {news:?}"));
            has_news = true;
        }
        if has_news {
            self.kernel().device();
        }
    }

    /// The timer's interrupt, in a program: the machine's own switch while no alarm is near (S-81), else the kernel's.
    fn timer(&'static self) {
        let now = self.state.borrow().now;
        let is_alarm_near = now.0 + QUANTUM_MOST_NS >= self.words.due.load(Ordering::Relaxed);
        self.state.borrow_mut().alarm = None;
        let current = self.current();
        let next = self.with_record(current, |record| record.next);
        if !is_alarm_near && next.is_some_and(|next| next != current) {
            self.charge();
            self.with_record(current, |record| {
                record.quantum = (record.quantum - record.quantum / 8).max(machine::QUANTUM_LEAST_NS);
            });
            let quantum = self.with_record(next.unwrap_or(current), |record| record.quantum);
            self.state.borrow_mut().alarm = Some(now.saturating_add(Nanos(quantum)));
            self.words.preemptions.fetch_add(1, Ordering::Relaxed);
            self.words.armed.store(NEVER, Ordering::Relaxed);
            self.note(format_args!("interrupt: quantum over"));
            self.switch_to_next();
        } else {
            self.note(format_args!("interrupt: timer"));
            let entered = entered();
            self.kernel().timer(entered.held());
        }
    }

    fn switch_to_next(&'static self) {
        let from = self.current();
        let next = self.with_record(from, |record| record.next).expect("the running thread is linked");
        // A kernel that only switches is stuck too.
        self.count_step();
        if next == from {
            return;
        }
        self.note(format_args!("switch to {}", next.0));
        let (from_host, to_host) = (self.host_of(from), self.host_of(next));
        self.go_on_as(next);
        self.hand_over(from_host, to_host);
    }

    pub(crate) fn the(&self) -> &'static SimMachine {
        self.own.get().expect("`new` has set it")
    }
}

/// The machine that runs, for `leave`, which gets no argument. One at a time.
static RUNNING: LocalCell<Option<&'static SimMachine>> = LocalCell::new(None);

/// The running thread leaves for its successor.
fn leave() {
    let Some(machine) = RUNNING.get() else { return };
    if machine.is_over() {
        machine.leave_host();
    } else {
        machine.switch_to_next();
    }
}

impl Threads for SimMachine {
    fn create_tte(&self, start: Start) -> Result<Box<dyn Tte>, NoFrames> {
        let mut records = self.records.borrow_mut();
        // Numbers are used again, as on the other machines.
        let index = records.iter().position(Option::is_none).unwrap_or(records.len());
        if index == records.len() {
            records.push(None);
        }
        records[index] = Some(Record::new(start));
        Ok(Box::new(SimTte { machine: self.the(), id: TteId(index as u32) }))
    }

    fn current_tte(&self) -> TteId {
        self.current()
    }

    fn set_idle(&self, idle: &dyn Tte) {
        self.ready.borrow_mut().idle = Some(idle.id());
        self.follow(idle.id());
    }

    fn ready_order(&self) -> Vec<TteId> {
        self.ready.borrow().ring.order()
    }

    fn successor(&self) -> (TteId, Nanos) {
        let next = self.with_record(self.current(), |record| record.next).expect("the running thread is linked");
        (next, Nanos(self.with_record(next, |record| record.quantum)))
    }

    fn switch_out(&self) -> SwitchOut {
        SwitchOut::procedure(leave)
    }

    fn wait_for_interrupt(&self, held: Held<'_>) {
        self.the().wait(held);
    }

    fn serve_interrupts(&self, held: Held<'_>) {
        self.the().wait_until(held, Nanos(0));
    }
}

impl SimMachine {
    /// The idle thread's sleep: time goes to whatever comes first.
    fn wait(&'static self, held: Held<'_>) {
        let alarm = self.state.borrow().alarm;
        let news = self.channels.borrow().next_news();
        match alarm.into_iter().chain(news).min() {
            Some(at) => self.wait_until(held, at),
            None => self.stop(End::Deadlock),
        }
    }

    fn wait_until(&'static self, held: Held<'_>, at: Nanos) {
        self.count_step();
        let now = {
            let mut state = self.state.borrow_mut();
            state.now = state.now.max(at);
            state.now
        };
        self.serve_devices();
        if self.state.borrow().alarm.is_some_and(|at| at <= now) {
            self.state.borrow_mut().alarm = None;
            self.note(format_args!("interrupt: timer, idle"));
            self.kernel().timer(held);
        }
    }
}

impl Processor for SimMachine {
    /// Who has the baton is the first; there are no others.
    fn number(&self) -> ProcessorNumber {
        ProcessorNumber::FIRST
    }

    fn schedule_words(&self) -> &'static ScheduleWords {
        &self.the().words
    }

    fn set_upcalls(&self, upcalls: &'static dyn Upcalls) {
        *self.upcalls.borrow_mut() = Some(upcalls);
    }

    fn power_off(&self) -> ! {
        self.stop(End::Off)
    }

    fn random(&self) -> u64 {
        self.state.borrow_mut().random.bits()
    }

    fn feature_word(&self) -> u32 {
        0
    }

    fn vector_features(&self) -> u64 {
        VECTOR_FEATURES
    }

    fn vector_bytes(&self) -> usize {
        VECTOR_BYTES
    }

    fn open_user(&self) -> Option<Template> {
        None
    }

    fn leave(&self) -> Template {
        unreachable!("no routine is made")
    }

    fn leave_direct(&self) -> Template {
        unreachable!("no routine is made")
    }

    fn slow_call(&self) -> Entry<FileEntry> {
        // SAFETY: this machine enters no code.
        unsafe { Entry::new(0) }
    }

    fn user_limit_word(&self) -> u64 {
        0
    }
}

impl Memory for SimMachine {
    fn dma(&self, pages: usize) -> Result<Dma, NoFrames> {
        self.dma_pages(pages)
    }

    fn new_translation(&self) -> Result<Arc<dyn Translation>, NoFrames> {
        let mut spaces = self.spaces.borrow_mut();
        let translation = Arc::new(SimTranslation::new(spaces.len() as u64 + 1));
        spaces.push(Arc::downgrade(&translation));
        Ok(translation)
    }

    fn activate(&self, quaspace: Option<&dyn Translation>) {
        self.state.borrow_mut().root = quaspace.map_or(0, |quaspace| quaspace.number());
    }

    fn frame_address(&self, _frame: FrameNumber) -> u64 {
        unreachable!("no routine is made")
    }
}

impl Channels for SimMachine {
    fn send(&self, channel: Channel, bytes: &[u8]) -> usize {
        let now = self.now();
        self.channels.borrow_mut().send(channel, bytes, now, &mut self.state.borrow_mut().random)
    }

    fn receive(&self, channel: Channel, into: &mut [u8]) -> Received {
        self.channels.borrow_mut().receive(channel, into)
    }

    fn receivable(&self, channel: Channel) -> usize {
        self.channels.borrow_mut().receivable(channel)
    }

    fn sendable(&self, channel: Channel) -> usize {
        self.channels.borrow_mut().sendable(channel)
    }

    fn is_drained(&self, channel: Channel) -> bool {
        self.channels.borrow_mut().is_drained(channel)
    }
}

impl Clock for SimMachine {
    /// Time passes a little whenever somebody looks.
    fn now(&self) -> Nanos {
        self.pass_time(100);
        self.state.borrow().now
    }

    fn time_of_counter(&self, counter: u64) -> Nanos {
        Nanos(counter)
    }

    fn set_alarm(&self, at: Nanos) {
        self.state.borrow_mut().alarm = Some(at);
    }

    fn charge(&self) -> Nanos {
        let now = self.now();
        let (since, current) = {
            let mut state = self.state.borrow_mut();
            (core::mem::replace(&mut state.charged_at, now), state.current)
        };
        if current.0 != u32::MAX {
            self.with_record(current, |record| record.ran += now.saturating_sub(since).0);
        }
        now
    }
}

impl Samples for SimMachine {}

impl Machine for SimMachine {
    fn with_lock(&self, act: &mut dyn FnMut(Held<'_>)) {
        // SAFETY: the kernel's Rust holds the lock, which stays with it: this entry is none of its own.
        let entered = unsafe { Entered::by_fault() };
        act(entered.held());
    }
}
