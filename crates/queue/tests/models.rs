//! The queues under loom, which tries every order of events that the memory model allows; and the mutants, each of which
//! some model must catch. See README.md for the commands.
#![cfg(loom)]

use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use queue::serial::Serial;
use queue::signalling::{Callbacks, signalling};
use queue::waiting::{Sleep, waiting};
use queue::{Full, Get, Put, buffered, list::List, mpmc, mpsc, multi, procedures, spmc, spsc, stack::Stack};

/// Pre-emptions per execution; more are not needed by any mutant, and the models end in seconds.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Items with a heap cell: the checker sees an item that is read before it was written, or twice.
fn put_some(end: &mut impl Put<Box<u64>>, numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
    numbers.into_iter().filter(|&number| end.put(Box::new(number)).is_ok()).collect()
}

fn get_some(end: &mut impl Get<Box<u64>>, attempts: usize) -> Vec<u64> {
    (0..attempts).filter_map(|_| end.get()).map(|item| *item).collect()
}

/// What was put is what was taken, each once.
fn same(mut put: Vec<u64>, mut taken: Vec<u64>) {
    put.sort();
    taken.sort();
    assert_eq!(put, taken, "put, and taken");
}

#[test]
fn spsc_passes_items_in_order() {
    check(|| {
        let (mut put, mut get) = spsc::pair(2);
        let producer = thread::spawn(move || put_some(&mut put, 1..=3));
        let mut taken = get_some(&mut get, 3);
        let done = producer.join().unwrap();
        taken.extend(get_some(&mut get, 3));
        assert_eq!(done, taken);
    });
}

#[test]
fn spsc_tells_room_and_length() {
    check(|| {
        let (mut put, mut get) = spsc::pair(1);
        let producer = thread::spawn(move || {
            put.put(Box::new(1)).unwrap();
            if put.room() == 1 {
                put.put(Box::new(2)).unwrap();
            }
        });
        if get.len() == 1 {
            assert_eq!(*get.get().unwrap(), 1);
        }
        producer.join().unwrap();
    });
}

#[test]
fn spsc_passes_slices() {
    check(|| {
        let (mut put, mut get) = spsc::pair(2);
        let producer = thread::spawn(move || (put.put_slice(&[1u64, 2]), put.put_slice(&[3])));
        let mut taken = Vec::new();
        let mut look = [0; 2];
        let count = get.peek(&mut look);
        assert!(count == 0 || look == [1, 2]);
        taken.extend(&look[..count]);
        assert_eq!(get.skip(count), count);
        let (first, second) = producer.join().unwrap();
        taken.extend(std::iter::from_fn(|| get.get()));
        assert_eq!(taken, [1, 2, 3][..first + second]);
    });
}

/// Two producers or consumers beside one of the other kind, over more rounds than the ring has places.
fn many<P, G>(pair: fn(usize) -> (P, G), producers: fn(P) -> Vec<P>, consumers: fn(G) -> Vec<G>)
where
    P: Put<Box<u64>> + Send + 'static,
    G: Get<Box<u64>> + Send + 'static,
{
    check(move || {
        let (put, get) = pair(2);
        let (mut put, mut get) = (producers(put), consumers(get));
        // One before the race, so that the ring turns round in it.
        let mut done = put_some(&mut put[0], [100]);
        let mut last = get.pop().unwrap();
        let mut taken = Vec::new();
        let per_producer = if put.len() == 1 { 2 } else { 1 };
        let makers: Vec<_> = put
            .into_iter()
            .enumerate()
            .map(|(number, mut end)| {
                let first = number as u64 * 10;
                thread::spawn(move || put_some(&mut end, first..first + per_producer))
            })
            .collect();
        let takers: Vec<_> = get.into_iter().map(|mut end| thread::spawn(move || get_some(&mut end, 1))).collect();
        taken.extend(get_some(&mut last, 2));
        makers.into_iter().for_each(|maker| done.extend(maker.join().unwrap()));
        takers.into_iter().for_each(|taker| taken.extend(taker.join().unwrap()));
        taken.extend(get_some(&mut last, 4));
        same(done, taken);
    });
}

