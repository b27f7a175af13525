//! Slots: words in data that hold a code address, and what may be stored there.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

use codestore::Code;

use crate::contract::Contract;

/// The address of code with contract `C`.
pub struct Entry<C> {
    address: u64,
    contract: PhantomData<fn(C)>,
}

impl<C> Clone for Entry<C> {
    fn clone(&self) -> Entry<C> {
        *self
    }
}

impl<C> Copy for Entry<C> {}

impl<C> Entry<C> {
    /// Code that is there as long as the machine: where a call goes to be done in Rust. The caller knows that it keeps the
    /// contract.
    pub const fn fixed(address: u64) -> Entry<C> {
        Entry { address, contract: PhantomData }
    }

    pub fn address(self) -> u64 {
        self.address
    }
}

impl<C> From<&Code<C>> for Entry<C> {
    fn from(code: &Code<C>) -> Entry<C> {
        Entry::fixed(code.entry())
    }
}

/// A word that synthesized code jumps through (R3). Code of another contract does not fit:
///
/// ```compile_fail,E0308
/// # use quaject::{Entry, Slot};
/// enum FileCall {}
/// enum CallCode {}
/// let slot: Slot<FileCall> = Slot::new(Entry::fixed(0));
/// slot.store(Entry::<CallCode>::fixed(0));
/// ```
/// Of its own contract it does:
///
/// ```
/// # use quaject::{Entry, Slot};
/// enum FileCall {}
/// let slot: Slot<FileCall> = Slot::new(Entry::fixed(0));
/// slot.store(Entry::fixed(64));
/// assert_eq!(slot.entry().address(), 64);
/// ```
#[repr(transparent)]
pub struct Slot<C> {
    word: AtomicU64,
    contract: PhantomData<fn(C)>,
}

impl<C> Slot<C> {
    pub const fn new(entry: Entry<C>) -> Slot<C> {
        Slot { word: AtomicU64::new(entry.address), contract: PhantomData }
    }

    pub fn store(&self, entry: Entry<C>) {
        self.word.store(entry.address, Ordering::Release);
    }

    pub fn entry(&self) -> Entry<C> {
        Entry::fixed(self.word.load(Ordering::Acquire))
    }
}

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
            Ok(Entry::fixed(self.code.entry()))
        } else {
            Err(Mismatch { slot: C::NAME, code: self.contract })
        }
    }
}
