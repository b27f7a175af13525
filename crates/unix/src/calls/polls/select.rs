//! `select`: the sets of descriptors as bits.

use alloc::vec::Vec;

use abi::Errno;
use abi::poll::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLPRI, POLLRDBAND, POLLRDNORM, POLLWRBAND, POLLWRNORM};
use abi::time::Timeval;
use machine::Nanos;

use super::{Waited, read_deadline, ready_of, wait, write_remaining};
use crate::call::{Call, CallResult};
use crate::calls::resume::with_signal_mask;
use crate::calls::times;
use crate::files::Descriptor;

/// Poll events that make a descriptor ready in each of the three sets (Linux `fs/select.c`).
const EVENTS: [u16; 3] =
    [POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR, POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR, POLLPRI];

/// The three sets: what is asked and what is answered. A set that the program did not give stays empty.
struct Sets {
    asked: [Vec<u8>; 3],
    ready: [Vec<u8>; 3],
}

fn has(set: &[u8], bit: usize) -> bool {
    set.get(bit / 8).is_some_and(|byte| byte & 1 << (bit % 8) != 0)
}

impl Sets {
    fn read(call: &Call<'_>, count: usize, addresses: [u64; 3]) -> Result<Sets, Errno> {
        let bytes = count.div_ceil(64) * 8;
        let mut sets = Sets { asked: Default::default(), ready: Default::default() };
        for (index, address) in addresses.into_iter().enumerate() {
            if address != 0 {
                sets.asked[index] = call.read_bytes(address, bytes)?;
                sets.ready[index] = call.buffer(bytes)?;
            }
        }
        Ok(sets)
    }

    fn events(&self, bit: usize) -> u16 {
        let asked = self.asked.iter().zip(EVENTS).filter(|(set, _)| has(set, bit));
        asked.fold(0, |events, (_, more)| events | more)
    }

    /// Error: `EBADF` for a bit whose descriptor is not open.
    fn look(&mut self, call: &Call<'_>, count: usize) -> Result<u64, Errno> {
        let mut found = 0;
        for bit in 0..count {
            let events = self.events(bit);
            if events == 0 {
                continue;
            }
            let ready = ready_of(call, bit as i32, events);
            if ready & abi::poll::POLLNVAL != 0 {
                return Err(Errno::EBADF);
            }
            for (index, mask) in EVENTS.into_iter().enumerate() {
                if has(&self.asked[index], bit) && ready & mask != 0 {
                    self.ready[index][bit / 8] |= 1 << (bit % 8);
                    found += 1;
                }
            }
        }
        Ok(found)
    }
}

/// Errors: `EINVAL` for a negative count, `EBADF`, `EFAULT`.
fn select_until(call: &Call<'_>, count: i32, addresses: [u64; 3], deadline: Option<Nanos>) -> Result<Waited, Errno> {
    if count < 0 {
        return Err(Errno::EINVAL);
    }
    // Bits behind the descriptor table do not count; Linux's table has 64 places at least.
    let places = call.files().size().next_power_of_two().max(64);
    let count = (count as usize).min(places);
    let mut sets = Sets::read(call, count, addresses)?;
    let asked: Vec<u32> = (0..count).filter(|bit| sets.events(*bit) != 0).map(|bit| bit as u32).collect();
    let files = || asked.iter().filter_map(|fd| call.files().get(Descriptor(*fd))).collect();
    let waited = wait(call, deadline, files, || sets.look(call, count))?;
    if let Waited::Ready(_) = waited {
        for (set, address) in sets.ready.iter().zip(addresses) {
            if address != 0 {
                call.copy_out(address, set)?;
            }
        }
    }
    Ok(waited)
}

fn finish(waited: Result<Waited, Errno>) -> CallResult {
    match waited? {
        Waited::Ready(ready) => Ok(ready),
        Waited::Interrupted => Err(Errno::EINTR),
    }
}

/// Microseconds may be more than a million here.
pub fn select(call: &Call<'_>, count: i32, sets: [u64; 3], time: u64) -> CallResult {
    let deadline = if time == 0 { None } else { Some(deadline_of(call, call.read(time)?)?) };
    let waited = select_until(call, count, sets, deadline);
    if let Some(deadline) = deadline {
        let left = deadline.saturating_sub(call.unix.machine.now());
        let _ = call.write(time, &times::timeval_of(left));
    }
    finish(waited)
}

fn deadline_of(call: &Call<'_>, time: Timeval) -> Result<Nanos, Errno> {
    let seconds = time.tv_sec.checked_add(time.tv_usec / 1_000_000).ok_or(Errno::EINVAL)?;
    let nanos = times::nanos_of_timeval(Timeval { tv_sec: seconds, tv_usec: time.tv_usec % 1_000_000 })?;
    Ok(if nanos == Nanos(0) { nanos } else { times::deadline_after(call, nanos) })
}

/// The sixth argument points to the address and the size of the signal set.
pub fn pselect6(call: &Call<'_>, count: i32, sets: [u64; 3], time: u64, mask: u64) -> CallResult {
    let [mask, mask_bytes]: [u64; 2] = if mask == 0 { [0, 0] } else { call.read(mask)? };
    let deadline = read_deadline(call, time)?;
    with_signal_mask(call, mask, mask_bytes, |call| {
        let waited = select_until(call, count, sets, deadline);
        write_remaining(call, time, deadline);
        finish(waited)
    })
}
