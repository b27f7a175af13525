//! Threads that use files of their own in a shared folder, and a child that asks what is never answered and is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use abi::nr;
use machine_sim::{End, Outcome, Plan, Random, User};

use super::server::{self, FOLDER, Manner, SILENT};
use crate::calls::Calls;

/// What the programs tell the test.
#[derive(Default)]
pub struct Report {
    pub done: AtomicU64,
    pub expected: AtomicU64,
    /// Calls that failed because the server lied, or was gone.
    pub failed: AtomicU64,
}

const OWNER: usize = 1;
const ASKER: usize = 2;
/// Offset of the word that becomes 0 when the page's thread has ended.
const ENDED: u64 = 64;
/// Room to work in.
const SCRATCH: u64 = 256;
const PAGE: u64 = 4096;
const EIO: i64 = -5;
const EFAULT: i64 = -14;
const SIGKILL: u64 = 9;

pub fn run(seed: u64, plan: Plan) -> Outcome {
    let mut random = Random::new(seed ^ 0xFA2);
    server::set_manner(Manner {
        seed: !seed,
        delay_ns_max: random.pick(&[2_000, 50_000, 1_000_000]),
        lies_once_in: random.pick(&[0, 0, 50, 7]),
        lost_after: random.pick(&[0, 0, 0, 40, 300]),
    });
    crate::boot::run_with(plan, server::join)
}

pub fn plan(seed: u64, report: &Arc<Report>) -> Plan {
    crate::plan_of(seed, report, &[first, owner, asker], Vec::new())
}

/// What must be true of a run that went well.
pub fn judge(outcome: &Outcome, report: &Report) -> Result<(), String> {
    let (done, expected) = (report.done.load(Ordering::Relaxed), report.expected.load(Ordering::Relaxed));
    match outcome.end {
        End::Off if done == expected && expected > 0 => Ok(()),
        End::Off => Err(format!("{done} of {expected} threads came to their end")),
        _ => Err(format!("{:?}", outcome.end)),
    }
}

fn first(user: &User, report: &Report) {
    let threads = 1 + user.below(4);
    report.expected.store(threads, Ordering::Relaxed);
    let work = user.map(PAGE);
    let child = user.fork(ASKER, work);
    assert!(child > 0, "fork: {child}");
    let pages: Vec<u64> = (0..threads).map(|number| start(user, number)).collect();
    for page in &pages {
        user.wait_while(page + ENDED, 1);
    }
    // All others have come to their end while the child waits; now it ends as well.
    assert_eq!(user.call(nr::KILL, [child as u64, SIGKILL, 0, 0, 0, 0]), 0);
    assert_eq!(user.call(nr::WAIT4, [child as u64, work, 0, 0, 0, 0]), child);
    let status = user.load_u32(work);
    assert!(status == SIGKILL as u32 || status >> 8 == 5, "the child ended by {status:#x}");
    user.call(nr::EXIT_GROUP, [0; 6]);
}

fn start(user: &User, number: u64) -> u64 {
    let page = user.map(4 * PAGE);
    user.store(page, &number.to_le_bytes());
    user.store(page + ENDED, &1u32.to_le_bytes());
    let thread = user.thread(OWNER, page, page + ENDED);
    assert!(thread > 0, "clone: {thread}");
    page
}

/// Asks about the name that is never answered for; ends by itself only if the device is gone.
fn asker(user: &User, _: &Report) {
    let scratch = user.map(PAGE);
    let name = String::from_utf8_lossy(SILENT).into_owned();
    user.store(scratch, format!("{FOLDER}/{name}\0").as_bytes());
    let result = user.call(nr::OPEN, [scratch, 0, 0, 0, 0, 0]);
    assert_eq!(result, EIO, "nobody has answered");
    user.call(nr::EXIT_GROUP, [5, 0, 0, 0, 0, 0]);
}

/// Writes, cuts, reads and maps a file of its own. Whatever the server did not fail must be as it was left.
fn owner(user: &User, report: &Report) {
    let page = user.given();
    let number = user.load_word(page);
    let (path, work) = (page + SCRATCH, page + PAGE);
    let mut held = Some(Vec::new());
    for round in 0..12 + user.below(20) {
        user.store(path, format!("{FOLDER}/file{number}\0").as_bytes());
        let Some(file) = fine(report, user.call(nr::OPEN, [path, 0o102, 0o666, 0, 0, 0])) else {
            continue;
        };
        let position = user.below(9000);
        let bytes: Vec<u8> = (0..1 + user.below(5000)).map(|at| (at * 7 + round * 13 + number) as u8).collect();
        user.store(work, &bytes);
        let count = bytes.len() as u64;
        let wrote = fine(report, user.call(nr::PWRITE64, [file, work, count, position, 0, 0]));
        held = after(held, wrote, |held| {
            let written = wrote.unwrap_or(0) as usize;
            let end = position as usize + written;
            held.resize(held.len().max(end), 0);
            held[position as usize..end].copy_from_slice(&bytes[..written]);
        });
        if user.below(4) == 0 {
            let size = user.below(8000);
            let cut = fine(report, user.call(nr::FTRUNCATE, [file, size, 0, 0, 0, 0]));
            held = after(held, cut, |held| held.resize(size as usize, 0));
        }
        if let Some(read) = fine(report, user.call(nr::PREAD64, [file, work, 8192, position, 0, 0])) {
            let mut seen = vec![0; read as usize];
            user.load(work, &mut seen);
            if let Some(held) = &held {
                let from = held.len().min(position as usize);
                let expected = &held[from..held.len().min(from + 8192)];
                assert!(seen.len() <= expected.len() && seen == expected[..seen.len()], "file {number}, round {round}");
            }
        }
        assert_eq!(user.call(nr::CLOSE, [file, 0, 0, 0, 0, 0]), 0);
    }
    report.done.fetch_add(1, Ordering::Relaxed);
}

/// The result of a call that the server may have failed.
fn fine(report: &Report, result: i64) -> Option<u64> {
    if let EIO | EFAULT = result {
        report.failed.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    assert!(result >= 0, "a call failed by {result}");
    Some(result as u64)
}

/// What the file holds after a call: nobody knows it any more once one has failed.
fn after(held: Option<Vec<u8>>, result: Option<u64>, change: impl FnOnce(&mut Vec<u8>)) -> Option<Vec<u8>> {
    let mut held = held?;
    result?;
    change(&mut held);
    Some(held)
}
