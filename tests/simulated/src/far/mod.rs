//! A shared folder whose server answers late, in any order, wrongly, or never: as a seed wants it.

mod scene;
mod server;

pub use scene::{Report, judge, plan, run};
