//! From a plan to an outcome: a boot archive with one program that has no instructions.

use std::sync::Mutex;

use bootimage::{Attributes, Config, FdKind, Node};
use kernel::space::FramePool;
use machine::{PAGE_BYTES, PhysicalMemory};
use machine_sim::{Outcome, Plan, SimMachine, TEXT, TEXT_BYTES, entry};
use unix::boot::{Ingredients, Join, RESERVE_FRAMES};

/// The kernel has one scheduler that its idle thread knows: one run at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs the plan to its end. Descriptors 0, 1 and 2 are the terminal.
pub fn run(plan: Plan) -> Outcome {
    run_with(plan, unix::boot::join_shares)
}

/// As `run`; `join` adds to the tree of names.
pub fn run_with(plan: Plan, join: Join) -> Outcome {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let seed = plan.seed;
    let machine = SimMachine::new(plan);
    let archive: &'static [u8] = Box::leak(archive(seed).into_boxed_slice());
    let archive_frames = archive.len().div_ceil(PAGE_BYTES) as u32;
    let mut frames = machine.take_frames();
    let archive_frames = frames.split(archive_frames);
    for (index, bytes) in archive.chunks(PAGE_BYTES).enumerate() {
        machine.write(archive_frames.number(index as u32), 0, bytes);
    }
    let pool = Box::leak(Box::new(FramePool::new(machine, vec![frames], RESERVE_FRAMES)));
    let entered = machine.enter();
    let started = unix::boot::start(
        entered.held(),
        Ingredients {
            machine,
            store: machine_sim::code_store(),
            classes: |_| (),
            pool,
            archive,
            archive_frames,
            join,
            monitor: &unix::boot::NO_MONITOR,
            epoch: unix::boot::Epoch::Exact(1_000_000_000_000_000_000),
            counter: (0, 1 << 32),
        },
    );
    match started {
        Ok(first) => machine.run(first.tte(), entered),
        Err(failure) => panic!("the simulated machine does not start: {}", failure.line),
    }
}

fn archive(seed: u64) -> Vec<u8> {
    let attributes = Attributes { mode: 0o755, mtime_s: 1_000_000_000, ..Attributes::default() };
    let mut plan = bootimage::Plan::default();
    let program = program();
    let bytes = program.len() as u64;
    plan.insert(b"/", attributes, Node::Directory).expect("a plain path");
    plan.insert(b"/program", attributes, Node::File { bytes, source: () }).expect("a plain path");
    let mut config = Config {
        program: b"/program".to_vec(),
        argv: vec![b"program".to_vec()],
        cwd: b"/".to_vec(),
        hostname: b"simulated".to_vec(),
        network: Vec::new(),
        fds: [FdKind::Tty; 3],
        rows: 24,
        columns: 80,
        epoch_ns: 1_000_000_000_000_000_000,
        tsc_hz: 1_000_000_000,
        ..Config::default()
    };
    config.flags.generic = true;
    config.seed[..8].copy_from_slice(&seed.to_le_bytes());
    let encoded = plan.encode(&config).expect("the plan is sound");
    let mut archive = encoded.head;
    archive.resize(encoded.total_bytes as usize, 0);
    for piece in encoded.pieces {
        archive[piece.offset as usize..][..program.len()].copy_from_slice(&program);
    }
    archive
}

/// An ELF file (System V ABI, chapter 4) with one segment to run, whose bytes nobody looks at.
fn program() -> Vec<u8> {
    program_at(entry(0))
}

/// The same, to begin at `start`. The pages behind the headers hold what no other place does.
pub fn program_at(start: u64) -> Vec<u8> {
    const HEADER: u64 = 64;
    const SEGMENT: u64 = 56;
    let mut file = Vec::new();
    file.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    file.extend([start, HEADER, 0].iter().flat_map(|word| word.to_le_bytes()));
    file.extend([0; 4]);
    file.extend([HEADER as u16, SEGMENT as u16, 1, 0, 0, 0].iter().flat_map(|half| half.to_le_bytes()));
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    file.extend([0, TEXT, TEXT, TEXT_BYTES, TEXT_BYTES, 4096].iter().flat_map(|word| word.to_le_bytes()));
    while file.len() < TEXT_BYTES as usize {
        file.push((file.len() / 7) as u8);
    }
    file
}
