//! What must be true of the ready ring whenever a program runs.

use kernel::schedule::Scheduler;
use kernel::thread::State;
use machine::{Nanos, TteId};
use machine_sim::SimMachine;

/// The ring is circular, has each ready thread once and no other, and the links that the code would jump through say the
/// same.
pub fn check_ring(machine: &SimMachine) -> Result<(), String> {
    let scheduler = Scheduler::the().ok_or("no scheduler")?;
    let order = scheduler.ready_order();
    if order.len() != scheduler.ready_count() {
        return Err(format!("the ring has {} members, and says {}", order.len(), scheduler.ready_count()));
    }
    let mut members = order.clone();
    members.sort();
    members.dedup();
    let mut ready: Vec<TteId> = Vec::new();
    ready.extend(
        scheduler
            .known_threads()
            .expect("memory")
            .iter()
            .filter(|thread| thread.state() == State::Ready)
            .map(|t| t.id()),
    );
    if members.len() != order.len() || members != ready {
        return Err(format!("in the ring {order:?}, ready {ready:?}"));
    }
    let links = machine.ring();
    let start = order.iter().position(|id| *id == links[0]).ok_or("the running thread is not in the ring")?;
    let rotated: Vec<TteId> = order[start..].iter().chain(&order[..start]).copied().collect();
    if rotated != links {
        return Err(format!("the ring says {rotated:?}, the links {links:?}"));
    }
    check_alarms(scheduler)
}

/// An alarm may ring late by a quantum, by the longest step of a program, and while the kernel holds the interrupt off.
const LATE_NS: u64 = 4_000_000;

fn check_alarms(scheduler: &Scheduler) -> Result<(), String> {
    let now = scheduler.machine().now();
    match scheduler.next_alarm() {
        Some(at) if at.saturating_add(Nanos(LATE_NS)) < now => {
            Err(format!("at {} the alarm of {} has not rung", now.0, at.0))
        }
        _ => Ok(()),
    }
}
