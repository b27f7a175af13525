//! Descriptors as `poll` and `epoll_wait` meet them: slots of what is made for files that are asked often.

use alloc::boxed::Box;

use codestore::Code;
use kernel::call::FileCall;
use kernel::ready::Readiness;
use machine::{Entry, FileEntry, KernelOnce, ReadyEntry, Slot, try_box};
use quaject::interface;

/// A descriptor's way to a routine, or to Rust.
pub type Link = quaject::Slot<FileCall>;

/// Descriptors whose calls can be synthesized; those above go the generic way.
pub const SYNTHESIZED: usize = 256;

/// What an open file has for those who ask what is ready.
pub enum AskedCode {
    /// Says what it is ready for.
    Ready(Code<Readiness>),
    /// The file is an instance of `epoll`: says what is ready of that which it watches.
    Wait(Code<FileCall>),
}

/// What an open file got for being asked often: a word, for most have nothing.
#[derive(Default)]
pub struct Asked(KernelOnce<Box<AskedCode>>);

impl Asked {
    pub const fn new() -> Asked {
        Asked(KernelOnce::new())
    }

    /// Without memory it stays without.
    pub fn set(&self, code: AskedCode) {
        if let Ok(code) = try_box(code) {
            let _ = self.0.set(code);
        }
    }

    pub fn ready(&self) -> Option<&Code<Readiness>> {
        match &**self.0.get()? {
            AskedCode::Ready(code) => Some(code),
            AskedCode::Wait(_) => None,
        }
    }

    pub fn wait(&self) -> Option<&Code<FileCall>> {
        match &**self.0.get()? {
            AskedCode::Wait(code) => Some(code),
            AskedCode::Ready(_) => None,
        }
    }
}

/// By descriptor; made when a process first has such code.
pub struct AskedTable {
    pub ready: [Slot<ReadyEntry>; SYNTHESIZED],
    pub waits: [Link; SYNTHESIZED],
}

impl AskedTable {
    pub fn new(slow: Entry<FileEntry>) -> AskedTable {
        AskedTable {
            ready: core::array::from_fn(|_| Slot::new(Entry::NO_CODE)),
            waits: core::array::from_fn(|_| Link::new(slow.under())),
        }
    }

    /// Links a descriptor with what its file has.
    pub fn bind(&self, index: usize, asked: Option<&Asked>, slow: Entry<FileEntry>) {
        if index < SYNTHESIZED {
            let ready = asked.and_then(Asked::ready).map_or(Entry::NO_CODE, |code| code.entry().under());
            self.ready[index].store(ready);
            interface::link(&self.waits[index], asked.and_then(Asked::wait), slow.under());
        }
    }
}
