//! Queues, generation, delivery.

use abi::Errno;
use abi::process::WaitStatus;
use abi::siginfo::{CLD_DUMPED, CLD_STOPPED, Cause, SI_QUEUE, SI_TKILL, SI_USER, SigInfo};
use abi::signal::*;

use super::handled;
use crate::signal::child::{Child, child_info};
use crate::signal::generate::{Candidate, Fate, Force, force_segv, wake_thread};
use crate::signal::pending::Posted;
use crate::signal::{
    Actions, Delivery, Pending, SignalSet, Target, ThreadMask, Wake, choose_thread, force, generate, next_delivery,
};

fn queued(signal: u32, value: u64) -> SigInfo {
    SigInfo { signo: signal as i32, errno: 0, code: SI_QUEUE, cause: Cause::Queue { pid: 1, uid: 0, value } }
}

fn deliver(thread: &mut Pending, mask: &ThreadMask, actions: &mut Actions) -> Delivery {
    next_delivery(thread, &mut Pending::new(), mask, actions, &|| false)
}

fn blocking(signal: u32) -> ThreadMask {
    ThreadMask::new(SignalSet::of(signal))
}

const READY: Candidate =
    Candidate { mask: ThreadMask::new(SignalSet::EMPTY), ending: false, stopped: false, busy: false, traced: false };

#[test]
fn without_room_details_are_lost_and_sigqueue_is_refused() {
    let mut pending = Pending::new();
    assert_eq!(pending.post(&queued(40, 1), 0), Err(Errno::EAGAIN));
    assert_eq!(pending.post(&SigInfo::kill(40, 7, 8), 0), Ok(Posted::Queued));
    assert_eq!(pending.post(&queued(SIGUSR1, 1), 0), Ok(Posted::Queued));
    assert_eq!(pending.post(&SigInfo::kill(SIGUSR2, 7, 8), 0), Ok(Posted::Queued));
    assert_eq!(pending.take(SignalSet::EMPTY), Some(SigInfo::kill(SIGUSR1, 0, 0)));
    assert_eq!(pending.take(SignalSet::EMPTY), Some(SigInfo::kill(SIGUSR2, 7, 8)));
    assert_eq!(pending.take(SignalSet::EMPTY), Some(SigInfo::kill(40, 0, 0)));
    assert_eq!(pending, Pending::new());
}

#[test]
fn no_number_but_a_signal_is_posted() {
    for signo in [0, -1, 65, i32::MAX] {
        let info = SigInfo { signo, errno: 0, code: SI_USER, cause: Cause::Kill { pid: 0, uid: 0 } };
        assert_eq!(Pending::new().post(&info, 1), Err(Errno::EINVAL));
    }
}

#[test]
fn kill_is_never_ignored_blocked_or_handled() {
    let mut actions = Actions::new();
    for signal in [0, SIGKILL, SIGSTOP, 65] {
        assert_eq!(actions.set(signal, &handled(0)), Err(Errno::EINVAL));
    }
    let mask = ThreadMask::new(SignalSet(!0));
    assert_eq!(mask.blocked(), SignalSet(!0).minus(SignalSet::UNBLOCKABLE));
    assert_eq!(generate(SIGKILL, &Target::of(SIGKILL, &actions, &mask)).fate, Fate::Queue);
    assert_eq!(wake_thread(SIGKILL, SIG_DFL, &Candidate { mask, stopped: true, busy: true, ..READY }), Wake::Everybody);
}

#[test]
fn process_one_dies_like_any_other() {
    let (mut actions, mut thread) = (Actions::new(), Pending::new());
    thread.post(&SigInfo::kernel(SIGINT), 1).expect("a signal");
    let delivery = deliver(&mut thread, &ThreadMask::default(), &mut actions);
    assert_eq!(delivery, Delivery::Terminate { info: SigInfo::kernel(SIGINT), core: false });
}

#[test]
fn an_ignored_signal_is_kept_only_while_blocked() {
    let mut actions = Actions::new();
    let replaced = actions.set(SIGUSR1, &SigAction { sa_handler: SIG_IGN, ..SigAction::zeroed() }).expect("set");
    assert_eq!(replaced.flush, SignalSet::of(SIGUSR1));
    let fate = |signal, mask: &ThreadMask| generate(signal, &Target::of(signal, &actions, mask)).fate;
    for signal in [SIGUSR1, SIGCHLD, SIGURG, SIGWINCH, SIGCONT] {
        assert_eq!(fate(signal, &ThreadMask::default()), Fate::Discarded);
        assert_eq!(fate(signal, &blocking(signal)), Fate::Queue);
        let mut waiting = blocking(signal);
        waiting.begin_wait(SignalSet::of(signal));
        assert_eq!(waiting.blocked(), SignalSet::EMPTY);
        assert_eq!(fate(signal, &waiting), Fate::Queue);
        waiting.end_wait();
        assert_eq!(waiting, blocking(signal));
    }
}

