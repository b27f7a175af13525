//! Linux's asynchronous input and output (io_setup and its kin).
//!
//! Files are memory and pipes wait as they do on Linux, so each operation is done when it is submitted, and what became of it
//! waits to be fetched. Waiting for readiness (`IOCB_CMD_POLL`, since Linux 4.18) is refused as an older kernel refuses it.
//!
//! A context's number is the address of a page of the program's own, as Linux maps a ring there: the C library looks for the
//! ring's mark and makes a call where it finds none.

pub(crate) mod context;
mod operation;
pub(super) mod table;

use abi::Errno;
use abi::time::Timespec;
use alloc::sync::Arc;
use kernel::space::MapRequest;
use machine::{Nanos, PAGE_BYTES, Protection};

use super::memory::{errno_of, space};
use super::resume::with_signal_mask;
use super::times;
use crate::call::{Call, CallResult};

use context::Context;

/// `struct io_event`.
const EVENT_BYTES: u64 = 32;

/// Errors: `EFAULT`, `EINVAL` for no events or a number that is not 0, `EAGAIN` for more than the system's limit, `ENOMEM`.
fn io_setup(call: &Call<'_>, events: u64, into: u64) -> CallResult {
    let events = events as u32;
    let before: u64 = call.read(into)?;
    if before != 0 || events == 0 || events > 0x1000_0000 / EVENT_BYTES as u32 {
        return Err(Errno::EINVAL);
    }
    let contexts = &call.unix.families.aio;
    contexts.charge(events.into(), call.unix.families.tunables.aio_events.get())?;
    let made = make(call, events, into);
    if made.is_err() {
        contexts.discharge(events.into());
    }
    made
}

fn make(call: &Call<'_>, events: u32, into: u64) -> CallResult {
    let protection = Protection { read: true, write: true, execute: false };
    let request = MapRequest::anonymous(PAGE_BYTES as u64, protection);
    let address = space(call)?.borrow_mut().map(request).map_err(errno_of)?;
    let added = call.unix.families.aio.add(call.process().pid, address, events);
    if let Err(error) = added.and_then(|()| call.write(into, &address)) {
        let _ = call.unix.families.aio.remove(call.process().pid, address);
        unmap(call, address);
        return Err(error);
    }
    Ok(0)
}

fn unmap(call: &Call<'_>, address: u64) {
    if let Ok(space) = space(call) {
        // A program that has unmapped it itself has nothing to lose.
        let _ = space.borrow_mut().unmap(address, PAGE_BYTES as u64);
    }
}

/// Error: `EINVAL`.
fn context(call: &Call<'_>, number: u64) -> Result<Arc<Context>, Errno> {
    call.unix.families.aio.get(call.process().pid, number)
}

/// Error: `EINVAL`.
fn io_destroy(call: &Call<'_>, number: u64) -> CallResult {
    let context = call.unix.families.aio.remove(call.process().pid, number)?;
    call.unix.families.aio.discharge(context.events.into());
    context.is_gone.set(true);
    call.unix.scheduler.wake(&context.arrived);
    unmap(call, number);
    Ok(0)
}

/// How many were taken. Errors, if the first was not: `EINVAL`, `EFAULT`, `EBADF`, `EAGAIN` for no room.
fn io_submit(call: &Call<'_>, number: u64, count: i64, pointers: u64) -> CallResult {
    if count < 0 {
        return Err(Errno::EINVAL);
    }
    let context = context(call, number)?;
    let count = (count as u64).min(context.events.into());
    let mut done = 0;
    while done < count {
        match submit_next(call, &context, pointers, done) {
            Ok(()) => done += 1,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
        // Each may have moved much.
        if call.task.is_interrupted() {
            break;
        }
    }
    Ok(done)
}

fn submit_next(call: &Call<'_>, context: &Context, pointers: u64, index: u64) -> Result<(), Errno> {
    let address: u64 = call.read(pointers.checked_add(index * 8).ok_or(Errno::EFAULT)?)?;
    context.reserve()?;
    operation::perform(call, context, address)
}

/// Waits for at least `least` events and hands out at most `most`. Errors: `EINVAL`, `EFAULT`, `EINTR`.
fn get_events(call: &Call<'_>, [number, least, most, into, time]: [u64; 5]) -> CallResult {
    let deadline = match time {
        0 => None,
        time => Some(crate::calls::times::sleeps::deadline_after(call, times::nanos_of(call.read::<Timespec>(time)?)?)),
    };
    let context = context(call, number)?;
    let (least, most) = (least as i64, most as i64);
    if least < 0 || most < least {
        return Err(Errno::EINVAL);
    }
    let mut done = 0;
    loop {
        while done < most as u64
            && let Some(event) = context.first()
        {
            let place = into.checked_add(done * EVENT_BYTES).ok_or(Errno::EFAULT);
            if let Err(error) = place.and_then(|place| call.write(place, &event)) {
                return if done > 0 { Ok(done) } else { Err(error) };
            }
            context.drop_first();
            done += 1;
        }
        if done >= least as u64 || is_over(call, deadline) {
            return Ok(done);
        }
        if context.is_gone.get() {
            return if done > 0 { Ok(done) } else { Err(Errno::EINVAL) };
        }
        if call.task.is_interrupted() {
            return if done > 0 { Ok(done) } else { Err(Errno::EINTR) };
        }
        call.unix.scheduler.sleep(call.held, &[&context.arrived], deadline);
    }
}

fn is_over(call: &Call<'_>, deadline: Option<Nanos>) -> bool {
    deadline.is_some_and(|deadline| deadline <= call.unix.machine.now())
}

/// The last argument points to the address and the size of a signal set.
fn pget_events(call: &Call<'_>, [number, least, most, into, time, set]: [u64; 6]) -> CallResult {
    let [mask, mask_bytes]: [u64; 2] = if set == 0 { [0, 0] } else { call.read(set)? };
    with_signal_mask(call, mask, mask_bytes, |call| get_events(call, [number, least, most, into, time]))
}

/// All that was submitted has been done, so there is nothing to cancel. Errors: `EFAULT`, `EINVAL`.
fn io_cancel(call: &Call<'_>, number: u64, address: u64) -> CallResult {
    let _key: u32 = call.read(address.checked_add(8).ok_or(Errno::EFAULT)?)?;
    context(call, number)?;
    Err(Errno::EINVAL)
}
