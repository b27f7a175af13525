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
mod end;
mod family;
mod robust;
mod unshare;
mod wait;

pub use end::{Departed, Onward, end_process, leave, let_go_of_memory, release_vfork_parent};
pub use family::{is_orphaned_group, tell_parent, tell_parent_of_end, wake_parent};

use super::Entry;
use abi::nr;

pub const CALLS: &[Entry] = &[
    (nr::FORK, |call, _| birth::fork(call)),
    (nr::VFORK, |call, _| birth::vfork(call)),
    (nr::CLONE, |call, arguments| birth::clone(call, arguments)),
    (nr::CLONE3, |call, [a, b, ..]| birth::clone3(call, a, b)),
    (nr::EXIT, |call, [a, ..]| end::exit_thread(call, a)),
    (nr::EXIT_GROUP, |call, [a, ..]| end::exit_group(call, a)),
    (nr::UNSHARE, |call, [a, ..]| unshare::unshare(call, a)),
    (nr::SETNS, |call, [a, b, ..]| unshare::setns(call, a, b as u32)),
    (nr::WAIT4, |call, [a, b, c, d, ..]| wait::wait4(call, a, b, c, d)),
    (nr::WAITID, |call, [a, b, c, d, e, _]| wait::waitid(call, [a, b, c, d, e])),
];
