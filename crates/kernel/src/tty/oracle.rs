//! The tty against the host's own: the same random bytes, settings and calls go through a Linux
//! pseudo-terminal and through `Tty`, and whatever comes out must be the same.
//!
//! A failure prints the seed and the last steps. `TTY_ORACLE_SEED` repeats one run, and
//! `TTY_ORACLE_RUNS` sets how many seeds are tried. On a host without ptys the tests pass silently.
//!
//! Left out because a pty cannot show it or the host's own timing decides it: the output a signal
//! key flushes (both sides are drained first), `IXOFF` (a pty never throttles by key), breaks and
//! parity errors, speeds, and a VMIN above 64 (see `decide_raw_read`).

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use machine::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios as host;

use super::termios::{cc, iflag, lflag, oflag};
use super::{Flow, Patience, Queue, ReadOutcome, Termios, Tty};

const OUTPUT_BYTES: usize = 1 << 16;
const STEPS: usize = 150;
const DEFAULT_RUNS: u64 = 10;
/// How long the host's work queues may take to carry bytes from one side to the other.
const PATIENCE: Duration = Duration::from_secs(20);
/// Lines that go through the witness before the host's work counts as done.
const WITNESSED: usize = 3;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Both ttys, and what happened to them.
struct Pair {
    ours: Tty,
    /// Bytes our tty would not take yet; the host keeps its own in the pty.
    kept: Vec<u8>,
    master: File,
    slave: File,
    /// A terminal whose work the host does after that of the first.
    witness: (File, File),
    story: Vec<String>,
}

fn open_host() -> Option<(File, File)> {
    let master: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).ok()?;
    grantpt(&master).ok()?;
    unlockpt(&master).ok()?;
    let name = ptsname(&master, Vec::new()).ok()?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK;
    let slave = rustix::fs::open(name, flags, Mode::empty()).ok()?;
    rustix::fs::fcntl_setfl(&master, OFlags::RDWR | OFlags::NONBLOCK).ok()?;
    Some((File::from(master), File::from(slave)))
}

impl Pair {
    fn open() -> Option<Pair> {
        let ((master, slave), witness) = (open_host()?, open_host()?);
        let ours = Tty::new(OUTPUT_BYTES).unwrap();
        Some(Pair { ours, kept: Vec::new(), master, slave, witness, story: Vec::new() })
    }

