//! Samples to a file, and their checksum.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Sums up samples (FNV-1a), so that two runs can be compared.
#[derive(Clone, Copy)]
pub struct Checksum(u64);

impl Checksum {
    pub fn new() -> Checksum {
        Checksum(0xCBF2_9CE4_8422_2325)
    }

    pub fn add(&mut self, samples: &[i16]) {
        for byte in samples.iter().flat_map(|sample| sample.to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        }
    }

    pub fn value(self) -> u64 {
        self.0
    }
}

/// A file in the making: 16 bits, little end first.
pub struct Wav {
    path: PathBuf,
    file: BufWriter<File>,
    channels: u16,
    rate: u32,
    bytes: u32,
}

const HEADER_BYTES: u32 = 44;

impl Wav {
    /// # Errors
    /// The system's, with the name.
    pub fn create(path: &Path, channels: u16, rate: u32) -> Result<Wav, String> {
        let file = File::create(path).map_err(|error| {
            format!("{}: {error}\nhelp: name a file in a folder that can be written", path.display())
        })?;
        let mut wav = Wav { path: path.into(), file: BufWriter::new(file), channels, rate, bytes: 0 };
        wav.header()?;
        Ok(wav)
    }

    fn header(&mut self) -> Result<(), String> {
        let (frame, rate) = (u32::from(self.channels) * 2, self.rate);
        let words: [&[u8]; 13] = [
            b"RIFF",
            &(HEADER_BYTES - 8 + self.bytes).to_le_bytes(),
            b"WAVEfmt ",
            &16u32.to_le_bytes(),
            &1u16.to_le_bytes(), // PCM
            &self.channels.to_le_bytes(),
            &rate.to_le_bytes(),
            &(rate * frame).to_le_bytes(),
            &(frame as u16).to_le_bytes(),
            &16u16.to_le_bytes(),
            b"data",
            &self.bytes.to_le_bytes(),
            b"",
        ];
        self.write(&words.concat())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| format!("{}: {error}\nhelp: make room, or choose a shorter --for", self.path.display()))
    }

    /// # Errors
    /// The system's.
    pub fn add(&mut self, samples: &[i16]) -> Result<(), String> {
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        self.bytes = self.bytes.saturating_add(bytes.len() as u32);
        self.write(&bytes)
    }

    /// The header, now that the length is known.
    ///
    /// # Errors
    /// The system's.
    pub fn finish(mut self) -> Result<(), String> {
        let sought = self.file.seek(SeekFrom::Start(0));
        sought.map_err(|error| format!("{}: {error}\nhelp: name an ordinary file", self.path.display()))?;
        self.header()?;
        self.file.flush().map_err(|error| format!("{}: {error}\nhelp: make room", self.path.display()))
    }
}
