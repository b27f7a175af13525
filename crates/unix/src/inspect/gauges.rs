//! `synth top`: the gauges of the kernel (S-31).

use bootimage::inspect::Items;

use super::{Cursor, Question, Refusal};
use crate::emulator::Unix;

pub fn of_kernel(unix: &Unix) -> [(&'static str, u64); 12] {
    let (store, scheduler) = (unix.store, unix.scheduler);
    [
        ("now_ns", unix.machine.now().0),
        ("tasks", unix.tasks.task_count() as u64),
        ("created", unix.tasks.created()),
        ("ready", scheduler.ready_count() as u64),
        ("switches", scheduler.switch_count()),
        ("preemptions", scheduler.preemption_count()),
        ("free_frames", unix.pool.free_frames() as u64),
        ("total_frames", unix.pool.total_frames() as u64),
        ("code_bytes", store.live_bytes() as u64),
        ("code_capacity", store.capacity_bytes() as u64),
        ("routines", store.live_routines() as u64),
        ("syntheses", store.published()),
    ]
}

pub fn list(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let unix = question.unix;
    // All together are far below what an answer holds.
    for (name, value) in of_kernel(unix) {
        out.text(name.as_bytes()).u64(value);
    }
    for (number, count) in unix.call_counts.iter().enumerate().filter(|(_, count)| count.get() > 0) {
        out.text(abi::nr::name(number as u64).unwrap_or("?").as_bytes()).u64(count.get());
    }
    Ok(0)
}
