//! A program's bytes become frames of the device: two samples of 16 bits, little-endian, as often as the device's rate is higher.
//!
//! Between two frames of the program the samples go in a straight line: of `n` that stand for one, the last is that of the program.

use super::Settings;

/// How a program writes a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// G.711.
    MuLaw,
    U8,
    I8,
    I16Little,
    I16Big,
}

impl Format {
    pub const fn sample_bytes(self) -> usize {
        match self {
            Format::MuLaw | Format::U8 | Format::I8 => 1,
            Format::I16Little | Format::I16Big => 2,
        }
    }

    fn decode(self, bytes: [u8; 2]) -> i16 {
        match self {
            Format::MuLaw => linear(bytes[0]),
            Format::U8 => i16::from_be_bytes([bytes[0] ^ 0x80, 0]),
            Format::I8 => i16::from_be_bytes([bytes[0], 0]),
            Format::I16Little => i16::from_le_bytes(bytes),
            Format::I16Big => i16::from_be_bytes(bytes),
        }
    }
}

/// The sample of 16 bits that a code of µ-law stands for (G.711, table 2a): the middle of its interval.
pub fn linear(code: u8) -> i16 {
    const BIAS: i16 = 33;
    let code = !code;
    let magnitude = ((2 * i16::from(code & 15) + BIAS) << (code >> 4 & 7)) - BIAS;
    // Of the 16 bits, 14 count.
    (if code & 0x80 != 0 { -magnitude } else { magnitude }) << 2
}

const DEVICE_FRAME_BYTES: usize = 4;
const BATCH_BYTES: usize = 1024;

pub struct Converter {
    settings: Settings,
    repeats: usize,
    /// The program's frame before.
    before: [i16; 2],
    /// The beginning of a frame whose end was not yet written.
    part: [u8; 4],
    part_bytes: usize,
}

impl Converter {
    pub fn new(settings: Settings, repeats: usize) -> Converter {
        Converter { settings, repeats, before: [0; 2], part: [0; 4], part_bytes: 0 }
    }

    /// Bytes of a frame whose end was not yet written.
    pub fn waiting_bytes(&self) -> usize {
        self.part_bytes
    }

    /// Takes bytes for at most `frames` frames of the program's, and puts what becomes of them, in pieces. Returns how many were taken.
    pub fn convert(&mut self, from: &[u8], frames: usize, mut put: impl FnMut(&[u8])) -> usize {
        if self.is_plain() {
            let bytes = from.len().min(frames * DEVICE_FRAME_BYTES) & !(DEVICE_FRAME_BYTES - 1);
            if bytes > 0 {
                put(&from[..bytes]);
                return bytes;
            }
        }
        let mut batch = Batch { bytes: [0; BATCH_BYTES], count: 0 };
        let mut rest = from;
        let mut left = frames;
        while left > 0 && !rest.is_empty() {
            if let Some(frame) = self.take_frame(&mut rest) {
                self.repeat(frame, &mut batch, &mut put);
                left -= 1;
            }
        }
        batch.put(&mut put);
        from.len() - rest.len()
    }

    /// The device takes the program's bytes as they are, and no frame is cut.
    fn is_plain(&self) -> bool {
        self.settings.format == Format::I16Little
            && self.settings.channels == 2
            && self.repeats == 1
            && self.part_bytes == 0
    }

    /// Takes what is there of the next frame; the frame if that is all of it.
    fn take_frame(&mut self, rest: &mut &[u8]) -> Option<[i16; 2]> {
        let frame_bytes = self.settings.frame_bytes();
        let (taken, behind) = rest.split_at(rest.len().min(frame_bytes - self.part_bytes));
        self.part[self.part_bytes..][..taken.len()].copy_from_slice(taken);
        self.part_bytes = (self.part_bytes + taken.len()) % frame_bytes;
        *rest = behind;
        (self.part_bytes == 0).then(|| self.frame())
    }

    fn frame(&self) -> [i16; 2] {
        let Settings { format, channels, .. } = self.settings;
        // One channel is heard on both sides.
        [0, channels - 1].map(|channel| {
            let at = channel * format.sample_bytes();
            format.decode([self.part[at], self.part[(at + 1) % 4]])
        })
    }

    fn repeat(&mut self, frame: [i16; 2], batch: &mut Batch, put: &mut impl FnMut(&[u8])) {
        let count = self.repeats as i32;
        for step in 1..=count {
            let sample = |side: usize| {
                let (before, now) = (i32::from(self.before[side]), i32::from(frame[side]));
                (before + (now - before) * step / count) as i16
            };
            batch.add([sample(0), sample(1)], put);
        }
        self.before = frame;
    }
}

/// Frames that go on together.
struct Batch {
    bytes: [u8; BATCH_BYTES],
    count: usize,
}

impl Batch {
    fn add(&mut self, [left, right]: [i16; 2], put: &mut impl FnMut(&[u8])) {
        let [a, b] = left.to_le_bytes();
        let [c, d] = right.to_le_bytes();
        self.bytes[self.count..][..DEVICE_FRAME_BYTES].copy_from_slice(&[a, b, c, d]);
        self.count += DEVICE_FRAME_BYTES;
        if self.count == BATCH_BYTES {
            self.put(put);
        }
    }

    fn put(&mut self, put: &mut impl FnMut(&[u8])) {
        if self.count > 0 {
            put(&self.bytes[..self.count]);
        }
        self.count = 0;
    }
}
