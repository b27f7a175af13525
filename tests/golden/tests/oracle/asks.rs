//! `call.poll` and `epoll.look`, with the readiness of pipe ends and counters, against a plain model: all ways into Rust must be taken
//! exactly where the model says.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use abi::nr;
use codestore::Code;
use golden::{Access, OnlyTte, Way, bench};
use kernel::call::CallCode;
use kernel::ready::Readiness;
use kernel::ready::counter::CounterReady;
use kernel::ready::instance::{Looks, Watched};
use kernel::ready::pipe::PipeReady;
use kernel::ready::poll::Polls;

use crate::race::{Race, program};

/// Slots of the table; the last one is of something that only Rust can ask.
const SLOTS: usize = 4;
const CAPACITY: u64 = 65536;

/// A pipe's words and a counter's, as their readiness knows them.
#[derive(Default)]
struct Words {
    head: AtomicU64,
    tail: AtomicU64,
    write_limit: AtomicU64,
    readers: AtomicU32,
    writers: AtomicU32,
    count: AtomicU64,
}

pub struct Asks {
    words: Arc<Words>,
    ready: [Code<Readiness>; SLOTS - 1],
    poll: Code<CallCode>,
    looks: Looks,
    /// What is watched: which of `ready`, events, data.
    watched: Vec<(usize, u32, u64)>,
    _table: &'static [u64],
}

impl Asks {
    pub fn new() -> Asks {
        let (makers, words) = (bench().makers(), Arc::new(Words::default()));
        let pipe = PipeReady {
            head: words.head.as_ptr() as u64,
            tail: words.tail.as_ptr() as u64,
            write_limit: words.write_limit.as_ptr() as u64,
            readers: words.readers.as_ptr() as u64,
            writers: words.writers.as_ptr() as u64,
        };
        let counter = CounterReady { count: words.count.as_ptr() as u64 };
        let ready = [pipe.of_read_end(makers), pipe.of_write_end(makers), counter.code(makers)];
        let ready = ready.map(|code| code.expect("room for code"));
        let mut table: Vec<u64> = ready.iter().map(|code| code.entry().address()).collect();
        table.push(0);
        let table: &[u64] = table.leak();
        let polls = Polls { ready: table.as_ptr() as u64, count: SLOTS as u64 };
        let poll = polls.poll(makers, &OnlyTte).expect("room for code");
        let looks = Looks::new(makers).expect("room for code");
        Asks { words, ready, poll, looks, watched: Vec::new(), _table: table }
    }

    pub fn step(&mut self, race: &mut Race) {
        self.change(race);
        if race.random.once_in(2) { self.poll(race) } else { self.look(race) }
    }

    fn change(&mut self, race: &mut Race) {
        let words = &self.words;
        let fill = race.random.pick(&[0, 1, 2, CAPACITY - 4097, CAPACITY - 4096, CAPACITY - 4095, CAPACITY]);
        let tail = race.random.bits() >> 1;
        words.tail.store(tail, Relaxed);
        words.head.store(tail + fill, Relaxed);
        words.readers.store(race.random.pick(&[0, 1, 1, 1, 2]), Relaxed);
        words.writers.store(race.random.pick(&[0, 1, 1, 1, 2]), Relaxed);
        words.write_limit.store(if words.readers.load(Relaxed) == 0 { 0 } else { CAPACITY }, Relaxed);
        words.count.store(race.random.pick(&[0, 1, 5, u64::MAX - 2, u64::MAX - 1]), Relaxed);
        if race.random.once_in(20) {
            self.watch(race);
        }
    }

    /// What a slot is ready for; `None`: that is Rust's to say.
    fn ready_of(&self, slot: usize) -> Option<u32> {
        let words = &self.words;
        let fill = words.head.load(Relaxed) - words.tail.load(Relaxed);
        let count = words.count.load(Relaxed);
        match slot {
            0 => (words.writers.load(Relaxed) > 0).then_some(if fill > 0 { 0x41 } else { 0 }),
            1 => (words.readers.load(Relaxed) > 0).then_some(if CAPACITY - fill >= 4096 { 0x104 } else { 0 }),
            2 => Some(u32::from(count > 0) | u32::from(count < u64::MAX - 1) << 2),
            _ => None,
        }
    }

