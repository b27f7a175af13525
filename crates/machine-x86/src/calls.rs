//! A thread's call table: reading and writing its entries, and standing it aside while all calls are diverted.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use machine::{CallEntry, Entry};

use crate::ground::Ground;
use crate::thread::CALLS;
use crate::tte::X86Tte;

impl<G: Ground> X86Tte<G> {
    /// The entry of call `number`.
    pub fn call(&self, number: usize) -> u64 {
        match &*self.aside.borrow() {
            Some(aside) => aside[number].load(Ordering::Relaxed),
            // SAFETY: the record is mapped.
            None => unsafe { (&raw const (*self.record()).calls[number]).read_volatile() },
        }
    }

    /// Binds call `number`.
    pub fn set_call(&self, number: usize, entry: u64) {
        match &*self.aside.borrow() {
            Some(aside) => aside[number].store(entry, Ordering::Release),
            // SAFETY: the record is mapped; an aligned 8-byte store publishes the entry (R3).
            None => unsafe { (&raw mut (*self.record()).calls[number]).write_volatile(entry) },
        }
    }

    /// See `Tte::divert_calls`.
    pub fn divert(&self, to: Option<(Entry<CallEntry>, Arc<[AtomicU64]>)>) {
        if self.aside.borrow().is_some() {
            let calls = core::array::from_fn::<u64, CALLS, _>(|number| self.call(number));
            *self.aside.borrow_mut() = None;
            calls.into_iter().enumerate().for_each(|(number, entry)| self.set_call(number, entry));
        }
        if let Some((entry, aside)) = to {
            assert!(aside.len() >= CALLS, "the table for diverted calls is too short");
            (0..CALLS).for_each(|number| aside[number].store(self.call(number), Ordering::Relaxed));
            (0..CALLS).for_each(|number| self.set_call(number, entry.address()));
            *self.aside.borrow_mut() = Some(aside);
        }
    }
}
