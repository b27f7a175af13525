//! `console.write`, `tty.write` and `tty.read`: the tty of the kernel with code, beside one that only Rust works on.

use abi::nr;
use codestore::Code;
use golden::{BUFFERS, TAG, Way, bench};
use kernel::FileCall;
use kernel::channel::console;
use kernel::tty::termios::{iflag, lflag, oflag};
use kernel::tty::{Patience, ReadOutcome, Tty, TtyCode};
use machine::Channel;

use crate::race::{Around, Race, program, range};

const OUTPUT_BYTES: usize = 8192;

pub struct Consoles {
    console: Code<FileCall>,
    tty: Box<Tty>,
    code: TtyCode,
    model: Box<Tty>,
    is_in_front: bool,
}

fn new_tty() -> Box<Tty> {
    let mut tty = Box::new(Tty::new(OUTPUT_BYTES).expect("memory for a tty"));
    tty.change_job(|job| job.foreground = Some(TAG as i32));
    tty
}

/// Everything that waits for the device.
fn output(tty: &mut Tty) -> Vec<u8> {
    let mut bytes = vec![0; OUTPUT_BYTES];
    let taken = tty.take_output(&mut bytes);
    bytes.truncate(taken);
    bytes
}

impl Consoles {
    pub fn new() -> Consoles {
        let makers = bench().makers();
        let console = console(Channel::StandardOutput, makers).write.expect("room for code");
        let tty = new_tty();
        let code = tty.synthesize(Some(Channel::Terminal), makers);
        Consoles { console, tty, code, model: new_tty(), is_in_front: true }
    }

    pub fn step(&mut self, race: &mut Race) {
        let device = &bench().device;
        match race.random.below(16) {
            0 => device.set_quiet(race.random.once_in(2)),
            1 if race.random.once_in(6) => self.change_settings(race),
            2 => self.change_group(race),
            3..5 => self.type_something(race),
            5..8 => self.read(race),
            8..10 => self.write_console(race),
            _ => self.write(race),
        }
        for _ in 0..race.random.below(4) {
            device.give_back(race.random.below(BUFFERS.into()) as usize);
        }
    }

    fn both(&mut self, mut act: impl FnMut(&mut Tty)) {
        act(&mut self.tty);
        act(&mut self.model);
    }

    fn change_settings(&mut self, race: &mut Race) {
        let (output_flag, input_flag, local_flag) = (
            race.random.pick(&[
                0,
                0,
                0,
                oflag::OPOST,
                oflag::ONLCR,
                oflag::OLCUC,
                oflag::XTABS,
                oflag::ONOCR,
                oflag::OCRNL,
            ]),
            race.random.pick(&[0, iflag::IUTF8, iflag::IXON]),
            race.random.pick(&[0, 0, 0, lflag::ICANON, lflag::TOSTOP, lflag::ECHO, lflag::EXTPROC]),
        );
        self.both(|tty| {
            let mut termios = kernel::tty::Termios::default();
            termios.c_oflag ^= output_flag;
            termios.c_iflag ^= input_flag;
            termios.c_lflag ^= local_flag;
            let _ = tty.set_termios(termios);
        });
    }

    fn change_group(&mut self, race: &mut Race) {
        let group = race.random.pick(&[Some(TAG as i32), Some(TAG as i32), Some(TAG as i32 + 1), None]);
        self.is_in_front = group == Some(TAG as i32);
        self.both(|tty| tty.change_job(|job| job.foreground = group));
    }

    /// Lines, keys that edit, ^S and ^Q; the echo may stay in the tty.
    fn type_something(&mut self, race: &mut Race) {
        const KEYS: &[u8] = b"\n\n\n\n\x04\x7f\x7f\x7f\t\t\t\x13\x11\x16\x17\r\x01";
        let count = race.random.below(90);
        let key = |race: &mut Race| {
            if race.random.once_in(9) { race.random.pick(KEYS) } else { race.random.pick(b"abc de_") }
        };
        let mut bytes: Vec<u8> = (0..count).map(|_| key(race)).collect();
        // A tab, output of the program, then the erasure of the tab: this looks at where the line began.
        if race.random.once_in(2) {
            bytes = vec![race.random.pick(b"\t\x7f")];
        }
        self.both(|tty| {
            let _ = tty.device_input(&bytes);
        });
        // ^S must not stop the rest of the run.
        if race.random.once_in(2) {
            self.both(|tty| {
                let _ = tty.device_input(b"\x11");
            });
        }
        if race.random.once_in(2) {
            self.compare_output(race);
        }
    }

