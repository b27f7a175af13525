//! Calls that a signal interrupts: how they go on, and the signals they let through.

use abi::Errno;

use crate::call::Function;
use crate::call::{Call, CallResult};
use crate::signal::set::SignalSet;
use crate::task::thread::RestartBlock;

/// The error of a call that a signal interrupted and that `function` can finish, with times made absolute.
pub fn interrupted_with(call: &Call<'_>, function: Function, arguments: [u64; 6]) -> Errno {
    *call.task.restart_block.borrow_mut() = Some(RestartBlock { function, arguments });
    Errno::EINTR
}

/// Blocks the signals of the set at `address` (null: no change) while `act` runs; the mask stays for a
/// handler that ends the call with `EINTR`.
///
/// Errors: `EINVAL` for a set of another size than 8 bytes, `EFAULT`.
pub fn with_signal_mask(
    call: &Call<'_>,
    address: u64,
    bytes: u64,
    act: impl FnOnce(&Call<'_>) -> CallResult,
) -> CallResult {
    if address == 0 {
        return act(call);
    }
    if bytes != 8 {
        return Err(Errno::EINVAL);
    }
    let set = SignalSet(call.read(address)?);
    call.task.change_mask(|mask| mask.suspend(set));
    let result = act(call);
    if result != Err(Errno::EINTR) {
        call.task.change_mask(|mask| mask.put_back());
    }
    result
}
