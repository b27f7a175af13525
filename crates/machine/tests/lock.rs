//! The kernel's lock in debug builds: who touches a cell without it is found at once.
#![cfg(debug_assertions)]

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard};

use machine::{Entered, KernelCell, KernelOnce, KernelSlots, KernelValue, arm};

thread_local! {
    /// The processor that this host thread plays.
    static PROCESSOR: Cell<Option<u32>> = const { Cell::new(None) };
}

/// There is one lock, so one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// From now on the test runs on this processor, and the lock is real.
fn on_processor(number: u32) -> MutexGuard<'static, ()> {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    machine::abandon();
    PROCESSOR.set(Some(number));
    arm(|| PROCESSOR.get());
    alone
}

fn enter() -> Entered {
    // SAFETY: the test is the program, and this its only entry.
    unsafe { Entered::new() }
}

#[test]
fn who_is_in_the_kernel_touches_its_cells() {
    let _alone = on_processor(0);
    let cell = KernelCell::new(1);
    let entered = enter();
    *cell.borrow_mut() += 1;
    cell.with(|value| *value += 1);
    assert_eq!(cell.get(), 3);
    drop(entered);
    let _again = enter();
    assert_eq!(cell.get(), 3);
}

#[test]
#[should_panic(expected = "touched without its lock")]
fn a_program_touches_no_cell() {
    let _alone = on_processor(0);
    drop(enter());
    let _ = KernelCell::new(1).borrow();
}

#[test]
#[should_panic(expected = "touched without its lock")]
fn a_program_touches_no_value() {
    let _alone = on_processor(0);
    KernelValue::new(1).set(2);
}

#[test]
#[should_panic(expected = "touched without its lock")]
fn a_program_makes_nothing_once() {
    let _alone = on_processor(0);
    let _ = KernelOnce::new().set(1);
}

#[test]
#[should_panic(expected = "touched without its lock")]
fn a_program_looks_into_no_slots() {
    let _alone = on_processor(0);
    KernelSlots::<u32>::new().get(0);
}

#[test]
#[should_panic(expected = "its lock is held already")]
fn an_interrupt_does_not_enter_the_midst_of_the_kernel() {
    let _alone = on_processor(0);
    let _entered = enter();
    let _interrupt = enter();
}

#[test]
fn a_fault_of_the_kernel_has_the_lock_and_one_of_a_routine_takes_it() {
    let _alone = on_processor(0);
    let cell = KernelCell::new(1);
    let touch = || {
        // SAFETY: dropped at once, and leaves for nobody.
        let _fault = unsafe { Entered::by_fault() };
        cell.get()
    };
    let entered = enter();
    assert_eq!(touch(), 1);
    assert_eq!(cell.get(), 1, "the fault has given up what was not its own");
    drop(entered);
    assert_eq!(touch(), 1);
    drop(enter());
}

#[test]
#[should_panic(expected = "touched without its lock")]
fn who_has_left_for_another_thread_touches_no_cell() {
    let _alone = on_processor(0);
    let (cell, entered) = (KernelCell::new(1), enter());
    // SAFETY: none: this is the mistake.
    unsafe { entered.held().given_up(|| cell.get()) };
}

#[test]
fn who_comes_back_has_the_lock_again() {
    let _alone = on_processor(0);
    let (cell, entered) = (KernelCell::new(1), enter());
    let other = || {
        // Another thread's turn, from its program on.
        let _entered = enter();
        cell.set(2);
    };
    // SAFETY: what runs is the other thread's.
    unsafe { entered.held().given_up(other) };
    assert_eq!(cell.get(), 2);
}

#[test]
#[should_panic(expected = "touched without its lock")]
fn another_processor_touches_no_cell() {
    let _alone = on_processor(0);
    let _entered = enter();
    PROCESSOR.set(Some(1));
    KernelCell::new(1).set(2);
}

#[test]
fn a_thread_that_is_no_processor_has_cells_of_its_own() {
    let _alone = on_processor(0);
    PROCESSOR.set(None);
    KernelCell::new(1).set(2);
}
