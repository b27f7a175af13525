//! What the threads of a scene do. Every call may be interrupted; every result is looked at.

use std::sync::atomic::Ordering;

use abi::nr;
use machine_sim::User;

use crate::calls::Calls;
use crate::scene::{ENDED, Number, Report, SCRATCH};

const EINTR: i64 = -4;
const EAGAIN: i64 = -11;
const ETIMEDOUT: i64 = -110;
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAKE: u64 = 1;
const FUTEX_CMP_REQUEUE: u64 = 4;
const POLLIN: u16 = 1;
const POLLOUT: u16 = 4;
const SIGUSR1: u64 = 10;

/// Words of the shared page: the lock, what it guards, and what that shall be in the end.
const LOCK: u64 = 0;
pub const COUNTER: u64 = 8;
pub const WANTED: u64 = 16;

/// The thread's page, and its first arguments.
fn page(user: &User) -> (u64, [u64; 4]) {
    let page = user.given();
    (page, [0, 8, 16, 24].map(|at| user.load_word(page + at)))
}

fn done(report: &Report) {
    report.done.fetch_add(1, Ordering::Relaxed);
}

/// Byte `index` of every stream.
fn pattern(index: u64) -> u8 {
    (index % 251) as u8
}

fn futex(user: &User, word: u64, operation: u64, value: u64) -> i64 {
    user.call(nr::FUTEX, [word, operation, value, 0, 0, 0])
}

/// `poll` of one descriptor, until it is ready; sometimes with a time limit.
fn poll(user: &User, descriptor: u64, events: u16, scratch: u64) {
    loop {
        user.store(scratch, &[(descriptor as u32).to_le_bytes(), u32::from(events).to_le_bytes()].concat());
        let forever = user.below(2) == 0;
        let timeout = if forever { u64::MAX } else { user.below(4) };
        match user.call(nr::POLL, [scratch, 1, timeout, 0, 0, 0]) {
            1 => return,
            0 => assert!(!forever, "poll without a limit has no time-out"),
            other => assert_eq!(other, EINTR, "poll"),
        }
    }
}

pub fn write_all(user: &User, descriptor: u64, mut from: u64, mut bytes: u64) {
    while bytes > 0 {
        let count = user.call(nr::WRITE, [descriptor, from, bytes, 0, 0, 0]);
        assert!(count > 0 || count == EINTR, "write: {count}");
        from += count.max(0) as u64;
        bytes -= count.max(0) as u64;
    }
}

/// Writes `bytes` bytes of the pattern to a pipe, in pieces, and closes it.
pub fn writer(user: &User, report: &Report) {
    let (page, [descriptor, bytes, nonblocking, _]) = page(user);
    let buffer = page + 4096;
    let mut sent = 0;
    while sent < bytes {
        let piece = (1 + user.below(8000)).min(bytes - sent);
        let data: Vec<u8> = (sent..sent + piece).map(pattern).collect();
        user.store(buffer, &data);
        let count = user.call(nr::WRITE, [descriptor, buffer, piece, 0, 0, 0]);
        match count {
            EAGAIN if nonblocking != 0 => poll(user, descriptor, POLLOUT, page + SCRATCH),
            EINTR => {}
            count => {
                assert!(count > 0 && count as u64 <= piece, "write of {piece}: {count}");
                sent += count as u64;
            }
        }
    }
    assert_eq!(user.call(nr::CLOSE, [descriptor, 0, 0, 0, 0, 0]), 0);
    done(report);
}

/// Reads a pipe to its end: the bytes are the pattern's, in order, and as many.
pub fn reader(user: &User, report: &Report) {
    let (page, [descriptor, bytes, nonblocking, _]) = page(user);
    let buffer = page + 4096;
    let mut got = 0;
    loop {
        if user.below(4) == 0 {
            poll(user, descriptor, POLLIN, page + SCRATCH);
        }
        let count = user.call(nr::READ, [descriptor, buffer, 1 + user.below(8000), 0, 0, 0]);
        match count {
            0 => break,
            EAGAIN if nonblocking != 0 => poll(user, descriptor, POLLIN, page + SCRATCH),
            EINTR => {}
            count => {
                assert!(count > 0, "read: {count}");
                let mut data = vec![0; count as usize];
                user.load(buffer, &mut data);
                let wrong = data.iter().zip(got..).find(|(byte, at)| **byte != pattern(*at));
                assert_eq!(wrong, None, "a byte of the pipe is not the one that was written");
                got += count as u64;
            }
        }
    }
    assert_eq!(got, bytes, "the pipe ended early or late");
    done(report);
}

