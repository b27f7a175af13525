//! Limits that a privileged program may change while the machine runs (/proc/sys). Whoever keeps to a limit asks here, each
//! time: what is written takes effect with the next call.

use machine::KernelValue;

use abi::Errno;

use crate::limits::{DESCRIPTORS_MAX, TASKS_MAX};

/// A number between two others.
pub struct Tunable {
    value: KernelValue<u64>,
    least: u64,
    most: u64,
}

impl Tunable {
    const fn new(value: u64, least: u64, most: u64) -> Tunable {
        Tunable { value: KernelValue::new(value), least, most }
    }

    pub fn get(&self) -> u64 {
        self.value.get()
    }

    /// Error: `EINVAL` for a number outside its bounds.
    pub fn set(&self, value: u64) -> Result<(), Errno> {
        if !(self.least..=self.most).contains(&value) {
            return Err(Errno::EINVAL);
        }
        self.value.set(value);
        Ok(())
    }
}

pub struct Tunables {
    /// Events that wait in an inotify instance; then one says that some are missing.
    pub inotify_queued: Tunable,
    /// Instances and watches of one user; more are `EMFILE` and `ENOSPC`.
    pub inotify_instances: Tunable,
    pub inotify_watches: Tunable,
    /// System V message queues: bytes of a message, of a queue, queues. More are `EINVAL`, wait, `ENOSPC`.
    pub message_bytes: Tunable,
    pub message_queue_bytes: Tunable,
    pub message_queues: Tunable,
    /// System V semaphores: of a set, in all sets, operations of a call, sets. More are `EINVAL`, `ENOSPC`, `E2BIG`, `ENOSPC`.
    pub semaphores_per_set: Tunable,
    pub semaphores: Tunable,
    pub semaphore_operations: Tunable,
    pub semaphore_sets: Tunable,
    /// POSIX message queues, messages and bytes of one that a user without privilege may ask for, and who asks for nothing gets.
    pub queues: Tunable,
    pub queue_messages: Tunable,
    pub queue_bytes: Tunable,
    pub queue_messages_default: Tunable,
    pub queue_bytes_default: Tunable,
    /// System V segments: bytes of one, pages of all, segments. More are `EINVAL`, `ENOSPC`, `ENOSPC`.
    pub segment_bytes: Tunable,
    pub segment_pages: Tunable,
    pub segments: Tunable,
    /// Numbers of processes and threads are below this, and there are at most so many: else `EAGAIN`.
    pub process_ids: Tunable,
    pub tasks: Tunable,
    /// Descriptors that a process may ask for (RLIMIT_NOFILE); more is `EPERM`.
    pub descriptors: Tunable,
    /// Bytes of the largest pipe that a user without privilege may ask for; more is `EPERM`.
    pub pipe_bytes: Tunable,
    /// Events of asynchronous input and output that all contexts may have; more are `EAGAIN`.
    pub aio_events: Tunable,
}

const INT_MAX: u64 = i32::MAX as u64;
/// No limit, as Linux says it (`SHMMAX`, `SHMALL`).
const SEGMENT_BYTES: u64 = u64::MAX - (1 << 24);

impl Tunables {
    pub const fn new() -> Tunables {
        Tunables {
            inotify_queued: Tunable::new(16_384, 0, INT_MAX),
            inotify_instances: Tunable::new(128, 0, INT_MAX),
            inotify_watches: Tunable::new(8_192, 0, INT_MAX),
            message_bytes: Tunable::new(8_192, 0, INT_MAX),
            message_queue_bytes: Tunable::new(16_384, 0, INT_MAX),
            message_queues: Tunable::new(32_000, 0, 32_768),
            semaphores_per_set: Tunable::new(32_000, 0, 65_535),
            semaphores: Tunable::new(1_024_000_000, 0, INT_MAX),
            semaphore_operations: Tunable::new(500, 0, INT_MAX),
            semaphore_sets: Tunable::new(32_000, 0, 32_768),
            queues: Tunable::new(256, 0, INT_MAX),
            queue_messages: Tunable::new(10, 1, 65_536),
            queue_bytes: Tunable::new(8_192, 128, 16 << 20),
            queue_messages_default: Tunable::new(10, 1, 65_536),
            queue_bytes_default: Tunable::new(8_192, 128, 16 << 20),
            segment_bytes: Tunable::new(SEGMENT_BYTES, 0, u64::MAX),
            segment_pages: Tunable::new(SEGMENT_BYTES, 0, u64::MAX),
            segments: Tunable::new(4_096, 0, 32_768),
            process_ids: Tunable::new(32_768, 301, 4_194_304),
            tasks: Tunable::new(TASKS_MAX as u64, 1, TASKS_MAX as u64),
            descriptors: Tunable::new(DESCRIPTORS_MAX, 64, DESCRIPTORS_MAX),
            pipe_bytes: Tunable::new(1 << 20, 4_096, 1 << 31),
            aio_events: Tunable::new(65_536, 0, u64::MAX),
        }
    }
}
