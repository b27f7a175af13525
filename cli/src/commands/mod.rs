//! One file for each subcommand.

pub mod boot;
pub mod demo;
pub mod layers;
pub mod run;