    fn compare_output(&mut self, race: &Race) {
        race.same("output that waits", output(&mut self.tty), output(&mut self.model));
    }

    fn write_console(&mut self, race: &mut Race) {
        let bytes = race.bytes(&[4096]);
        let address = program().buffer(&mut race.random, bytes);
        let had_room = bench().device.has_room();
        let entry = self.console.entry();
        let outcome = race
            .file_call("console.write", entry.address(), nr::WRITE, (address, bytes as u64), |_| Ok(usize::MAX >> 1));
        let sent = bench().device.take();
        let given = program().bytes(address, bytes);
        match outcome.way {
            Way::Fast => {
                race.same("result", outcome.result, bytes as u64);
                race.same("bytes for the device", sent, given);
            }
            Way::Slow => {
                race.same("bytes for the device", sent.len(), 0);
                let usual = had_room && (1..=4096).contains(&bytes) && given.len() == bytes;
                race.same("a usual call that was not done", usual && range(address, bytes as u64).is_ok(), false);
            }
        }
    }

    fn write(&mut self, race: &mut Race) {
        if !race.random.once_in(3) {
            self.compare_output(race);
        }
        let bytes = race.bytes(&[2048]);
        let address = program().buffer(&mut race.random, bytes);
        self.scatter(race, address, bytes);
        let given = program().bytes(address, bytes);
        let entry = self.code.write.as_ref().expect("code").entry();
        let outcome =
            race.file_call("tty.write", entry.address(), nr::WRITE, (address, bytes as u64), |_| Ok(usize::MAX >> 1));
        let sent = bench().device.take();
        if outcome.way == Way::Slow {
            race.same("bytes for the device", sent.len(), 0);
            let part = &given[..given.len().min(3000)];
            race.same("bytes written", self.tty.program_write(part), self.model.program_write(part));
        } else {
            race.same("result", outcome.result, bytes as u64);
            race.same("nothing waited in front", self.model.unsent_bytes(), 0);
            race.same("bytes written", self.model.program_write(&given), bytes);
            race.same("bytes for the device", sent, output(&mut self.model));
            race.same("nothing waits", self.tty.unsent_bytes(), 0);
        }
    }

    /// Mostly text, with the bytes that the filter looks at.
    fn scatter(&self, race: &mut Race, address: u64, bytes: usize) {
        const SPECIALS: &[u8] = b"\n\n\r\t\t\x08\x08\x1b\x7f\x7e\x1f\x20\x80\xc3\xa9\xff\x00";
        let often = race.random.pick(&[2, 9, 60, 3000]);
        let byte = |race: &mut Race| {
            let special = race.random.once_in(often);
            if special { race.random.pick(SPECIALS) } else { 32 + race.random.below(95) as u8 }
        };
        let reachable = program().reachable(address, bytes.min(6000), golden::Access::Write);
        let text: Vec<u8> = (0..reachable).map(|_| byte(race)).collect();
        program().store(address, &text);
    }

    fn read(&mut self, race: &mut Race) {
        let bytes = race.random.pick(&[0, 1, 5, 30, 64, 90, 100, 4096, 5000]);
        let address = program().buffer(&mut race.random, bytes);
        let around = Around::take(address, bytes);
        let entry = self.code.read.as_ref().expect("code").entry();
        let outcome =
            race.file_call("tty.read", entry.address(), nr::READ, (address, bytes as u64), |_| Ok(usize::MAX >> 1));
        let mut model = vec![0; bytes];
        if outcome.way == Way::Fast {
            race.same("the reader is in front", self.is_in_front, true);
            race.same(
                "line read",
                self.model.program_read(&mut model, Patience::None),
                ReadOutcome::Bytes(outcome.result as usize),
            );
            around.check(race, &model[..outcome.result as usize], &[]);
        } else {
            let mut line = vec![0; bytes];
            let read = self.tty.program_read(&mut line, Patience::None);
            race.same("outcome in Rust", read, self.model.program_read(&mut model, Patience::None));
            race.same("line in Rust", line, model);
        }
        race.same("bytes left", self.tty.readable_bytes(), self.model.readable_bytes());
    }
}
