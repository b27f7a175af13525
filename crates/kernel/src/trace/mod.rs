//! The execution trace (S-121): calls, returns, switches, interrupts and syntheses as fixed records in a ring.
//!
//! ```text
//!   0  u64 time      of CALL the processor's counter, of all others ns since boot
//!   8  u16 kind      10 u16 thread (TTE)      12 u32 number (call, interrupt, name)
//!   16 u64 a         24 u64 b
//! ```
//! While nothing is traced no hot path has an instruction more: `begin` diverts the call table of each thread to a
//! routine made for it (`template`), and `end` puts the tables back. Switches, interrupts and syntheses are noted by
//! the Rust code that makes them, which looks at one word; while a trace runs, the machine leaves pre-emption to it.
//!
//! | what                                  | record                                             |
//! |---------------------------------------|----------------------------------------------------|
//! | a call, synthesized or not            | CALL, when it enters the kernel                    |
//! | its end, when it was done in Rust     | RETURN, with the result                            |
//! | a switch                              | SWITCH, with the successor                         |
//! | timer and devices                     | INTERRUPT, those that the kernel sees              |
//! | a routine is published                | BORN                                               |
//! | a page fault that is served           | PAGE                                               |
//! | a file read or written in Rust        | FILE_READ, FILE_WRITE, with file and position      |
//!
//! A call that synthesized code finishes leaves no RETURN, for there is no instruction of its own at its end, and no note of
//! the file; with `--generic` all of them do. When the ring is full the oldest records go; the reader is told how many.

mod template;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use codestore::{Birth, Code, Watch};
use machine::{CALLS_MAX, KernelCell, KernelValue, Machine, TryGrow, TteId, try_arc_list, try_collect};

use crate::call::CallCode;
use crate::thread::Thread;
use quaject::Makers;
pub use template::Notes;

/// What a record is about.
pub mod kind {
    /// A call enters the kernel. number = call, a, b = its first two arguments.
    pub const CALL: u16 = 1;
    /// A call done in Rust returns. number = call, a = result.
    pub const RETURN: u16 = 2;
    /// The thread is left. number = successor, a = 1 when it goes to sleep.
    pub const SWITCH: u16 = 3;
    /// number = 0 the timer, 1 a device.
    pub const INTERRUPT: u16 = 4;
    /// A routine is published. number = its name in the list of names, a = address, b = bytes.
    pub const BORN: u16 = 5;
    /// As CALL, noted by Rust: numbers that no call table holds.
    pub const UNKNOWN_CALL: u16 = 6;
    /// A file's bytes are read in Rust. number = bytes, a = the file's number, b = position.
    pub const FILE_READ: u16 = 7;
    /// The same for writes.
    pub const FILE_WRITE: u16 = 8;
    /// A page that a program touched is supplied. number = 0 read, 1 write, 2 execute, a = address of the page.
    pub const PAGE: u16 = 9;
}

/// Bytes of a record.
pub const RECORD_BYTES: usize = 32;
/// 64-bit words of a record.
const WORDS: usize = RECORD_BYTES / 8;
/// Least and most records that a ring may have.
pub const RECORDS_MIN: usize = 1 << 8;
pub const RECORDS_MAX: usize = 1 << 18;

/// Why a trace does not begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceError {
    /// One runs already.
    Busy,
    NoMemory,
}

/// The trace of this kernel: at most one at a time.
pub struct Trace {
    machine: &'static dyn Machine,
    is_on: KernelValue<bool>,
    /// Stays when the trace ends, to be read, until the next one begins.
    ring: KernelCell<Option<Ring>>,
    /// The code of each thread whose calls are recorded.
    diverted: KernelCell<Vec<(TteId, Code<CallCode>)>>,
}

struct Ring {
    /// Four words each; their number is a power of two.
    records: Vec<AtomicU64>,
    /// Records ever written: the code of the threads counts it up.
    next: Arc<AtomicU64>,
    /// Names of the routines that were published.
    names: Vec<&'static str>,
}

impl Ring {
    fn new(records: usize) -> Option<Ring> {
        let records = records.clamp(RECORDS_MIN, RECORDS_MAX).next_power_of_two();
        let words = try_collect((0..records * WORDS).map(|_| AtomicU64::new(0))).ok()?;
        Some(Ring { records: words, next: Arc::new(AtomicU64::new(0)), names: Vec::new() })
    }

    /// How many records it holds.
    fn capacity(&self) -> u64 {
        (self.records.len() / WORDS) as u64
    }

    fn note(&self, words: [u64; WORDS]) {
        let at = self.next.fetch_add(1, Ordering::Relaxed) & (self.capacity() - 1);
        for (word, value) in self.records[at as usize * WORDS..].iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// The number of a routine's name.
    #[expect(clippy::disallowed_methods, reason = "as many as the kernel has names for")]
    fn name(&mut self, name: &'static str) -> u32 {
        let known = self.names.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        }) as u32
    }
}

impl Trace {
    pub fn new(machine: &'static dyn Machine) -> Trace {
        let diverted = KernelCell::new(Vec::new());
        Trace { machine, is_on: KernelValue::new(false), ring: KernelCell::new(None), diverted }
    }

    /// Whether something is recorded now.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// Begins to record, in a ring of about `records` records. `divert` must follow for each thread.
    pub fn begin(&self, records: usize) -> Result<(), TraceError> {
        if self.is_on() {
            return Err(TraceError::Busy);
        }
        // The old ring goes first.
        *self.ring.borrow_mut() = None;
        *self.ring.borrow_mut() = Some(Ring::new(records).ok_or(TraceError::NoMemory)?);
        self.is_on.set(true);
        Ok(())
    }

