//! A tty that edits lines in code against one that does it in Rust: random input, settings, reads and writes, with little
//! room. `SYNTH_SEED=n` repeats a run, `EDITOR_RUNS=n` makes more of them.

use std::cell::Cell;

use golden::{Random, bench};
use kernel::tty::termios::{cc, iflag, lflag, oflag};
use kernel::tty::{Flow, Patience, Queue, ReadOutcome, Termios, Tty};

const STEPS: usize = 400;

struct Pair {
    /// In code, and in Rust.
    ttys: [Tty; 2],
    /// Bytes that were not accepted yet, the same for both.
    kept: Vec<u8>,
    story: Vec<String>,
    /// Bytes that were accepted.
    typed: u64,
}

/// What a tty shows of itself, with names for the story.
fn seen(tty: &Tty) -> impl PartialEq + std::fmt::Debug + use<> {
    (
        tty.is_readable(),
        tty.readable_bytes(),
        tty.unsent_bytes(),
        tty.is_writable(),
        tty.is_stopped(),
        tty.is_drained(),
        tty.columns().map(Cell::get),
    )
}

impl Pair {
    fn new(output_bytes: usize) -> Pair {
        let mut ttys = [(); 2].map(|()| Tty::new(output_bytes).expect("memory"));
        ttys[0].work_in_code(bench().makers(), 1);
        Pair { ttys, kept: Vec::new(), story: Vec::new(), typed: 0 }
    }

    fn has_forgotten(&self) -> bool {
        self.ttys.iter().any(|tty| tty.forgotten_echo() > 0)
    }

    fn both<R: PartialEq + std::fmt::Debug>(&mut self, what: String, act: impl Fn(&mut Tty) -> R) -> R {
        self.story.push(what);
        let [code, rust] = self.ttys.each_mut().map(|tty| {
            let result = act(tty);
            (result, seen(tty))
        });
        if self.has_forgotten() {
            return code.0;
        }
        assert_eq!(code, rust, "in code and in Rust, after\n{}", self.story.join("\n"));
        code.0
    }

    fn type_bytes(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
        // A device does not keep more than that.
        self.kept.truncate(5000);
        let kept = std::mem::take(&mut self.kept);
        let effects = self.both(format!("type {}", kept.escape_ascii()), |tty| tty.device_input(&kept));
        self.typed += effects.accepted as u64;
        self.kept = kept[effects.accepted..].to_vec();
    }

    fn read(&mut self, most: usize) -> usize {
        let (outcome, _) = self.both(format!("read {most}"), |tty| {
            let mut into = vec![0; most];
            let outcome = tty.program_read(&mut into, Patience::None);
            (outcome, into)
        });
        if self.both("resume".into(), Tty::device_may_resume) {
            self.type_bytes(b"");
        }
        if let ReadOutcome::Bytes(bytes) = outcome { bytes } else { 0 }
    }

    fn take(&mut self, most: usize) {
        self.both(format!("take {most}"), |tty| {
            let mut into = vec![0; most];
            let taken = tty.take_output(&mut into);
            (taken, into)
        });
    }
}

fn flip(random: &mut Random, word: u32, bits: &[u32]) -> u32 {
    if random.below(2) == 0 { word } else { word ^ random.pick(bits) }
}

/// Usual settings, and now and then one or two that are not.
fn random_termios(random: &mut Random, usual: &Termios) -> Termios {
    use {iflag as i, lflag as l, oflag as o};
    let mut termios = Termios::default();
    termios.c_iflag |= random.pick(&[0, i::IUTF8]);
    match random.below(6) {
        0 => return *usual,
        1 => {
            (termios.c_iflag, termios.c_lflag) = (0, 0);
            return termios;
        }
        2 => termios.c_lflag &= !(l::ICANON | l::ECHO),
        3 => termios.c_lflag &= !l::ECHO,
        _ => {}
    }
    for _ in 0..random.below(3) {
        let input =
            [i::IUTF8, i::IUTF8, i::IXON, i::IXANY, i::ICRNL, i::INLCR, i::IGNCR, i::ISTRIP, i::IUCLC, i::PARMRK];
        let local = [
            l::ECHO,
            l::ECHOE,
            l::ECHOK,
            l::ECHONL,
            l::NOFLSH,
            l::ECHOCTL,
            l::ECHOPRT,
            l::ECHOKE,
            l::IEXTEN,
            l::ISIG,
            l::EXTPROC,
        ];
        termios.c_iflag = flip(random, termios.c_iflag, &input);
        termios.c_oflag =
            flip(random, termios.c_oflag, &[o::ONLCR, o::ONLRET, o::ONOCR, o::OCRNL, o::OLCUC, o::XTABS, o::OPOST]);
        termios.c_lflag = flip(random, termios.c_lflag, &local);
    }
    if random.below(4) == 0 {
        let key =
            random.pick(&[cc::VERASE, cc::VKILL, cc::VEOF, cc::VWERASE, cc::VLNEXT, cc::VEOL, cc::VINTR, cc::VSTOP]);
        termios.c_cc[key] = random.pick(b"\x08\x00#@\x0a\x0d\t\x01\xe4\x7f\x17\x03 ");
    }
    termios
}

