//! Birth and death of processes and threads.
//!
//! ```text
//!   birth.rs   fork, vfork, clone, clone3
//!   end.rs     exit, exit_group, and what the last thread leaves behind
//!   family.rs  parents, children, process groups: who inherits orphans, who is told
//!   wait.rs    wait4, waitid
//!   unshare.rs unshare, setns
//! ```

mod birth;
pub(crate) mod end;
pub(crate) mod family;
mod robust;
pub(super) mod table;
mod unshare;
mod wait;
