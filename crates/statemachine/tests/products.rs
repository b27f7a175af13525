//! Products against the two machines with a queue between them, on random input. `MACHINE_SEED` repeats one run.

use std::collections::VecDeque;

use means::Random;
use statemachine::terminal::{COOK, EDIT, VT100, vt_words};
use statemachine::{Graph, Memory, Outside, Runner, product};

/// Text, and now and then a control byte, a whole sequence, or anything.
fn bytes(random: &mut Random) -> Vec<u8> {
    match random.below(16) {
        0 => vec![random.below(32) as u8],
        1 => vec![random.below(256) as u8],
        2 => {
            let end = char::from(b"HfABCDJKmh"[random.below(10) as usize]);
            format!("\x1b[{};{}{end}", random.below(30), random.below(90)).into_bytes()
        }
        3 => vec![b"\r\n\x7f\x15\x17\x16"[random.below(6) as usize]],
        4 => vec![27, b"78DEMc("[random.below(7) as usize]],
        _ => vec![32 + random.below(95) as u8],
    }
}
/// Notes what is asked for.
#[derive(Default, PartialEq, Debug)]
struct Log(Vec<u16>);

impl Outside for Log {
    fn call(&mut self, number: u16, _: Memory<'_>) {
        self.0.push(number);
    }
}

fn seeds() -> Vec<u64> {
    std::env::var("MACHINE_SEED").map_or((1..=20).collect(), |seed| vec![seed.parse().expect("a number")])
}

fn words(runner: &Runner<'_>) -> Vec<u32> {
    runner.memory().words.iter().map(|word| word.get()).collect()
}

fn race(first: &Graph, second: &Graph) {
    let joined = product(first, second).expect("a product");
    println!("{} x {} states: {} states, {} nodes", first.states(), second.states(), joined.states(), joined.nodes());
    for seed in seeds() {
        let mut random = Random::new(seed);
        let (mut a, mut b, mut both) = (Runner::new(first), Runner::new(second), Runner::new(&joined));
        let (mut apart, mut together) = (Log::default(), Log::default());
        let (mut shown, mut joined_shown) = (Vec::new(), Vec::new());
        let input: Vec<u8> = (0..10_000).flat_map(|_| bytes(&mut random)).collect();
        for (step, byte) in input.into_iter().enumerate() {
            let mut queue = VecDeque::new();
            // Within one byte, the outside calls of the first come in another order when there is a queue between.
            let before = apart.0.len();
            a.take(byte, &mut |byte| queue.push_back(byte), &mut apart);
            while let Some(byte) = queue.pop_front() {
                b.take(byte, &mut |byte| shown.push(byte), &mut apart);
            }
            both.take(byte, &mut |byte| joined_shown.push(byte), &mut together);
            apart.0[before..].sort();
            together.0[before..].sort();
            let words = [words(&a), words(&b)].concat();
            assert_eq!(self::words(&both), words, "words after byte {step} ({byte:#x}), seed {seed}");
            assert_eq!(joined_shown.len(), shown.len(), "emitted after byte {step}, seed {seed}");
        }
        let arrays = [a.memory().arrays, b.memory().arrays].concat();
        assert!(both.memory().arrays == arrays && shown == joined_shown && apart == together, "seed {seed}");
    }
}

#[test]
fn a_product_does_as_both_with_a_queue_between() {
    let [edit, cook, vt100] = [&EDIT, &COOK, &VT100].map(Graph::of);
    race(&cook, &vt100);
    race(&edit, &cook);
    let shown = product(&edit, &cook).expect("a product");
    race(&shown, &vt100);
    race(&cook, &cook);
}

/// What the screen shows after some text.
fn screen(text: &str) -> Vec<String> {
    let graph = Graph::of(&VT100);
    let mut vt = Runner::new(&graph);
    vt.memory().words[usize::from(vt_words::BOTTOM)].set(23);
    text.bytes().for_each(|byte| vt.take(byte, &mut |_| (), &mut Log::default()));
    let word = |word: u16| vt.memory().words[usize::from(word)].get();
    let first = word(vt_words::AT) - word(vt_words::COLUMN) - 80 * word(vt_words::ROW);
    let cell = |at: u32| vt.memory().arrays[0][2 * (at as usize % 2048)].get();
    let row = |row: u32| (0..80).map(|column| cell(first.wrapping_add(80 * row + column))).collect::<Vec<u8>>();
    (0..24).map(|at| String::from_utf8_lossy(&row(at)).replace('\0', " ").trim_end().to_string()).collect()
}

#[test]
fn the_vt100_moves_wraps_and_scrolls() {
    assert_eq!(screen("one\r\ntwo\x08\x08X")[..2], ["one", "tXo"]);
    assert_eq!(screen("\x1b[3;5Hhere\x1b[2A^\x1b[99;1Hlast")[..3], ["        ^", "", "    here"]);
    assert_eq!(screen("\x1b[99;1Hlast")[23], "last");
    assert_eq!(screen("a\tb\x1b[10Cc\x1b[11Dd")[0], "a       bd         c");
    let long = "x".repeat(80) + "y";
    assert_eq!(screen(&long)[1], "y");
    assert_eq!(screen(&("x".repeat(80) + "\r\nz"))[1], "z");
    assert_eq!(screen(&("x".repeat(80) + "\rz"))[0][..2], *"zx");
    let many: String = (0..30).map(|line| format!("{line}\r\n")).collect();
    assert_eq!((&screen(&many)[0][..], &screen(&many)[22][..]), ("7", "29"));
    assert_eq!(screen("\x1b[?25h\x1b(Bok\x1b[1mbold\x1b[m\x1b]0;title\x07!")[0], "okbold!");
}

#[test]
fn the_smallest_graph_of_one_machine_twice_is_that_machine() {
    let cook = Graph::of(&COOK);
    assert_eq!(cook.states(), 1);
    assert_eq!(product(&cook, &cook).expect("a product").states(), 1, "nothing tells the pairs apart");
}
