//! Generated state machines against their interpretation, and the line editor against the kernel's tty, on random input.
//! `SYNTH_SEED=n` repeats a run. `machines --costs` prints what a character costs.

use std::hint::black_box;
use std::time::Instant;

use golden::{Automaton, INSTRUCTIONS, Random};
use kernel::tty::{Patience, ReadOutcome, Tty};
use statemachine::terminal::{COOK, EDIT, VT100, edit_outside, vt_outside};
use statemachine::{Block, Graph, Memory, Outside, Runner, generate, product};
use synth::Draft;

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let seed = Random::seed();
    println!("machines: SYNTH_SEED={seed}");
    let [edit, cook, vt100] = [&EDIT, &COOK, &VT100].map(Graph::of);
    let shown = product(&cook, &vt100).expect("a product");
    let echoed = product(&edit, &cook).expect("a product");
    let all = product(&echoed, &vt100).expect("a product");
    let graphs = [
        ("edit", &edit),
        ("cook", &cook),
        ("vt100", &vt100),
        ("cook*vt100", &shown),
        ("edit*cook", &echoed),
        ("all", &all),
    ];
    for (name, graph) in graphs {
        race(name, graph, seed);
    }
    race_output_with_the_tty(&cook, seed);
    costs(std::env::args().any(|argument| argument == "--costs"));
}

/// Does what a VT-100's surroundings do, and notes what it was asked for.
#[derive(Default)]
struct Surroundings(Vec<u16>);

impl Outside for Surroundings {
    fn call(&mut self, number: u16, memory: Memory<'_>) {
        self.0.push(number);
        match number {
            vt_outside::SEQUENCE => {
                memory.arrays.iter().rev().nth(1).expect("a screen").iter().for_each(|cell| cell.set(7))
            }
            // Words may change outside, too.
            edit_outside::KEY => memory.words[0].set(memory.words[1].get()),
            _ => {}
        }
    }
}

/// Text, and now and then a control byte, a whole sequence of a VT-100, or anything.
fn random_bytes(random: &mut Random, input: &mut Vec<u8>) {
    match random.below(16) {
        0 => input.push(random.below(32) as u8),
        1 => input.push(random.below(256) as u8),
        2 => {
            let (first, second) = (random.below(100), random.below(90));
            let end = char::from(random.pick(b"HHHfABCDJKmhn"));
            let text = match random.below(4) {
                0 => format!("\x1b[{end}"),
                1 => format!("\x1b[{first}{end}"),
                2 => format!("\x1b[{first};{second}{end}"),
                _ => format!("\x1b{}", char::from(random.pick(b"78DEMc(Z\x1b"))),
            };
            input.extend_from_slice(text.as_bytes());
        }
        3 => input.push(random.pick(b"\r\n\x7f\x15\x17\x16")),
        _ => input.push(32 + random.below(95) as u8),
    }
}

/// Most bytes that one input byte becomes: a full line erased.
const SLACK: usize = 6 * 4096 + 64;

fn race(name: &'static str, graph: &Graph, seed: u64) {
    let mut random = Random::new(seed);
    let mut code = Automaton::new(name, graph);
    let mut runner = Runner::new(graph);
    let (mut done, mut wanted) = (Surroundings::default(), Surroundings::default());
    let mut output = vec![0; SLACK + 512];
    for piece in 0..2000 {
        let mut input = Vec::new();
        (0..random.below(64)).for_each(|_| random_bytes(&mut random, &mut input));
        let mut emitted = Vec::new();
        while !input.is_empty() {
            let (taken, bytes) = code.run(&input, &mut output, SLACK, &mut done);
            for byte in input.drain(..taken) {
                runner.take(byte, &mut |byte| emitted.push(byte), &mut wanted);
            }
            assert!(emitted == output[..bytes], "{name}: emitted in piece {piece}, SYNTH_SEED={seed}");
            emitted.clear();
        }
        assert_eq!(code.memory().words, runner.memory().words, "{name}: words after piece {piece}, SYNTH_SEED={seed}");
        assert!(
            code.memory().arrays == runner.memory().arrays,
            "{name}: arrays after piece {piece}, SYNTH_SEED={seed}"
        );
        assert_eq!(done.0, wanted.0, "{name}: outside, piece {piece}, SYNTH_SEED={seed}");
    }
    println!("machines: {name}: {} states, {} nodes agree", graph.states(), graph.nodes());
}

/// What programs write: the output filter against the tty's own, on any bytes.
fn race_output_with_the_tty(cook: &Graph, seed: u64) {
    let mut random = Random::new(seed);
    let mut tty = Tty::new(1 << 12).expect("memory");
    let mut code = Automaton::new("cook", cook);
    let (mut ours, mut theirs) = ([0; 512], [0; 4096]);
    let mut bytes = 0;
    for piece in 0..20_000 {
        let mut input = Vec::new();
        (0..random.below(24)).for_each(|_| random_bytes(&mut random, &mut input));
        let (taken, emitted) = code.run(&input, &mut ours, 2, &mut Nothing);
        assert_eq!((taken, tty.program_write(&input)), (input.len(), input.len()));
        let shown = tty.take_output(&mut theirs);
        assert!(ours[..emitted] == theirs[..shown], "output of piece {piece}, SYNTH_SEED={seed}");
        bytes += input.len();
    }
    println!("machines: the output filter and the kernel's tty agree on {bytes} written bytes");
}

