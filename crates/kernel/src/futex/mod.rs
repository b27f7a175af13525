//! Words that programs wait at (futexes), as far as code does it: places for who waits, and the call for the usual cases.
//!
//! Waiting for a word of the process's own, for as long as it takes, and waking who waits so are code. A word has a place by its
//! address; several words share one. At most one thread rests at a place; when others come, or anything else waits there, all is done in
//! Rust, which counts them at the place so that code looks no further.

mod template;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use abi::nr;
use codestore::Code;
use machine::{WaitWords, try_collect};
use quaject::Makers;

pub use template::{Futex, FutexCallouts, FutexCode, Place};

use crate::call::FileCall;
use crate::schedule::Scheduler;
use crate::thread::Thread;

/// A word of a quaspace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Word {
    /// [`machine::Translation::number`].
    pub quaspace: u64,
    pub address: u64,
}

/// The places, and the routine that knows where they are.
pub struct Futexes {
    places: &'static Futex,
    code: Option<&'static Code<FileCall>>,
}

impl Futexes {
    /// Places at which nobody waits; `makers`: with the routine, which stays.
    pub fn new(makers: Option<Makers>) -> Futexes {
        let all =
            try_collect((0..PLACES).map(|_| Place::new())).expect("memory when the machine starts").into_boxed_slice();
        let places: &'static Futex = Box::leak(Box::new(Futex { places: all, nowhere: WaitWords::new() }));
        let makers = makers.filter(|makers| makers.machine.sleeping().is_some());
        let code = makers.and_then(|makers| FutexCode::futex(places, makers, &FutexCallouts {}).create(makers));
        if let (Some(makers), Some(code)) = (makers, &code) {
            makers.machine.offer_call(nr::FUTEX as usize, code.entry().under());
        }
        // What is bound to it has no count of it.
        let code = code.map(|code| &*Box::leak(Box::new(code)));
        Futexes { places, code }
    }

    /// Whether the call may be bound to code.
    pub fn has_code(&self) -> bool {
        self.code.is_some()
    }

    fn place(&self, address: u64) -> &'static Place {
        &self.places.places[place_of(address)]
    }

    /// One more waits for the word in Rust, or one less.
    pub fn count(&self, address: u64, more: i64) {
        let count = &self.place(address).words.count;
        count.store(count.load(Relaxed).wrapping_add_signed(more), Relaxed);
    }

    /// Who rests at the word.
    pub fn resting(&self, scheduler: &Scheduler, word: Word) -> Option<Arc<Thread>> {
        let place = self.place(word.address);
        let is_here = place.address.load(Relaxed) == word.address && place.quaspace.load(Relaxed) == word.quaspace;
        let record = Some(place.words.sleeper.load(Relaxed)).filter(|record| is_here && *record != 0)?;
        let thread = scheduler.thread(scheduler.machine().sleeper(record))?;
        thread.tte().sleeps_by_code().then_some(thread)
    }

    /// Who rests rests at another word from now on. False: somebody waits at its place.
    pub fn move_to(&self, thread: &Thread, word: Word) -> bool {
        let place = self.place(word.address);
        let is_free = place.words.count.load(Relaxed) == 0 && place.words.sleeper.load(Relaxed) == 0;
        if is_free {
            place.address.store(word.address, Relaxed);
            place.quaspace.store(word.quaspace, Relaxed);
            thread.tte().sleep_elsewhere(&place.words);
        }
        is_free
    }

    /// Who rests waits where Rust has noted it.
    pub fn move_away(&self, thread: &Thread) {
        thread.tte().sleep_elsewhere(&self.places.nowhere);
    }
}

/// Places, a power of two.
pub const PLACES: usize = 256;

/// As the routine has it.
fn place_of(address: u64) -> usize {
    let word = address >> 2;
    (word ^ word >> 10) as usize % PLACES
}

impl Place {
    const fn new() -> Place {
        Place { words: WaitWords::new(), address: AtomicU64::new(0), quaspace: AtomicU64::new(0) }
    }
}