#[test]
fn cont_continues_even_if_ignored_and_cancels_stops() {
    let target = Target { handler: SIG_IGN, blocked: SignalSet::EMPTY, ending: false, traced: false };
    let made = generate(SIGCONT, &target);
    assert_eq!((made.flush, made.continues, made.fate), (SignalSet::STOPS, true, Fate::Discarded));
    let made = generate(SIGTSTP, &Target { handler: SIG_DFL, ..target });
    assert_eq!((made.flush, made.continues, made.fate), (SignalSet::of(SIGCONT), false, Fate::Queue));
    assert_eq!(generate(SIGTERM, &Target { handler: SIG_DFL, ending: true, ..target }).fate, Fate::Discarded);
}

#[test]
fn the_named_thread_wakes_first_and_then_one_that_can() {
    let blocked = Candidate { mask: blocking(SIGUSR1), ..READY };
    let handler = handled(0).sa_handler;
    assert_eq!(choose_thread(SIGUSR1, handler, &[READY, READY], 1), Wake::Thread(1));
    assert_eq!(choose_thread(SIGUSR1, handler, &[READY, blocked], 1), Wake::Thread(0));
    assert_eq!(choose_thread(SIGUSR1, handler, &[blocked, blocked], 0), Wake::Nobody);
    assert_eq!(choose_thread(SIGUSR1, handler, &[Candidate { busy: true, ..READY }], 0), Wake::Nobody);
    assert_eq!(choose_thread(SIGUSR1, handler, &[], 3), Wake::Nobody);
    assert_eq!(choose_thread(SIGUSR1, SIG_DFL, &[blocked, READY], 0), Wake::Everybody);
    assert_eq!(choose_thread(SIGQUIT, SIG_DFL, &[READY], 0), Wake::Thread(0));
    assert_eq!(choose_thread(SIGTSTP, SIG_DFL, &[READY], 0), Wake::Thread(0));
}

#[test]
fn a_thread_takes_its_own_signals_before_its_process() {
    let (mut thread, mut process, mut actions) = (Pending::new(), Pending::new(), Actions::new());
    actions.set(SIGTERM, &handled(0)).expect("set");
    actions.set(SIGHUP, &handled(0)).expect("set");
    process.post(&SigInfo::kill(SIGHUP, 2, 0), 1).expect("a signal");
    thread.post(&SigInfo::kill(SIGTERM, 2, 0), 1).expect("a signal");
    let mut next = || match next_delivery(&mut thread, &mut process, &ThreadMask::default(), &mut actions, &|| true) {
        Delivery::Handler(call) => call.signal,
        other => panic!("{other:?}"),
    };
    assert_eq!((next(), next()), (SIGTERM, SIGHUP));
}

#[test]
fn the_terminal_does_not_stop_an_orphaned_group() {
    for (signal, stops) in [(SIGTSTP, false), (SIGTTIN, false), (SIGTTOU, false), (SIGSTOP, true)] {
        let mut thread = Pending::new();
        thread.post(&SigInfo::kernel(signal), 1).expect("a signal");
        let mut again = thread.clone();
        let (mask, mut actions) = (ThreadMask::default(), Actions::new());
        assert_eq!(deliver(&mut thread, &mask, &mut actions), Delivery::Stop { signal });
        let delivery = next_delivery(&mut again, &mut Pending::new(), &mask, &mut actions, &|| true);
        assert_eq!(delivery, if stops { Delivery::Stop { signal } } else { Delivery::None });
    }
}

fn call_of(action: &SigAction, mask: &ThreadMask) -> (crate::signal::HandlerCall, Actions) {
    let (mut thread, mut actions) = (Pending::new(), Actions::new());
    actions.set(SIGUSR1, action).expect("set");
    thread.post(&SigInfo::kill(SIGUSR1, 2, 0), 1).expect("a signal");
    match deliver(&mut thread, mask, &mut actions) {
        Delivery::Handler(call) => (call, actions),
        other => panic!("{other:?}"),
    }
}

#[test]
fn flags_decide_mask_and_action_of_a_handler() {
    let mask = blocking(SIGHUP);
    let action = SigAction { sa_mask: set_bit(SIGINT) | set_bit(SIGKILL), ..handled(0) };
    let (call, actions) = call_of(&action, &mask);
    assert_eq!(call.saved_mask, SignalSet::of(SIGHUP));
    assert_eq!(call.handler_mask, SignalSet::of(SIGHUP).with(SIGINT).with(SIGUSR1));
    assert_eq!(actions.of(SIGUSR1).sa_handler, action.sa_handler);
    let (call, actions) = call_of(&handled(SA_NODEFER | SA_RESETHAND), &mask);
    assert_eq!(call.handler_mask, SignalSet::of(SIGHUP));
    assert_eq!(actions.of(SIGUSR1).sa_handler, SIG_DFL);
    assert_eq!(actions.of(SIGUSR1).sa_flags, handled(SA_NODEFER | SA_RESETHAND).sa_flags);
}

