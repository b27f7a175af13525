//! Code addresses, as values that cannot be made up.
#![allow(unsafe_code, reason = "naming an address as code is a claim that the compiler cannot check")]

use alloc::sync::Arc;
use core::any::Any;
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

/// The address of code that keeps contract `C`: it may be entered where `C` is expected, as long as it is there. Whoever
/// stores one where the processor finds it keeps the code alive meanwhile (codestore's `Code`).
///
/// Only who can say why it is true makes one; a number is none:
///
/// ```compile_fail
/// let entry: machine::Entry<machine::CallEntry> = 0x1234_5678;
/// ```
/// ```compile_fail
/// #![forbid(unsafe_code)]
/// // SAFETY: nobody enters it.
/// let entry: machine::Entry<machine::CallEntry> = unsafe { machine::Entry::new(0x1234_5678) };
/// ```
/// ```
/// // SAFETY: nobody enters it.
/// let entry: machine::Entry<machine::CallEntry> = unsafe { machine::Entry::new(0x1234_5678) };
/// assert_eq!(entry.address(), 0x1234_5678);
/// ```
#[repr(transparent)]
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

impl<C> PartialEq for Entry<C> {
    fn eq(&self, other: &Entry<C>) -> bool {
        self.address == other.address
    }
}

impl<C> Eq for Entry<C> {}

impl<C> fmt::Debug for Entry<C> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:#x}", self.address)
    }
}

impl<C> Entry<C> {
    /// # Safety
    /// As long as the entry, or a copy of it, can be entered, code stands at `address` that keeps contract `C`.
    pub const unsafe fn new(address: u64) -> Entry<C> {
        Entry { address, contract: PhantomData }
    }

    pub const fn address(self) -> u64 {
        self.address
    }

    /// The same code where contract `D` is expected.
    pub fn under<D>(self) -> Entry<D>
    where
        C: Keeps<D>,
    {
        Entry { address: self.address, contract: PhantomData }
    }
}

/// A word that synthesized code jumps through (R3). Code of another contract does not fit:
///
/// ```compile_fail,E0308
/// # use machine::{Entry, Slot};
/// enum FileCall {}
/// enum CallCode {}
/// # // SAFETY: nobody enters it.
/// # let entry = |address| unsafe { Entry::<FileCall>::new(address) };
/// let slot: Slot<FileCall> = Slot::new(entry(0));
/// // SAFETY: nobody enters it.
/// slot.store(unsafe { Entry::<CallCode>::new(0) });
/// ```
/// Of its own contract it does:
///
/// ```
/// # use machine::{Entry, Slot};
/// enum FileCall {}
/// # // SAFETY: nobody enters it.
/// # let entry = |address| unsafe { Entry::<FileCall>::new(address) };
/// let slot: Slot<FileCall> = Slot::new(entry(0));
/// slot.store(entry(64));
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
        // SAFETY: the word is only stored from an entry of this contract, by `store` or by code that was made to change it.
        unsafe { Entry::new(self.word.load(Ordering::Acquire)) }
    }
}

/// The entries of one call by descriptor, in a table that stays as long as it is bound.
pub struct DescriptorEntries {
    address: u64,
    count: u32,
    _table: Arc<dyn Any + Send + Sync>,
}

impl DescriptorEntries {
    /// Those that `select` shows of a table. The table is kept, so what was shown of it stays where it is.
    pub fn of<T: Send + Sync + 'static, C: Keeps<FileEntry> + 'static>(
        table: &Arc<T>,
        select: impl FnOnce(&T) -> &[Slot<C>],
    ) -> DescriptorEntries {
        let slots = select(table);
        DescriptorEntries { address: slots.as_ptr() as u64, count: slots.len() as u32, _table: table.clone() }
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    pub fn count(&self) -> u32 {
        self.count
    }
}

/// Code of this contract may be entered where `D` is expected. Contracts of the kernel's own say so of those below, which is all
/// that the machine knows of them.
pub trait Keeps<D> {}

impl<C> Keeps<C> for C {}

/// In a thread's call table: entered by `jmp` on the program's stack; rax = call number, arguments in rdi, rsi, rdx, r10,
/// r8, r9, rcx and r11 as `syscall` left them.
pub enum CallEntry {}

/// Behind a descriptor: as [`CallEntry`], on the thread's kernel stack with the program's stack pointer on top.
pub enum FileEntry {}

/// Led to by a device's interrupt; ends as the machine's fragments say.
pub enum DeviceEntry {}

/// Led to by the sample clock's interrupt; ends with [`SampleClock::end`](crate::SampleClock::end).
pub enum SampleEntry {}

/// As [`SampleEntry`], but called as a procedure, to be measured.
pub enum SampleProcedure {}

/// Where the timer's handler goes for an alarm that has rung, with what it has saved on the stack.
pub enum AlarmEntry {}

impl Entry<AlarmEntry> {
    /// The alarm is Rust's: the timer's handler goes to the kernel. Nobody enters it.
    pub const RUST: Entry<AlarmEntry> = Entry { address: 0, contract: PhantomData };
}

/// A procedure that says what something behind a descriptor is ready for.
pub enum ReadyEntry {}

impl Entry<ReadyEntry> {
    /// Only Rust can say. Nobody enters it.
    pub const NO_CODE: Entry<ReadyEntry> = Entry { address: 0, contract: PhantomData };
}

/// Led to by the timer's interrupt; ends with [`TimerCode::end`](crate::TimerCode::end).
pub enum TimerEntry {}
