//! A signal is sent: is it kept, what does it cancel, whom does it wake.

use abi::siginfo::SigInfo;
use abi::signal::{DefaultAction, SIG_DFL, SIG_IGN, SIGCONT, SIGKILL, default_action};

use super::actions::{Actions, is_ignored};
use super::mask::ThreadMask;
use super::pending::Pending;
use super::set::SignalSet;

/// What the decision about a new signal needs to know of the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// `sa_handler` of the signal.
    pub handler: u64,
    /// What the thread blocks or has put aside ([`Target::of`]); for a signal to a process, its first thread.
    pub blocked: SignalSet,
    /// The process is ending: it takes no signal any more.
    pub ending: bool,
    /// A tracer sees all signals, ignored ones too.
    pub traced: bool,
}

impl Target {
    /// A living receiver.
    pub fn of(signal: u32, actions: &Actions, mask: &ThreadMask) -> Target {
        let blocked = mask.blocked().union(mask.put_aside());
        Target { handler: actions.of(signal).sa_handler, blocked, ending: false, traced: false }
    }
}

/// What a new signal does when it is sent. Even one that is discarded flushes and continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Generated {
    /// First, remove these from all queues of the process, those of all its threads included.
    pub flush: SignalSet,
    /// Then continue the process if it is stopped or about to stop, and tell its parent.
    pub continues: bool,
    /// Then post the signal, or not.
    pub fate: Fate,
}

/// Whether a signal enters a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It would do nothing; it is forgotten and the sender is told nothing.
    Discarded,
    /// It goes into a queue; then [`choose_thread`] says who wakes.
    Queue,
}

/// Decides about a new signal.
pub fn generate(signal: u32, target: &Target) -> Generated {
    let nothing = Generated { flush: SignalSet::EMPTY, continues: false, fate: Fate::Discarded };
    if target.ending || signal == 0 {
        return nothing;
    }
    let (flush, continues) = if signal == SIGCONT {
        (SignalSet::STOPS, true)
    } else if SignalSet::STOPS.contains(signal) {
        (SignalSet::of(SIGCONT), false)
    } else {
        (SignalSet::EMPTY, false)
    };
    // A blocked signal is kept even if ignored: the action may change before it is unblocked.
    let is_seen = target.traced && signal != SIGKILL;
    let kept = is_seen || target.blocked.contains(signal) || !is_ignored(signal, target.handler);
    Generated { flush, continues, fate: if kept { Fate::Queue } else { Fate::Discarded } }
}

/// A thread of the receiving process, as [`choose_thread`] sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    pub mask: ThreadMask,
    /// It is on its way out.
    pub ending: bool,
    /// Its process is stopped.
    pub stopped: bool,
    /// It has an unblocked signal already and has not come to look at it.
    pub busy: bool,
    /// A tracer decides what the signal does.
    pub traced: bool,
}

/// Who must look at the queues after a signal was posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// Nobody: all block it, or will look before they run on.
    Nobody,
    /// The thread with this place in the list.
    Thread(usize),
    /// All threads, to end: the signal kills the process at once, whatever else is pending.
    Everybody,
}

/// Chooses who wakes for a signal in a thread's own queue: `thread` or nobody.
pub fn wake_thread(signal: u32, handler: u64, thread: &Candidate) -> Wake {
    choose_thread(signal, handler, core::slice::from_ref(thread), 0)
}

/// Chooses who wakes for a signal in the process's queue. `preferred`: the place of the thread that
/// was named (the first one for `kill`); the search goes on from there.
pub fn choose_thread(signal: u32, handler: u64, threads: &[Candidate], preferred: usize) -> Wake {
    let order = (preferred..threads.len()).chain(0..preferred.min(threads.len()));
    let wanting = |place: usize| threads.get(place).filter(|thread| thread.wants(signal)).map(|thread| (place, thread));
    let Some((place, thread)) = order.into_iter().find_map(wanting) else { return Wake::Nobody };
    let is_seen = thread.traced && signal != SIGKILL;
    let dies = !is_seen && handler == SIG_DFL && default_action(signal) == DefaultAction::Terminate;
    if dies && !thread.mask.put_aside().contains(signal) { Wake::Everybody } else { Wake::Thread(place) }
}

impl Candidate {
    fn wants(&self, signal: u32) -> bool {
        if self.mask.blocked().contains(signal) || self.ending {
            return false;
        }
        signal == SIGKILL || !(self.stopped || self.busy)
    }
}

/// What a forced signal does to the receiver's own handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Force {
    /// The handler runs, unless the signal is blocked or ignored: then the process dies.
    Handler,
    /// The process dies, handler or not.
    Fatal,
}

/// Raises a signal that the thread cannot escape: a fault of its own.
///
/// A blocked or ignored signal becomes default and unblocked, as there is no way to go on. The signal
/// goes into the thread's own queue; the thread is the running one and looks at it before it goes on.
pub fn force(info: &SigInfo, how: Force, actions: &mut Actions, mask: &mut ThreadMask, thread: &mut Pending) {
    let Ok(signal) = u32::try_from(info.signo) else { return };
    let blocked = mask.blocked().contains(signal);
    if how == Force::Fatal || blocked || actions.of(signal).sa_handler == SIG_IGN {
        actions.reset_handler(signal);
        mask.unblock(signal);
    }
    // Only a number that is no signal is refused here, and no fault has one.
    let _ = thread.post(info, usize::MAX);
}

/// No frame could be built, or a frame to return from was bad: `SIGSEGV`, fatal at once if the handler
/// that did not start was that of `SIGSEGV` itself. `failed`: the signal whose frame failed, if any.
pub fn force_segv(failed: Option<u32>, actions: &mut Actions, mask: &mut ThreadMask, thread: &mut Pending) {
    use abi::signal::SIGSEGV;
    let how = if failed == Some(SIGSEGV) { Force::Fatal } else { Force::Handler };
    force(&SigInfo::kernel(SIGSEGV), how, actions, mask, thread);
}
