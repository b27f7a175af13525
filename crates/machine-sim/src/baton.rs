//! Host threads, of which only the one that holds the baton runs.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle, Thread};

use machine::LocalCell;

use crate::SimMachine;

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The kernel switched the machine off.
    Off,
    /// Everybody sleeps, and nothing will ever happen again.
    Deadlock,
    /// More steps than the plan allows.
    TooLong,
    /// The kernel or a program panicked.
    Panic(String),
}

/// What is left of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub end: End,
    /// The same for two runs if and, as far as 64 bits can tell, only if all events were the same.
    pub hash: u64,
    /// The last events, for people.
    pub trace: Vec<String>,
    /// Bytes sent to the terminal.
    pub terminal: Vec<u8>,
    pub steps: u64,
    /// Simulated time at the end.
    pub now_ns: u64,
}

/// The holder of the baton when no simulated thread has it: the test itself.
const TEST: u32 = u32::MAX;

thread_local! {
    /// The thread is a part of a run.
    static IS_SIMULATED: Cell<bool> = const { Cell::new(false) };
}

/// From now on the calling thread is a part of a run.
pub fn join() {
    IS_SIMULATED.set(true);
}

/// The run is over; the calling thread may come to cells of another.
pub fn part() {
    IS_SIMULATED.set(false);
}

/// Who has the baton is the processor; nobody else of a run does anything.
pub fn this_processor() -> Option<u32> {
    IS_SIMULATED.get().then_some(0)
}

/// A host thread unwinds with this when its run is over.
struct Over;

pub struct Baton {
    turn: AtomicU32,
    is_over: AtomicBool,
    test: Thread,
    hosts: LocalCell<Vec<Host>>,
}

struct Host {
    thread: Thread,
    handle: JoinHandle<()>,
    is_done: bool,
}

impl Baton {
    pub fn new() -> Baton {
        let (turn, is_over) = (AtomicU32::new(TEST), AtomicBool::new(false));
        Baton { turn, is_over, test: thread::current(), hosts: LocalCell::new(Vec::new()) }
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Acquires what the last holder released in `pass`.
    fn wait_for(&self, who: u32) {
        while self.turn.load(Ordering::Acquire) != who {
            thread::park();
        }
    }

    /// Releases all that the holder did to who comes next. Afterwards the caller touches nothing that is shared.
    fn pass(&self, to: u32) {
        let next = if to == TEST { self.test.clone() } else { self.hosts.borrow()[to as usize].thread.clone() };
        self.turn.store(to, Ordering::Release);
        next.unpark();
    }
}

impl SimMachine {
    /// Makes a host thread that does `work` when it first gets the baton; returns its number.
    pub(crate) fn new_host(&'static self, work: impl FnOnce() + Send + 'static) -> u32 {
        let mut hosts = self.baton.hosts.borrow_mut();
        let number = hosts.len() as u32;
        let body = move || {
            self.baton.wait_for(number);
            join();
            if !self.baton.is_over()
                && let Err(payload) = catch_unwind(AssertUnwindSafe(work))
                && !payload.is::<Over>()
            {
                self.set_end(End::Panic(message(&*payload)));
            }
            self.end();
            self.baton.hosts.borrow_mut()[number as usize].is_done = true;
            self.baton.pass(TEST);
        };
        let builder = thread::Builder::new().name(format!("simulated {number}")).stack_size(2 << 20);
        let handle = builder.spawn(body).expect("the host has threads");
        hosts.push(Host { thread: handle.thread().clone(), handle, is_done: false });
        number
    }

    /// Gives the baton to host thread `to` and waits until it comes back to `from`.
    pub(crate) fn hand_over(&self, from: u32, to: u32) {
        if from == to {
            return;
        }
        self.baton.pass(to);
        self.baton.wait_for(from);
        if self.baton.is_over() {
            self.leave_host();
        }
    }

    /// The run is over for this host thread. Returns only where a destructor of an unwinding stack came here.
    pub(crate) fn leave_host(&self) {
        if !thread::panicking() {
            resume_unwind(Box::new(Over));
        }
    }

    /// The run is over. Stacks are taken down as they are, with whatever is held on them.
    fn end(&self) {
        machine::abandon();
        self.baton.is_over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stop(&self, end: End) -> ! {
        self.set_end(end);
        self.end();
        resume_unwind(Box::new(Over))
    }

    /// Runs host thread `first` and all that come after it, to the end.
    pub(crate) fn run_hosts(&self, first: u32) {
        self.baton.pass(first);
        self.baton.wait_for(TEST);
        // Stacks of threads that sleep are taken down one by one.
        let count = self.baton.hosts.borrow().len();
        for number in 0..count {
            if !self.is_host_done(number) {
                self.baton.pass(number as u32);
                self.baton.wait_for(TEST);
            }
        }
        for host in core::mem::take(&mut *self.baton.hosts.borrow_mut()) {
            let _ = host.handle.join();
        }
    }

    fn is_host_done(&self, number: usize) -> bool {
        self.baton.hosts.borrow()[number].is_done
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
}
