//! The kernel and the emulator on the simulated machine: one seed, one run.

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
