//! Opening a named pipe: who opens one side waits for somebody at the other (POSIX `open`, fifo(7)).

use alloc::sync::{Arc, Weak};
use core::sync::atomic::Ordering;

use abi::Errno;
use abi::file::{O_ACCMODE, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY};
use kernel::file::Node;
use kernel::pipe::{Pipe, PipeEnd, Side};
use kernel::stream::Stream;

use crate::call::Call;

/// The pipe behind a fifo, kept with its node while somebody has it open. Bytes that nobody has open are lost.
struct FifoPipe(Weak<Pipe>);

/// Errors: `ENXIO` for a writer that may not wait while nobody reads, `EINTR`, `ENOMEM`, `EINVAL` for access mode 3.
pub fn open(call: &Call<'_>, node: &Arc<Node>, flags: u32) -> Result<Arc<dyn Stream>, Errno> {
    let pipe = pipe_of(call, node)?;
    open_end(call, &pipe, flags)
}

fn pipe_of(call: &Call<'_>, node: &Node) -> Result<Arc<Pipe>, Errno> {
    let attached = node.attachment().borrow().clone();
    let known = attached.as_deref().and_then(|any| any.downcast_ref::<FifoPipe>());
    if let Some(pipe) = known.and_then(|known| known.0.upgrade()) {
        return Ok(pipe);
    }
    let pipe = crate::calls::pipes::new_pipe(call)?;
    *node.attachment().borrow_mut() = Some(Arc::new(FifoPipe(Arc::downgrade(&pipe))));
    Ok(pipe)
}

/// Opens one more end of a pipe, with the rendezvous of a fifo.
pub fn open_end(call: &Call<'_>, pipe: &Arc<Pipe>, flags: u32) -> Result<Arc<dyn Stream>, Errno> {
    let scheduler = call.unix.scheduler;
    let waits = flags & O_NONBLOCK == 0;
    let (side, woken) = match flags & O_ACCMODE {
        O_RDONLY => (Side::Read, pipe.writable()),
        O_WRONLY if !waits && pipe.readers() == 0 => return Err(Errno::ENXIO),
        O_WRONLY => (Side::Write, pipe.readable()),
        O_RDWR => return Ok(Arc::new(PipeEnd::new(pipe, Side::Both, scheduler))),
        _ => return Err(Errno::EINVAL),
    };
    let end = PipeEnd::new(pipe, side, scheduler);
    scheduler.wake(woken);
    let (others, opened, queue) = match side {
        Side::Read => (pipe.writers(), &pipe.opened_writers, pipe.readable()),
        _ => (pipe.readers(), &pipe.opened_readers, pipe.writable()),
    };
    if others == 0 && waits {
        // The count of opens, not of openers: the other side may have come and gone before this thread runs.
        let before = opened.load(Ordering::Relaxed);
        while opened.load(Ordering::Relaxed) == before {
            call.with_io(false, |io| io.wait(queue))?;
        }
    }
    Ok(Arc::new(end))
}
