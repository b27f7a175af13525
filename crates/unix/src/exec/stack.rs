//! The first bytes of a program's stack (System V ABI, AMD64 supplement, 3.4.1), laid out as Linux
//! does, so that programs which walk from one part to the next find what they expect.
//!
//! ```text
//!   stack top ┐
//!             │ 8 zero bytes
//!             │ path of the program            ◄ AT_EXECFN
//!             │ environment strings            first one lowest
//!             │ argument strings               first one lowest, without gaps
//!             │ 0..15 bytes to a multiple of 16
//!             │ "x86_64"                       ◄ AT_PLATFORM
//!             │ 16 random bytes                ◄ AT_RANDOM
//!             │ 0..15 bytes
//!             │ auxiliary vector, ends with AT_NULL
//!             │ envp[], NULL
//!             │ argv[], NULL
//!        RSP ─┴ argc                           a multiple of 16
//! ```

use alloc::vec::Vec;
use core::ops::Range;

use abi::Errno;
use machine::{PAGE_BYTES, TryGrow};

use super::limits::{ARGUMENTS_BYTES_MAX, ARGUMENTS_BYTES_MIN, STRING_BYTES_MAX};

/// What the auxiliary vector tells a program about itself and its machine.
#[derive(Clone, Debug, Default)]
pub struct ProgramFacts {
    /// AT_PHDR: address of the program headers in memory.
    pub phdr: u64,
    /// AT_PHENT, bytes of one.
    pub phentsize: u16,
    /// AT_PHNUM.
    pub phnum: u16,
    /// AT_BASE: load bias of the interpreter, 0 without one.
    pub interpreter_base: u64,
    /// AT_ENTRY: where the program itself (not its interpreter) starts.
    pub entry: u64,
    pub uid: u32,
    pub euid: u32,
    pub gid: u32,
    pub egid: u32,
    /// AT_SECURE: the program got rights from its file (set-user-ID).
    pub secure: bool,
    /// AT_RANDOM: seeds stack protectors and hash tables.
    pub random: [u8; 16],
    /// AT_HWCAP: EDX of CPUID leaf 1.
    pub hwcap: u32,
    /// AT_HWCAP2: bit 0 ring-3 MWAIT, bit 1 FSGSBASE instructions allowed in user mode.
    pub hwcap2: u32,
    /// AT_SYSINFO_EHDR: where the vDSO's ELF header is mapped; `None` when there is no vDSO.
    pub vdso: Option<u64>,
    /// AT_MINSIGSTKSZ: bytes of the largest signal frame.
    pub signal_frame_bytes: u32,
}

/// The stack as a program first sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InitialStack {
    /// What to copy to `stack_pointer`; the last byte lies just below the stack's top.
    pub bytes: Vec<u8>,
    /// RSP at the first instruction.
    pub stack_pointer: u64,
    /// Addresses of the argument strings, for `/proc/self/cmdline`.
    pub arguments: Range<u64>,
    /// Addresses of the environment strings, for `/proc/self/environ`.
    pub environment: Range<u64>,
}

/// How many bytes of strings `execve` still accepts. The caller charges each string as soon as its
/// length is known, so that an endless list is refused before it is copied in.
pub struct ArgumentBudget {
    left: u64,
}

impl ArgumentBudget {
    /// `stack_limit` is the soft RLIMIT_STACK in bytes: a quarter of it is granted, within
    /// [`ARGUMENTS_BYTES_MIN`] and [`ARGUMENTS_BYTES_MAX`]. The pointers count too.
    ///
    /// # Errors
    /// E2BIG: the pointers alone take all.
    pub fn new(stack_limit: u64, arguments: usize, variables: usize) -> Result<ArgumentBudget, Errno> {
        let granted = (stack_limit / 4).clamp(ARGUMENTS_BYTES_MIN, ARGUMENTS_BYTES_MAX);
        let pointers = (arguments.max(1) as u64).saturating_add(variables as u64).saturating_mul(8);
        match granted.checked_sub(pointers) {
            Some(left) if left > 0 => Ok(ArgumentBudget { left }),
            _ => Err(Errno::E2BIG),
        }
    }

    /// Takes one string of `length` bytes, its NUL not counted.
    ///
    /// # Errors
    /// E2BIG: the string is longer than [`STRING_BYTES_MAX`] with its NUL, or too much in all.
    pub fn charge(&mut self, length: usize) -> Result<(), Errno> {
        let bytes = (length as u64).saturating_add(1);
        if bytes > STRING_BYTES_MAX || bytes > self.left {
            return Err(Errno::E2BIG);
        }
        self.left -= bytes;
        Ok(())
    }
}

/// What [`build`] lays out.
pub struct Arguments<'a> {
    /// The path given to `execve`, also when a script's interpreter runs in the end.
    pub path: &'a [u8],
    /// An empty list becomes one empty string, as on Linux since 5.18.
    pub argv: &'a [Vec<u8>],
    pub envp: &'a [Vec<u8>],
}

