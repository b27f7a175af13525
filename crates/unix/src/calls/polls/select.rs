//! `select`: the sets of descriptors as bits.

use alloc::vec::Vec;

use abi::Errno;
use abi::poll::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLPRI, POLLRDBAND, POLLRDNORM, POLLWRBAND, POLLWRNORM};
use abi::time::Timeval;
use machine::{Nanos, try_collect, try_filled};

use super::{Waited, read_deadline, ready_of, wait, write_remaining};
use crate::call::{Call, CallResult};
use crate::calls::resume::with_signal_mask;
use crate::calls::times;
use crate::files::descriptors::Descriptor;

/// Poll events that make a descriptor ready in each of the three sets (Linux `fs/select.c`).
const EVENTS: [u16; 3] =
    [POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR, POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR, POLLPRI];

const WORD_BITS: usize = 64;

/// Three sets of descriptors, one behind the other: reads, writes, others.
#[derive(Clone, Copy)]
struct Sets<'a>(&'a [u64]);

impl Sets<'_> {
    fn words(self) -> usize {
        self.0.len() / 3
    }

    /// The descriptors that are in a set.
    fn descriptors(self) -> impl Iterator<Item = usize> {
        (0..self.words()).flat_map(move |at| {
            let mut left = self.0.iter().skip(at).step_by(self.words()).fold(0, |all, word| all | word);
            core::iter::from_fn(move || {
                let bit = (left != 0).then(|| at * WORD_BITS + left.trailing_zeros() as usize);
                left &= left.wrapping_sub(1);
                bit
            })
        })
    }

    /// Puts what is ready into sets of the same size, and counts it. Error: `EBADF` for a descriptor that is not open.
    fn look(self, call: &Call<'_>, ready: &mut [u64]) -> Result<u64, Errno> {
        let mut found = 0;
        for descriptor in self.descriptors() {
            let (place, bit) = (descriptor / WORD_BITS, 1 << (descriptor % WORD_BITS));
            let asked = |set: usize| self.0[set * self.words() + place] & bit != 0;
            let events = (0..3).filter(|set| asked(*set)).fold(0, |events, set| events | EVENTS[set]);
            let is_ready = ready_of(call, descriptor as i32, events);
            if is_ready & abi::poll::POLLNVAL != 0 {
                return Err(Errno::EBADF);
            }
            for set in (0..3).filter(|set| asked(*set) && is_ready & EVENTS[*set] != 0) {
                ready[set * self.words() + place] |= bit;
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
    let places = call.files().size().next_power_of_two().max(WORD_BITS);
    let count = (count as usize).min(places);
    let words = count.div_ceil(WORD_BITS);
    let mut few = [0; 6];
    let mut many = Vec::new();
    if words > 1 {
        many = try_filled(0, 6 * words)?;
    }
    let (asked, ready) = if words > 1 { &mut many[..] } else { &mut few[..6 * words] }.split_at_mut(3 * words);
    // Where each word of the sets that the program gave lies.
    let places = || (0..3 * words).map(|at| (at, addresses[at / words], at % words)).filter(|(_, set, _)| *set != 0);
    for (at, set, word) in places() {
        let below = (count - word * WORD_BITS).min(WORD_BITS);
        asked[at] = call.read::<u64>(set.wrapping_add(word as u64 * 8))? & u64::MAX >> (WORD_BITS - below);
    }
    let asked = Sets(asked);
    let files = || try_collect(asked.descriptors().filter_map(|number| call.files().get(Descriptor(number as u32))));
    let waited = wait(call, deadline, files, || asked.look(call, ready))?;
    if let Waited::Ready(_) = waited {
        for (at, set, word) in places() {
            call.write(set.wrapping_add(word as u64 * 8), &ready[at])?;
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
    Ok(if nanos == Nanos(0) { nanos } else { crate::calls::times::sleeps::deadline_after(call, nanos) })
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
