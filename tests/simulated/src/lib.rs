//! The kernel and the emulator on the simulated machine: one seed, one run.

use std::sync::Arc;

use machine::Channel;

mod activities;
mod boot;
mod calls;
pub mod far;
pub mod late;
mod ring;
pub mod scene;

pub use boot::run;
pub use calls::Calls;
pub use ring::check_ring;

pub use machine_sim::{COMPUTE, End, Outcome, Plan, Program, Random, User, entry};

/// A run of programs that tell the same report what they find.
fn plan_of<R: Send + Sync + 'static>(
    seed: u64,
    report: &Arc<R>,
    bodies: &[fn(&User, &R)],
    input: Vec<(u64, Channel, Vec<u8>)>,
) -> Plan {
    let program = |body: &fn(&User, &R)| -> Program {
        let (report, body) = (report.clone(), *body);
        Arc::new(move |user: &User| body(user, &report))
    };
    Plan {
        seed,
        frames: 4096,
        steps_max: 400_000,
        preempt_once_in: 2 + seed % 13,
        programs: bodies.iter().map(program).collect(),
        input,
        lines: Vec::new(),
        check: Some(check_ring),
    }
}
