//! Birth certificates: what a synthesized routine is and what was folded into it (rule R6).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use synth::{FaultLanding, Origin};

/// Who asked for a routine: plain words until somebody reads them, because most certificates are never read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Maker {
    /// The call or the deed, for example `pipe2`.
    pub what: &'static str,
    /// Of which thread.
    pub thread: Option<u32>,
    /// The number of the system call that the routine does.
    pub call: Option<u16>,
}

impl Maker {
    pub const fn new(what: &'static str) -> Maker {
        Maker { what, thread: None, call: None }
    }

    /// The routine is of thread `thread` alone.
    pub const fn thread(self, thread: u32) -> Maker {
        Maker { thread: Some(thread), ..self }
    }

    /// The routine does system call `number`.
    pub const fn call(self, number: usize) -> Maker {
        Maker { call: Some(number as u16), ..self }
    }
}

impl fmt::Display for Maker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.what)?;
        if let Some(call) = self.call {
            write!(out, " {call}")?;
        }
        match self.thread {
            Some(thread) => write!(out, " of thread {thread}"),
            None => Ok(()),
        }
    }
}

/// Everything that is known about one live routine, but its bytes.
#[derive(Clone, Debug)]
pub struct Birth {
    /// For example `pipe.write`.
    pub name: &'static str,
    /// The register contract under which it is entered, as Rust names the type.
    pub contract: &'static str,
    pub maker: Maker,
    pub address: u64,
    pub bytes: u32,
    /// The templates that the code was made of; with the code they tell what each hole was filled with
    /// ([`Origin::holes`]).
    pub origins: Arc<[Origin]>,
    pub landings: Vec<FaultLanding>,
}

impl Birth {
    pub fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.bytes as u64
    }

    /// Where execution continues after an unresolvable user fault at `address`.
    pub fn landing(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.address)? as u32;
        let landing = self.landings.iter().find(|range| (range.from..range.to).contains(&offset))?;
        Some(self.address + landing.landing as u64)
    }
}
