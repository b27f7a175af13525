//! Files whose pages come late, in any order, or not at all: a store that a seed drives, and programs that use such files in every
//! way that a file can be used.

mod files;
mod owner;
mod scene;
mod store;
mod together;

pub use scene::{Report, judge, plan, run};
