//! Rules that the races with the host in `tests/` do not reach.

mod calls;
mod decisions;
mod frames;

use abi::signal::{SA_RESTORER, SA_SIGINFO, SigAction};

/// A handler with a restorer.
pub fn handled(flags: u64) -> SigAction {
    SigAction { sa_handler: 0x40_1000, sa_flags: SA_RESTORER | SA_SIGINFO | flags, sa_restorer: 0x40_2000, sa_mask: 0 }
}