    fn poll(&mut self, race: &mut Race) {
        let record = program().buffer(&mut race.random, 8);
        let slot = race.random.pick(&[0, 1, 2, 3, 4, u32::MAX]);
        let events = race.random.pick(&[0u16, 1, 4, 5, 0x41, 0x104, 0x2001]);
        let fits = program().reachable(record, 8, Access::Write) == 8;
        if fits {
            let text = [&slot.to_le_bytes()[..], &events.to_le_bytes(), &[0x55, 0x55]].concat();
            program().store(record, &text);
        }
        let count = race.random.pick(&[1, 1, 1, 1, 1, 1, 0, 2, 1 | 7 << 32]);
        let timeout = race.random.pick(&[0, 0, 5, u64::MAX, 9 << 32]);
        let ready = self.ready_of(slot as usize).filter(|_| fits && count as u32 == 1);
        let bits = ready.map(|ready| ready as u16 & events);
        let expected = bits.filter(|bits| *bits != 0 || timeout as u32 == 0);
        let outcome = race.caller.moving_call(self.poll.entry().address(), nr::POLL, [record, count, timeout]);
        race.count("call.poll", outcome.way);
        race.same("way of poll", outcome.way == Way::Fast, expected.is_some());
        if let Some(bits) = expected {
            race.same("result of poll", outcome.result, u64::from(bits != 0));
            race.same("bits of poll", &program().bytes(record, 8)[6..], &bits.to_le_bytes()[..]);
        }
    }

    /// Other files are watched.
    fn watch(&mut self, race: &mut Race) {
        self.looks.forget();
        let count = race.random.below(7) as usize;
        let mut file = || {
            let events = race.random.pick(&[0, 1, 4, 5, 0x145]);
            (race.random.below(3) as usize, events, race.random.bits())
        };
        self.watched = (0..count).map(|_| file()).collect();
        let watched = self.watched.iter();
        let watched =
            watched.map(|(at, events, data)| Watched { ready: &self.ready[*at], events: *events, data: *data });
        if count > 0 {
            self.looks.look_at(bench().makers(), &watched.collect::<Vec<_>>());
        }
    }

    fn look(&mut self, race: &mut Race) {
        let most = race.random.below(9);
        let most = race.random.pick(&[most, 8, 8, 8, 1 << 31, u64::MAX, 178_956_970, 178_956_971, 8 | 5 << 32]);
        let bytes = (most as u32).min(8) as usize * 12;
        let into = program().buffer(&mut race.random, bytes);
        let timeout = race.random.pick(&[0, 0, 1, u64::MAX, 3 << 32]);
        program().scramble(&mut race.random, into, bytes);
        let answers: Option<Vec<u32>> =
            self.watched.iter().map(|(at, events, _)| self.ready_of(*at).map(|ready| ready & events)).collect();
        let expected = answers.filter(|answers| {
            let events = answers.iter().filter(|bits| **bits != 0).count();
            let end = into.checked_add((most as u32 as u64) * 12);
            (1..=most as u32 as usize).contains(&self.watched.len())
                && most as u32 <= 178_956_970
                && into < program().limit()
                && end.is_some_and(|end| end <= program().limit())
                && program().reachable(into, events * 12, Access::Write) == events * 12
                && (events > 0 || timeout as u32 == 0)
        });
        race.caller.fourth = Some(timeout);
        let outcome = race.caller.file_call(
            self.looks.wait().entry().address(),
            nr::EPOLL_WAIT,
            [race.random.below(8), into, most],
        );
        race.count("epoll.wait", outcome.way);
        race.same("way of epoll_wait", outcome.way == Way::Fast, expected.is_some());
        let Some(answers) = expected else { return };
        let told = answers.iter().zip(&self.watched).filter(|(bits, _)| **bits != 0);
        let records: Vec<u8> =
            told.flat_map(|(bits, (_, _, data))| [&bits.to_le_bytes()[..], &data.to_le_bytes()].concat()).collect();
        race.same("count of events", outcome.result as usize, records.len() / 12);
        race.same("events", program().bytes(into, records.len()), records);
    }
}