#[test]
fn mpsc_loses_nothing() {
    many(mpsc::pair, |put| vec![put.clone(), put], |get| vec![get]);
}

#[test]
fn spmc_loses_nothing() {
    many(spmc::pair, |put| vec![put], |get| vec![get.clone(), get]);
}

#[test]
fn mpmc_loses_nothing() {
    many(mpmc::pair, |put| vec![put.clone(), put], |get| vec![get]);
    many(mpmc::pair, |put| vec![put], |get| vec![get.clone(), get]);
}

#[test]
fn multi_loses_nothing() {
    many(multi::pair, |put| vec![put.clone(), put], |get| vec![get]);
}

#[test]
fn multi_reuses_places_only_when_they_are_clear() {
    check(|| {
        let (put, mut get) = multi::pair(1);
        put.put(Box::new(0)).unwrap();
        let producer =
            thread::spawn(move || (1..3).filter(|&n: &u64| put.put(Box::new(n)).is_ok()).collect::<Vec<_>>());
        let mut taken = get_some(&mut get, 2);
        let done = producer.join().unwrap();
        taken.extend(get_some(&mut get, 2));
        assert_eq!(taken, [&[0], &done[..]].concat());
    });
}

#[test]
fn a_batch_is_seen_whole() {
    check(|| {
        let (put, mut get) = multi::pair(2);
        let producer = thread::spawn(move || put.put_all([Box::new(1), Box::new(2)]).is_ok());
        if get.get().is_some() {
            assert_eq!(get.get().map(|item| *item), Some(2), "the rest of a batch is not there");
        }
        assert!(producer.join().unwrap());
    });
}

#[test]
fn a_buffered_element_arrives_whole() {
    check(|| {
        let (put, mut get) = mpsc::pair(2);
        let producer = thread::spawn(move || {
            let mut filler = buffered::Filler::new(put);
            (0..buffered::PARTS as u64).for_each(|part| filler.put(part).unwrap());
        });
        if let Some(element) = get.get() {
            assert_eq!(element, [0, 1, 2, 3, 4, 5, 6, 7]);
        }
        producer.join().unwrap();
    });
}

