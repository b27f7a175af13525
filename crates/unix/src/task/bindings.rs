//! The synthesized calls of one thread that belong to no file: what is bound, and for what.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::nr;
use codestore::Code;
use kernel::call::CallCode;
use machine::{KernelCell, KernelValue, Tte};

use crate::files::asked::AskedTable;

/// Calls that a thread dispatches by descriptor in synthesized code.
pub const DESCRIPTOR_CALLS: [u64; 5] = [nr::READ, nr::WRITE, nr::LSEEK, nr::PREAD64, nr::PWRITE64];

/// Calls whose answer rarely changes: a thread that asks often gets a constant.
pub const CONSTANT_CALLS: [u64; 8] =
    [nr::GETPID, nr::GETPPID, nr::GETTID, nr::GETUID, nr::GETEUID, nr::GETGID, nr::GETEGID, nr::GETPGRP];

/// A path and the flags that it was opened with.
pub type Opened = (Vec<u8>, u32);

/// A name that the thread's `open` knows: what it was opened as, and what is folded into its node.
pub struct KnownName {
    pub opened: Opened,
    pub read_entry: u64,
    pub write_entry: u64,
    pub recipe: u32,
}

/// What a thread has opened lately, and the routines made for it.
#[derive(Default)]
pub struct OpenCache {
    /// The last names opened in Rust that a routine could open, the latest last; each once, with how often.
    pub seen: Vec<(Opened, u8)>,
    /// The names of `open`, the latest first, and the namespace's generation in which they were found.
    pub names: Vec<KnownName>,
    pub generation: u64,
    pub open: Option<Code<CallCode>>,
    pub close: Option<Code<CallCode>>,
}

/// How often the thread's `poll` and `epoll_wait` were done in Rust on files that have code; [`BOUND`] once they are code.
#[derive(Default)]
pub struct PollCalls {
    pub times: KernelValue<u8>,
    pub waits: KernelValue<u8>,
    /// `poll`, and the table that it knows.
    pub code: KernelCell<Option<(Code<CallCode>, Arc<AskedTable>)>>,
}

/// Calls of a thread's own signals: it sends them to itself, and comes back from handlers.
pub const SIGNAL_CALLS: [u64; 3] = [nr::KILL, nr::TGKILL, nr::RT_SIGRETURN];

/// How often each of [`SIGNAL_CALLS`] was done in Rust where code could have; [`BOUND`] once it is code.
#[derive(Default)]
pub struct SignalCalls {
    pub times: [KernelValue<u8>; SIGNAL_CALLS.len()],
    pub codes: KernelCell<Vec<Code<CallCode>>>,
}

#[derive(Default)]
pub struct Bindings {
    /// How often each of [`DESCRIPTOR_CALLS`] was done in Rust on a file that has a routine for it; [`BOUND`] once its dispatch goes
    /// by the process's descriptor table.
    pub descriptor_calls: [KernelValue<u8>; DESCRIPTOR_CALLS.len()],
    /// How often each of [`CONSTANT_CALLS`] was done in Rust; [`BOUND`] once it is a constant.
    pub constant_calls: [KernelValue<u8>; CONSTANT_CALLS.len()],
    pub opens: KernelCell<OpenCache>,
    pub polls: PollCalls,
    pub signals: SignalCalls,
}

pub const BOUND: u8 = u8::MAX;

/// Making a constant costs as much as a dozen calls that Rust answers: a shell that starts asks for each identity twice.
const CALLS_BEFORE_CONSTANT: u8 = 12;

impl Bindings {
    /// A constant call was done in Rust with this result: when that was often, it is bound.
    pub fn consider_constant(&self, tte: &dyn Tte, number: u64, value: u64) {
        let Some(index) = CONSTANT_CALLS.iter().position(|call| *call == number) else { return };
        let count = &self.constant_calls[index];
        if count.get() < CALLS_BEFORE_CONSTANT {
            count.set(count.get() + 1);
        } else if count.get() != BOUND && tte.bind_constant_call(number as usize, value as u32).is_ok() {
            count.set(BOUND);
        }
    }

    /// Routines that know the thread's signals are bound no longer.
    pub fn unbind_signals(&self, tte: &dyn Tte) {
        for (times, number) in self.signals.times.iter().zip(SIGNAL_CALLS) {
            if times.replace(0) == BOUND {
                tte.bind_call(number as usize, None);
            }
        }
        drop(core::mem::take(&mut *self.signals.codes.borrow_mut()));
    }

    /// An identity has changed: its calls are done in Rust again.
    pub fn unbind_constants(&self, tte: &dyn Tte) {
        for (count, number) in self.constant_calls.iter().zip(CONSTANT_CALLS) {
            if count.replace(0) == BOUND {
                tte.bind_call(number as usize, None);
            }
        }
    }

    /// What a synthesized `open` was folded from has changed (descriptor table, limits, credentials, root directory,
    /// terminal): the call is done in Rust again.
    pub fn unbind_open(&self, tte: &dyn Tte) {
        let cache = core::mem::take(&mut *self.opens.borrow_mut());
        for (code, number) in [(&cache.open, nr::OPENAT), (&cache.close, nr::CLOSE)] {
            if code.is_some() {
                tte.bind_call(number as usize, None);
            }
        }
        self.unbind_polls(tte);
    }

    /// The same of `poll` and `epoll_wait`, which know the descriptor table, and that one descriptor is allowed.
    fn unbind_polls(&self, tte: &dyn Tte) {
        for (count, number) in [(&self.polls.times, nr::POLL), (&self.polls.waits, nr::EPOLL_WAIT)] {
            if count.replace(0) == BOUND {
                tte.bind_call(number as usize, None);
            }
        }
        *self.polls.code.borrow_mut() = None;
    }

    /// The process has another descriptor table: the dispatch that knows the old one goes.
    pub fn unbind_descriptor_calls(&self, tte: &dyn Tte) {
        self.unbind_open(tte);
        for (count, number) in self.descriptor_calls.iter().zip(DESCRIPTOR_CALLS) {
            if count.replace(0) == BOUND {
                tte.bind_call(number as usize, None);
            }
        }
    }
}
