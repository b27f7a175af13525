//! Valued redundancy beside other policies, on simulated nodes: memories, a network, disks, crashes.
//!
//! The authors "have written a simulation program that analyzes both the performance gains during the normal processing and the
//! availability gains when nodes crash" (*Overview*, 3.4). This is such a program.
//!
//! - [`Hardware`], [`Scene`]: latencies, bandwidths and sizes; nodes and objects.
//! - [`workload`], [`failure`]: who accesses what when, what fails when; all from seeds.
//! - [`World`]: what there is, who holds it, what an access costs. It enforces budgets and the life of the last copy.
//! - [`policy`]: who decides. [`run`] brings them together.
//! - [`forms`], [`oracle`]: closed forms, and the best that could be done by who knows the future.
//! - [`matrix`]: all policies in all cells, tuned, with seeds; [`small`], [`scale`]: what `synth bench redundancy` prints beside it.

#![forbid(unsafe_code)]

pub mod failure;
pub mod forms;
mod hardware;
mod holders;
mod line;
pub mod matrix;
pub mod oracle;
pub mod policy;
mod run;
pub mod scale;
mod scene;
pub mod small;
pub mod statistics;
pub mod workload;
mod world;

pub use hardware::Hardware;
pub use holders::Holders;
pub use line::Line;
pub use run::{Outcome, run};
pub use scene::Scene;
pub use world::{Found, Protocol, World};

/// One attempted access.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Access {
    /// Seconds since the begin.
    pub at: f64,
    pub object: u32,
    pub node: u16,
    pub is_write: bool,
}
