//! Pumps (S-30): a thread of the kernel that copies its input stream to its output stream. It joins passive to passive
//! (S-93): neither side has a thread that would carry the bytes.
//!
//! Two ways. Where a caller's thread is at hand it carries them itself (`carry`, what `splice` and `sendfile` do); a
//! pump has a thread of its own, without a program (S-3).
//!
//! A pump's gauge tells how much comes (S-31, S-71): after a turn that filled its buffer it does twice as many before it
//! lets others run, after one that did not, one.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

use abi::Errno;
use machine::{Held, KernelCell, KernelValue, NoMemory, Start, TryGrow, TteId, try_filled, try_to_vec};

use crate::gauge::Gauge;
use crate::link::Users;
use crate::schedule::Scheduler;
use crate::stream::{Caller, Io, Stream, Waits};
use crate::thread::{State, Thread};

/// Bytes carried at once.
pub const TURN_BYTES: usize = 4096;
/// Most turns before others run.
const TURNS_MOST: u32 = 16;
/// Most pumps at a time: each has a thread with a stack.
pub const PUMPS_MOST: usize = 64;

/// Most pumps of one user without privileges: the others have theirs.
pub const PUMPS_MOST_OF_ONE: usize = 16;

/// Where a pump stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    Running,
    /// The input ended.
    Finished,
    /// `stop` was called.
    Stopped,
    Failed(Errno),
}

/// One pump. Callentries: `start`, `stop`. Callouts: the two streams.
pub struct Pump {
    scheduler: &'static Scheduler,
    /// The user who started it.
    owner: u32,
    thread: Arc<Thread>,
    ends: KernelCell<Option<Ends>>,
    standing: KernelValue<Standing>,
    stopping: KernelValue<bool>,
    /// Bytes carried.
    bytes: Gauge,
}

/// What a pump joins, and what must live as long (open files).
#[derive(Clone)]
pub struct Ends {
    pub input: Arc<dyn Stream>,
    pub output: Arc<dyn Stream>,
    pub keep: Arc<dyn Any + Send + Sync>,
}

static PUMPS: KernelCell<Vec<Arc<Pump>>> = KernelCell::new(Vec::new());

/// Starts a pump in the name of user `owner` and returns it.
///
/// Errors: `EAGAIN` with [`PUMPS_MOST`] running, or [`PUMPS_MOST_OF_ONE`] of a user other than 0; `ENOMEM`.
pub fn start(scheduler: &'static Scheduler, owner: u32, ends: Ends) -> Result<Arc<Pump>, Errno> {
    sweep();
    let (all, own) = {
        let pumps = PUMPS.borrow();
        (pumps.len(), pumps.iter().filter(|pump| pump.owner == owner).count())
    };
    if all >= PUMPS_MOST || owner != 0 && own >= PUMPS_MOST_OF_ONE {
        return Err(Errno::EAGAIN);
    }
    PUMPS.borrow_mut().room_for(1)?;
    let tte = scheduler.machine().create_tte(Start::Kernel(run)).map_err(|_| Errno::ENOMEM)?;
    let pump = Arc::new(Pump {
        scheduler,
        owner,
        thread: Thread::new(tte),
        ends: KernelCell::new(Some(ends)),
        standing: KernelValue::new(Standing::Running),
        stopping: KernelValue::new(false),
        bytes: Gauge::new(Users::One, scheduler.machine().now()),
    });
    PUMPS.borrow_mut().put(pump.clone());
    scheduler.enlist(&pump.thread)?;
    scheduler.unblock(&pump.thread);
    Ok(pump)
}

/// The pumps that run, and those that have just ended.
pub fn all() -> Result<Vec<Arc<Pump>>, NoMemory> {
    try_to_vec(&PUMPS.borrow())
}

/// Gives back the threads of pumps that have ended. None of them is running: somebody else is.
fn sweep() {
    let next = || PUMPS.borrow_mut().extract_if(.., |pump| pump.thread.state() == State::Ended).next();
    while let Some(pump) = next() {
        pump.scheduler.discharge(pump.thread.id());
    }
}

impl Caller for Pump {
    fn is_interrupted(&self) -> bool {
        self.stopping.get()
    }
}

impl Pump {
    pub fn id(&self) -> TteId {
        self.thread.id()
    }

    /// The user who started it.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    pub fn standing(&self) -> Standing {
        self.standing.get()
    }

    /// Bytes carried so far.
    pub fn bytes(&self) -> &Gauge {
        &self.bytes
    }

    /// Ends the pump before its next turn. What it has read is written first, unless that would sleep.
    pub fn stop(&self) {
        self.stopping.set(true);
        self.scheduler.unblock(&self.thread);
    }

    fn pump(&self, held: Held<'_>, ends: &Ends) -> Standing {
        let io = Io { waits: Waits::ForAll(held), scheduler: self.scheduler, caller: self };
        let Ok(mut buffer) = try_filled(0, TURN_BYTES) else { return Standing::Failed(Errno::ENOMEM) };
        let mut turns = 1;
        loop {
            let mut full = 0;
            for _ in 0..turns {
                match carry(&io, ends, &mut buffer) {
                    Ok(0) => return Standing::Finished,
                    Ok(bytes) => {
                        self.bytes.count(bytes as u64);
                        full += u32::from(bytes == TURN_BYTES);
                    }
                    Err(Errno::EINTR) => return Standing::Stopped,
                    Err(error) => return Standing::Failed(error),
                }
                if io.is_interrupted() {
                    return Standing::Stopped;
                }
            }
            turns = if full == turns { (turns * 2).min(TURNS_MOST) } else { 1 };
            // A ring of pumps would never let an interrupt in, nor another thread.
            self.scheduler.breathe(held);
            self.scheduler.yield_now(held);
        }
    }
}

/// One turn, in the caller's thread: what is there, at most the buffer's size. Returns the bytes; 0 at the end.
///
/// Errors: those of the streams; what was read and not written is lost with them.
pub fn carry(io: &Io<'_>, ends: &Ends, buffer: &mut [u8]) -> Result<usize, Errno> {
    let bytes = ends.input.read_kernel(io, buffer)?;
    let mut written = 0;
    while written < bytes {
        written += match ends.output.write_kernel(io, &buffer[written..bytes])? {
            0 => return Err(Errno::EIO),
            some => some,
        };
    }
    Ok(bytes)
}

/// The first procedure of every pump's thread. It owns nothing: it does not return.
fn run(held: Held<'_>) -> ! {
    let scheduler = run_own(held);
    // Its own stack must be given back by somebody else. If there is no room for that, the next pump does it.
    scheduler.end_with(held, || _ = scheduler.chain(|_| sweep(), 0))
}

/// A pump's thread finds its pump by its own number.
fn run_own(held: Held<'_>) -> &'static Scheduler {
    let found = PUMPS.borrow().iter().find(|pump| pump.id() == pump.scheduler.machine().current_tte()).cloned();
    let pump = found.expect("a pump is in the list before its thread runs");
    let ends = pump.ends.borrow_mut().take();
    if let Some(ends) = ends {
        pump.standing.set(pump.pump(held, &ends));
    }
    pump.scheduler
}
