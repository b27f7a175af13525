//! What it costs to make the code of each quaject, stage by stage: in nanoseconds where it runs by itself, in guest
//! instructions under `synth run --icount`, where the clock counts them. `synth bench synthesis` runs it on each machine.
//!
//!     cargo run --release -p golden --example synthesis [lines]
//!
//! Medians of many rounds, without the clock's own cost. `plan` is the optimizer's work on the first of a class, `optimize`
//! that on all others. `revive` is what a closed quaject costs that is opened again: its code is there. `first` is the first
//! run of a new routine, `later` another one, entry and exit of the bench included in both. Of a state machine `join` makes the
//! graph (and the product), which is done when a kernel is built, `factor` unpacks it, `optimize` makes the code, and `later` is a
//! character through it. `lines` prints `name key value`.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

use abi::nr;
use golden::{Automaton, Caller, OnlyTte, bench, code_store};
use kernel::call::{Makers, Null, NullCallouts, OpenName, Opens, TableWords, Zero, ZeroCallouts};
use kernel::channel::{Console, ConsoleCallouts, paste_channel};
use kernel::file::{NewNode, Node, Time, Volume, Window, WindowCallouts};
use kernel::pipe::{Body, Pipe, PipeCallouts};
use kernel::screen::{Machines, TextWindow};
use kernel::tty::Tty;
use machine::Channel;
use quaject::{Made, Quaject, create};
use statemachine::terminal::{COOK, VT100};
use statemachine::{Block, Graph, Memory, Outside, generate, product};
use synth::Draft;

const ROUNDS: usize = 501;

/// Ticks of each stage: nanoseconds or instructions.
#[derive(Default)]
struct Costs {
    name: &'static str,
    routines: usize,
    bytes: [usize; 2],
    plan: u64,
    factor: u64,
    optimize: u64,
    publish: u64,
    first: f64,
    later: f64,
    /// What is done when the kernel is built.
    join: u64,
    /// All stages, where they cannot be told apart.
    create: Option<u64>,
    revive: Option<u64>,
}

fn median<T: Ord + Copy>(mut all: Vec<T>) -> T {
    all.sort_unstable();
    all[all.len() / 2]
}

fn timed<T>(into: &mut Vec<u64>, act: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = black_box(act());
    into.push((start.elapsed().as_nanos() as u64).saturating_sub(clock_ticks()));
    result
}

/// What looking at the clock twice costs.
fn clock_ticks() -> u64 {
    static TICKS: OnceLock<u64> = OnceLock::new();
    *TICKS.get_or_init(|| {
        let look = |_| {
            let start = Instant::now();
            start.elapsed().as_nanos() as u64
        };
        median((0..ROUNDS).map(look).collect())
    })
}

/// `entry` chooses the routine that is run, which does call `number`.
fn stages<Q: Quaject>(
    quaject: &Q,
    callouts: &Q::Callouts<'_>,
    number: u64,
    entry: impl Fn(&Q::Callentries) -> Option<u64>,
) -> Costs {
    let makers = Makers::new(bench(), code_store(1 << 20));
    let mut caller = Caller::new(1);
    let buffer = bench().program.base();
    let (mut plan, mut factor, mut optimize, mut publish) = (vec![], vec![], vec![], vec![]);
    let (mut first, mut later) = (Vec::new(), Vec::new());
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
        first.push(runs[0]);
        later.push(median(runs));
    }
    costs.plan = median(plan);
    costs.factor = median(factor);
    costs.optimize = median(optimize);
    costs.publish = median(publish);
    (costs.first, costs.later) = (median(first) as f64, median(later) as f64);
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

/// `open` of one path, as a thread's call of its own: /dev/null.
fn cached() -> Costs {
    let makers = Makers::new(bench(), code_store(1 << 20));
    let table = TableWords { free: 0x1000, pending: 0x1008, reads: 0x2000, writes: 0x3000, slow_entry: 0x4000 };
    let names = [OpenName { path: b"/dev/null", flags: 0, read_entry: 0x7000, write_entry: 0x7100, recipe: 0 }];
    let opens = Opens { table, recipes: 0x5000, generation_word: 0x6000, generation: 7 };
    let mut create = Vec::new();
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let code = timed(&mut create, || opens.open(makers, &names, &OnlyTte)).expect("room for code");
        bytes = makers.store.birth(code.entry().address()).map_or(0, |birth| birth.bytes as usize);
    }
    Costs { name: "cached open", routines: 1, bytes: [bytes; 2], create: Some(median(create)), ..Costs::default() }
}

struct Nothing;

