//! One file for each subcommand.

pub mod boot;
pub mod layers;
pub mod run;
