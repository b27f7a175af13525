//! Waiting for many descriptors.
//!
//! ```text
//!   mod.rs       poll, ppoll, and the sleep they all share
//!   select.rs    select, pselect6
//!   epoll.rs     epoll instances
//!   nesting.rs   which instances may watch each other
//!   gather.rs    the files of a wait, few or many
//!   eventfd.rs   event counters
//!   routines.rs  when poll and epoll_wait become code
//! ```

mod epoll;
pub(crate) mod eventfd;
mod gather;
mod nesting;
mod routines;
mod select;
pub(super) mod table;

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use abi::poll::{POLLERR, POLLHUP, POLLNVAL, PollFd};
use kernel::schedule::WaitQueue;
use machine::{Nanos, NoMemory, TryGrow, try_collect};

use super::resume::{interrupted_with, with_signal_mask};
use super::times;
use crate::call::{Call, CallResult};
use crate::files::descriptors::Descriptor;
use crate::files::open_file::OpenFile;

/// Records that need no memory of the heap.
const FEW: usize = 16;

/// Why a wait for descriptors ended.
enum Waited {
    /// Some are ready; or, with 0, the time is over.
    Ready(u64),
    Interrupted,
}

/// So many files are looked at between two safe points.
const PART: usize = 64;

/// Asks `look` again and again how many are ready, sleeping on the queues of `files` in between.
fn wait(
    call: &Call<'_>,
    deadline: Option<Nanos>,
    files: impl Fn() -> Result<Vec<Arc<OpenFile>>, NoMemory>,
    mut look: impl FnMut() -> Result<u64, Errno>,
) -> Result<Waited, Errno> {
    let over = || deadline.is_some_and(|deadline| deadline <= call.unix.machine.now());
    let ready = look()?;
    if ready > 0 || over() {
        return Ok(Waited::Ready(ready));
    }
    loop {
        if call.task.is_interrupted() {
            return Ok(Waited::Interrupted);
        }
        let ready = match gather::few(files()?)? {
            Ok(few) => {
                sleep_on(call, &few, deadline)?;
                look()?
            }
            Err(many) => gather::look_and_sleep(call, many, deadline, &mut look)?,
        };
        if ready > 0 || over() {
            return Ok(Waited::Ready(ready));
        }
    }
}

/// Sleeps once, until any of `files` may have changed.
fn sleep_on(call: &Call<'_>, files: &[Arc<OpenFile>], deadline: Option<Nanos>) -> Result<(), Errno> {
    let mut queues: Vec<&WaitQueue> = Vec::new();
    let mut has_all = true;
    for stream in files.iter().filter_map(|file| file.as_stream()) {
        stream.each_queue(&mut |queue| {
            if !queues.iter().any(|other| core::ptr::eq(*other, queue)) {
                has_all &= queues.try_push(queue).is_ok();
            }
        });
    }
    if !has_all {
        return Err(Errno::ENOMEM);
    }
    call.unix.scheduler.sleep(call.held, &queues, deadline);
    Ok(())
}

/// What a descriptor is ready for, of the events asked for; errors and the end count always.
fn ready_of(call: &Call<'_>, descriptor: i32, events: u16) -> u16 {
    if descriptor < 0 {
        return 0;
    }
    match call.files().get(Descriptor(descriptor as u32)) {
        Some(file) if !file.is_path_only() => file.ready().0 as u16 & (events | POLLERR | POLLHUP),
        _ => POLLNVAL,
    }
}

/// Errors: `EINVAL` for more records than descriptors are allowed, `EFAULT`, `EINTR`, `ENOMEM`.
fn poll(call: &Call<'_>, records: u64, count: u64, timeout_ms: i32) -> CallResult {
    let deadline = match timeout_ms {
        ..0 => None,
        0 => Some(Nanos(0)),
        ms => Some(crate::calls::times::sleeps::deadline_after(call, Nanos(ms as u64 * 1_000_000))),
    };
    poll_until(call, records, count, deadline)
}

fn poll_again(call: &mut Call<'_>, [records, count, deadline, ..]: [u64; 6]) -> CallResult {
    poll_until(call, records, count, Some(Nanos(deadline)))
}

/// `poll` with a deadline instead of a time.
fn poll_until(call: &Call<'_>, records: u64, count: u64, deadline: Option<Nanos>) -> CallResult {
    match poll_records(call, records, count, deadline)? {
        Waited::Ready(ready) => Ok(ready),
        Waited::Interrupted => {
            // Without a deadline the end of time serves: it never comes.
            let deadline = deadline.unwrap_or(Nanos(u64::MAX));
            Err(interrupted_with(call, poll_again, [records, count, deadline.0, 0, 0, 0]))
        }
    }
}

