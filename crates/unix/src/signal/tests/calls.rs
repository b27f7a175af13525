//! Restarted calls and the alternate stack.

use abi::Errno;
use abi::signal::*;
use machine::Registers;

use crate::signal::altstack::AltStack;
use crate::signal::restart::{Next, RestartKind, restart};
use crate::signal::{SignalSet, ThreadMask};

const AT: u64 = 0x40_0002;
const EINTR: u64 = -4i64 as u64;

fn after(kind: RestartKind, next: Next) -> (u64, u64) {
    let mut registers = Registers { rax: 0x77, rip: AT, ..Registers::default() };
    restart(kind, next, 35, &mut registers);
    (registers.rax, registers.rip)
}

#[test]
fn an_interrupted_call_goes_on_as_its_kind_says() {
    let (plain, again) = (Next::Handler { flags: 0 }, Next::Handler { flags: SA_RESTART });
    let (eintr, repeated) = ((EINTR, AT), (35, AT - 2));
    for (kind, results) in [
        (RestartKind::No, [(0x77, AT); 3]),
        (RestartKind::Restart, [eintr, repeated, repeated]),
        (RestartKind::RestartNoHandler, [eintr, eintr, repeated]),
        (RestartKind::RestartAlways, [repeated; 3]),
        (RestartKind::RestartBlock, [eintr, eintr, (219, AT - 2)]),
    ] {
        assert_eq!([after(kind, plain), after(kind, again), after(kind, Next::Program)], results, "{kind:?}");
    }
}

#[test]
fn a_mask_changes_in_three_ways() {
    let mut mask = ThreadMask::new(SignalSet::of(SIGHUP));
    assert_eq!(mask.change(SIG_BLOCK, SignalSet::of(SIGINT).with(SIGKILL)), Ok(SignalSet::of(SIGHUP)));
    assert_eq!(mask.blocked(), SignalSet::of(SIGHUP).with(SIGINT));
    assert!(mask.change(SIG_UNBLOCK, SignalSet::of(SIGHUP)).is_ok());
    assert_eq!(mask.blocked(), SignalSet::of(SIGINT));
    assert!(mask.change(SIG_SETMASK, SignalSet(!0)).is_ok());
    assert_eq!(mask.blocked(), SignalSet(!0).blockable());
    assert_eq!(mask.change(3, SignalSet::EMPTY), Err(Errno::EINVAL));
}

fn stack(flags: u32, size: u64) -> StackT {
    StackT { ss_sp: 0x10_0000, ss_flags: flags as i32, _pad: 0, ss_size: size }
}

#[test]
fn an_alternate_stack_reports_how_it_is_used() {
    let mut alt = AltStack::default();
    assert_eq!(alt.report(0x5000).ss_flags, SS_DISABLE as i32);
    assert_eq!(alt.set(&stack(0, 0x2000), 0x5000), Ok(()));
    assert_eq!(alt.report(0x5000), stack(0, 0x2000));
    assert_eq!(alt.report(0x10_2000), stack(SS_ONSTACK, 0x2000));
    assert_eq!(alt.report(0x10_2001), stack(0, 0x2000));
    assert_eq!(alt.report(0x10_0000), stack(0, 0x2000));
    assert_eq!(alt.set(&stack(SS_DISABLE, 0), 0x10_1000), Err(Errno::EPERM));
    assert_eq!(alt.set(&stack(SS_DISABLE, 9), 0x5000), Ok(()));
    assert_eq!(alt.report(0x5000), StackT { ss_flags: SS_DISABLE as i32, ..StackT::zeroed() });
}

#[test]
fn bad_alternate_stacks_are_refused() {
    let mut alt = AltStack::default();
    assert_eq!(alt.set(&stack(3, 0x2000), 0), Err(Errno::EINVAL));
    assert_eq!(alt.set(&stack(4, 0x2000), 0), Err(Errno::EINVAL));
    assert_eq!(alt.set(&stack(0, MINSIGSTKSZ - 1), 0), Err(Errno::ENOMEM));
    assert_eq!(alt.set(&stack(0, MINSIGSTKSZ), 0), Ok(()));
    assert_eq!(alt.set(&stack(SS_ONSTACK, MINSIGSTKSZ), 0), Ok(()));
}

#[test]
fn a_stack_that_disarms_itself_is_none_while_a_handler_runs() {
    let mut alt = AltStack::default();
    alt.set(&stack(SS_AUTODISARM, 0x2000), 0).expect("a stack");
    let saved = alt.saved();
    assert_eq!(alt.report(0x10_1000).ss_flags, SS_AUTODISARM as i32);
    alt.handler_entered();
    assert_eq!(alt, AltStack::DISARMED);
    assert_eq!(alt.set(&saved, 0x10_1000), Ok(()));
    assert_eq!(alt.top(), Some(0x10_2000));
}
