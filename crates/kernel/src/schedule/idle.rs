//! The idle threads (S-3): each runs when nobody else can on its processor, and waits for interrupts.

use machine::Held;

use super::Scheduler;

pub(super) fn idle(held: Held<'_>) -> ! {
    let scheduler = Scheduler::the().expect("idle runs under a scheduler");
    loop {
        while scheduler.ready_count() > 0 {
            scheduler.yield_now(held);
        }
        scheduler.run_chained();
        if scheduler.work_ahead() {
            scheduler.machine.serve_interrupts(held);
        } else {
            scheduler.machine.wait_for_interrupt(held);
        }
    }
}
