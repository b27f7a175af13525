//! POSIX message queues.
//!
//! ```text
//!   mod.rs      sending, receiving, notification, attributes
//!   queue.rs    a queue: messages by priority, and who waits
//!   open.rs     names, and how large a queue may be
//!   stream.rs   an open queue as a file
//! ```

pub(crate) mod open;
mod queue;
pub(crate) mod stream;
pub(super) mod table;

use abi::file::O_NONBLOCK;
use abi::time::Timespec;
use abi::{Errno, Field};
use alloc::sync::Arc;
use machine::Nanos;

use super::times;
use crate::call::{Call, CallResult};
use crate::files::open_file::OpenFile;

use queue::{Message, Notice, Queue, Receiver};
pub use stream::OpenQueue;

/// One more than the highest priority (`MQ_PRIO_MAX`).
const PRIORITIES: u32 = 32_768;

/// The queue behind a descriptor. Error: `EBADF`, also for what is no queue.
fn queue(call: &Call<'_>, descriptor: u64) -> Result<(Arc<OpenFile>, Arc<Queue>), Errno> {
    let file = call.file(descriptor)?;
    let queue = file.stream_of::<OpenQueue>().ok_or(Errno::EBADF)?.queue().clone();
    Ok((file, queue))
}

/// A time of day as a time of the machine. Errors: `EFAULT`, `EINVAL`.
fn deadline(call: &Call<'_>, address: u64) -> Result<Option<Nanos>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    let time = times::nanos_of(call.read::<Timespec>(address)?)?;
    Ok(Some(time.saturating_sub(call.unix.epoch.get())))
}

/// Why a wait is given up, if it is.
fn refusal(call: &Call<'_>, file: &OpenFile, deadline: Option<Nanos>) -> Result<(), Errno> {
    if file.is_nonblocking() {
        return Err(Errno::EAGAIN);
    }
    if call.task.is_interrupted() {
        return Err(Errno::EINTR);
    }
    let is_over = deadline.is_some_and(|deadline| deadline <= call.unix.machine.now());
    if is_over { Err(Errno::ETIMEDOUT) } else { Ok(()) }
}

/// Errors: `EINVAL`, `EFAULT`, `EBADF`, `EMSGSIZE`, `EAGAIN`, `ETIMEDOUT`, `EINTR`, `ENOMEM`.
fn send(call: &Call<'_>, [descriptor, address, bytes, priority, time, _]: [u64; 6]) -> CallResult {
    let priority = priority as u32;
    let deadline = deadline(call, time)?;
    if priority >= PRIORITIES {
        return Err(Errno::EINVAL);
    }
    let (file, queue) = queue(call, descriptor)?;
    file.check_writable()?;
    if bytes > queue.message_bytes as u64 {
        return Err(Errno::EMSGSIZE);
    }
    let text = call.read_bytes(address, bytes as usize)?;
    while queue.is_full() {
        refusal(call, &file, deadline)?;
        call.unix.scheduler.sleep(call.held, &[&queue.writable], deadline);
    }
    queue.put(call, Message { priority, text })?;
    Ok(0)
}

/// Errors: `EINVAL`, `EFAULT`, `EBADF`, `EMSGSIZE`, `EAGAIN`, `ETIMEDOUT`, `EINTR`, `ENOMEM`.
fn receive(call: &Call<'_>, [descriptor, address, bytes, priority, time, _]: [u64; 6]) -> CallResult {
    let deadline = deadline(call, time)?;
    let (file, queue) = queue(call, descriptor)?;
    file.check_readable()?;
    if bytes < queue.message_bytes as u64 {
        return Err(Errno::EMSGSIZE);
    }
    let message = match queue.take(call) {
        Some(message) => message,
        None => {
            refusal(call, &file, deadline)?;
            wait_for(call, &file, &queue, deadline)?
        }
    };
    call.write_if(priority, &message.priority)?;
    call.copy_out(address, &message.text)?;
    Ok(message.text.len() as u64)
}

/// Somebody hands a message over, or the wait is given up.
fn wait_for(call: &Call<'_>, file: &OpenFile, queue: &Queue, deadline: Option<Nanos>) -> Result<Message, Errno> {
    let receiver = Arc::new(Receiver::new());
    queue.enter(&receiver)?;
    loop {
        call.unix.scheduler.sleep(call.held, &[&receiver.woken], deadline);
        if let Some(message) = receiver.take() {
            return Ok(message);
        }
        if let Err(error) = refusal(call, file, deadline) {
            queue.leave(&receiver);
            return Err(error);
        }
    }
}

/// Errors: `EINVAL`, `EFAULT`, `EBADF`, `EBUSY` while another is to be told.
fn notify(call: &Call<'_>, descriptor: u64, event: u64) -> CallResult {
    const SIGNAL: i32 = 0;
    const NONE: i32 = 1;
    const SIGNALS: u32 = 64;
    // `struct sigevent`: value, signal, how.
    let event = if event == 0 { None } else { Some(call.read::<[u32; 4]>(event)?) };
    if let Some([_, _, signal, how]) = event {
        match how as i32 {
            NONE => {}
            SIGNAL if signal <= SIGNALS => {}
            // A thread would be told over a netlink socket, which there is not.
            _ => return Err(Errno::EINVAL),
        }
    }
    let (_, queue) = queue(call, descriptor)?;
    let pid = call.process().pid;
    let Some([low, high, signal, how]) = event else {
        queue.forget_notice(pid);
        return Ok(0);
    };
    let value = u64::from(low) | u64::from(high) << 32;
    let signal = (how as i32 == SIGNAL).then_some(signal);
    queue.set_notice(Notice { process: Arc::downgrade(call.process()), pid, value, signal })?;
    Ok(0)
}

/// `struct mq_attr`: flags, messages at most, bytes of one, messages; then 4 unused words.
fn attributes(call: &Call<'_>, descriptor: u64, new: u64, old: u64) -> CallResult {
    let wanted = if new == 0 { None } else { Some(call.read::<[u64; 8]>(new)?[0]) };
    if wanted.is_some_and(|flags| flags & !u64::from(O_NONBLOCK) != 0) {
        return Err(Errno::EINVAL);
    }
    let (file, queue) = queue(call, descriptor)?;
    let flags = u64::from(file.flags() & O_NONBLOCK);
    let record = [flags, queue.messages_most as u64, queue.message_bytes as u64, queue.count() as u64, 0, 0, 0, 0];
    if let Some(flags) = wanted {
        file.set_flags(file.flags() & !O_NONBLOCK | flags as u32);
    }
    if old != 0 {
        let mut bytes = [0; 64];
        record.put(&mut bytes);
        call.copy_out(old, &bytes)?;
    }
    Ok(0)
}
