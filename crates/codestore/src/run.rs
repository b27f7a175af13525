//! Routines that Rust enters: the register contract is C's calling convention.

use crate::store::Code;

/// Takes up to six words and returns one, in C's calling convention; leaves everything else as it was, and returns.
pub enum WordCall {}

/// A routine that people asked for (the monitor's expressions): takes nothing, returns [`Ending`] in rax and rdx. A fault
/// in it that has a landing goes there, whatever the address.
pub enum Asked {}

/// What an [`Asked`] routine returns.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ending {
    pub value: u64,
    /// 0: it came to its end.
    pub why: u64,
}

impl Code<WordCall> {
    /// Runs the routine on the stack of the running thread.
    pub fn call(&self, words: [u64; 6]) -> u64 {
        let [a, b, c, d, e, f] = words;
        // SAFETY: 1. The routine is live while `self` is. 2. Whoever published it under this contract vouches for its
        // convention.
        let entry = unsafe {
            core::mem::transmute::<u64, extern "C" fn(u64, u64, u64, u64, u64, u64) -> u64>(self.entry().address())
        };
        entry(a, b, c, d, e, f)
    }
}

impl Code<Asked> {
    /// Runs the routine on the stack of the running thread.
    pub fn run(&self) -> Ending {
        // SAFETY: as for `call`.
        let entry = unsafe { core::mem::transmute::<u64, extern "C" fn() -> Ending>(self.entry().address()) };
        entry()
    }
}
