//! A controller and its codec that do as they should, or lie.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use hda::Registers;
use machine::{Dma, Memory, NoFrames};
use machine_sim::{Plan, SimMachine};

/// What the device does instead of what it should.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    None,
    /// Does not come out of its reset.
    StaysInReset,
    /// Nobody is behind it.
    NoCodec,
    /// Verbs are never answered, from so many on.
    Silence(u32),
    /// Answers come from another codec.
    Another,
    /// Something that nobody has asked for comes before each answer; or nothing else at all.
    Unasked(u32),
    /// The pointer to the last answer is outside of its ring.
    Pointer,
    /// Every answer is this.
    Always(u32),
    /// The descriptor does not stop, or does not come out of its reset.
    Runs,
    StreamStaysInReset,
    /// The position that is told.
    Position(u32),
    /// The list was not found.
    ListError,
}

/// A widget: what it says of itself, the nodes it hears, and further parameters.
#[derive(Clone, Default)]
pub struct Widget {
    pub capabilities: u32,
    pub hears: Vec<u8>,
    pub parameters: Vec<(u8, u32)>,
    pub configuration: u32,
}

pub const CONVERTER: u32 = 0;
pub const MIXER: u32 = 2;
pub const SELECTOR: u32 = 3;
pub const PIN: u32 = 4;
pub const STEREO: u32 = 1;
pub const AMPLIFIER_IN: u32 = 1 << 1;
pub const AMPLIFIER_OUT: u32 = 1 << 2;
pub const OWN_AMPLIFIER: u32 = 1 << 3;
pub const OWN_RATES: u32 = 1 << 4;
pub const LISTS: u32 = 1 << 8;
pub const DIGITAL: u32 = 1 << 9;
/// 16 bits; 16,000 to 96,000.
pub const RATES: u32 = 1 << 17 | 0x1FC;

pub fn widget(kind: u32, capabilities: u32, hears: &[u8], parameters: &[(u8, u32)]) -> Widget {
    let lists = if hears.is_empty() { 0 } else { LISTS };
    let capabilities = kind << 20 | capabilities | lists;
    Widget { capabilities, hears: hears.to_vec(), parameters: parameters.to_vec(), configuration: 0 }
}

/// A pin that can be heard; `jack` is what it is for: 0 a line, 1 a loudspeaker, 2 headphones.
pub fn pin(jack: u32, hears: &[u8]) -> Widget {
    Widget { configuration: jack << 20, ..widget(PIN, STEREO, hears, &[(0x0C, 1 << 4)]) }
}

/// The codec of QEMU's `hda-output`: a converter and a line.
pub fn small_codec() -> Vec<Widget> {
    let amplifier = [(0x0A, RATES), (0x12, 0x4A << 8 | 0x4A)];
    vec![widget(CONVERTER, STEREO | AMPLIFIER_OUT | OWN_AMPLIFIER | OWN_RATES, &[], &amplifier), pin(0, &[2])]
}

pub struct Fake {
    pub machine: &'static SimMachine,
    pub lie: Cell<Lie>,
    /// The nodes from 2 on.
    pub codec: Vec<Widget>,
    /// Entries that the rings of verbs and answers can have, as the size registers say.
    pub ring_sizes: u8,
    pub reaches_all: bool,
    registers: RefCell<HashMap<u32, u32>>,
    /// Verbs that set something, as they came.
    pub told: RefCell<Vec<(u8, u32)>>,
    asked: Cell<u32>,
    answers: Cell<u16>,
    time: Cell<u64>,
    pub played: Cell<usize>,
}

/// Each test has a machine of its own, whose frames are all for devices.
pub fn machine() -> &'static SimMachine {
    let machine = SimMachine::new(Plan { frames: 64, ..Plan::new(1) });
    machine.give_devices(machine.take_frames());
    machine
}

pub fn dma(machine: &'static SimMachine) -> impl Fn(usize) -> Result<Dma, NoFrames> {
    |pages| machine.dma(pages)
}

