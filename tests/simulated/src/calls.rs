//! System calls as simulated programs write them.

use abi::nr;
use machine_sim::User;

const PROT_READ_WRITE: u64 = 3;
const MAP_PRIVATE_ANONYMOUS: u64 = 0x22;
/// CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, CHILD_CLEARTID.
const THREAD_FLAGS: u64 = 0x0025_0F00;
const SIGCHLD: u64 = 17;

/// What a C library would be for.
pub trait Calls {
    /// Fresh memory of the program.
    fn map(&self, bytes: u64) -> u64;
    /// Starts `program` as a thread; `ended` is a word that becomes 0, and is woken, when it has ended.
    fn thread(&self, program: usize, given: u64, ended: u64) -> i64;
    /// Starts `program` as a child process.
    fn fork(&self, program: usize, given: u64) -> i64;
    /// `pipe2` with these flags: read end, write end. `scratch`: 8 bytes of memory.
    fn pipe(&self, flags: u64, scratch: u64) -> (u64, u64);
    /// CLOCK_MONOTONIC in nanoseconds.
    fn clock(&self, scratch: u64) -> u64;
    /// `nanosleep`: the call's result.
    fn sleep(&self, ns: u64, scratch: u64) -> i64;
    /// Sleeps on a word until it is no longer `value`.
    fn wait_while(&self, word: u64, value: u32);
}

fn timespec(ns: u64) -> [u8; 16] {
    let words = [ns / 1_000_000_000, ns % 1_000_000_000].map(u64::to_le_bytes).concat();
    words.try_into().unwrap_or([0; 16])
}

impl Calls for User {
    fn map(&self, bytes: u64) -> u64 {
        let address = self.call(nr::MMAP, [0, bytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, u64::MAX, 0]);
        assert!(address > 0, "mmap: {address}");
        address as u64
    }

    fn thread(&self, program: usize, given: u64, ended: u64) -> i64 {
        const STACK_BYTES: u64 = 0x4000;
        let stack = self.map(STACK_BYTES) + STACK_BYTES;
        self.clone(program, given, [THREAD_FLAGS, stack, 0, ended, 0, 0])
    }

    fn fork(&self, program: usize, given: u64) -> i64 {
        self.clone(program, given, [SIGCHLD, 0, 0, 0, 0, 0])
    }

    fn pipe(&self, flags: u64, scratch: u64) -> (u64, u64) {
        assert_eq!(self.call(nr::PIPE2, [scratch, flags, 0, 0, 0, 0]), 0);
        (self.load_u32(scratch).into(), self.load_u32(scratch + 4).into())
    }

    fn clock(&self, scratch: u64) -> u64 {
        assert_eq!(self.call(nr::CLOCK_GETTIME, [1, scratch, 0, 0, 0, 0]), 0);
        self.load_word(scratch) * 1_000_000_000 + self.load_word(scratch + 8)
    }

    fn sleep(&self, ns: u64, scratch: u64) -> i64 {
        self.store(scratch, &timespec(ns));
        self.call(nr::NANOSLEEP, [scratch, 0, 0, 0, 0, 0])
    }

    fn wait_while(&self, word: u64, value: u32) {
        while self.load_u32(word) == value {
            let result = self.call(nr::FUTEX, [word, 0, value.into(), 0, 0, 0]);
            assert!(matches!(result, 0 | -4 | -11), "futex: {result}");
        }
    }
}