impl Outside for Nothing {
    fn call(&mut self, _: u16, _: Memory<'_>) {}
}

/// A window quaject of the thesis's table 7.5.
fn machine(name: &'static str, join: impl Fn() -> Graph) -> Costs {
    const TEXT: &[u8] = b"xterm|vs100|xterm terminal emulator (X Window System):am:km\n";
    let input = TEXT.repeat(20);
    let mut output = vec![0; 4 * input.len() + 4096];
    let [mut joined, mut factor, mut made, mut whole, mut first, mut later] = [const { Vec::new() }; 6];
    let packed = join().packed();
    let mut bytes = 0;
    for _ in 0..ROUNDS / 20 {
        timed(&mut joined, &join);
        let graph = timed(&mut factor, || Graph::unpacked(&packed));
        let block = Block::new(&graph).places();
        let mut draft = Draft::new();
        timed(&mut made, || generate(&graph, &block, &mut draft));
        bytes = draft.len();
        let mut code = timed(&mut whole, || Automaton::new(name, &graph));
        code.is_alone = true;
        for times in [&mut first, &mut later] {
            timed(times, || code.run(&input, &mut output, 64, &mut Nothing));
        }
    }
    let [join, factor, made, whole, first, later] = [joined, factor, made, whole, first, later].map(median);
    let each = |ticks: u64| ticks as f64 / input.len() as f64;
    let publish = whole.saturating_sub(made);
    let (first, later) = (each(first), each(later));
    Costs {
        name,
        routines: 1,
        bytes: [bytes; 2],
        join,
        factor,
        optimize: made,
        publish,
        first,
        later,
        ..Costs::default()
    }
}

/// A text window: what all share is there.
fn text_window() -> Costs {
    let machines = Machines::new();
    let tty = Tty::new(4096).expect("memory");
    let mut create = Vec::new();
    let mut bytes = 0;
    for _ in 0..ROUNDS / 20 {
        let window = timed(&mut create, || {
            let window = TextWindow::new(&machines);
            window.synthesize(&tty, bench().makers());
            window
        });
        let birth = window.code().and_then(|code| bench().store.birth(code.entry().address()));
        bytes = birth.map_or(0, |birth| birth.bytes as usize);
    }
    let name = "text window";
    Costs { name, routines: 3, bytes: [bytes; 2], create: Some(median(create)), ..Costs::default() }
}

fn machines() -> [Costs; 3] {
    let joined = || product(&Graph::of(&COOK), &Graph::of(&VT100)).expect("a product");
    [
        machine("TTY-cooker", || Graph::of(&COOK)),
        machine("VT-100", || Graph::of(&VT100)),
        machine("TTY-cooker and VT-100, one machine", joined),
    ]
}

impl Costs {
    fn created(&self) -> u64 {
        self.create.unwrap_or(self.factor + self.optimize + self.publish)
    }

    fn lines(&self) {
        let stages = [
            ("plan", self.plan),
            ("join", self.join),
            ("factor", self.factor),
            ("optimize", self.optimize),
            ("publish", self.publish),
        ];
        let known = stages.into_iter().filter(|(_, ticks)| *ticks > 0 && self.create.is_none());
        let sizes = [("routines", self.routines as u64), ("bytes", self.bytes[1] as u64), ("create", self.created())];
        for (key, value) in sizes.into_iter().chain(known).chain(self.revive.map(|revive| ("revive", revive))) {
            println!("{}\t{key}\t{value}", self.name);
        }
        // A quaject's own run is too short to be told from the bench's entry; a program times it.
        if self.create.is_none() && self.plan == 0 {
            println!("{}\tcharacter\t{:.1}", self.name, self.later);
        }
    }
}

fn main() {
    let makers = bench().makers();
    let pipe = Pipe::new(Some(makers)).expect("memory for a pipe");
    let volume = Volume::in_memory(bench().pool).unwrap();
    let new = NewNode { mode: 0o644, user: 0, group: 0, now: Time::default() };
    let node = Node::nameless(&volume, b"", new).expect("room for a node");
    let content = node.content().expect("a regular file");
    let window: Box<Made<Window>> = Window::open(content, makers);
    let address = |code: Option<codestore::Code<kernel::FileCall>>| code.map(|code| code.entry().address());
    let device = paste_channel(Channel::StandardOutput, makers);
    let body: &Body = pipe.body();
    let window_only: &Window = &window;
    let mut all = vec![
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
        windows.push(Window::open(content, makers));
    });
    all.push(cached());
    all.extend(machines());
    all.push(text_window());
    if std::env::args().nth(1).is_some_and(|word| word == "lines") {
        return all.iter().for_each(Costs::lines);
    }
    println!("quaject  routines  bytes before after  factor  plan  optimize  publish  create  first  later  revive");
    for costs in all {
        println!(
            "{:8} {:8} {:13} {:5} {:7} {:5} {:9} {:8} {:7} {:6.1} {:6.1} {:>7}",
            costs.name,
            costs.routines,
            costs.bytes[0],
            costs.bytes[1],
            costs.factor,
            costs.plan,
            costs.optimize,
            costs.publish,
            costs.created(),
            costs.first,
            costs.later,
            costs.revive.map_or("-".to_string(), |revive| revive.to_string()),
        );
    }
}
