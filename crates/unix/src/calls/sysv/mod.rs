//! System V semaphores and message queues. Shared memory is in `shm.rs`.
//!
//! ```text
//!   objects.rs    numbers, keys and owners, which all kinds have
//!   semaphores/   semget, semop, semtimedop, semctl
//!   messages.rs   msgget, msgsnd, msgrcv, msgctl
//!   shown.rs      /proc/sysvipc
//! ```

pub(crate) mod messages;
pub(crate) mod objects;
pub(crate) mod semaphores;
pub(crate) mod shown;
pub(super) mod table;
