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

/// Three sets: what is asked, or what is answered. A set that the program did not give stays empty.
struct Sets([Vec<u8>; 3]);

const WORD_BITS: usize = 64;

impl Sets {
    fn read(call: &Call<'_>, bytes: usize, addresses: [u64; 3]) -> Result<Sets, Errno> {
        let set = |address| if address == 0 { Ok(Vec::new()) } else { call.read_bytes(address, bytes) };
        let [reads, writes, others] = addresses;
        Ok(Sets([set(reads)?, set(writes)?, set(others)?]))
    }

    /// 64 bits of a set.
    fn word(&self, set: usize, at: usize) -> u64 {
        let bytes = self.0[set].get(at * 8..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// The bits below `count` that are in a set.
    fn bits(&self, count: usize) -> impl Iterator<Item = usize> {
        (0..count.div_ceil(WORD_BITS)).flat_map(move |at| {
            let all = (0..3).fold(0, |all, set| all | self.word(set, at));
            let below = count - at * WORD_BITS;
            let mut left = if below < WORD_BITS { all & ((1 << below) - 1) } else { all };
            core::iter::from_fn(move || {
                let bit = (left != 0).then(|| at * WORD_BITS + left.trailing_zeros() as usize);
                left &= left.wrapping_sub(1);
                bit
            })
        })
    }

    fn has(&self, set: usize, bit: usize) -> bool {
        self.word(set, bit / WORD_BITS) >> (bit % WORD_BITS) & 1 != 0
    }

    /// Error: `EBADF` for a bit whose descriptor is not open.
    fn look(&self, call: &Call<'_>, count: usize, ready: &mut Sets) -> Result<u64, Errno> {
        let mut found = 0;
        for bit in self.bits(count) {
            let asked = EVENTS.into_iter().enumerate().filter(|(set, _)| self.has(*set, bit));
            let is_ready = ready_of(call, bit as i32, asked.clone().fold(0, |events, (_, more)| events | more));
            if is_ready & abi::poll::POLLNVAL != 0 {
                return Err(Errno::EBADF);
            }
            for (set, _) in asked.filter(|(_, mask)| is_ready & mask != 0) {
                ready.0[set][bit / 8] |= 1 << (bit % 8);
                found += 1;
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
    let asked = Sets::read(call, count.div_ceil(WORD_BITS) * 8, addresses)?;
    let empty = |set: usize| call.buffer(asked.0[set].len());
    let mut ready = Sets([empty(0)?, empty(1)?, empty(2)?]);
    let files = || asked.bits(count).filter_map(|bit| call.files().get(Descriptor(bit as u32))).collect();
    let waited = wait(call, deadline, files, || asked.look(call, count, &mut ready))?;
    if let Waited::Ready(_) = waited {
        for (set, address) in ready.0.iter().zip(addresses) {
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
