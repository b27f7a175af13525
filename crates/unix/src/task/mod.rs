//! Processes and their threads.
//!
//! A [`Task`] is what Linux calls a task: a thread with its process. A [`Process`] is what its threads
//! share: quaspace, descriptors, place in the file tree, signal actions, family.

pub(crate) mod bindings;
pub(crate) mod capabilities;
pub(crate) mod limits;
pub(crate) mod process;
pub(crate) mod settings;
pub(crate) mod table;
pub(crate) mod thread;
pub(crate) mod tracing;
pub(crate) mod user_calls;