    /// Types `bytes`. Keys that stop output or signal go alone: what the host has shown by then
    /// of the bytes before them depends on how its buffers were cut.
    fn type_bytes(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let alone = |&byte: &u8| self.is_sensitive(byte);
            let count = rest.iter().position(alone).unwrap_or(rest.len()).max(1);
            self.type_together(&rest[..count]);
            rest = &rest[count..];
        }
    }

    fn is_sensitive(&self, byte: u8) -> bool {
        let termios = self.ours.termios();
        [cc::VINTR, cc::VQUIT, cc::VSUSP, cc::VSTOP, cc::VSTART]
            .iter()
            .any(|&key| termios.c_cc[key] == byte || (termios.input(iflag::ISTRIP) && termios.c_cc[key] == byte & 0x7f))
    }

    fn type_together(&mut self, bytes: &[u8]) {
        self.story.push(format!("type {:?}", bytes.escape_ascii().to_string()));
        (&self.master).write_all(bytes).unwrap();
        self.kept.extend_from_slice(bytes);
        let readable = self.ours.readable_bytes();
        self.feed_kept();
        self.settle(readable);
    }

    fn feed_kept(&mut self) {
        let effects = self.ours.device_input(&self.kept);
        self.kept.drain(..effects.accepted);
    }

    /// Waits until the host shows the output and the readable bytes that ours has, and has stopped if ours has.
    fn settle(&mut self, readable_before: usize) {
        let mut expected = vec![0; OUTPUT_BYTES + 1];
        let count = self.ours.take_output(&mut expected);
        expected.truncate(count);
        if expected.is_empty() && self.ours.readable_bytes() == readable_before {
            self.let_host_work();
        }
        let output = self.host_output(expected.len());
        assert_eq!(escape(&output), escape(&expected), "output of the host, and of ours");
        let readable = self.ours.readable_bytes();
        wait_until(|| host_readable(&self.slave) == readable);
        assert_eq!(host_readable(&self.slave), readable, "readable bytes of the host, and of ours");
        let is_stopped = self.ours.is_stopped();
        wait_until(|| self.host_is_stopped() == is_stopped);
        assert_eq!(self.host_is_stopped(), is_stopped, "whether the host's output is stopped, and ours");
    }

    /// Nothing visible is expected of the host. A poll of a terminal without input makes it work off its queue. Where there is
    /// input, lines go through another terminal: the host begins its work in the order in which it came.
    fn let_host_work(&self) {
        if !self.host_polls(PollFlags::IN) {
            return;
        }
        let (mut master, mut slave) = (&self.witness.0, &self.witness.1);
        for _ in 0..WITNESSED {
            master.write_all(b"\n").unwrap();
            wait_until(|| host_readable(slave) > 0);
            assert_eq!(slave.read(&mut [0; 1]).unwrap(), 1);
            // Its echo.
            let _ = master.read(&mut [0; 16]);
        }
    }

    fn host_polls(&self, what: PollFlags) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.slave, what)], Some(&now)).unwrap() > 0
    }

    /// All that the host has shown was taken, so there is room unless ^S or `TCXONC` stopped it.
    fn host_is_stopped(&self) -> bool {
        !self.host_polls(PollFlags::OUT)
    }

    /// What the host shows: `count` bytes, and whatever else is there already.
    fn host_output(&self, count: usize) -> Vec<u8> {
        let mut all = Vec::new();
        let mut some = [0; 4096];
        let end = Instant::now() + PATIENCE;
        loop {
            match (&self.master).read(&mut some) {
                Ok(0) => return all,
                Ok(length) => all.extend_from_slice(&some[..length]),
                Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
                Err(_) if all.len() >= count || Instant::now() > end => return all,
                Err(_) => std::thread::sleep(Duration::from_micros(20)),
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.story.push(format!("write {:?}", bytes.escape_ascii().to_string()));
        let host = (&self.slave).write(bytes).unwrap_or(0);
        let readable = self.ours.readable_bytes();
        let ours = self.ours.program_write(bytes);
        assert_eq!(host, ours, "bytes the host took, and ours");
        self.settle(readable);
    }

    fn read(&mut self, count: usize) {
        self.story.push(format!("read {count}"));
        let (mut host, mut ours) = (vec![0; count], vec![0; count]);
        let host_outcome = match (&self.slave).read(&mut host) {
            Ok(0) => ReadOutcome::Eof,
            Ok(length) => ReadOutcome::Bytes(length),
            Err(_) => ReadOutcome::WouldBlock,
        };
        let our_outcome = self.ours.program_read(&mut ours, Patience::None);
        assert_eq!((host_outcome, escape(&host)), (our_outcome, escape(&ours)), "read from the host, and from ours");
        while self.ours.device_may_resume() {
            self.feed_kept();
        }
        self.settle(usize::MAX);
    }

    fn set(&mut self, termios: Termios) {
        self.story.push(format!("set {termios:x?}"));
        let mut record = host::tcgetattr(&self.slave).unwrap();
        record.input_modes = host::InputModes::from_bits_retain(termios.c_iflag);
        record.output_modes = host::OutputModes::from_bits_retain(termios.c_oflag);
        record.local_modes = host::LocalModes::from_bits_retain(termios.c_lflag);
        use host::SpecialCodeIndex as Code;
        let codes = [
            (Code::VINTR, cc::VINTR),
            (Code::VQUIT, cc::VQUIT),
            (Code::VERASE, cc::VERASE),
            (Code::VKILL, cc::VKILL),
            (Code::VEOF, cc::VEOF),
            (Code::VTIME, cc::VTIME),
            (Code::VMIN, cc::VMIN),
            (Code::VSTART, cc::VSTART),
            (Code::VSTOP, cc::VSTOP),
            (Code::VSUSP, cc::VSUSP),
            (Code::VEOL, cc::VEOL),
            (Code::VREPRINT, cc::VREPRINT),
            (Code::VWERASE, cc::VWERASE),
            (Code::VLNEXT, cc::VLNEXT),
            (Code::VEOL2, cc::VEOL2),
        ];
        for (code, place) in codes {
            record.special_codes[code] = termios.c_cc[place];
        }
        host::tcsetattr(&self.slave, host::OptionalActions::Now, &record).unwrap();
        let _ = self.ours.set_termios(termios);
        self.settle(usize::MAX);
    }

    fn flush_input(&mut self) {
        if !self.kept.is_empty() {
            return;
        }
        self.story.push("flush input".to_string());
        host::tcflush(&self.slave, host::QueueSelector::IFlush).unwrap();
        let _ = self.ours.flush(Queue::Input);
        self.settle(usize::MAX);
    }

    fn control_flow(&mut self, flow: Flow) {
        self.story.push(format!("{flow:?}"));
        let action = if flow == Flow::StopOutput { host::Action::OOff } else { host::Action::OOn };
        host::tcflow(&self.slave, action).unwrap();
        let _ = self.ours.control_flow(flow);
        self.settle(usize::MAX);
    }
}

fn host_readable(terminal: &File) -> usize {
    rustix::io::ioctl_fionread(terminal).unwrap() as usize
}

/// Looks again and again, until the patience is at its end.
fn wait_until(is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() && Instant::now() < end {
        std::thread::sleep(Duration::from_micros(50));
    }
}

fn escape(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn random_input(random: &mut Random, termios: &Termios) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..1 + random.below(30) {
        match random.below(16) {
            0..=4 => bytes.push(random.pick(b"abcXYZ019_")),
            5 => bytes.push(random.pick(b" ./-\\^")),
            6 => bytes.push(b'\t'),
            7 => bytes.push(random.pick(b"\n\n\n\r")),
            8 => bytes.extend("äß€漢😀".chars().nth(random.below(5)).unwrap().encode_utf8(&mut [0; 4]).bytes()),
            9 => bytes.push(random.next() as u8),
            10 => bytes.push(random.below(32) as u8),
            11 => bytes.push(random.pick(&[0xff, 0, 0x80, 0xc3, 0x7f, 0x1b])),
            12 => bytes.push(termios.c_cc[cc::VERASE]),
            13 => bytes.push(termios.c_cc[random.pick(&[cc::VERASE, cc::VWERASE, cc::VKILL])]),
            14 => bytes.push(termios.c_cc[random.pick(&[cc::VLNEXT, cc::VREPRINT, cc::VEOF, cc::VEOL, cc::VEOL2])]),
            _ if random.one_in(3) => bytes.push(termios.c_cc[random.below(17)]),
            _ => bytes.push(termios.c_cc[cc::VSTART]),
        }
    }
    bytes
}

fn random_output(random: &mut Random) -> Vec<u8> {
    (0..1 + random.below(40))
        .map(|_| match random.below(8) {
            0 => random.pick(b"\n\r\t\x08"),
            1 => random.next() as u8,
            2 => random.pick(b"\n\t"),
            _ => random.pick(b"abc XYZ"),
        })
        .collect()
}

/// `default` with some of `bits` flipped, each with the same small probability.
fn flip(random: &mut Random, default: u32, bits: &[u32]) -> u32 {
    bits.iter().fold(default, |word, bit| if random.one_in(5) { word ^ bit } else { word })
}

fn random_termios(random: &mut Random) -> Termios {
    use {iflag as i, lflag as l, oflag as o};
    let mut new = Termios::default();
    let input = [
        i::IGNBRK,
        i::BRKINT,
        i::PARMRK,
        i::INPCK,
        i::ISTRIP,
        i::INLCR,
        i::IGNCR,
        i::ICRNL,
        i::IUCLC,
        i::IXON,
        i::IXANY,
        i::IMAXBEL,
        i::IUTF8,
    ];
    new.c_iflag = flip(random, new.c_iflag, &input);
    let output = [o::OPOST, o::OLCUC, o::ONLCR, o::OCRNL, o::ONOCR, o::ONLRET, o::XTABS];
    new.c_oflag = flip(random, new.c_oflag, &output);
    let local = [
        l::ISIG,
        l::ICANON,
        l::ECHO,
        l::ECHOE,
        l::ECHOK,
        l::ECHONL,
        l::NOFLSH,
        l::ECHOCTL,
        l::ECHOPRT,
        l::ECHOKE,
        l::IEXTEN,
    ];
    new.c_lflag = flip(random, new.c_lflag, &local);
    if random.one_in(12) {
        new.c_lflag ^= l::EXTPROC;
    }
    if random.one_in(3) {
        new.c_cc[cc::VEOL] = random.pick(b"/_\r\xff");
        new.c_cc[cc::VEOL2] = random.pick(b".\x1b");
    }
    if random.one_in(8) {
        new.c_cc[random.pick(&[0, 1, 2, 3, 4, 8, 9, 10, 12, 14, 15])] = random.next() as u8;
    }
    if random.one_in(6) {
        (new.c_iflag, new.c_lflag) = (0, 0);
    }
    new.c_cc[cc::VMIN] = random.pick(&[0, 1, 1, 5, 64]);
    new.c_cc[cc::VTIME] = random.pick(&[0, 0, 1]);
    new
}

fn step(pair: &mut Pair, random: &mut Random) {
    let termios = *pair.ours.termios();
    match random.below(20) {
        0..=8 => pair.type_bytes(&random_input(random, &termios)),
        9..=11 => pair.write(&random_output(random)),
        12..=15 => pair.read(random.pick(&[1, 2, 3, 10, 64, 65, 300])),
        16 => pair.set(random_termios(random)),
        17 if random.one_in(3) => pair.flush_input(),
        18 if random.one_in(3) => pair.control_flow(random.pick(&[Flow::StopOutput, Flow::StartOutput])),
        _ => pair.type_bytes(&[termios.c_cc[cc::VSTART], b'\n']),
    }
}

/// Runs `body` on a fresh pair; a failure tells the seed and what led to it.
fn run(seed: u64, body: impl FnOnce(&mut Pair, &mut Random)) {
    let Some(mut pair) = Pair::open() else { return };
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&mut pair, &mut random)));
    if let Err(cause) = outcome {
        let last = pair.story.len().saturating_sub(25);
        eprintln!(
            "TTY_ORACLE_SEED={seed}, settings {:x?}, after:\n{}",
            pair.ours.termios(),
            pair.story[last..].join("\n")
        );
        std::panic::resume_unwind(cause);
    }
}