/// Increments a word under a lock that is a futex: 0 free, 1 taken, 2 taken and somebody may wait.
pub fn locker(user: &User, report: &Report) {
    let (_, [shared, times, ..]) = page(user);
    let lock = shared + LOCK;
    for _ in 0..times {
        let mut old = user.load_u32(lock);
        user.store(lock, &(if old == 0 { 1u32 } else { 2 }).to_le_bytes());
        while old != 0 {
            let slept = futex(user, lock, FUTEX_WAIT, 2);
            assert!(matches!(slept, 0 | EINTR | EAGAIN), "futex: {slept}");
            old = user.load_u32(lock);
            user.store(lock, &2u32.to_le_bytes());
        }
        let count = user.load_word(shared + COUNTER);
        (0..user.below(4)).for_each(|_| user.compute());
        user.store(shared + COUNTER, &(count + 1).to_le_bytes());
        let old = user.load_u32(lock);
        user.store(lock, &0u32.to_le_bytes());
        assert!(old != 0, "somebody else has given the lock back");
        if old == 2 {
            assert!(futex(user, lock, FUTEX_WAKE, 1) >= 0);
        }
    }
    done(report);
}

/// Computes and makes no call at all: only the timer takes the processor away from it.
pub fn computer(user: &User, report: &Report) {
    let (_, [times, ..]) = page(user);
    (0..times).for_each(|_| user.compute());
    done(report);
}

/// Sleeps, and never too short; futexes with a time limit too.
pub fn sleeper(user: &User, report: &Report) {
    let (page, [times, ..]) = page(user);
    let scratch = page + SCRATCH;
    for _ in 0..times {
        let ns = user.below(if user.below(3) == 0 { 3_000_000 } else { 50_000 });
        let before = user.clock(scratch);
        let result = match user.below(3) {
            0 => user.sleep(ns, scratch),
            1 => timer(user, ns, scratch),
            _ => {
                user.store(scratch, &[0u64.to_le_bytes(), ns.to_le_bytes()].concat());
                user.call(nr::FUTEX, [page + ENDED, FUTEX_WAIT, 1, scratch, 0, 0])
            }
        };
        let slept = user.clock(scratch) - before;
        match result {
            0 | ETIMEDOUT => assert!(slept >= ns, "slept {slept} ns instead of {ns}"),
            other => assert_eq!(other, EINTR, "sleep"),
        }
    }
    done(report);
}

/// Waits for a timer of its own (`timerfd`) that goes off once.
fn timer(user: &User, ns: u64, scratch: u64) -> i64 {
    const CLOCK_MONOTONIC: u64 = 1;
    let timer = user.call(nr::TIMERFD_CREATE, [CLOCK_MONOTONIC, 0, 0, 0, 0, 0]);
    assert!(timer > 0, "timerfd_create: {timer}");
    let timer = timer as u64;
    user.store(scratch, &[0, 0, 0, ns.max(1)].map(u64::to_le_bytes).concat());
    assert_eq!(user.call(nr::TIMERFD_SETTIME, [timer, 0, scratch, 0, 0, 0]), 0);
    let result = user.call(nr::READ, [timer, scratch, 8, 0, 0, 0]);
    assert!(result == 8 || result == EINTR, "read of a timer: {result}");
    assert_eq!(user.call(nr::CLOSE, [timer, 0, 0, 0, 0, 0]), 0);
    result.min(0)
}

/// `poll` of an empty pipe: the time limit is kept, never too early.
pub fn poller(user: &User, report: &Report) {
    let (page, [times, ..]) = page(user);
    let scratch = page + SCRATCH;
    let (read, write) = user.pipe(0, scratch);
    for _ in 0..times {
        let ms = user.below(4);
        let before = user.clock(scratch);
        user.store(scratch, &[(read as u32).to_le_bytes(), u32::from(POLLIN).to_le_bytes()].concat());
        let result = user.call(nr::POLL, [scratch, 1, ms, 0, 0, 0]);
        let waited = user.clock(scratch) - before;
        if result == 0 {
            assert!(waited >= ms * 1_000_000, "poll of {ms} ms returned after {waited} ns");
        } else {
            assert_eq!(result, EINTR, "poll of an empty pipe");
        }
    }
    for descriptor in [read, write] {
        assert_eq!(user.call(nr::CLOSE, [descriptor, 0, 0, 0, 0, 0]), 0);
    }
    done(report);
}