/// Lays out the stack that ends at `stack_top` (a multiple of the page size). No string holds a NUL: they come from where one ends
/// each.
///
/// It is long work where there are many strings: `pause` is called between its parts.
///
/// # Errors
/// E2BIG: see [`ArgumentBudget`]. ENOMEM: no kernel memory for the bytes. EINVAL: no room between
/// address 0 and `stack_top`.
pub fn build(
    arguments: &Arguments<'_>,
    facts: &ProgramFacts,
    stack_top: u64,
    stack_limit: u64,
    pause: &dyn Fn(),
) -> Result<InitialStack, Errno> {
    const NO_ARGUMENTS: &[Vec<u8>] = &[Vec::new()];
    let argv = if arguments.argv.is_empty() { NO_ARGUMENTS } else { arguments.argv };
    let envp = arguments.envp;
    let mut budget = ArgumentBudget::new(stack_limit, argv.len(), envp.len())?;
    for (index, string) in core::iter::once(arguments.path).chain(all(envp)).chain(all(argv)).enumerate() {
        debug_assert!(!string.contains(&0), "a NUL inside a string");
        budget.charge(string.len())?;
        if index % PART_STRINGS == PART_STRINGS - 1 {
            pause();
        }
    }

    // Sizes first, from the top down; then one buffer is written from the bottom up.
    let path_at = below(stack_top, 8 + arguments.path.len() as u64 + 1)?;
    let environment_at = below(path_at, strings_bytes(envp))?;
    let arguments_at = below(environment_at, strings_bytes(argv))?;
    let platform_at = below(arguments_at & !15, PLATFORM.len() as u64)?;
    let random_at = below(platform_at, 16)? & !15;
    let vector = auxiliary_vector(facts, random_at, platform_at, path_at);
    let words = 1 + argv.len() + 1 + envp.len() + 1 + vector.len() * 2;
    let stack_pointer = below(random_at, words as u64 * 8)? & !15;

    let mut bytes = BottomUp::new(stack_pointer, stack_top, pause)?;
    bytes.word(argv.len() as u64);
    bytes.pointers(argv, arguments_at);
    bytes.pointers(envp, environment_at);
    for (kind, value) in vector {
        bytes.word(kind);
        bytes.word(value);
    }
    bytes.at(random_at).extend(&facts.random);
    bytes.at(platform_at).extend(PLATFORM);
    bytes.at(arguments_at).strings(argv);
    bytes.strings(envp);
    bytes.string(arguments.path);
    Ok(InitialStack {
        bytes: bytes.finish(stack_top),
        stack_pointer,
        arguments: arguments_at..environment_at,
        environment: environment_at..path_at,
    })
}

/// Strings that are counted, and bytes that are written, between two pauses.
const PART_STRINGS: usize = 1024;
const PART_BYTES: usize = 16 << 10;

const PLATFORM: &[u8] = b"x86_64\0";

/// Keys and values (`linux/auxvec.h`), in the order of Linux.
#[expect(clippy::disallowed_methods, reason = "always as many")]
fn auxiliary_vector(facts: &ProgramFacts, random: u64, platform: u64, path: u64) -> Vec<(u64, u64)> {
    let mut vector = Vec::with_capacity(24);
    vector.extend(facts.vdso.map(|address| (33, address)));
    vector.extend([
        (51, facts.signal_frame_bytes as u64),
        (16, facts.hwcap as u64),
        (6, PAGE_BYTES as u64),
        (17, 100), // AT_CLKTCK: the unit of times(2), fixed by the ABI.
        (3, facts.phdr),
        (4, facts.phentsize as u64),
        (5, facts.phnum as u64),
        (7, facts.interpreter_base),
        (8, 0), // AT_FLAGS
        (9, facts.entry),
        (11, facts.uid as u64),
        (12, facts.euid as u64),
        (13, facts.gid as u64),
        (14, facts.egid as u64),
        (23, facts.secure as u64),
        (25, random),
        (26, facts.hwcap2 as u64),
        (31, path),
        (15, platform),
        (27, crate::calls::restartable::FEATURE_BYTES.into()),
        (28, crate::calls::restartable::ALIGNMENT.into()),
        (0, 0), // AT_NULL
    ]);
    vector
}

/// The stack's bytes while they are written in ascending order. Gaps are zero.
struct BottomUp<'a> {
    start: u64,
    bytes: Vec<u8>,
    pause: &'a dyn Fn(),
    /// How many bytes there were at the last pause.
    paused_at: usize,
}

#[expect(clippy::disallowed_methods, reason = "there is room for all from the start")]
impl BottomUp<'_> {
    fn new(start: u64, end: u64, pause: &dyn Fn()) -> Result<BottomUp<'_>, Errno> {
        let mut bytes = Vec::new();
        bytes.room_for_exact((end - start) as usize).map_err(|_| Errno::ENOMEM)?;
        Ok(BottomUp { start, bytes, pause, paused_at: 0 })
    }

    /// Goes on at `address`, which is never below the last byte written.
    fn at(&mut self, address: u64) -> &mut Self {
        self.bytes.resize((address - self.start) as usize, 0);
        self
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() - self.paused_at >= PART_BYTES {
            self.paused_at = self.bytes.len();
            (self.pause)();
        }
    }

    fn word(&mut self, word: u64) {
        self.extend(&word.to_le_bytes());
    }

    /// Pointers to strings that lie one behind the other from `first`, and a NULL.
    fn pointers(&mut self, strings: &[Vec<u8>], first: u64) {
        let mut at = first;
        for string in strings {
            self.word(at);
            at += string.len() as u64 + 1;
        }
        self.word(0);
    }

    fn string(&mut self, string: &[u8]) {
        self.extend(string);
        self.bytes.push(0);
    }

    fn strings(&mut self, strings: &[Vec<u8>]) {
        for string in strings {
            self.string(string);
        }
    }

    fn finish(mut self, end: u64) -> Vec<u8> {
        self.at(end);
        self.bytes
    }
}

fn all(strings: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    strings.iter().map(Vec::as_slice)
}

fn strings_bytes(strings: &[Vec<u8>]) -> u64 {
    strings.iter().map(|string| string.len() as u64 + 1).sum()
}

fn below(address: u64, bytes: u64) -> Result<u64, Errno> {
    address.checked_sub(bytes).ok_or(Errno::EINVAL)
}

#[cfg(test)]
#[path = "tests/stack.rs"]
mod tests;
