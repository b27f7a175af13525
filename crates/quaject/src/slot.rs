//! Code whose contract is a name.

use core::fmt;

use codestore::Code;
use machine::Entry;

use crate::contract::Contract;

/// Code whose contract is only known when the kernel runs, for whoever connects by name (the monitor).
#[derive(Clone)]
pub struct AnyCode {
    contract: &'static str,
    code: Code<()>,
}

/// Two ends that do not keep the same contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mismatch {
    pub slot: &'static str,
    pub code: &'static str,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "code of contract {} does not fit a slot of contract {}", self.code, self.slot)
    }
}

impl AnyCode {
    pub fn new<C: Contract>(code: &Code<C>) -> AnyCode {
        AnyCode { contract: C::NAME, code: code.as_any() }
    }

    pub fn contract(&self) -> &'static str {
        self.contract
    }

    /// The entry, for slots of contract `C` alone.
    pub fn entry<C: Contract>(&self) -> Result<Entry<C>, Mismatch> {
        if self.contract == C::NAME {
            Ok(self.code.clone().under().entry())
        } else {
            Err(Mismatch { slot: C::NAME, code: self.contract })
        }
    }
}