/// Sleeps on one word, from which it may be moved to the next; who has been woken wakes another.
pub fn waiter(user: &User, report: &Report) {
    let (_, [words, ..]) = page(user);
    user.wait_while(words, 0);
    assert!(futex(user, words + 8, FUTEX_WAKE, 1) >= 0);
    done(report);
}

/// Wakes one of the waiters and moves the others to the second word.
pub fn releaser(user: &User, report: &Report) {
    let (page, [words, ..]) = page(user);
    (0..user.below(20)).for_each(|_| user.compute());
    if user.below(2) == 0 {
        user.sleep(user.below(100_000), page + SCRATCH);
    }
    user.store(words, &1u32.to_le_bytes());
    let moved = user.call(nr::FUTEX, [words, FUTEX_CMP_REQUEUE, 1, 100, words + 8, 1]);
    assert!(moved >= 0, "requeue: {moved}");
    done(report);
}

/// Takes one signal after the other, and says so.
pub fn target(user: &User, report: &Report) {
    let (page, [words, times, ..]) = page(user);
    let set = page + SCRATCH;
    user.store(set, &(1u64 << (SIGUSR1 - 1)).to_le_bytes());
    assert_eq!(user.call(nr::RT_SIGPROCMASK, [0, set, 0, 8, 0, 0]), 0);
    for round in 0..=times {
        user.store(words, &(round as u32 + 1).to_le_bytes());
        assert!(futex(user, words, FUTEX_WAKE, 9) >= 0);
        if round == times {
            break;
        }
        loop {
            let signal = user.call(nr::RT_SIGTIMEDWAIT, [set, 0, 0, 8, 0, 0]);
            if signal == SIGUSR1 as i64 {
                break;
            }
            assert_eq!(signal, EINTR, "rt_sigtimedwait");
        }
    }
    done(report);
}

/// Sends a signal whenever the target has taken the last one.
pub fn sender(user: &User, report: &Report) {
    let (_, [words, times, thread, _]) = page(user);
    let process = user.call(nr::GETPID, [0; 6]);
    for round in 0..times {
        user.wait_while(words, round as u32);
        assert_eq!(user.call(nr::TGKILL, [process as u64, thread, SIGUSR1, 0, 0, 0]), 0);
    }
    done(report);
}

/// Reads the terminal line by line, up to the one that says `end`.
pub fn typist(user: &User, report: &Report) {
    let (page, _) = page(user);
    let buffer = page + 4096;
    loop {
        if user.below(3) == 0 {
            poll(user, 0, POLLIN, page + SCRATCH);
        }
        let count = user.call(nr::READ, [0, buffer, 100, 0, 0, 0]);
        if count == EINTR {
            continue;
        }
        assert!(count > 0, "read of the terminal: {count}");
        let mut line = vec![0; count as usize];
        user.load(buffer, &mut line);
        assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1), "{line:?} is not one line");
        report.lines.lock().expect("nobody panicked with it").extend(&line);
        if line == b"end\n" {
            break;
        }
    }
    done(report);
}

/// Has children and waits for each.
pub fn parent(user: &User, report: &Report) {
    let (page, [children, ..]) = page(user);
    for code in 1..=children {
        let child = user.fork(Number::Child as usize, code);
        assert!(child > 0, "fork: {child}");
        let status = page + SCRATCH;
        loop {
            match user.call(nr::WAIT4, [child as u64, status, 0, 0, 0, 0]) {
                EINTR => {}
                pid => {
                    assert_eq!(pid, child, "wait4");
                    break;
                }
            }
        }
        assert_eq!(u64::from(user.load_u32(status)), code << 8, "the child's status");
    }
    done(report);
}

/// A process of its own: computes, touches memory of its own, ends.
pub fn child(user: &User, _: &Report) {
    (0..user.below(12)).for_each(|_| user.compute());
    let memory = user.map(8192);
    user.store(memory + 4090, b"over the page's end");
    if user.below(2) == 0 {
        user.sleep(user.below(200_000), memory);
    }
    user.call(nr::EXIT_GROUP, [user.given(), 0, 0, 0, 0, 0]);
}
