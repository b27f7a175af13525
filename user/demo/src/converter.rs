//! The end of the line: what takes the samples, as a D/A converter does.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::RATE;
use crate::wav::{Checksum, Wav};

/// Frames that a paced converter holds: what comes later than these have been heard is too late.
const QUEUE_FRAMES: u64 = 2048;

pub struct Converter {
    channels: usize,
    checksum: Checksum,
    samples: u64,
    wav: Option<Wav>,
    device: Option<File>,
    pace: Option<Pace>,
}

impl Converter {
    /// One that only sums up, and writes to a file if there is one.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn new(channels: u16, rate: u32, wav: Option<&Path>) -> Result<Converter, String> {
        let wav = wav.map(|path| Wav::create(path, channels, rate)).transpose()?;
        let channels = channels.into();
        Ok(Converter { channels, checksum: Checksum::new(), samples: 0, wav, device: None, pace: None })
    }

    /// Plays on an OSS device, too.
    ///
    /// # Errors
    /// It is not there, or takes no samples of 16 bits at this rate.
    pub fn play_on(&mut self, device: &Path) -> Result<(), String> {
        let help = "help: leave --play out, write a file with --wav, or start the virtual machine with --sound host";
        let opened = File::options().write(true).open(device);
        let file = opened.map_err(|error| format!("{}: {error}\n{help}", device.display()))?;
        const SET_FORMAT: libc::c_ulong = 0xC004_5005;
        const SET_CHANNELS: libc::c_ulong = 0xC004_5006;
        const SET_RATE: libc::c_ulong = 0xC004_5002;
        const SIGNED_16_LITTLE: libc::c_int = 0x10;
        for (call, wanted) in [
            (SET_FORMAT, SIGNED_16_LITTLE),
            (SET_CHANNELS, self.channels as libc::c_int),
            (SET_RATE, RATE as libc::c_int),
        ] {
            let mut value = wanted;
            // SAFETY: the call reads and writes one number.
            let answer = unsafe { libc::ioctl(file.as_raw_fd(), call, &raw mut value) };
            if answer != 0 || value != wanted {
                return Err(format!(
                    "{}: it does not take 16 bits, two channels, {RATE} a second\n{help}",
                    device.display()
                ));
            }
        }
        self.device = Some(file);
        Ok(())
    }

    /// Takes frames as time goes on, and counts those that come too late.
    pub fn keep_pace(&mut self) {
        self.pace = Some(Pace { began: None, heard: 0, late: 0 });
    }

    /// # Errors
    /// The file's or the device's.
    pub fn take(&mut self, samples: &[i16]) -> Result<(), String> {
        if let Some(pace) = &mut self.pace {
            pace.take((samples.len() / self.channels) as u64);
        }
        self.checksum.add(samples);
        self.samples += samples.len() as u64;
        if let Some(device) = &mut self.device {
            let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
            device.write_all(&bytes).map_err(|error| format!("the sound device: {error}\nhelp: leave --play out"))?;
        }
        self.wav.as_mut().map_or(Ok(()), |wav| wav.add(samples))
    }

    /// Blocks that came too late; `None`: nobody waited.
    pub fn late(&self) -> Option<u64> {
        self.pace.as_ref().map(|pace| pace.late)
    }

    /// Says what came, and finishes the file.
    ///
    /// # Errors
    /// The file's.
    pub fn finish(self) -> Result<(), String> {
        println!("samples {} checksum {:016x}", self.samples, self.checksum.value());
        self.wav.map_or(Ok(()), Wav::finish)
    }
}

/// A clock of its own, and a queue in front of it.
struct Pace {
    /// When the first frame is heard.
    began: Option<Instant>,
    heard: u64,
    late: u64,
}

impl Pace {
    fn take(&mut self, frames: u64) {
        let now = Instant::now();
        let time_of = |frames: u64| Duration::from_nanos(frames * 1_000_000_000 / RATE as u64);
        let began = *self.began.get_or_insert(now + time_of(QUEUE_FRAMES));
        let due = began + time_of(self.heard);
        if now > due {
            // Nothing was there to be heard: the queue fills anew.
            self.late += 1;
            (self.began, self.heard) = (Some(now + time_of(QUEUE_FRAMES)), 0);
        } else if due - now > time_of(QUEUE_FRAMES) {
            std::thread::sleep(due - now - time_of(QUEUE_FRAMES));
        }
        self.heard += frames;
    }
}
