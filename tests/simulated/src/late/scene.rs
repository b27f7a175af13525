//! A run: a seed decides how slow the store is, who works, and in which order.
//!
//! Each thread has three pages of its own: words of arguments at the front, then room to work in.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use abi::nr;
use machine_sim::{End, Outcome, Plan, Random, User, entry};

use super::store::{self, Manner};
use super::{owner, together};
use crate::calls::Calls;

/// What the programs tell the test.
#[derive(Default)]
pub struct Report {
    pub done: AtomicU64,
    pub expected: AtomicU64,
    /// Pages that could not be had, as programs saw it.
    pub bus_errors: AtomicU64,
    /// Who read which record, by file.
    pub records: Mutex<BTreeMap<u64, Vec<u64>>>,
}

#[derive(Clone, Copy)]
pub enum Number {
    BusError = 1,
    Owner,
    Appender,
    SharingReader,
    GrowingWriter,
    GrowingReader,
    PipeWriter,
    PipeReader,
    Forked,
    Executed,
    Doomed,
}

/// Offset of the word that becomes 0 when the page's thread has ended.
pub const ENDED: u64 = 64;
/// Room to work in.
pub const SCRATCH: u64 = 256;
const SIGBUS: u64 = 7;
const SA_NODEFER: u64 = 0x4000_0000;

/// The programs, by number; the first begins.
const _: () = assert!(Number::BusError as usize == 1);

/// Runs a scene. The manner of its store is the seed's, too.
pub fn run(seed: u64, plan: Plan) -> Outcome {
    let mut random = Random::new(seed ^ 0x51_0E);
    store::set_manner(Manner {
        seed: !seed,
        delay_ns_max: random.pick(&[2_000, 50_000, 1_000_000, 8_000_000]),
        fails_once_in: random.pick(&[0, 0, 40, 10, 3]),
        at_once_in: random.pick(&[0, 2, 5]),
    });
    let outcome = crate::boot::run_with(plan, store::join);
    store::release();
    outcome
}

pub fn plan(seed: u64, report: &Arc<Report>) -> Plan {
    let programs = [
        first,
        bus_error,
        owner::owner,
        together::appender,
        together::sharing_reader,
        together::growing_writer,
        together::growing_reader,
        together::pipe_writer,
        together::pipe_reader,
        owner::forked,
        owner::executed,
        owner::doomed,
    ];
    crate::plan_of(seed, report, &programs, Vec::new())
}

/// What must be true of a run that went well.
pub fn judge(outcome: &Outcome, report: &Report) -> Result<(), String> {
    let (done, expected) = (report.done.load(Ordering::Relaxed), report.expected.load(Ordering::Relaxed));
    if outcome.end != End::Off {
        return Err(format!("{:?}", outcome.end));
    }
    if done != expected || expected == 0 {
        return Err(format!("{done} of {expected} activities came to their end"));
    }
    let records = report.records.lock().map_err(|_| "a program panicked with the records".to_string())?;
    for (file, read) in records.iter() {
        let mut read = read.clone();
        read.sort();
        if read != (0..together::RECORDS).collect::<Vec<u64>>() {
            return Err(format!("two readers of file {file} got the records {read:?}"));
        }
    }
    Ok(())
}

pub fn done(report: &Report) {
    report.done.fetch_add(1, Ordering::Relaxed);
}

/// The thread's page, and its first arguments.
pub fn page(user: &User) -> (u64, [u64; 4]) {
    let page = user.given();
    (page, [0, 8, 16, 24].map(|at| user.load_word(page + at)))
}

/// A page could not be had: the instruction is tried again.
fn bus_error(user: &User, report: &Report) {
    assert_eq!(user.argument(), SIGBUS);
    report.bus_errors.fetch_add(1, Ordering::Relaxed);
}

pub fn handle_bus_errors(user: &User, scratch: u64) {
    assert_eq!(user.handle(SIGBUS, entry(Number::BusError as usize), SA_NODEFER, scratch), 0);
}

fn start(user: &User, number: Number, arguments: &[u64]) -> u64 {
    let page = user.map(3 * 4096);
    user.store(page, &arguments.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
    user.store(page + ENDED, &1u32.to_le_bytes());
    let thread = user.thread(number as usize, page, page + ENDED);
    assert!(thread > 0, "clone: {thread}");
    page
}

fn first(user: &User, report: &Report) {
    let shared = user.map(4096);
    handle_bus_errors(user, shared + SCRATCH);
    let mut pages = Vec::new();
    for file in 0..2 + user.below(3) {
        begin(user, file, &mut pages);
    }
    report.expected.store(pages.len() as u64, Ordering::Relaxed);
    for page in &pages {
        user.wait_while(page + ENDED, 1);
    }
    user.call(nr::EXIT_GROUP, [0; 6]);
}

/// One or more threads that use file `file`.
fn begin(user: &User, file: u64, pages: &mut Vec<u64>) {
    let shared = user.map(4096);
    match user.below(5) {
        0 | 1 => pages.push(start(user, Number::Owner, &[file, 5 + user.below(25)])),
        2 => {
            let opened = together::make_records(user, file, shared + SCRATCH);
            for _ in 0..2 {
                pages.push(start(user, Number::SharingReader, &[file, opened]));
            }
        }
        3 => {
            let opened = together::make_appended(user, file, shared + SCRATCH);
            for tag in 0..2 {
                pages.push(start(user, Number::Appender, &[file, opened, tag, shared]));
            }
            let bytes = 1 + user.below(30_000);
            pages.push(start(user, Number::GrowingWriter, &[file, shared + 16, bytes]));
            pages.push(start(user, Number::GrowingReader, &[file, shared + 16, bytes]));
        }
        _ => {
            let (read, write) = user.pipe(0, shared + SCRATCH);
            for tag in 0..2 {
                pages.push(start(user, Number::PipeWriter, &[write, file * 2 + tag, shared]));
            }
            pages.push(start(user, Number::PipeReader, &[read, file]));
        }
    }
}
