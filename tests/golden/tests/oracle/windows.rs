//! `window.write`: a text window with code beside one whose machines are interpreted, behind ttys of their own.

use abi::nr;
use golden::{Access, Way, bench};
use kernel::screen::{Machines, TextWindow};
use kernel::stream::UserRange;
use kernel::tty::termios::{iflag, oflag};
use kernel::tty::{Gate, Termios, Tty};
use machine::VirtAddr;

use crate::race::{Race, program};

/// A window and the tty before it.
struct Side {
    window: TextWindow,
    tty: Box<Tty>,
}

pub struct Windows {
    made: Side,
    model: Side,
}

impl Side {
    fn new() -> Side {
        Side { window: TextWindow::new(&Machines::new()), tty: Box::new(Tty::new(8192).expect("memory for a tty")) }
    }

    /// What the emulator does with bytes that it holds. Returns what the terminal answers.
    fn write(&mut self, bytes: &[u8]) -> Vec<u8> {
        match self.tty.gate() {
            Gate::Closed => {
                let mut answer = Vec::new();
                let mut from = bytes;
                while !from.is_empty() {
                    from = &from[self.tty.program_write(from)..];
                    answer.extend(self.show());
                }
                answer
            }
            gate => self.window.put(gate, bytes, &self.tty),
        }
    }

    fn show(&mut self) -> Vec<u8> {
        let mut output = vec![0; 8192];
        let taken = self.tty.take_output(&mut output);
        self.window.put(Gate::Raw, &output[..taken], &self.tty)
    }

    fn type_keys(&mut self, keys: &[u8]) -> Vec<u8> {
        let _ = self.tty.device_input(keys);
        self.show()
    }
}

impl Windows {
    pub fn new() -> Windows {
        let made = Side::new();
        made.window.synthesize(&made.tty, bench().makers());
        assert!(made.window.code().is_some(), "room for code");
        Windows { made, model: Side::new() }
    }

    pub fn step(&mut self, race: &mut Race) {
        match race.random.below(24) {
            0 => self.change_settings(race),
            1 => {
                let keys: Vec<u8> =
                    (0..race.random.below(6)).map(|_| race.random.pick(b"abc\x7f\t\n\x1b\x16")).collect();
                let answers = [&mut self.made, &mut self.model].map(|side| side.type_keys(&keys));
                race.same("answer to an echo", &answers[0], &answers[1]);
            }
            2 => {
                let text = text(race, 300);
                let answers = [&mut self.made, &mut self.model].map(|side| side.write(&text));
                race.same("answer to the kernel's bytes", &answers[0], &answers[1]);
            }
            _ => self.write(race),
        }
        self.compare(race);
    }

    fn change_settings(&mut self, race: &mut Race) {
        let output = race.random.pick(&[0, 0, oflag::OPOST, oflag::ONLCR, oflag::XTABS]);
        let input = race.random.pick(&[0, 0, 0, iflag::IUTF8]);
        for side in [&mut self.made, &mut self.model] {
            let mut termios = Termios::default();
            termios.c_oflag ^= output;
            termios.c_iflag ^= input;
            let _ = side.tty.set_termios(termios);
        }
    }

    fn write(&mut self, race: &mut Race) {
        let bytes =
            if race.random.once_in(3) { race.bytes(&[4096]).min(20_000) } else { race.random.below(200) as usize };
        let address = program().buffer(&mut race.random, bytes);
        let there = program().reachable(address, bytes, Access::Write);
        let text = text(race, there);
        program().store(address, &text);
        let readable = program().reachable(address, bytes, Access::Read);
        let given = program().bytes(address, readable);
        let entry = self.made.window.code().expect("code").entry();
        let outcome = race
            .file_call("window.write", entry.address(), nr::WRITE, (address, bytes as u64), |_| Ok(usize::MAX >> 1));
        if outcome.way == Way::Fast {
            race.same("result", outcome.result, bytes as u64);
            race.same("a fast write has no answer", self.model.write(&given), Vec::new());
            return;
        }
        let range = UserRange { address: VirtAddr(address), bytes };
        let (done, mut answer) = self.made.window.resume(range);
        if readable < bytes {
            // As Linux: nothing of a piece that is not all there.
            return race.same("bytes done before a fault", done, 0);
        }
        answer.extend(self.made.write(&given[done..]));
        race.same("answer", answer, self.model.write(&given));
    }

    fn compare(&self, race: &Race) {
        let [made, model] = [&self.made, &self.model];
        race.same("the VT-100's state and words", made.window.standing(), model.window.standing());
        race.same("columns", made.tty.columns(), model.tty.columns());
        race.same("cursor", made.window.cursor(), model.window.cursor());
        race.same("cells", made.window.cells(), model.window.cells());
    }
}

/// Text with control characters and sequences, often enough to end a routine early.
fn text(race: &mut Race, bytes: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes + 16);
    let often = race.random.pick(&[8, 40, 4000]);
    while all.len() < bytes {
        let random = &mut race.random;
        if !random.once_in(often) {
            all.push(if random.once_in(30) { b'\n' } else { 32 + random.below(95) as u8 });
            continue;
        }
        let (first, second) = (random.below(30), random.below(90));
        let name = char::from(random.pick(b"HHfABCDEFGJKLMPXdmnr@chlsu`ae~"));
        match random.below(8) {
            0 => all.push(random.below(32) as u8),
            1 => all.push(random.below(256) as u8),
            2 => all.extend(format!("\x1b[{name}").bytes()),
            3 => all.extend(format!("\x1b[{first}{name}").bytes()),
            4 => all.extend(format!("\x1b[{first};{second}{name}").bytes()),
            5 => all.extend(format!("\x1b[?{first}{name}").bytes()),
            6 => all.extend(b"\x1b[r"),
            _ => all.extend([27, random.pick(b"78DEMc(])P\\")]),
        }
    }
    all.truncate(bytes);
    all
}