fn random_input(random: &mut Random, input: &mut Vec<u8>) {
    match random.below(400) {
        0 => input.push(random.below(256) as u8),
        1 => input.push(random.below(32) as u8),
        2..10 => input.push(b'\t'),
        10..20 => input.extend_from_slice(
            random.pick(&["\u{e4}\u{6f22}", "\u{5d0}", "\u{e4}word\x17", "\u{5d0}a\x17"]).as_bytes(),
        ),
        20..80 => input.extend((0..1 + random.below(4)).map(|_| 0x7f)),
        80..100 => input.push(random.pick(b"\x15\x17\x17\x16\x16\x04\x01")),
        100..140 => input.push(random.pick(b"\n\r")),
        140..150 => input.extend(std::iter::repeat_n(b'w', random.below(60) as usize)),
        _ => input.push(32 + random.below(95) as u8),
    }
}

/// Bytes typed, and those of them that code took.
fn race(seed: u64) -> [u64; 2] {
    let mut random = Random::new(seed);
    let output_bytes = random.pick(&[64, 256, 512, 1024, 8192]);
    let mut pair = Pair::new(output_bytes);
    pair.story.push(format!("SYNTH_SEED={seed}, {output_bytes} bytes of output"));
    let mut usual = Termios::default();
    for _ in 0..STEPS {
        // Which part of too much echo is forgotten depends on when it was shown last.
        if pair.has_forgotten() {
            break;
        }
        match random.below(32) {
            0 => {
                let termios = random_termios(&mut random, &usual);
                if random.below(3) == 0 {
                    usual = termios;
                }
                let _ = pair.both(format!("{termios:x?}"), |tty| tty.set_termios(termios));
            }
            1 => {
                let queue = random.pick(&[Queue::Input, Queue::Output, Queue::Both]);
                let _ = pair.both(format!("flush {queue:?}"), |tty| tty.flush(queue));
            }
            2 => {
                let flow = random.pick(&[Flow::StopOutput, Flow::StartOutput, Flow::StartOutput]);
                let _ = pair.both(format!("{flow:?}"), |tty| tty.control_flow(flow));
            }
            3 => pair.type_bytes(random.pick(&[b"\x03".as_slice(), b"ab\x03", b"\x13", b"x\x13y", b"\x11", b"\x11"])),
            4..=6 => {
                let text: Vec<u8> = (0..random.below(40) * random.pick(&[1, 1, 30]))
                    .map(|_| random.pick(b"ab \t\n\r\x08\xe4zzzzzzzzzzzzzzzz"))
                    .collect();
                pair.both(format!("write {}", text.escape_ascii()), |tty| tty.program_write(&text));
            }
            7..=12 => while pair.read(random.pick(&[7, 100, 5000])) > 0 && random.below(10) > 0 {},
            13..=18 => pair.take(random.pick(&[100, 10_000, 10_000])),
            length => {
                let mut input = Vec::new();
                let pieces = if length == 19 { 2000 } else { 80 };
                (0..random.below(pieces)).for_each(|_| random_input(&mut random, &mut input));
                pair.type_bytes(&input);
            }
        }
    }
    [pair.typed, pair.ttys[0].edited_in_code()]
}

#[test]
fn lines_are_edited_in_code_as_in_rust() {
    let first = Random::seed();
    let runs = std::env::var("EDITOR_RUNS").map_or(40, |runs| runs.parse().expect("a number"));
    println!("editors: SYNTH_SEED={first}");
    let sums = (0..runs).map(|run| race(first.wrapping_add(run)));
    let [typed, in_code] = sums.fold([0; 2], |sum, run| [sum[0] + run[0], sum[1] + run[1]]);
    println!("editors: {typed} bytes, {in_code} of them in code");
    assert!(in_code > 500 * runs, "code is raced");
}
