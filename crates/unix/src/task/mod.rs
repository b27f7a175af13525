//! Processes and their threads.
//!
//! A [`Task`] is what Linux calls a task: a thread with its process. A [`Process`] is what its threads
//! share: quaspace, descriptors, place in the file tree, signal actions, family.

mod bindings;
mod capabilities;
mod process;
mod settings;
mod table;
mod thread;
mod tracing;

pub use bindings::{BOUND, Bindings, CONSTANT_CALLS, DESCRIPTOR_CALLS, KnownName, Opened};
pub use capabilities::{CapabilitySets, ProgramChange, may_follow};
pub use process::{Branch, ChildParts, Execution, Family, Ids, Life, NewProcess, Place, Process, Report, Tally, Usage};
pub use settings::Settings;
pub use table::TaskTable;
pub use thread::{Awaited, Policy, RestartArea, RestartBlock, Task};
pub use tracing::{At, Ghost, Going, TraceStop, Tracing, Watch};
