//! Processes and their threads.
//!
//! A [`Task`] is what Linux calls a task: a thread with its process. A [`Process`] is what its threads
//! share: quaspace, descriptors, place in the file tree, signal actions, family.

mod process;
mod table;
mod thread;

pub use process::{Family, Ids, Life, NewProcess, Place, Process, Report, Usage};
pub use table::TaskTable;
pub use thread::Task;