#[test]
fn sigsuspend_gives_the_frame_the_mask_from_before() {
    let mut mask = blocking(SIGUSR1);
    mask.suspend(SignalSet::of(SIGHUP));
    let (call, _) = call_of(&handled(0), &mask);
    assert_eq!(call.saved_mask, SignalSet::of(SIGUSR1));
    assert_eq!(call.handler_mask, SignalSet::of(SIGHUP).with(SIGUSR1));
    let mut other = mask;
    other.put_back();
    assert_eq!(other, blocking(SIGUSR1));
    mask.enter(&call);
    mask.put_back();
    assert_eq!(mask.blocked(), call.handler_mask);
}

#[test]
fn a_fault_that_cannot_be_handled_kills() {
    let fault = SigInfo::fault(SIGSEGV, 1, 0);
    for (blocked, handler, how, handles) in [
        (false, handled(0).sa_handler, Force::Handler, true),
        (true, handled(0).sa_handler, Force::Handler, false),
        (false, SIG_IGN, Force::Handler, false),
        (false, handled(0).sa_handler, Force::Fatal, false),
    ] {
        let (mut actions, mut thread) = (Actions::new(), Pending::new());
        actions.set(SIGSEGV, &SigAction { sa_handler: handler, ..handled(0) }).expect("set");
        let mut mask = if blocked { blocking(SIGSEGV) } else { ThreadMask::default() };
        force(&fault, how, &mut actions, &mut mask, &mut thread);
        let delivery = deliver(&mut thread, &mask, &mut actions);
        assert_eq!(matches!(delivery, Delivery::Handler(_)), handles);
        assert_eq!(delivery == Delivery::Terminate { info: fault, core: true }, !handles);
    }
}

#[test]
fn a_frame_of_segv_that_does_not_fit_kills() {
    for (failed, handles) in [(Some(SIGUSR1), true), (None, true), (Some(SIGSEGV), false)] {
        let (mut actions, mut thread, mut mask) = (Actions::new(), Pending::new(), ThreadMask::default());
        actions.set(SIGSEGV, &handled(0)).expect("set");
        force_segv(failed, &mut actions, &mut mask, &mut thread);
        assert_eq!(matches!(deliver(&mut thread, &mask, &mut actions), Delivery::Handler(_)), handles);
    }
}

#[test]
fn exec_keeps_only_what_is_ignored() {
    let mut actions = Actions::new();
    actions.set(SIGINT, &handled(SA_RESTART)).expect("set");
    actions.set(SIGQUIT, &SigAction { sa_handler: SIG_IGN, ..handled(SA_RESTART) }).expect("set");
    actions.reset_for_exec();
    assert_eq!(actions.of(SIGINT), SigAction::zeroed());
    assert_eq!(actions.of(SIGQUIT), SigAction { sa_handler: SIG_IGN, ..SigAction::zeroed() });
}

#[test]
fn unknown_flags_do_not_stay() {
    let mut actions = Actions::new();
    actions.set(SIGINT, &handled(SA_UNSUPPORTED | 1 << 40)).expect("set");
    assert_eq!(actions.get(SIGINT), Ok(handled(0)));
    assert_eq!((actions.get(0), actions.get(65)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    assert_eq!(actions.get(SIGKILL), Ok(SigAction::zeroed()));
}

#[test]
fn parents_are_told_as_they_asked() {
    let mut actions = Actions::new();
    let end = |actions: &Actions, signal| (actions.child_end(signal).reap, actions.child_end(signal).signal);
    assert_eq!(end(&actions, SIGCHLD), (false, true));
    assert_eq!(end(&actions, 0), (false, false));
    actions.set(SIGCHLD, &handled(SA_NOCLDWAIT | SA_NOCLDSTOP)).expect("set");
    assert_eq!((end(&actions, SIGCHLD), actions.wants_child_stops()), ((true, true), false));
    actions.set(SIGCHLD, &SigAction { sa_handler: SIG_IGN, ..handled(0) }).expect("set");
    assert_eq!((end(&actions, SIGCHLD), actions.wants_child_stops()), ((true, false), false));
    assert_eq!(end(&actions, SIGUSR1), (false, true));
    let child = Child { pid: 5, uid: 6, utime: 7, stime: 8 };
    let dumped = child_info(SIGCHLD, &child, WaitStatus::Killed { signal: 11, core: true });
    assert_eq!(dumped.code, CLD_DUMPED);
    assert_eq!(dumped.cause, Cause::Child { pid: 5, uid: 6, status: 11, utime: 7, stime: 8 });
    assert_eq!(child_info(SIGCHLD, &child, WaitStatus::Stopped(20)).code, CLD_STOPPED);
    assert_eq!(crate::signal::child::tkill_info(SIGUSR1, 5, 6).code, SI_TKILL);
}