    /// From now on the calls of this thread are recorded. Without room for the code they are not.
    pub fn divert(&self, makers: Makers, thread: &Thread) {
        if !self.is_on() {
            return;
        }
        // The table, and behind it room for two registers.
        let calls = try_collect((0..CALLS_MAX + 2).map(|_| AtomicU64::new(0))).and_then(try_arc_list);
        let room = self.diverted.borrow_mut().room_for(1);
        let (Ok(calls), Ok(())) = (calls, room) else { return };
        // The birth of the code is noted, too: nothing may be borrowed then.
        let notes = self.ring.borrow().as_ref().map(|ring| Notes {
            keep: calls[CALLS_MAX..].as_ptr() as u64,
            next: Arc::as_ptr(&ring.next) as u64,
            last: ring.capacity() as u32 - 1,
            ring: ring.records.as_ptr() as u64,
            thread: thread.id(),
            calls: calls.as_ptr() as u64,
        });
        if let Some(code) = notes.and_then(|notes| notes.synthesize(makers)) {
            thread.tte().divert_calls(Some((code.entry().under(), calls)));
            // Code of before goes only now, when nothing leads to it any more.
            self.forget(thread.id());
            self.diverted.borrow_mut().put((thread.id(), code));
        }
    }

    /// The thread ends: its calls go the direct way again.
    pub fn release(&self, thread: &Thread) {
        thread.tte().divert_calls(None);
        self.forget(thread.id());
    }

    fn forget(&self, thread: TteId) {
        self.diverted.borrow_mut().retain(|(known, _)| *known != thread);
    }

    /// Nothing more is recorded. `release` must have been called for each thread that is traced. When nothing was recorded
    /// any more before, the records go, too.
    pub fn end(&self) {
        if !self.is_on.replace(false) {
            *self.ring.borrow_mut() = None;
        }
    }

    /// Notes what Rust knows of.
    #[cold]
    pub fn note(&self, kind: u16, thread: TteId, number: u32, a: u64, b: u64) {
        if let Some(ring) = &*self.ring.borrow() {
            let head = u64::from(kind) | u64::from(thread.0 as u16) << 16 | u64::from(number) << 32;
            ring.note([self.machine.now().0, head, a, b]);
        }
    }

    /// Records ever written, and names of routines.
    pub fn written(&self) -> u64 {
        self.ring.borrow().as_ref().map_or(0, |ring| ring.next.load(Ordering::Relaxed))
    }

    /// The name with this number.
    pub fn name(&self, number: usize) -> Option<&'static str> {
        self.ring.borrow().as_ref()?.names.get(number).copied()
    }

    /// Appends records from number `from` on, as many as fit `room` bytes, with all times in nanoseconds. Returns how many
    /// are lost between `from` and the first of them.
    pub fn read(&self, from: u64, room: usize, out: &mut Vec<u8>) -> u64 {
        let ring = self.ring.borrow();
        let Some(ring) = &*ring else { return 0 };
        let written = ring.next.load(Ordering::Relaxed);
        let oldest = written.saturating_sub(ring.capacity());
        let first = from.max(oldest);
        let last = written.min(first + (room / RECORD_BYTES) as u64);
        if out.room_for((last - first) as usize * RECORD_BYTES).is_err() {
            return last - from.min(last);
        }
        for number in first..last {
            let at = (number & (ring.capacity() - 1)) as usize * WORDS;
            let mut words = [0; WORDS];
            for (word, value) in words.iter_mut().zip(&ring.records[at..]) {
                *word = value.load(Ordering::Relaxed);
            }
            if words[1] as u16 == kind::CALL {
                words[0] = self.machine.time_of_counter(words[0]).0;
            }
            words.iter().flat_map(|word| word.to_le_bytes()).for_each(|byte| out.put(byte));
        }
        first - from.min(first)
    }

    /// The running thread is left for `successor`.
    #[inline]
    pub(crate) fn switch(&self, from: TteId, successor: TteId, sleeps: bool) {
        if self.is_on() {
            self.note(kind::SWITCH, from, successor.0, sleeps.into(), 0);
        }
    }

    /// Bytes of a file are read or written in Rust.
    #[inline]
    pub fn file(&self, kind: u16, file: u64, position: u64, bytes: usize) {
        if self.is_on() {
            self.note(kind, self.machine.current_tte(), bytes.min(u32::MAX as usize) as u32, file, position);
        }
    }

    /// A page is supplied to a program that touched it: 0 by a read, 1 by a write, 2 by an instruction.
    #[inline]
    pub fn page(&self, thread: TteId, access: u32, address: u64) {
        if self.is_on() {
            self.note(kind::PAGE, thread, access, address & !0xfff, 0);
        }
    }

    /// An interrupt that the kernel sees.
    #[inline]
    pub fn interrupt(&self, number: u32) {
        if self.is_on() {
            self.note(kind::INTERRUPT, self.machine.current_tte(), number, 0, 0);
        }
    }
}

impl Watch for Trace {
    fn published(&self, birth: &Birth) {
        if !self.is_on() {
            return;
        }
        let number = match &mut *self.ring.borrow_mut() {
            Some(ring) => ring.name(birth.name),
            None => return,
        };
        self.note(kind::BORN, self.machine.current_tte(), number, birth.address, birth.bytes.into());
    }
}