#[test]
fn chained_procedures_run_once() {
    static RUNS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    fn count(_: usize) {
        RUNS.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
    check(|| {
        RUNS.store(0, std::sync::atomic::Ordering::SeqCst);
        let (chain, mut runner) = procedures::pair(2);
        let other = chain.clone();
        let chained = thread::spawn(move || other.chain(count, 0));
        chain.chain(count, 0).unwrap();
        runner.run(2);
        chained.join().unwrap().unwrap();
        runner.run(2);
        assert_eq!(RUNS.load(std::sync::atomic::Ordering::SeqCst), 2);
    });
}

#[derive(Default)]
struct Counts {
    not_full: AtomicU64,
    not_empty: AtomicU64,
}

struct Count(Arc<Counts>);

impl Callbacks for Count {
    fn not_full(&self) {
        self.0.not_full.fetch_add(1, Relaxed);
    }

    fn not_empty(&self) {
        self.0.not_empty.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_failed_get_is_called_back() {
    check(|| {
        let counts = Arc::new(Counts::default());
        let (mut put, mut get) = signalling(spsc::pair(1), Count(counts.clone()));
        let producer = thread::spawn(move || put.put(Box::new(1)).is_ok());
        let found = get.get().is_some();
        assert!(producer.join().unwrap());
        assert!(found || counts.not_empty.load(Relaxed) == 1, "nobody told who found the queue empty");
    });
}

#[test]
fn a_failed_put_is_called_back() {
    check(|| {
        let counts = Arc::new(Counts::default());
        let (mut put, mut get) = signalling(spsc::pair(1), Count(counts.clone()));
        put.put(Box::new(1)).unwrap();
        let consumer = thread::spawn(move || get.get().map(|item| *item));
        let stored = put.put(Box::new(2)).is_ok();
        assert_eq!(consumer.join().unwrap(), Some(1));
        assert!(stored || counts.not_full.load(Relaxed) == 1, "nobody told who found the queue full");
    });
}

struct Bed {
    wakes: Mutex<u64>,
    changed: Condvar,
}

impl Bed {
    fn new() -> Bed {
        Bed { wakes: Mutex::new(0), changed: Condvar::new() }
    }
}

impl Sleep for Bed {
    fn ticket(&self) -> u64 {
        *self.wakes.lock().unwrap()
    }

    fn sleep(&self, ticket: u64) {
        let mut wakes = self.wakes.lock().unwrap();
        while *wakes == ticket {
            wakes = self.changed.wait(wakes).unwrap();
        }
    }

    fn wake(&self) {
        *self.wakes.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}

#[test]
fn nobody_sleeps_for_ever() {
    check(|| {
        let (mut put, mut get) = waiting(spsc::pair(1), (Bed::new(), Bed::new()));
        let producer = thread::spawn(move || (1..=2u64).for_each(|number| put.put(Box::new(number))));
        assert_eq!((*get.get(), *get.get()), (1, 2));
        producer.join().unwrap();
    });
}

#[test]
fn serial_does_all_work() {
    check(|| {
        let serial = Arc::new(Serial::new(0u64, 2));
        let add = |state: &mut u64, work: u64| *state += work;
        let other = serial.clone();
        let helper = thread::spawn(move || {
            other.submit(1, add).unwrap();
            other.submit(4, add).unwrap();
        });
        serial.submit(2, add).unwrap();
        helper.join().unwrap();
        let mut sum = 0;
        serial.submit(0, |state: &mut u64, _| sum = *state).unwrap();
        assert_eq!(sum, 7, "work was lost");
    });
}

#[test]
fn stack_gives_all_items_to_one() {
    check(|| {
        let stack = Arc::new(Stack::new());
        let others: Vec<_> = (1..=2u64)
            .map(|number| {
                let stack = stack.clone();
                thread::spawn(move || stack.push(Box::new(number)))
            })
            .collect();
        let mut taken: Vec<u64> = stack.take_all().map(|item| *item).collect();
        others.into_iter().for_each(|other| other.join().unwrap());
        taken.extend(stack.take_all().map(|item| *item));
        same(vec![1, 2], taken);
    });
}

#[test]
fn list_keeps_order() {
    check(|| {
        let list = Arc::new(List::new());
        list.insert(Probe::new(2));
        let other = list.clone();
        let thread = thread::spawn(move || {
            other.insert(Probe::new(1));
            other.insert(Probe::new(4));
        });
        list.insert(Probe::new(3));
        let seen: Vec<u64> = list.iter().map(Probe::number).collect();
        assert!(seen.is_sorted() && seen.contains(&2) && seen.contains(&3));
        thread.join().unwrap();
        assert_eq!(list.iter().map(Probe::number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    });
}

/// A number in a cell that the checker watches.
struct Probe(loom::cell::UnsafeCell<u64>);

// Only read after it was made.
unsafe impl Sync for Probe {}

impl Probe {
    fn new(number: u64) -> Probe {
        let probe = Probe(loom::cell::UnsafeCell::new(0));
        // SAFETY: 1. Nobody else has it yet.
        probe.0.with_mut(|cell| unsafe { *cell = number });
        probe
    }

    fn number(&self) -> u64 {
        // SAFETY: 1. Written once, in `new`; loom checks that this happened before.
        self.0.with(|cell| unsafe { *cell })
    }
}

impl PartialEq for Probe {
    fn eq(&self, other: &Probe) -> bool {
        self.number() == other.number()
    }
}
impl Eq for Probe {}
impl PartialOrd for Probe {
    fn partial_cmp(&self, other: &Probe) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Probe {
    fn cmp(&self, other: &Probe) -> std::cmp::Ordering {
        self.number().cmp(&other.number())
    }
}

#[test]
fn full_gives_the_item_back() {
    check(|| {
        let (mut put, _get) = spsc::pair(1);
        put.put(Box::new(1)).unwrap();
        assert_eq!(put.put(Box::new(2)), Err(Full(Box::new(2))));
    });
}

/// Each place in the sources whose weakening or mistake a model must catch, and the model.
const MUTANTS: [(&str, &str); 30] = [
    ("spsc.put.tail", "spsc_passes_items_in_order"),
    ("spsc.put.head", "spsc_passes_items_in_order"),
    ("spsc.room.tail", "spsc_tells_room_and_length"),
    ("spsc.get.head", "spsc_passes_items_in_order"),
    ("spsc.get.tail", "spsc_passes_items_in_order"),
    ("spsc.len.head", "spsc_tells_room_and_length"),
    ("spsc.put_slice.head", "spsc_passes_slices"),
    ("spsc.skip.tail", "spsc_passes_slices"),
    ("ring.put.free", "mpsc_loses_nothing"),
    ("ring.put.filled", "mpsc_loses_nothing"),
    ("ring.get.filled", "spmc_loses_nothing"),
    ("ring.get.free", "spmc_loses_nothing"),
    ("multi.put.tail", "multi_loses_nothing"),
    ("multi.put.flag", "multi_loses_nothing"),
    ("multi.get.flag", "multi_loses_nothing"),
    ("multi.get.tail", "multi_loses_nothing"),
    ("multi.put.forward", "a_batch_is_seen_whole"),
    ("multi.get.late", "multi_reuses_places_only_when_they_are_clear"),
    ("signalling.put.failed", "a_failed_put_is_called_back"),
    ("signalling.put.done", "a_failed_get_is_called_back"),
    ("signalling.get.failed", "a_failed_get_is_called_back"),
    ("signalling.get.done", "a_failed_put_is_called_back"),
    ("serial.begin", "serial_does_all_work"),
    ("serial.finish", "serial_does_all_work"),
    ("serial.no_second_try", "serial_does_all_work"),
    ("stack.push", "stack_gives_all_items_to_one"),
    ("stack.take", "stack_gives_all_items_to_one"),
    ("list.insert.next", "list_keeps_order"),
    ("list.insert.link", "list_keeps_order"),
    ("list.iter.next", "list_keeps_order"),
];

/// Places that no model can catch, and why.
const EXCUSED: [(&str, &str); 3] = [
    ("-", "Relaxed already"),
    ("ring.ready", "decides only whether to try; the item is read after `ring.get.filled`"),
    ("list.drop", "the list's owner has joined or outlived the others"),
];

/// Runs one model in a process of its own, with one place mutated.
fn survives(place: &str, model: &str) -> bool {
    let mut process = std::process::Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", model, "--quiet"]).env("QUEUE_MUTANT", place);
    process.output().unwrap().status.success()
}

#[test]
fn every_mutant_is_caught() {
    for (_, model) in MUTANTS {
        assert!(survives("no place", model), "{model} fails without a mutant");
    }
    let mut alive: Vec<_> = MUTANTS.iter().filter(|(place, model)| survives(place, model)).collect();
    alive.dedup();
    assert!(alive.is_empty(), "not caught: {alive:?}");
}

#[test]
fn every_place_has_a_mutant() {
    let folder = concat!(env!("SYNTHESIS_ROOT"), "crates/queue/src");
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for start in ["order!(\"", "mutant!(\"", "full_fence(\""] {
            for place in text.split(start).skip(1).filter_map(|rest| rest.split('"').next()) {
                let known = MUTANTS.iter().chain(&EXCUSED).any(|(name, _)| *name == place);
                assert!(known, "{place} has no mutant");
            }
        }
    }
}
