//! Birth certificates: what a synthesized routine is and what was folded into it (rule R6).

use alloc::string::String;
use alloc::vec::Vec;

use synth::{FaultLanding, Origin};

/// Everything that is known about one live routine.
#[derive(Clone, Debug)]
pub struct Birth {
    /// For example `pipe.write`.
    pub name: &'static str,
    /// Who asked for it, for example `pipe2 in thread 3`.
    pub maker: String,
    pub address: u64,
    pub bytes: u32,
    pub origins: Vec<Origin>,
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
