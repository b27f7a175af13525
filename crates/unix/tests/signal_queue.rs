//! Races our queues and decisions with the host's Linux on random operations.
//!
//! In a child with one thread, random signals are sent, blocked, ignored and waited for. Its handler
//! blocks everything and notes what came; our side must note the same, in the same order.
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one proof for what a test does with its own memory")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "not in the kernel: it may take what it likes"
)]

use std::sync::atomic::{AtomicUsize, Ordering};

use abi::signal::*;
use means::Random;
use unix::signal::generate::Fate;
use unix::signal::pending::take_next;
use unix::signal::{Actions, Delivery, Pending, Posted, SignalSet, Target, ThreadMask, generate, next_delivery};

use abi::siginfo::{Cause, SI_KERNEL, SI_QUEUE, SI_USER, SigInfo};

unsafe extern "C" {
    fn sigaction(signal: i32, new: *const LibraryAction, old: *mut LibraryAction) -> i32;
    fn syscall(number: i64, ...) -> i64;
    fn fork() -> i32;
    fn waitpid(pid: i32, status: &mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

const SYS_RT_SIGPROCMASK: i64 = 14;
const SYS_GETPID: i64 = 39;
const SYS_KILL: i64 = 62;
const SYS_RT_SIGPENDING: i64 = 127;
const SYS_RT_SIGTIMEDWAIT: i64 = 128;
const SYS_RT_SIGQUEUEINFO: i64 = 129;
const SYS_TKILL: i64 = 200;
const SYS_RT_TGSIGQUEUEINFO: i64 = 297;

/// `struct sigaction` of the C library.
#[repr(C)]
struct LibraryAction {
    handler: u64,
    mask: [u64; 16],
    flags: i32,
    restorer: u64,
}

/// Signals 32 and 33, which the C library keeps for itself.
const LIBRARY: u64 = 0b11 << 31;

/// One signal as a handler sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seen {
    signal: i32,
    code: i32,
    value: u64,
}

const SEEN_MAX: usize = 4096;
static mut SEEN: [Seen; SEEN_MAX] = [Seen { signal: 0, code: 0, value: 0 }; SEEN_MAX];
static SEEN_COUNT: AtomicUsize = AtomicUsize::new(0);

extern "C" fn note(_: i32, info: *const [u8; 128], _: u64) {
    let index = SEEN_COUNT.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the kernel's siginfo; one thread, and handlers do not nest.
    unsafe { SEEN[index % SEEN_MAX] = seen(&SigInfo::from_bytes(&*info)) };
}

fn seen(info: &SigInfo) -> Seen {
    let value = if let Cause::Queue { value, .. } = info.cause { value } else { 0 };
    Seen { signal: info.signo, code: info.code, value }
}

/// A signal that the C library leaves alone and that can be blocked.
fn some_signal(random: &mut Random) -> u32 {
    random.pick(&[
        SIGHUP, SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGUSR1, SIGSEGV, SIGUSR2, SIGTERM, SIGCHLD, SIGCONT, SIGTSTP,
        SIGTTIN, SIGTTOU, SIGURG, SIGWINCH, SIGSYS, 40, 41, 64,
    ])
}

fn some_set(random: &mut Random) -> SignalSet {
    let some = SignalSet(random.bits()).minus(SignalSet(LIBRARY));
    // Linux takes the first one with a code of the kernel although it is blocked, if another one is
    // not. Only a program that forges its own faults can see that, and we do not follow.
    if random.once_in(2) { some.minus(SignalSet::SYNCHRONOUS) } else { some.union(SignalSet::SYNCHRONOUS) }
}

/// Both sides.
struct Race {
    pid: i64,
    actions: Actions,
    mask: ThreadMask,
    thread: Pending,
    process: Pending,
    ours: Vec<Seen>,
    value: u64,
}

impl Race {
    fn new() -> Race {
        // SAFETY: changes nothing.
        let pid = unsafe { syscall(SYS_GETPID) };
        let mut race = Race {
            pid,
            actions: Actions::new(),
            mask: ThreadMask::default(),
            thread: Pending::new(),
            process: Pending::new(),
            ours: Vec::new(),
            value: 0,
        };
        race.block(SignalSet(!LIBRARY));
        (1..=64).filter(|signal| !matches!(signal, 9 | 19 | 32 | 33)).for_each(|signal| race.set_action(signal, 2));
        race
    }

    fn set_action(&mut self, signal: u32, handler: u64) {
        let handler = if handler == 2 { note as *const () as u64 } else { handler };
        let all = LibraryAction { handler, mask: [!0; 16], flags: SA_SIGINFO as i32, restorer: 0 };
        // SAFETY: `note` is a handler.
        assert_eq!(unsafe { sigaction(signal as i32, &all, std::ptr::null_mut()) }, 0);
        let action = SigAction { sa_handler: handler, sa_flags: SA_SIGINFO, sa_mask: !0, sa_restorer: 0 };
        let flush = self.actions.set(signal, &action).expect("a signal to handle").flush;
        self.thread.flush(flush);
        self.process.flush(flush);
    }

    fn block(&mut self, set: SignalSet) {
        // SAFETY: reads 8 bytes.
        assert_eq!(unsafe { syscall(SYS_RT_SIGPROCMASK, SIG_SETMASK, &set.0, 0u64, 8u64) }, 0);
        self.mask.change(SIG_SETMASK, set).expect("a way to change");
    }

    fn send(&mut self, signal: u32, way: u64) {
        let (pid, sig) = (self.pid, u64::from(signal));
        self.value += 1;
        let cause = Cause::Queue { pid: pid as i32, uid: 0, value: self.value };
        let queued = SigInfo { signo: signal as i32, errno: 0, code: SI_QUEUE, cause };
        let forged = SigInfo { code: if way == 3 { SI_KERNEL } else { SI_USER }, ..queued };
        let (bytes, forged_bytes) = (queued.to_bytes(), forged.to_bytes());
        // SAFETY: only reads the bytes.
        let (result, info) = unsafe {
            match way {
                0 => (syscall(SYS_KILL, pid, sig), SigInfo::kill(signal, pid as i32, 0)),
                1 => (syscall(SYS_TKILL, pid, sig), unix::signal::child::tkill_info(signal, pid as i32, 0)),
                2 => (syscall(SYS_RT_SIGQUEUEINFO, pid, sig, &bytes), queued),
                3 | 5 => {
                    (syscall(SYS_RT_TGSIGQUEUEINFO, pid, pid, sig, &forged_bytes), SigInfo::from_bytes(&forged_bytes))
                }
                _ => (syscall(SYS_RT_TGSIGQUEUEINFO, pid, pid, sig, &bytes), queued),
            }
        };
        assert_eq!(result, 0);
        let made = generate(signal, &Target::of(signal, &self.actions, &self.mask));
        self.thread.flush(made.flush);
        self.process.flush(made.flush);
        if made.fate == Fate::Queue {
            let queue = if way == 0 || way == 2 { &mut self.process } else { &mut self.thread };
            assert!(matches!(queue.post(&info, 1), Ok(Posted::Queued | Posted::AlreadyPending)));
        }
    }

    fn wait(&mut self, set: SignalSet) {
        let mut bytes = [0u8; 128];
        let now = [0u64; 2];
        // SAFETY: writes 128 bytes.
        let theirs = unsafe { syscall(SYS_RT_SIGTIMEDWAIT, &set.0, bytes.as_mut_ptr(), &now, 8u64) };
        let ours = take_next(&mut self.thread, &mut self.process, SignalSet(!set.blockable().0));
        assert_eq!((theirs > 0).then(|| seen(&SigInfo::from_bytes(&bytes))), ours.as_ref().map(seen));
    }

    /// Our side of a return to the program: the handler of each signal runs and returns.
    fn deliver(&mut self) {
        loop {
            let call =
                match next_delivery(&mut self.thread, &mut self.process, &self.mask, &mut self.actions, &|| false) {
                    Delivery::None => break,
                    Delivery::Handler(call) => call,
                    other => panic!("{other:?}"),
                };
            self.mask.enter(&call);
            self.ours.push(seen(&call.info));
            self.mask.set(call.saved_mask);
        }
    }

    fn compare(&mut self) {
        let count = SEEN_COUNT.swap(0, Ordering::Relaxed);
        // SAFETY: no handler runs now: all signals that could come have come.
        let theirs: Vec<Seen> = (0..count).map(|index| unsafe { SEEN[index] }).collect();
        assert_eq!(theirs, self.ours);
        self.ours.clear();
        let mut pending = 0u64;
        // SAFETY: writes 8 bytes.
        assert_eq!(unsafe { syscall(SYS_RT_SIGPENDING, &mut pending, 8u64) }, 0);
        let ours = self.thread.set().union(self.process.set()).intersection(self.mask.blocked());
        assert_eq!(SignalSet(pending), ours);
    }

    fn turn(&mut self, random: &mut Random) {
        match random.below(16) {
            0 => {
                let set = some_set(random);
                self.block(set);
            }
            1 => self.block(SignalSet(!LIBRARY)),
            2 | 3 => {
                let signal = some_signal(random);
                let handler = random.below(3);
                let is_harmless = SignalSet::DEFAULT_IGNORED.contains(signal);
                self.set_action(signal, if handler == 0 && !is_harmless { 2 } else { handler });
            }
            4 => {
                let set = some_set(random);
                self.wait(set);
            }
            _ => self.send(some_signal(random), random.below(6)),
        }
        self.deliver();
        self.compare();
    }
}

#[test]
fn random_signals_come_as_on_the_host() {
    for seed in 1..=20u64 {
        // SAFETY: the child has this thread alone and ends below.
        let child = unsafe { fork() };
        if child == 0 {
            let raced = std::panic::catch_unwind(|| {
                let mut random = Random::new(seed);
                let mut race = Race::new();
                (0..2000).for_each(|_| race.turn(&mut random));
            });
            // SAFETY: ends the child without the test runner's exit code.
            unsafe { _exit(i32::from(raced.is_err())) };
        }
        let mut status = -1;
        // SAFETY: waits for our own child.
        assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "seed {seed}");
    }
}
