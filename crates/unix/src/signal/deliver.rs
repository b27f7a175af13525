//! A thread goes back to its program: what does the next pending signal do.

use abi::siginfo::SigInfo;
use abi::signal::{DefaultAction, SA_NODEFER, SA_RESETHAND, SIG_DFL, SIG_IGN, SIGSTOP, SigAction, default_action};

use super::actions::Actions;
use super::mask::ThreadMask;
use super::pending::{Pending, take_next};
use super::set::SignalSet;

/// What happens to the thread now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// No signal does anything: run on. Restart the call as without a handler, put the mask back.
    None,
    /// Run a handler.
    Handler(HandlerCall),
    /// End the process. `core`: it is a crash, of which Linux would dump the core.
    Terminate { info: SigInfo, core: bool },
    /// Stop all threads of the process, then ask again once it continues.
    Stop { signal: u32 },
}

/// A handler to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandlerCall {
    pub signal: u32,
    pub info: SigInfo,
    pub action: SigAction,
    /// For the frame: the mask that `rt_sigreturn` brings back.
    pub saved_mask: SignalSet,
    /// What the thread blocks while the handler runs; [`ThreadMask::enter`] once the frame stands.
    pub handler_mask: SignalSet,
}

/// Takes signals from the queues until one does something. Signals without effect are consumed.
///
/// `is_orphaned` tells whether the process's group is orphaned (asked only for the terminal's stop
/// signals, which do nothing there). With `SA_RESETHAND` the action is default from here on.
pub fn next_delivery(
    thread: &mut Pending,
    process: &mut Pending,
    mask: &ThreadMask,
    actions: &mut Actions,
    is_orphaned: &dyn Fn() -> bool,
) -> Delivery {
    // Ends: every turn takes one signal from queues that nothing fills meanwhile.
    loop {
        let Some(info) = take(thread, process, mask) else { return Delivery::None };
        let delivery = decide(info, mask, actions, is_orphaned);
        if delivery != Delivery::None {
            return delivery;
        }
    }
}

/// Takes the next signal that the thread does not block, its own faults first.
pub fn take(thread: &mut Pending, process: &mut Pending, mask: &ThreadMask) -> Option<SigInfo> {
    let blocked = mask.blocked();
    thread.take_synchronous(blocked).or_else(|| take_next(thread, process, blocked))
}

/// What a signal that was taken does; `None` if nothing.
pub fn decide(info: SigInfo, mask: &ThreadMask, actions: &mut Actions, is_orphaned: &dyn Fn() -> bool) -> Delivery {
    let signal = info.signo as u32;
    let action = actions.of(signal);
    match action.sa_handler {
        SIG_IGN => return Delivery::None,
        SIG_DFL => {}
        _ => {
            if action.sa_flags & SA_RESETHAND != 0 {
                actions.reset_handler(signal);
            }
            return Delivery::Handler(handler_call(signal, info, action, mask));
        }
    }
    match default_action(signal) {
        DefaultAction::Ignore | DefaultAction::Continue => Delivery::None,
        DefaultAction::Stop if signal != SIGSTOP && is_orphaned() => Delivery::None,
        DefaultAction::Stop => Delivery::Stop { signal },
        DefaultAction::Terminate => Delivery::Terminate { info, core: false },
        DefaultAction::Core => Delivery::Terminate { info, core: true },
    }
}

/// An unblocked signal waits in one of the queues: the thread must not sleep, and ends its call.
pub fn is_pending(thread: &Pending, process: &Pending, mask: &ThreadMask) -> bool {
    !thread.set().union(process.set()).minus(mask.blocked()).is_empty()
}

fn handler_call(signal: u32, info: SigInfo, action: SigAction, mask: &ThreadMask) -> HandlerCall {
    let mut handler_mask = mask.blocked().union(SignalSet(action.sa_mask));
    if action.sa_flags & SA_NODEFER == 0 {
        handler_mask = handler_mask.with(signal);
    }
    HandlerCall { signal, info, action, saved_mask: mask.to_save(), handler_mask: handler_mask.blockable() }
}