fn poll_records(call: &Call<'_>, records: u64, count: u64, deadline: Option<Nanos>) -> Result<Waited, Errno> {
    if count as u32 as u64 > call.process().limits.borrow().descriptors() {
        return Err(Errno::EINVAL);
    }
    if count as u32 == 1
        && let Some(ready) = poll_one(call, records, deadline)?
    {
        return Ok(Waited::Ready(ready));
    }
    let bytes = count as u32 as usize * PollFd::BYTES;
    let mut few = [0; FEW * PollFd::BYTES];
    let mut many;
    let table = if bytes <= few.len() {
        &mut few[..bytes]
    } else {
        many = call.buffer(bytes)?;
        &mut many[..]
    };
    call.copy_in(records, table)?;
    let files = {
        let descriptors: &[u8] = table;
        let wanted = descriptors.chunks_exact(PollFd::BYTES).map(descriptor_in);
        // Taken before the look changes the table's other half; only descriptors are read.
        let list = if deadline == Some(Nanos(0)) { Vec::new() } else { try_collect(wanted)? };
        move || {
            let files = list.chunks(PART).flat_map(|part| {
                if list.len() > PART {
                    call.unix.scheduler.breathe(call.held);
                }
                part.iter().filter_map(|fd| call.files().get(Descriptor(*fd as u32)))
            });
            try_collect(files)
        }
    };
    let waited = wait(call, deadline, files, || Ok(look(call, table)));
    // Only the third field of each record is the kernel's to write.
    for (index, record) in table.chunks_exact(PollFd::BYTES).enumerate() {
        call.copy_out(records + (index * PollFd::BYTES) as u64 + 6, &record[6..8])?;
    }
    waited
}

/// `poll` of one record that is ready, or where nobody waits; `None`: the caller has to wait, or is too late to.
fn poll_one(call: &Call<'_>, records: u64, deadline: Option<Nanos>) -> Result<Option<u64>, Errno> {
    let mut record = [0; PollFd::BYTES];
    call.copy_in(records, &mut record)?;
    let (descriptor, events) = (descriptor_in(&record), u16::from_le_bytes([record[4], record[5]]));
    let file = if descriptor < 0 { None } else { call.task.file(Descriptor(descriptor as u32)) };
    let ready = match &file {
        Some(file) if !file.is_path_only() => {
            routines::polled(call, file);
            file.ready().0 as u16 & (events | POLLERR | POLLHUP)
        }
        _ if descriptor < 0 => 0,
        _ => POLLNVAL,
    };
    if ready == 0 && deadline != Some(Nanos(0)) {
        return Ok(None);
    }
    call.copy_out(records + 6, &ready.to_le_bytes())?;
    Ok(Some(u64::from(ready != 0)))
}

fn descriptor_in(record: &[u8]) -> i32 {
    i32::from_le_bytes([record[0], record[1], record[2], record[3]])
}

/// Fills in what each record is ready for; returns how many are.
fn look(call: &Call<'_>, table: &mut [u8]) -> u64 {
    let mut count = 0;
    for (number, record) in table.chunks_exact_mut(PollFd::BYTES).enumerate() {
        if number > 0 && number % PART == 0 {
            call.unix.scheduler.breathe(call.held);
        }
        let events = u16::from_le_bytes([record[4], record[5]]);
        let ready = ready_of(call, descriptor_in(record), events);
        record[6..8].copy_from_slice(&ready.to_le_bytes());
        count += u64::from(ready != 0);
    }
    count
}

/// Errors: those of `poll`, and `EINVAL` for a bad time or set.
fn ppoll(call: &Call<'_>, [records, count, time, mask, mask_bytes, _]: [u64; 6]) -> CallResult {
    let deadline = read_deadline(call, time)?;
    with_signal_mask(call, mask, mask_bytes, |call| {
        let waited = poll_records(call, records, count, deadline);
        write_remaining(call, time, deadline);
        match waited? {
            Waited::Ready(ready) => Ok(ready),
            Waited::Interrupted => Err(Errno::EINTR),
        }
    })
}

/// The deadline that the `timespec` at `address` gives from now; null: none.
pub fn read_deadline(call: &Call<'_>, address: u64) -> Result<Option<Nanos>, Errno> {
    if address == 0 {
        return Ok(None);
    }
    let time = times::nanos_of(call.read(address)?)?;
    Ok(Some(if time == Nanos(0) { time } else { crate::calls::times::sleeps::deadline_after(call, time) }))
}

/// Linux tells what is left of the time, if the record can be written.
fn write_remaining(call: &Call<'_>, address: u64, deadline: Option<Nanos>) {
    if let Some(deadline) = deadline {
        let left = deadline.saturating_sub(call.unix.machine.now());
        let _ = call.write_if(address, &times::timespec_of(left));
    }
}
