//! A pipe's routines, watched: they must do what the others do, and count it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use abi::nr;
use codestore::{Code, Maker, WordCall};
use golden::bench;
use kernel::FileCall;
use kernel::call::watch::WatchWords;
use kernel::pipe::{Pipe, PipeCallouts, PipeCode};
use quaject::Watch;
use synth::{Abs32, Draft, template};

use crate::race::Race;

template! {
    /// Whoever is told counts it.
    pub struct CountTold { word: Abs32 }
    "add qword ptr [{word}], rdi",
    "ret",
}

/// Calls, ticks, most, least, left, inside, slot, told.
const WORDS: usize = 8;

pub struct Watched {
    words: Box<[AtomicU64]>,
    enter: Code<FileCall>,
    _inner: (Vec<Code<FileCall>>, Code<WordCall>),
    /// Calls that were done with it.
    calls: u64,
}

fn publish<C>(draft: Draft) -> Code<C> {
    bench().store.publish("watch", Maker::new("test"), draft).expect("room for code")
}

impl Watched {
    /// The routine of call `number`, told of `callback`.
    pub fn new(pipe: &Arc<Pipe>, number: u64, callback: &'static str) -> Watched {
        let words: Box<[AtomicU64]> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let at = |word: usize| words[word].as_ptr() as u64;
        let [calls, ticks, most, least, left, inside, told] = [0, 1, 2, 3, 4, 5, 6].map(at);
        let words_at = WatchWords { calls, ticks, most, least, left, inside, told };
        words[3].store(u64::MAX, Ordering::Relaxed);
        let count: Code<WordCall> = publish(CountTold { word: Abs32(at(7)) }.draft());
        words[6].store(count.entry().address(), Ordering::Relaxed);
        let makers = bench().makers();
        let (leave, slow) = (words_at.leave(makers).expect("room"), words_at.slow(makers).expect("room"));
        let told = |label| words_at.told(makers, label, number, slow.entry().address()).expect("room for code");
        let ways = [0, 1, 2, 3].map(told);
        let callback = Some((callback, [0, 1, 2, 3].map(|label: usize| ways[label].entry().address())));
        let watching =
            makers.watching(Watch { leave: leave.entry().address(), slow: slow.entry().address(), callback });
        let PipeCode { read, write } = pipe.body().callentries_for(watching, &PipeCallouts {}).expect("room for code");
        let routine = if number == nr::READ { read } else { write }.expect("room for code");
        let enter = words_at.enter(makers, number, routine.entry().address()).expect("room for code");
        let inner = ways.into_iter().chain([leave, slow, routine]).collect();
        Watched { words, enter, _inner: (inner, count), calls: 0 }
    }

    /// The entry for one more call.
    pub fn enter(&mut self) -> u64 {
        self.calls += 1;
        self.enter.entry().address()
    }

    /// The words must say what was done.
    pub fn check(&self, race: &Race) {
        let word = |at: usize| self.words[at].load(Ordering::Relaxed);
        race.same("calls that are accounted for", word(0) + word(4), self.calls);
        race.same("threads inside", word(5), 0);
        race.same("told more often than left", word(7) > word(4), false);
        race.same("ticks in order", word(0) == 0 || word(3) <= word(2) && word(2) <= word(1), true);
    }
}
