//! What it costs to make the code of each quaject, stage by stage, in nanoseconds on this machine.
//!
//!     cargo run --release -p golden --example synthesis
//!
//! Medians of many rounds. `plan` is the optimizer's work on the first of a class, `optimize` that on all others. `revive` is
//! what a closed quaject costs that is opened again: its code is there. `first` is the first run of a new routine less a
//! later one, entry and exit of the bench included in both.

use std::hint::black_box;
use std::time::Instant;

use abi::nr;
use golden::{Caller, bench, code_store};
use kernel::call::{Console, ConsoleCallouts, Makers, Null, NullCallouts, Zero, ZeroCallouts, paste_channel};
use kernel::file::{NewNode, Node, Time, Volume, Window, WindowCallouts};
use kernel::pipe::{Body, Pipe, PipeCallouts};
use machine::Channel;
use quaject::{Made, Quaject, create};

const ROUNDS: usize = 2001;

/// Nanoseconds of each stage.
#[derive(Default)]
struct Costs {
    name: &'static str,
    routines: usize,
    bytes: [usize; 2],
    plan: u64,
    factor: u64,
    optimize: u64,
    publish: u64,
    first: i64,
    revive: Option<u64>,
}

fn median<T: Ord + Copy>(mut all: Vec<T>) -> T {
    all.sort_unstable();
    all[all.len() / 2]
}

fn timed<T>(into: &mut Vec<u64>, act: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = black_box(act());
    into.push(start.elapsed().as_nanos() as u64);
    result
}

/// `entry` chooses the routine that is run, which does call `number`.
fn stages<Q: Quaject>(
    quaject: &Q,
    callouts: &Q::Callouts,
    number: u64,
    entry: impl Fn(&Q::Callentries) -> Option<u64>,
) -> Costs {
    let makers = Makers { machine: bench(), store: code_store(1 << 20) };
    let mut caller = Caller::new(1);
    let buffer = bench().program.base();
    let (mut plan, mut factor, mut optimize, mut publish) = (vec![], vec![], vec![], vec![]);
    let mut first = Vec::new();
    let mut costs = Costs { name: Q::class().name, ..Costs::default() };
    for _ in 0..ROUNDS {
        let mut drafts = timed(&mut factor, || create::factor(quaject, makers, callouts));
        costs.bytes[0] = drafts.as_mut().iter().flatten().map(synth::Draft::len).sum();
        costs.routines = drafts.as_mut().iter().flatten().count();
        timed(&mut plan, || drafts.as_mut().iter().flatten().filter_map(synth::optimize).count());
        let mut drafts = timed(&mut optimize, || create::optimize::<Q>(drafts));
        costs.bytes[1] = drafts.as_mut().iter().flatten().map(synth::Draft::len).sum();
        let code = timed(&mut publish, || create::publish::<Q>(makers, drafts));
        let entry = entry(&code).expect("room for code");
        let mut runs = Vec::new();
        for _ in 0..8 {
            timed(&mut runs, || caller.file_call(entry, number, [0, buffer, 1]));
        }
        first.push(runs[0] as i64 - median(runs) as i64);
    }
    costs.plan = median(plan);
    costs.factor = median(factor);
    costs.optimize = median(optimize);
    costs.publish = median(publish);
    costs.first = median(first);
    costs
}

fn revived<T>(mut open: impl FnMut() -> T) -> Option<u64> {
    drop(open());
    let mut all = Vec::new();
    for _ in 0..ROUNDS {
        // Sixteen at a time, or the clock is what is measured.
        let start = Instant::now();
        for _ in 0..16 {
            drop(black_box(open()));
        }
        all.push(start.elapsed().as_nanos() as u64 / 16);
    }
    Some(median(all))
}

fn main() {
    let makers = bench().makers();
    let pipe = Pipe::new(Some(makers)).expect("memory for a pipe");
    let volume = Volume::in_memory(bench().pool, 1);
    let new = NewNode { mode: 0o644, user: 0, group: 0, now: Time::default() };
    let node = Node::nameless(&volume, new).expect("room for a node");
    let content = node.content().expect("a regular file");
    let window: Box<Made<Window>> = Window::open(content, Some(makers));
    let address = |code: Option<codestore::Code<kernel::FileCall>>| code.map(|code| code.entry());
    let device = paste_channel(Channel::StandardOutput, makers);
    let body: &Body = pipe.body();
    let window_only: &Window = &window;
    let mut all = [
        stages(&Null {}, &NullCallouts {}, nr::READ, |code| address(code.read.clone())),
        stages(&Zero {}, &ZeroCallouts {}, nr::READ, |code| address(code.read.clone())),
        stages(&Console {}, &ConsoleCallouts { device }, nr::WRITE, |code| address(code.write.clone())),
        stages(body, &PipeCallouts {}, nr::READ, |code| address(code.read.clone())),
        stages(window_only, &WindowCallouts {}, nr::LSEEK, |code| address(code.seek.clone())),
    ];
    all[3].revive = revived(|| Pipe::new(Some(makers)).expect("memory for a pipe"));
    let mut windows = vec![window];
    all[4].revive = revived(|| {
        Window::close(windows.pop().expect("there is one"));
        windows.push(Window::open(content, Some(makers)));
    });
    println!("quaject  routines  bytes before after  factor  plan  optimize  publish  first  create  revive   (ns)");
    for costs in all {
        let create = costs.factor + costs.optimize + costs.publish;
        println!(
            "{:8} {:8} {:13} {:5} {:7} {:5} {:9} {:8} {:6} {:7} {:>7}",
            costs.name,
            costs.routines,
            costs.bytes[0],
            costs.bytes[1],
            costs.factor,
            costs.plan,
            costs.optimize,
            costs.publish,
            costs.first,
            create,
            costs.revive.map_or("-".to_string(), |revive| revive.to_string()),
        );
    }
}