struct Nothing;

impl Outside for Nothing {
    fn call(&mut self, _: u16, _: Memory<'_>) {}
}

/// Text like /etc/termcap's: lines of some sixty characters.
fn text(bytes: usize) -> Vec<u8> {
    let line = b"xterm|vs100|xterm terminal emulator (X Window System):am:km\n";
    line.iter().copied().cycle().take(bytes).collect()
}

/// Nanoseconds a byte, the best of several rounds.
fn nanoseconds(rounds: usize, bytes: usize, mut round: impl FnMut()) -> f64 {
    let mut once = || {
        let start = Instant::now();
        round();
        start.elapsed().as_nanos() as f64 / bytes as f64
    };
    (0..rounds).map(|_| once()).fold(f64::MAX, f64::min)
}

fn counted(code: &mut Automaton, input: &[u8], output: &mut [u8]) -> f64 {
    code.count();
    let before = INSTRUCTIONS.load(std::sync::atomic::Ordering::Relaxed);
    code.run(input, output, 64, &mut Nothing);
    code.counts = false;
    (INSTRUCTIONS.load(std::sync::atomic::Ordering::Relaxed) - before) as f64 / input.len() as f64
}

/// A machine whose surroundings cost nothing.
fn alone(graph: &Graph) -> Automaton {
    let mut code = Automaton::new("costs", graph);
    code.is_alone = true;
    code
}

/// What a character costs: generated, interpreted, and with two machines and a queue against the product.
fn costs(is_bench: bool) {
    let [edit, cook, vt100] = [&EDIT, &COOK, &VT100].map(Graph::of);
    let shown = product(&cook, &vt100).expect("a product");
    let echoed = product(&edit, &cook).expect("a product");
    let (rounds, bytes) = if is_bench { (200, 60_000) } else { (1, 600) };
    let input = text(bytes);
    let mut output = vec![0; 4 * bytes + 4096];
    println!("| per character | instructions | generated ns | interpreted ns |\n|---|--:|--:|--:|");
    let named = [
        ("TTY-cooker", &cook),
        ("VT-100", &vt100),
        ("editor, echo cooked", &echoed),
        ("TTY-cooker and VT-100, product", &shown),
    ];
    for (name, graph) in named {
        let mut code = alone(graph);
        let instructions = counted(&mut code, &input[..600], &mut output);
        let made = nanoseconds(rounds, bytes, || {
            black_box(code.run(&input, &mut output, 64, &mut Nothing));
        });
        let mut runner = Runner::new(graph);
        let read = nanoseconds(rounds.min(20), bytes, || {
            input.iter().for_each(|&byte| runner.take(byte, &mut |byte| _ = black_box(byte), &mut Nothing));
        });
        println!("| {name} | {instructions:.1} | {made:.2} | {read:.2} |");
    }
    let (mut first, mut second) = (alone(&cook), alone(&vt100));
    let piece = input.len().min(4096);
    let both = |first: &mut Automaton, second: &mut Automaton, output: &mut [u8], input: &[u8]| {
        let (_, emitted) = first.run(input, output, 64, &mut Nothing);
        second.run(&output[..emitted], &mut [], 0, &mut Nothing);
    };
    let apart = nanoseconds(rounds, bytes, || {
        input.chunks(piece).for_each(|input| both(&mut first, &mut second, &mut output, input))
    });
    let emitted = first.run(&input[..600], &mut output, 64, &mut Nothing).1;
    let queued = output[..emitted].to_vec();
    let count = counted(&mut first, &input[..600], &mut output)
        + counted(&mut second, &queued, &mut []) * emitted as f64 / 600.0;
    println!("| TTY-cooker, a buffer, VT-100 | {count:.1} | {apart:.2} | |");
    tty_costs(rounds, &input);
    creation(rounds);
}

/// What making a machine costs: from the tables to a draft of code.
fn creation(rounds: usize) {
    let vt100 = || Graph::of(&VT100);
    let joined = || product(&Graph::of(&COOK), &vt100()).expect("a product");
    let made = |graph: Graph| {
        let mut draft = Draft::new();
        generate(&graph, &Block::new(&graph).places(), &mut draft);
        drop(black_box(draft));
    };
    let rounds = rounds.min(20);
    let alone = nanoseconds(rounds, 1000, || made(vt100()));
    let both = nanoseconds(rounds, 1000, || made(joined()));
    println!("creation: VT-100 {alone:.0} us, TTY-cooker and VT-100 as one {both:.0} us");
}

/// The kernel's own filters on the same text.
fn tty_costs(rounds: usize, input: &[u8]) {
    let mut tty = Tty::new(1 << 16).expect("memory");
    let mut output = vec![0; 1 << 16];
    let mut line = [0; 4096];
    let typed = nanoseconds(rounds.min(20), input.len(), || {
        for piece in input.chunks(600) {
            let _ = tty.device_input(piece);
            tty.take_output(&mut output);
            while let ReadOutcome::Bytes(_) = tty.program_read(&mut line, Patience::None) {}
        }
    });
    let written = nanoseconds(rounds.min(20), input.len(), || {
        for piece in input.chunks(4096) {
            tty.program_write(piece);
            tty.take_output(&mut output);
        }
    });
    println!("\nthe kernel's tty in Rust: {typed:.2} ns a character typed (with echo and read), {written:.2} written");
}
