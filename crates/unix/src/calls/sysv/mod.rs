//! System V semaphores and message queues. Shared memory is in `shm.rs`.
//!
//! ```text
//!   objects.rs    numbers, keys and owners, which all kinds have
//!   semaphores/   semget, semop, semtimedop, semctl
//!   messages.rs   msgget, msgsnd, msgrcv, msgctl
//!   shown.rs      /proc/sysvipc
//! ```

mod messages;
mod objects;
mod semaphores;
mod shown;

use abi::nr;

use super::Entry;

pub use messages::{Queues, lose as lose_messages};
pub use objects::Objects;
pub use semaphores::{Sets, lose as lose_semaphores, process_ended};
pub use shown::{messages as shown_messages, semaphores as shown_semaphores};

pub const CALLS: &[Entry] = &[
    (nr::SEMGET, |call, [a, b, c, ..]| semaphores::semget(call, a, b, c)),
    (nr::SEMOP, |call, [a, b, c, ..]| semaphores::semtimedop(call, a, b, c, 0)),
    (nr::SEMTIMEDOP, |call, [a, b, c, d, ..]| semaphores::semtimedop(call, a, b, c, d)),
    (nr::SEMCTL, |call, [a, b, c, d, ..]| semaphores::semctl(call, a, b, c as u32, d)),
    (nr::MSGGET, |call, [a, b, ..]| messages::msgget(call, a, b)),
    (nr::MSGSND, |call, [a, b, c, d, ..]| messages::msgsnd(call, a, b, c, d as u32)),
    (nr::MSGRCV, |call, [a, b, c, d, e, _]| messages::msgrcv(call, [a, b, c, d, e])),
    (nr::MSGCTL, |call, [a, b, c, ..]| messages::msgctl(call, a, b as u32, c)),
];
