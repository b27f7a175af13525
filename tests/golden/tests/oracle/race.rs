//! What the races have in common: the caller, the count of ways, the program's memory before and after.

use std::collections::BTreeMap;

use abi::Errno;
use golden::{Caller, Outcome, Program, Random, Way, bench};
use kernel::file::limits::TRANSFER_BYTES_MAX;
use kernel::schedule::Scheduler;
use kernel::stream::{Io, UserRange, Waits};
use machine::VirtAddr;

/// Who calls in a race: nobody is ever told to stop.
struct Nobody;

impl kernel::stream::Caller for Nobody {
    fn is_interrupted(&self) -> bool {
        false
    }
}

pub struct Race {
    pub seed: u64,
    pub operation: u64,
    pub random: Random,
    pub caller: Caller,
    /// Operations that routines did, and that they left to their twins, by routine.
    ways: BTreeMap<&'static str, [u64; 2]>,
    pub scheduler: &'static Scheduler,
    /// The last operation, for the message of a failure.
    last: String,
}

/// Every routine that must have been fast at least once.
const ROUTINES: [&str; 21] = [
    "pipe.read",
    "pipe.write",
    "file.read",
    "file.write",
    "file.pread",
    "file.pwrite",
    "file.seek",
    "null.read",
    "null.write",
    "zero.read",
    "console.write",
    "tty.read",
    "tty.write",
    "window.write",
    "call.open",
    "call.close",
    "call.poll",
    "epoll.wait",
    "thread.dispatch",
    "thread.by_descriptor",
    "thread.slow_call",
];

impl Race {
    pub fn new(seed: u64) -> Race {
        let scheduler = Scheduler::start(bench()).expect("room for the idle thread");
        let random = Random::new(seed);
        Race {
            seed,
            operation: 0,
            random,
            caller: Caller::new(seed),
            ways: BTreeMap::new(),
            scheduler,
            last: String::new(),
        }
    }

    /// Where the race stands, for the message of a failure.
    pub fn place(&self) -> String {
        format!("SYNTH_SEED={}, operation {}", self.seed, self.operation)
    }

    pub fn count(&mut self, routine: &'static str, way: Way) {
        self.ways.entry(routine).or_default()[usize::from(way == Way::Slow)] += 1;
    }

    /// Enters a routine behind a descriptor, then the twin if it gave up; returns how it went.
    pub fn file_call(
        &mut self,
        routine: &'static str,
        entry: u64,
        number: u64,
        (address, bytes): (u64, u64),
        twin: impl FnOnce(&Race) -> Result<usize, Errno>,
    ) -> Outcome {
        let descriptor = self.random.below(8);
        let mut outcome = self.caller.file_call(entry, number, [descriptor, address, bytes]);
        self.count(routine, outcome.way);
        self.last = format!("{routine}({address:#x}, {bytes:#x}), {:?}", outcome.way);
        if outcome.way == Way::Slow {
            outcome.result = in_rax(twin(self).map(|value| value as u64));
        }
        outcome
    }

    /// The circumstances of a call that may not sleep.
    pub fn io(&self) -> Io<'static> {
        Io { waits: Waits::ForNothing, scheduler: self.scheduler, caller: &Nobody }
    }

    /// A number of bytes, mostly small, often one that sits at an edge; `edges` are further ones.
    pub fn bytes(&mut self, edges: &[usize]) -> usize {
        const USUAL: [usize; 14] = [0, 1, 1, 1, 2, 7, 8, 9, 4095, 4096, 4097, 65535, 65536, 65537];
        match self.random.below(16) {
            0 | 1 => self.random.pick(&USUAL),
            2 | 3 if !edges.is_empty() => (self.random.pick(edges) + self.random.below(3) as usize).saturating_sub(1),
            4 => self.random.below(70_001) as usize,
            5..9 => self.random.below(5000) as usize,
            9 | 10 => 1,
            _ => self.random.below(600) as usize,
        }
    }

    /// Fails with the seed unless the two are equal.
    #[track_caller]
    pub fn same<T: PartialEq + core::fmt::Debug>(&self, what: &str, got: T, expected: T) {
        if got != expected {
            let (got, expected) = (short(&got), short(&expected));
            panic!(
                "{what}: {got}, the model says {expected}\n(operation {} of SYNTH_SEED={}; last: {})",
                self.operation, self.seed, self.last
            );
        }
    }

    /// Prints how often each routine was fast; fails when one never was.
    pub fn tell(&self) {
        println!("{:<22}{:>12}{:>12}", "routine", "fast", "slow");
        for (routine, [fast, slow]) in &self.ways {
            println!("{routine:<22}{fast:>12}{slow:>12}");
        }
        for routine in ROUTINES {
            let fast = self.ways.get(routine).map_or(0, |ways| ways[0]);
            assert!(fast > 0, "{routine} was never fast (SYNTH_SEED={})", self.seed);
        }
    }
}

fn short(value: &impl core::fmt::Debug) -> String {
    let text = format!("{value:?}");
    if text.len() > 600 { format!("{}…", text.chars().take(600).collect::<String>()) } else { text }
}

pub fn in_rax(result: Result<u64, Errno>) -> u64 {
    result.unwrap_or_else(|error| error.as_return_value())
}

/// What the emulator checks of a buffer before anything else (`Call::range`).
pub fn range(address: u64, bytes: u64) -> Result<UserRange, Errno> {
    if bytes > i64::MAX as u64 {
        return Err(Errno::EINVAL);
    }
    if address.checked_add(bytes).is_none_or(|end| end > bench().program.limit()) {
        return Err(Errno::EFAULT);
    }
    Ok(UserRange { address: VirtAddr(address), bytes: (bytes as usize).min(TRANSFER_BYTES_MAX) })
}

pub fn program() -> &'static Program {
    &bench().program
}

/// The program's memory around a buffer, to be compared after the call.
pub struct Around {
    address: u64,
    bytes: Vec<u8>,
    /// Bytes in front of the buffer that are compared too.
    before: usize,
}

const MARGIN: usize = 64;

impl Around {
    pub fn take(address: u64, bytes: usize) -> Around {
        let margin = MARGIN as u64;
        let start = address.wrapping_sub(margin);
        let before = if program().reachable(start, MARGIN, golden::Access::Read) == MARGIN { MARGIN } else { 0 };
        let start = address.wrapping_sub(before as u64);
        Around { address: start, bytes: program().bytes(start, before + bytes.min(300_000) + MARGIN), before }
    }

    /// Compares with the memory now: `given` is what the buffer got; `more` is what may, or may not, stand behind it up to
    /// where the call faulted.
    #[track_caller]
    pub fn check(mut self, race: &Race, given: &[u8], more: &[u8]) {
        let now = program().bytes(self.address, self.bytes.len());
        let buffer = self.before.min(self.bytes.len());
        self.bytes[buffer..buffer + given.len()].copy_from_slice(given);
        let behind = buffer + given.len();
        for (offset, byte) in more.iter().enumerate() {
            if now[behind + offset] == *byte {
                self.bytes[behind + offset] = *byte;
            }
        }
        let differs = now.iter().zip(&self.bytes).position(|(now, model)| now != model);
        let differs = differs.map(|at| at as i64 - buffer as i64);
        race.same("first byte of the program's buffer that differs", differs, None);
    }
}
