//! A random scene: activities of every kind at once, in threads and processes that the seed mixes.
//!
//! Each thread has a page: eight words of arguments at the front, then room to work in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use abi::nr;
use machine::Channel;
use machine_sim::{End, Outcome, Plan, Random, User, entry};

use crate::activities as act;
use crate::calls::Calls;

/// What the programs tell the test.
#[derive(Default)]
pub struct Report {
    /// Activities that have come to their end.
    pub done: AtomicU64,
    pub expected: AtomicU64,
    pub interrupts: AtomicU64,
    /// Bytes that the terminal's reader got.
    pub lines: Mutex<Vec<u8>>,
}

/// Offset of the word that becomes 0 when the page's thread has ended.
pub const ENDED: u64 = 64;
/// Room to work in.
pub const SCRATCH: u64 = 256;

pub const SIGINT: u64 = 2;
const SA_RESTART: u64 = 0x1000_0000;

/// The programs, by number.
#[derive(Clone, Copy)]
pub enum Number {
    First,
    Writer,
    Reader,
    Locker,
    Sleeper,
    Waiter,
    Releaser,
    Target,
    Sender,
    Typist,
    Parent,
    Child,
    Poller,
    Computer,
    Handler,
}

/// A scene as the tests run it.
pub fn plan(seed: u64, report: &Arc<Report>) -> Plan {
    let programs = [
        first,
        act::writer,
        act::reader,
        act::locker,
        act::sleeper,
        act::waiter,
        act::releaser,
        act::target,
        act::sender,
        act::typist,
        act::parent,
        act::child,
        act::poller,
        act::computer,
        handler,
    ];
    crate::plan_of(seed, report, &programs, typing(seed))
}

/// Lines, interrupts, and a last line that says so.
fn typing(seed: u64) -> Vec<(u64, Channel, Vec<u8>)> {
    let mut random = Random::new(!seed);
    let mut typed = Vec::new();
    let mut at = 2_000_000;
    for line in 0..random.below(6) {
        at += random.below(1_500_000);
        let text = format!("line {line}\n");
        let middle = random.below(text.len() as u64) as usize;
        typed.push((at, Channel::Terminal, text.as_bytes()[..middle].to_vec()));
        if random.once_in(3) {
            typed.push((at + 100, Channel::Terminal, vec![3]));
        }
        at += 1_000 + random.below(90_000);
        typed.push((at, Channel::Terminal, text.as_bytes()[middle..].to_vec()));
    }
    typed.retain(|(_, _, bytes)| !bytes.is_empty());
    typed.push((at + 10_000, Channel::Terminal, b"\nend\n".to_vec()));
    typed
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
    if !outcome.terminal.ends_with(b"all ended\r\n") {
        return Err(format!("the terminal shows {:?}", String::from_utf8_lossy(&outcome.terminal)));
    }
    Ok(())
}

/// Interrupts and echo: counts, and says nothing.
fn handler(user: &User, report: &Report) {
    assert_eq!(user.argument(), SIGINT);
    report.interrupts.fetch_add(1, Ordering::Relaxed);
}

/// A thread on a page of its own; the page.
fn start(user: &User, number: Number, arguments: &[u64]) -> u64 {
    let page = user.map(3 * 4096);
    user.store(page, &arguments.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
    user.store(page + ENDED, &1u32.to_le_bytes());
    let thread = user.thread(number as usize, page, page + ENDED);
    assert!(thread > 0, "clone: {thread}");
    user.store(page + 56, &(thread as u64).to_le_bytes());
    page
}

/// The first program: starts everything, waits for everybody, says so.
fn first(user: &User, report: &Report) {
    let shared = user.map(4096);
    let restart = if user.below(2) == 0 { SA_RESTART } else { 0 };
    assert_eq!(user.handle(SIGINT, entry(Number::Handler as usize), restart, shared + SCRATCH), 0);
    let mut pages = vec![start(user, Number::Typist, &[])];
    for _ in 0..2 + user.below(6) {
        begin_activity(user, shared, &mut pages);
    }
    report.expected.store(pages.len() as u64, Ordering::Relaxed);
    for page in &pages {
        user.wait_while(page + ENDED, 1);
    }
    let count = user.load_word(shared + act::COUNTER);
    assert_eq!(count, user.load_word(shared + act::WANTED), "increments under a lock were lost");
    user.store(shared + SCRATCH, b"all ended\n");
    act::write_all(user, 1, shared + SCRATCH, 10);
    user.call(nr::EXIT_GROUP, [0; 6]);
}

fn begin_activity(user: &User, shared: u64, pages: &mut Vec<u64>) {
    match user.below(9) {
        0 | 1 => {
            let nonblocking = if user.below(3) == 0 { 0o4000 } else { 0 };
            let (read, write) = user.pipe(nonblocking, shared + SCRATCH);
            let bytes = 1 + user.below(if user.below(4) == 0 { 150_000 } else { 3_000 });
            pages.push(start(user, Number::Reader, &[read, bytes, nonblocking]));
            pages.push(start(user, Number::Writer, &[write, bytes, nonblocking]));
        }
        2 => {
            for _ in 0..2 + user.below(3) {
                let times = 1 + user.below(20);
                let wanted = user.load_word(shared + act::WANTED) + times;
                user.store(shared + act::WANTED, &wanted.to_le_bytes());
                pages.push(start(user, Number::Locker, &[shared, times]));
            }
        }
        3 => pages.push(start(user, Number::Sleeper, &[1 + user.below(8)])),
        4 => {
            let words = user.map(4096);
            for _ in 0..1 + user.below(5) {
                pages.push(start(user, Number::Waiter, &[words]));
            }
            pages.push(start(user, Number::Releaser, &[words]));
        }
        5 => {
            let words = user.map(4096);
            let times = 1 + user.below(10);
            let target = start(user, Number::Target, &[words, times]);
            let thread = user.load_word(target + 56);
            pages.push(target);
            pages.push(start(user, Number::Sender, &[words, times, thread]));
        }
        6 => pages.push(start(user, Number::Computer, &[100 + user.below(3_000)])),
        7 => pages.push(start(user, Number::Parent, &[1 + user.below(3)])),
        _ => pages.push(start(user, Number::Poller, &[1 + user.below(6)])),
    }
}