/// The output descriptor, behind four for input.
pub const STREAM: u32 = 0x80 + 4 * 0x20;

impl Fake {
    pub fn new(lie: Lie) -> &'static Fake {
        Fake::with(lie, small_codec())
    }

    pub fn with(lie: Lie, codec: Vec<Widget>) -> &'static Fake {
        Fake::made(lie, codec, |_| ())
    }

    pub fn made(lie: Lie, codec: Vec<Widget>, change: impl FnOnce(&mut Fake)) -> &'static Fake {
        let mut fake = Fake {
            machine: machine(),
            lie: Cell::new(lie),
            codec,
            ring_sizes: 0x40,
            reaches_all: true,
            registers: RefCell::default(),
            told: RefCell::default(),
            asked: Cell::new(0),
            answers: Cell::new(0),
            time: Cell::new(0),
            played: Cell::new(0),
        };
        change(&mut fake);
        Box::leak(Box::new(fake))
    }

    pub fn register(&self, offset: u32) -> u32 {
        self.registers.borrow().get(&offset).copied().unwrap_or(0)
    }

    fn set(&self, offset: u32, value: u32) {
        self.registers.borrow_mut().insert(offset, value);
    }

    fn word(&self, address: u64) -> u32 {
        let mut bytes = [0; 4];
        self.machine.bus_read(address, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn address(&self, low: u32) -> u64 {
        u64::from(self.register(low)) | u64::from(self.register(low + 4)) << 32
    }

    fn entries(&self) -> u16 {
        [2, 16, 256][self.register(0x4E) as usize]
    }

    /// Answers the verbs up to the pointer that was written.
    fn serve_verbs(&self, before: u32, to: u32) {
        assert!(to < u32::from(self.entries()), "a verb behind the ring");
        let mut at = before;
        while at != to {
            at = (at + 1) % u32::from(self.entries());
            let verb = self.word(self.address(0x40) + 4 * u64::from(at));
            self.asked.set(self.asked.get() + 1);
            match self.lie.get() {
                Lie::Silence(from) if self.asked.get() > from => {}
                Lie::Unasked(count) => {
                    (0..count).for_each(|_| self.answer(7, 1 << 4));
                    if count < 1000 {
                        self.answer(self.say(verb), 0);
                    }
                }
                Lie::Another => self.answer(self.say(verb), 3),
                Lie::Always(answer) => self.answer(answer, 0),
                _ => self.answer(self.say(verb), 0),
            }
        }
    }

    fn answer(&self, answer: u32, from: u32) {
        let at = (self.answers.get() + 1) % self.entries();
        self.answers.set(at);
        let address = self.address(0x50) + 8 * u64::from(at);
        self.machine.bus_write(address, &answer.to_le_bytes());
        self.machine.bus_write(address + 4, &from.to_le_bytes());
    }

    /// What the codec says to a verb.
    fn say(&self, verb: u32) -> u32 {
        assert_eq!(verb >> 28, 0, "there is one codec");
        let (node, what, payload) = ((verb >> 20) as u8 & 0x7F, verb >> 8 & 0xFFF, verb as u8);
        let widget = self.codec.get(usize::from(node).wrapping_sub(2));
        match (what, widget) {
            (0xF00, None) => match (node, payload) {
                (0, 0x04) => 1 << 16 | 1,
                (1, 0x04) => 2 << 16 | self.codec.len() as u32,
                (1, 0x05) => 1,
                (1, 0x0A) => RATES,
                _ => 0,
            },
            (0xF00, Some(widget)) => match payload {
                0x09 => widget.capabilities,
                0x0E => widget.hears.len() as u32,
                _ => widget.parameters.iter().find(|(known, _)| *known == payload).map_or(0, |(_, value)| *value),
            },
            (0xF02, Some(widget)) => {
                let from = usize::from(payload);
                widget.hears[from..].iter().take(4).rev().fold(0, |all, node| all << 8 | u32::from(*node))
            }
            (0xF1C, Some(widget)) => widget.configuration,
            _ => {
                self.told.borrow_mut().push((node, verb & 0xF_FFFF));
                0
            }
        }
    }

    /// Pieces of the list that was told: address, bytes, whether its end is told.
    pub fn list(&self) -> Vec<(u64, usize, bool)> {
        let list = self.address(STREAM + 0x18);
        let count = self.register(STREAM + 0x0C) as u64 + 1;
        let entry = |at: u64| {
            let words = [0, 4, 8, 12].map(|word| self.word(list + 16 * at + word));
            (u64::from(words[0]) | u64::from(words[1]) << 32, words[2] as usize, words[3] & 1 != 0)
        };
        (0..count).map(entry).collect()
    }

    /// Plays so many bytes; what they are, and how many periods have ended.
    pub fn play(&self, bytes: usize) -> (Vec<u8>, usize) {
        assert_eq!(self.register(STREAM) & 3, 2, "it does not run");
        let (list, mut out, mut ended) = (self.list(), Vec::new(), 0);
        let all: usize = list.iter().map(|piece| piece.1).sum();
        assert_eq!(all as u32, self.register(STREAM + 8), "bytes of the ring");
        let mut at = self.played.get() % all;
        for _ in 0..bytes {
            let mut before = 0;
            for (address, count, tells) in &list {
                if (before..before + count).contains(&at) {
                    let mut byte = [0];
                    self.machine.bus_read(address + (at - before) as u64, &mut byte);
                    out.push(byte[0]);
                    ended += usize::from(*tells && at + 1 == before + count);
                    break;
                }
                before += count;
            }
            at = (at + 1) % all;
        }
        self.played.set(at);
        (out, ended)
    }
}

impl Registers for &'static Fake {
    fn read8(&self, offset: u32) -> u8 {
        match offset {
            0x4E | 0x5E => self.ring_sizes,
            offset if offset == STREAM + 3 => {
                if self.lie.get() == Lie::ListError {
                    1 << 4
                } else {
                    0
                }
            }
            _ => self.register(offset) as u8,
        }
    }

    fn read16(&self, offset: u32) -> u16 {
        match offset {
            0x00 => 4 << 12 | 4 << 8 | u16::from(self.reaches_all),
            0x0E => u16::from(self.lie.get() != Lie::NoCodec),
            0x58 if self.lie.get() == Lie::Pointer => 300,
            0x58 => self.answers.get(),
            offset if offset == STREAM + 0x10 => 0xFF,
            _ => self.register(offset) as u16,
        }
    }

    fn read32(&self, offset: u32) -> u32 {
        match (offset, self.lie.get()) {
            (0x08, Lie::StaysInReset) => 0,
            (offset, Lie::Position(at)) if offset == STREAM + 4 => at,
            (offset, _) if offset == STREAM + 4 => self.played.get() as u32,
            _ => self.register(offset),
        }
    }

    fn write8(&self, offset: u32, value: u8) {
        let value = match (offset, self.lie.get()) {
            (STREAM, Lie::Runs) => value | 2,
            (STREAM, Lie::StreamStaysInReset) => value | 1,
            _ => value,
        };
        if offset == STREAM && value & 1 != 0 {
            self.played.set(0);
        }
        self.set(offset, value.into());
    }

    fn write16(&self, offset: u32, value: u16) {
        let before = self.register(offset);
        self.set(offset, value.into());
        match offset {
            0x48 if self.register(0x4C) & 2 != 0 => self.serve_verbs(before, value.into()),
            0x58 if value & 1 << 15 != 0 => self.answers.set(0),
            _ => {}
        }
    }

    fn write32(&self, offset: u32, value: u32) {
        self.set(offset, value);
    }

    fn now(&self) -> u64 {
        self.time.set(self.time.get() + 1000);
        self.time.get()
    }
}
