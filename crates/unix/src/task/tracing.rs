//! What a traced thread and its tracer keep of each other (ptrace).

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, Ordering};

use abi::process::WaitStatus;
use abi::siginfo::SigInfo;
use machine::{KernelCell, KernelValue, Registers};

use crate::task::process::{Process, Usage};

/// How the tracer let its thread go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Going {
    /// To the next signal or event.
    On,
    /// To the next call, or the end of this one.
    ToCall,
    /// For one instruction.
    OneInstruction,
    /// To the next call, which is not served then; with or without a step.
    Emulating { steps: bool },
}

impl Going {
    pub fn steps(self) -> bool {
        matches!(self, Going::OneInstruction | Going::Emulating { steps: true })
    }
}

/// Who traces a thread, and how.
#[derive(Clone)]
pub struct Tracing {
    pub tracer: Weak<Process>,
    /// The thread of the tracer that /proc names.
    pub tracer_tid: u32,
    /// Whoever began it may trace anybody: what the thread executes may have more rights than its caller.
    pub is_privileged: bool,
    /// By `PTRACE_SEIZE`: stops are told from signals, and nothing is sent to the thread.
    pub is_seized: bool,
    /// `PTRACE_O_…`
    pub options: u32,
    pub going: Going,
    /// What `PTRACE_GETEVENTMSG` tells.
    pub message: u64,
}

/// What a traced thread has stopped at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// A signal that it is about to take.
    Signal,
    /// The beginning or the end of a call.
    Call,
    Event,
    /// The end of the thread: it does not refuse to stop although it is ending.
    End,
    /// The whole process has stopped, or `PTRACE_INTERRUPT`.
    Group,
}

/// A traced thread that has stopped for its tracer.
pub struct TraceStop {
    pub at: At,
    /// The wait status without its low byte: signal, and event above it.
    pub code: u32,
    /// The wait status has been taken.
    pub is_reported: bool,
    /// `PTRACE_LISTEN`: stopped, but the tracer may not touch it.
    pub is_listening: bool,
    /// The tracer lets it go; it has not run since.
    pub is_over: bool,
    /// The signal that the tracer gave it on the way; 0: none.
    pub signal: u32,
    pub info: Option<SigInfo>,
    /// The program's registers; the tracer changes these.
    pub registers: Registers,
    /// The thread is in a call, whose number is in `cause`.
    pub in_call: bool,
}

/// The tracing part of a task.
pub struct Watch {
    is_traced: KernelValue<bool>,
    /// The thread shall stop before it goes back to its program: `PTRACE_INTERRUPT`, or its group stops.
    trap: AtomicBool,
    pub tracing: KernelCell<Option<Tracing>>,
    pub stop: KernelCell<Option<Box<TraceStop>>>,
    /// The thread is in a call; known only of traced threads.
    pub in_call: KernelCell<bool>,
    /// The signal that the tracer saw last, as it left it.
    pub last_info: KernelCell<Option<SigInfo>>,
    /// The debug registers, and what stands at the places that they watch.
    pub debug_registers: KernelCell<[u64; 8]>,
    pub watched: KernelCell<[Option<u64>; 4]>,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch {
            is_traced: KernelValue::new(false),
            trap: AtomicBool::new(false),
            tracing: KernelCell::new(None),
            stop: KernelCell::new(None),
            in_call: KernelCell::new(false),
            last_info: KernelCell::new(None),
            debug_registers: KernelCell::new([0; 8]),
            watched: KernelCell::new([None; 4]),
        }
    }
}

impl Watch {
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.is_traced.get()
    }

    pub fn set_tracing(&self, tracing: Option<Tracing>) {
        self.is_traced.set(tracing.is_some());
        *self.tracing.borrow_mut() = tracing;
    }

    /// The tracer, while it lives.
    pub fn tracer(&self) -> Option<Arc<Process>> {
        self.tracing.borrow().as_ref()?.tracer.upgrade()
    }

    pub fn tracer_tid(&self) -> u32 {
        self.tracing.borrow().as_ref().map_or(0, |tracing| tracing.tracer_tid)
    }

    pub fn has_option(&self, option: u32) -> bool {
        self.tracing.borrow().as_ref().is_some_and(|tracing| tracing.options & option != 0)
    }

    pub fn is_seized(&self) -> bool {
        self.tracing.borrow().as_ref().is_some_and(|tracing| tracing.is_seized)
    }

    pub fn going(&self) -> Going {
        self.tracing.borrow().as_ref().map_or(Going::On, |tracing| tracing.going)
    }

    /// The thread stands still for its tracer, or for one that has just left.
    pub fn is_stopped(&self) -> bool {
        self.stop.borrow().as_ref().is_some_and(|stop| !stop.is_over)
    }

    #[inline]
    pub fn has_trap(&self) -> bool {
        self.trap.load(Ordering::Relaxed)
    }

    pub fn set_trap(&self, trap: bool) {
        self.trap.store(trap, Ordering::Relaxed);
    }
}

/// A traced thread that has ended: its tracer is told before anybody else.
#[derive(Clone)]
pub struct Ghost {
    pub tid: u32,
    pub tracer_tid: u32,
    pub group: u32,
    pub user: u32,
    pub status: WaitStatus,
    pub usage: Usage,
    /// The process that ended with the thread: its parent is told when the tracer has been.
    pub process: Option<Arc<Process>>,
}