fn number_from(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn seeds() -> std::ops::Range<u64> {
    match number_from("TTY_ORACLE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number_from("TTY_ORACLE_RUNS").unwrap_or(DEFAULT_RUNS),
    }
}

#[test]
fn random_use_is_as_on_the_host() {
    for seed in seeds() {
        run(seed, |pair, random| (0..STEPS).for_each(|_| step(pair, random)));
    }
}

#[test]
fn default_settings_are_as_on_the_host() {
    for seed in seeds() {
        run(seed, |pair, random| {
            for _ in 0..STEPS {
                let input = random_input(random, &Termios::default());
                pair.type_bytes(&input);
                pair.read(random.pick(&[1, 5, 80]));
            }
        });
    }
}

/// Editing alone, under settings that change how erasing looks.
#[test]
fn editing_is_as_on_the_host() {
    use {iflag as i, lflag as l, oflag as o};
    for seed in seeds() {
        run(seed, |pair, random| {
            let mut termios = Termios::default();
            termios.c_iflag = flip(random, termios.c_iflag | i::IUTF8, &[i::IUTF8]);
            termios.c_oflag = flip(random, termios.c_oflag, &[o::XTABS, o::ONLRET, o::ONLCR]);
            let local = [l::ECHOE, l::ECHOK, l::ECHOCTL, l::ECHOPRT, l::ECHOPRT, l::ECHOKE];
            termios.c_lflag = flip(random, termios.c_lflag, &local);
            pair.set(termios);
            for _ in 0..STEPS {
                let text: Vec<u8> = (0..1 + random.below(12))
                    .flat_map(|_| match random.below(10) {
                        0..=2 => vec![random.pick(b"ab_ -")],
                        3 => "\u{e4}".as_bytes().to_vec(),
                        4 => "\u{6f22}".as_bytes().to_vec(),
                        5 => vec![random.pick(b"\t\t\x01\xc3")],
                        6 => vec![random.pick(b"\x15\x17\n\x04\x12\x16")],
                        _ => vec![0x7f],
                    })
                    .collect();
                pair.type_bytes(&text);
                if random.one_in(6) {
                    pair.write(&random_output(random));
                    pair.read(200);
                }
            }
        });
    }
}

/// Stopping and starting output by keys, calls and settings.
#[test]
fn flow_control_is_as_on_the_host() {
    for seed in seeds() {
        run(seed, |pair, random| {
            let mut termios = Termios::default();
            for _ in 0..STEPS {
                match random.below(9) {
                    0 => pair.type_bytes(&[termios.c_cc[cc::VSTART]]),
                    1 => pair.type_bytes(&[termios.c_cc[cc::VSTOP]]),
                    2 => pair.control_flow(Flow::StopOutput),
                    3 | 4 => pair.control_flow(Flow::StartOutput),
                    5 => {
                        termios.c_iflag = flip(random, termios.c_iflag, &[iflag::IXON, iflag::IXANY, iflag::IXANY]);
                        termios.c_lflag = flip(random, termios.c_lflag, &[lflag::ECHO, lflag::ICANON]);
                        pair.set(termios);
                    }
                    6 => pair.type_bytes(random.pick(&[b"ab".as_slice(), b"\n", b"\x03", b"\x1a", b"c\x7f"])),
                    7 => pair.read(50),
                    _ => pair.write(&random_output(random)),
                }
            }
        });
    }
}

#[test]
fn an_endless_line_is_cut_as_on_the_host() {
    run(1, |pair, _| {
        for _ in 0..50 {
            pair.type_bytes(&[b'x'; 100]);
        }
        pair.type_bytes(b"yz\x7f\x7f\x7fabc\x7f");
        pair.type_bytes(b"\n");
        pair.type_bytes(b"next\n");
        for _ in 0..8 {
            pair.read(1000);
        }
        pair.read(1000);
    });
}

#[test]
fn lines_that_do_not_fit_wait_as_on_the_host() {
    run(2, |pair, _| {
        for number in 0..60 {
            pair.type_bytes(format!("{number:099}\n").as_bytes());
        }
        for _ in 0..61 {
            pair.read(4096);
        }
    });
}

#[test]
fn control_q_passes_a_full_input_as_on_the_host() {
    run(6, |pair, _| {
        for number in 0..45 {
            pair.type_bytes(format!("{number:099}\n").as_bytes());
        }
        for _ in 0..2 {
            pair.type_bytes(b"\x13");
            pair.write(b"stopped");
            pair.type_bytes(b"\x11");
            pair.write(b"started");
        }
        pair.type_bytes(b"\x13");
        for _ in 0..46 {
            pair.read(4096);
        }
        pair.write(b"stopped");
        pair.type_bytes(b"\x11\n");
    });
}

#[test]
fn raw_input_that_does_not_fit_waits_as_on_the_host() {
    run(3, |pair, _| {
        pair.set(Termios { c_iflag: 0, c_lflag: 0, ..Termios::default() });
        for _ in 0..50 {
            pair.type_bytes(b"0123456789\xff\x00\x03\x04\x7f\x11\x13\n\rabcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ");
        }
        for _ in 0..12 {
            pair.read(500);
        }
    });
}

#[test]
fn echo_nobody_takes_is_forgotten_as_on_the_host() {
    run(4, |pair, _| {
        pair.type_bytes(b"\x13");
        for number in 0..80 {
            pair.type_bytes(format!("{number:090}\t\x01\n").as_bytes());
            pair.read(4096);
        }
        pair.type_bytes(b"\x11");
        pair.write(b"end\n");
    });
}

/// The host may wake late, never early: its waits are compared with the decisions coarsely, and the shortest of some counts.
#[test]
fn vtime_waits_as_long_as_on_the_host() {
    run(5, |pair, _| {
        let mut termios = Termios { c_iflag: 0, c_lflag: 0, ..Termios::default() };
        rustix::fs::fcntl_setfl(&pair.slave, OFlags::RDWR).unwrap();
        for (vmin, vtime, typed) in [(0, 2, ""), (0, 2, "a"), (3, 2, "ab"), (2, 2, "ab"), (0, 0, ""), (5, 0, "abcde")] {
            termios.c_cc[cc::VMIN] = vmin;
            termios.c_cc[cc::VTIME] = vtime;
            pair.set(termios);
            let (mut tries, mut over) = (0, Duration::MAX);
            while over > Duration::from_millis(50) && tries < 20 {
                let (waited, limit) = both_wait(pair, typed);
                assert!(waited + Duration::from_millis(20) > limit, "host {waited:?}, ours {limit:?}");
                (tries, over) = (tries + 1, waited.saturating_sub(limit));
            }
            assert!(tries < 20, "the host waits {over:?} longer");
        }
    });
}

/// How long the host waits for what is typed, and what ours decides.
fn both_wait(pair: &mut Pair, typed: &str) -> (Duration, Duration) {
    pair.type_together(typed.as_bytes());
    let begin = Instant::now();
    let mut host = [0; 10];
    let count = (&pair.slave).read(&mut host).unwrap();
    let waited = begin.elapsed();
    let mut ours = [0; 10];
    let limit = match pair.ours.program_read(&mut ours, Patience::Idle(Nanos(0))) {
        ReadOutcome::WaitFor(limit) => {
            pair.ours.program_read(&mut ours, Patience::Idle(limit));
            Duration::from_nanos(limit.0)
        }
        _ => Duration::ZERO,
    };
    assert_eq!((count, host), (typed.len(), ours));
    (waited, limit)
}
