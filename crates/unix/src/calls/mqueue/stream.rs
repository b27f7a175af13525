//! An open queue as a file: it can be waited for, and read for what it holds.

use alloc::sync::Arc;
use core::any::Any;

use abi::Errno;
use kernel::charge::{Held, Kept};
use kernel::schedule::WaitQueue;
use kernel::stream::{Io, Nameless, Progress, Ready, Stream, UserRange};
use machine::{KernelValue, try_text};

use super::queue::Queue;

pub struct OpenQueue {
    queue: Arc<Queue>,
    /// How much of the text has been read.
    position: KernelValue<usize>,
}

impl OpenQueue {
    pub fn new(queue: &Arc<Queue>) -> Arc<OpenQueue> {
        Arc::new(OpenQueue { queue: queue.clone(), position: KernelValue::new(0) })
    }

    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    fn read_text(&self, room: usize, give: impl FnOnce(&[u8]) -> Result<(), Errno>) -> Result<usize, Errno> {
        let (bytes, (how, signal, pid)) = (self.queue.bytes(), self.queue.notified());
        let text = try_text(format_args!("QSIZE:{bytes:<10} NOTIFY:{how:<5} SIGNO:{signal:<5} NOTIFY_PID:{pid:<6}\n"))?;
        let rest = &text.as_bytes()[self.position.get().min(text.len())..];
        let given = &rest[..rest.len().min(room)];
        give(given)?;
        self.position.set(self.position.get() + given.len());
        Ok(given.len())
    }
}

impl Stream for OpenQueue {
    /// The process may not be told any more of messages.
    fn closed_by(&self, process: u32) {
        self.queue.forget_notice(process);
    }

    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        self.read_text(to.bytes, |text| io.copy_out(to.address, text))
    }

    fn read_kernel(&self, _io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        self.read_text(into.len(), |text| {
            into[..text.len()].copy_from_slice(text);
            Ok(())
        })
    }

    fn held(&self) -> Held {
        Held::new(Kept::Queues, self.queue.held_bytes() / Arc::strong_count(&self.queue))
    }

    fn ready(&self) -> Ready {
        let is_empty = self.queue.count() == 0;
        Ready::NONE.with_if(!is_empty, Ready::READABLE).with_if(!self.queue.is_full(), Ready::WRITABLE)
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.queue.readable);
        visit(&self.queue.writable);
    }

    fn progress(&self) -> Option<Progress> {
        Some(self.queue.progress())
    }

    fn nameless(&self) -> Nameless {
        Nameless::Anonymous("[mqueue]")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
