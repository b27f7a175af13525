//! What is heard: a controller's first stream for output, and the first codec with a way to a jack. Frames are two samples of 16 bits.

use alloc::vec::Vec;

use machine::{Dma, NoFrames, Pace, TryGrow};

use crate::Lost;
use crate::commands::Commands;
use crate::controller::Controller;
use crate::path::{Codec, Converter};
use crate::registers::{ALL_INTERRUPTS, INTERRUPTS, Registers};
use crate::stream::{self, Stream};
use crate::verb::{self, long, short};

/// Rates by their bit (7.3.4.7), with the format that says so: 48,000 or 44,100 (bit 14), multiplied (13 to 11) and divided (10 to 8)
/// (3.7.1).
const RATES: [(u32, u16); 11] = [
    (8_000, 5 << 8),
    (11_025, 1 << 14 | 3 << 8),
    (16_000, 2 << 8),
    (22_050, 1 << 14 | 1 << 8),
    (32_000, 1 << 11 | 2 << 8),
    (44_100, 1 << 14),
    (48_000, 0),
    (88_200, 1 << 14 | 1 << 11),
    (96_000, 1 << 11),
    (176_400, 1 << 14 | 3 << 11),
    (192_000, 3 << 11),
];
/// Samples of 16 bits, two to a frame.
const FRAMES: u16 = 1 << 4 | 1;

pub struct Output<R: Registers> {
    controller: Controller<R>,
    commands: Commands,
    stream: Stream,
    codec: u8,
    converter: Converter,
    rates: Vec<u32>,
}

impl<R: Registers> Output<R> {
    /// Starts the device, which is silent then.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn start(registers: R, dma: impl Fn(usize) -> Result<Dma, NoFrames>) -> Result<Output<R>, Lost> {
        let (controller, codecs) = Controller::start(registers)?;
        let mut commands = Commands::start(&controller, &dma)?;
        let (codec, converter) = find(&controller, &mut commands, codecs)?;
        let stream = Stream::make(&controller, &dma)?;
        let mut rates = Vec::new();
        rates.room_for_exact(RATES.len()).map_err(|_| Lost::NoMemory)?;
        let known = RATES.iter().enumerate().filter(|(bit, _)| converter.rates >> bit & 1 != 0);
        known.for_each(|(_, (rate, _))| rates.put(*rate));
        if rates.is_empty() {
            return Err(Lost::NoOutput);
        }
        controller.write32(INTERRUPTS, ALL_INTERRUPTS | stream.bit());
        Ok(Output { controller, commands, stream, codec, converter, rates })
    }

    /// Frames a second that it can play, from few to many.
    pub fn rates(&self) -> &[u32] {
        &self.rates
    }

    pub const RING_BYTES: usize = Stream::RING_BYTES;
    pub const PERIODS_MOST: usize = Stream::PERIODS_MOST;

    /// Plays the ring over and over, from its first byte.
    ///
    /// # Errors
    /// The device does not do so.
    pub fn play(&mut self, pace: Pace) -> Result<(), Lost> {
        let rate = RATES.iter().find(|(rate, _)| *rate == pace.hertz).filter(|(rate, _)| self.rates.contains(rate));
        let format = rate.ok_or(Lost::NoOutput)?.1 | FRAMES;
        self.ask(long(self.converter.node, verb::SET_FORMAT, format))?;
        self.ask(short(self.converter.node, verb::SET_STREAM, stream::NUMBER << 4))?;
        self.stream.begin(&self.controller, pace, format)
    }

    /// Plays nothing any more.
    ///
    /// # Errors
    /// The device does not stop.
    pub fn halt(&mut self) -> Result<(), Lost> {
        self.stream.halt(&self.controller)?;
        self.ask(short(self.converter.node, verb::SET_STREAM, 0)).map(|_| ())
    }

    /// Stores frames into the ring.
    pub fn write(&self, offset: usize, from: &[u8]) {
        self.stream.write(offset, from);
    }

    /// The byte of the ring that is played now.
    ///
    /// # Errors
    /// The device is elsewhere, or has not found its list.
    pub fn position(&self) -> Result<usize, Lost> {
        self.stream.position(&self.controller)
    }

    /// Bytes behind the position that are under way already.
    pub fn fetched_ahead(&self) -> usize {
        self.stream.fetched_ahead(&self.controller)
    }

    /// It has been heard that a period has ended.
    pub fn acknowledge(&self) {
        self.stream.acknowledge(&self.controller);
    }

    fn ask(&mut self, verb: u32) -> Result<u32, Lost> {
        self.commands.ask(&self.controller, self.codec, verb)
    }
}

/// The first codec with a way to a jack. One that does not answer ends the search: the ring is stuck.
fn find<R: Registers>(
    controller: &Controller<R>,
    commands: &mut Commands,
    codecs: u16,
) -> Result<(u8, Converter), Lost> {
    for codec in (0..15).filter(|codec| codecs >> codec & 1 != 0) {
        let mut ask = |verb| commands.ask(controller, codec, verb);
        match (Codec { ask: &mut ask }).open() {
            Err(Lost::NoOutput) => {}
            found => return found.map(|converter| (codec, converter)),
        }
    }
    Err(Lost::NoOutput)
}
