//! /dev/sound, /dev/cd, /dev/ad, /dev/ad.stereo, /dev/ad.ulaw and /dev/da: the Sound-IO device server as programs see it.
//!
//! With a sound device the D/A converter is heard: what is written to /dev/da is played there, too, at [`HERTZ`].
//!
//! The streams are raw samples at the clock's rate: 16-bit little-endian, the CD's and the D/A converter's left and right in
//! turn, the A/D converter's mono, stereo, or 8-bit µ-law. A channel is active, and in the handler, while its device is open; it can
//! be open once. /dev/sound tells how it stands, and takes commands, one a write:
//!
//! ```text
//!   handler synthesized|assembler|compiled     who makes the handlers
//!   inserts one|eight|cheapest                how the A/D converter's samples enter the ring (S-43)
//!   raise none|cd|cd+da|cd+ad.ulaw|… COUNT     raises the interrupt COUNT times, at most 60,000, and takes the time
//!   call CHANNELS COUNT                        the same with a handler that is called, where the machine can do so
//! ```

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::fmt::Write;
use core::sync::atomic::Ordering;

use abi::Errno;
use kernel::charge::Held;
use kernel::playback::{self, Playback, Playing, Settings};
use kernel::schedule::WaitQueue;
use kernel::sound::{Activity, Channel, Entry, Format, HERTZ, Inserts, Maker, RING_PLACES, Sound};
use kernel::stream::{Io, Ready, Stream, UserRange};
use machine::{KernelCell, Nanos, Text, try_filled};

use crate::devices::{Device, Numbers, Opened};
use crate::files::open_file::Body;
use crate::limits::PIECE_BYTES;

/// Major number of sound devices (Linux `devices.txt`); the minors are ours.
const SOUND_MAJOR: u32 = 14;
const CONTROL: u32 = 128;
/// A sleeping reader wants no more samples at once than these, a 20th of a second.
const PLACES_AT_ONCE: u64 = 2205;
/// Longest command.
const COMMAND_BYTES: usize = 80;

pub(crate) const DEVICE: Device = Device {
    names: |show| {
        let names = [("sound", CONTROL), ("cd", 129), ("ad", 130), ("ad.ulaw", 131), ("da", 132), ("ad.stereo", 133)];
        names.iter().for_each(|(name, minor)| show(format_args!("{name}"), (SOUND_MAJOR, *minor), 0o666));
    },
    open: |call, _, numbers, _| open(call.unix.sound.as_ref(), &call.unix.playback, numbers),
    request: Device::no_request,
};

/// Errors: `ENXIO` without a sample clock, `EBUSY`, `ENOMEM`.
fn open(sound: Option<&'static Sound>, playback: &Playback, numbers: Numbers) -> Option<Opened> {
    let (channel, format) = match numbers {
        (SOUND_MAJOR, CONTROL) => {
            let control = |sound| Body::Stream(Arc::new(Control { sound, state: KernelCell::default() }));
            return Some(sound.map(control).ok_or(Errno::ENXIO));
        }
        (SOUND_MAJOR, 129) => (Channel::CdIn, Format::Stereo),
        (SOUND_MAJOR, 130) => (Channel::AdIn, Format::Linear),
        (SOUND_MAJOR, 131) => (Channel::AdIn, Format::MuLaw),
        (SOUND_MAJOR, 132) => (Channel::DaOut, Format::StereoOut),
        (SOUND_MAJOR, 133) => (Channel::AdIn, Format::StereoIn),
        _ => return None,
    };
    let samples = sound.ok_or(Errno::ENXIO).and_then(|sound| Samples::open(sound, playback, (channel, format)));
    Some(samples.map(Body::Stream))
}

/// An open channel.
pub struct Samples {
    sound: &'static Sound,
    channel: Channel,
    format: Format,
    /// The device that plays what is written, on a machine that has one.
    heard: Option<Arc<Playing>>,
}

/// What the D/A converter's frames are to a sound device.
const FRAMES: Settings = Settings { format: playback::Format::I16Little, channels: 2, hertz: HERTZ, fragments: None };

impl Samples {
    fn open(
        sound: &'static Sound,
        playback: &Playback,
        (channel, format): (Channel, Format),
    ) -> Result<Arc<dyn Stream>, Errno> {
        let heard = match channel {
            Channel::DaOut => playback.open_if_there(FRAMES)?,
            _ => None,
        };
        sound.switch(channel, Some(format))?;
        let samples = Samples { sound, channel, format, heard };
        // Where the clock only comes when it is raised, a reader would sleep for ever.
        if sound.rate() == 0 { Err(Errno::ENXIO) } else { Ok(Arc::new(samples)) }
    }

    /// Sleeps until the handler has used `places` more, at most [`PLACES_AT_ONCE`].
    fn wait(&self, io: &Io<'_>, places: u64) -> Result<(), Errno> {
        let places = places.clamp(1, PLACES_AT_ONCE) as u32;
        if !self.sound.signal_after(self.channel, self.format, places) {
            return Ok(());
        }
        io.wait(self.sound.waiting(self.channel))
    }

    fn ring(&self) -> &kernel::sound::ChannelWords {
        &self.sound.words.channels[self.channel as usize]
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        self.sound.silence(self.channel);
    }
}

impl Stream for Samples {
    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        let mut piece = try_filled(0, to.bytes.min(PIECE_BYTES))?;
        let bytes = self.read_kernel(io, &mut piece)?;
        io.copy_out(to.address, &piece[..bytes])?;
        Ok(bytes)
    }

    fn write(&self, io: &Io<'_>, from: UserRange) -> Result<usize, Errno> {
        let mut piece = try_filled(0, from.bytes.min(PIECE_BYTES))?;
        io.copy_in(from.address, &mut piece)?;
        self.write_kernel(io, &piece)
    }

    /// At least one place; `EINVAL` when there is no room for one, `EBADF` for an output.
    fn read_kernel(&self, io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        if self.channel == Channel::DaOut {
            return Err(Errno::EBADF);
        }
        if into.len() < self.format.bytes() {
            return if into.is_empty() { Ok(0) } else { Err(Errno::EINVAL) };
        }
        loop {
            let bytes = self.ring().take(self.format, into);
            if bytes > 0 {
                return Ok(bytes);
            }
            self.wait(io, (into.len() / self.format.bytes()) as u64)?;
        }
    }

    /// At least one frame; `EINVAL` for less, `EBADF` for an input.
    fn write_kernel(&self, io: &Io<'_>, from: &[u8]) -> Result<usize, Errno> {
        if self.channel != Channel::DaOut {
            return Err(Errno::EBADF);
        }
        if from.len() < self.format.bytes() {
            return if from.is_empty() { Ok(0) } else { Err(Errno::EINVAL) };
        }
        loop {
            // The device's clock is not the converter's: whichever is slower sets the pace.
            let room = self.heard.as_ref().map_or(usize::MAX, |heard| heard.room_bytes());
            let bytes = self.ring().add(&from[..from.len().min(room)]);
            match &self.heard {
                Some(heard) if bytes > 0 => return heard.write_kernel(io, &from[..bytes]),
                Some(heard) if room < self.format.bytes() => heard.wait(io)?,
                _ if bytes > 0 => return Ok(bytes),
                _ => self.wait(io, (from.len() / self.format.bytes()) as u64)?,
            }
        }
    }

    /// The next sample is never further than a 44,100th of a second.
    fn held(&self) -> Held {
        Held::NOTHING
    }

    fn ready(&self) -> Ready {
        match &self.heard {
            Some(heard) => heard.ready(),
            None if self.channel == Channel::DaOut => Ready::WRITABLE,
            None => Ready::READABLE,
        }
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        self.heard.iter().for_each(|heard| heard.each_queue(visit));
    }

    fn lingers(&self) -> bool {
        self.heard.as_ref().is_some_and(|heard| heard.lingers())
    }

    fn lingers_at_end(&self) -> bool {
        self.lingers()
    }

    fn linger(&self, io: &Io<'_>) {
        self.heard.iter().for_each(|heard| heard.linger(io));
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// /dev/sound.
struct Control {
    sound: &'static Sound,
    state: KernelCell<Told>,
}

#[derive(Clone, Copy, Default)]
struct Told {
    /// The text has been read.
    is_read: bool,
    /// How often the interrupt was raised last, and how long that took.
    raised: Option<(u32, Nanos)>,
}

impl Control {
    fn text(&self) -> Result<String, Errno> {
        let (sound, (name, bytes)) = (self.sound, self.sound.handler());
        let device = sound.words.device.load(Ordering::Relaxed);
        let mut text = Text::default();
        let _ = writeln!(
            text,
            "handler {name} {bytes} bytes\nmaker {:?}\nhandlers_made {}\ninterrupts {device}\nmillihertz {}",
            sound.maker(),
            sound.made(),
            sound.rate()
        );
        for channel in Channel::ALL {
            if let Some(format) = sound.activity().format(channel) {
                let words = &sound.words.channels[channel as usize];
                let lost = if channel == Channel::DaOut { words.dry(device) } else { words.lost() };
                let _ = writeln!(text, "{channel:?} {format:?} fill {} of {RING_PLACES} lost {lost}", words.fill());
            }
        }
        if let Some((count, ns)) = self.state.get().raised {
            writeln!(text, "raised {count} ns {}", ns.0).map_err(|_| Errno::ENOMEM)?;
        }
        Ok(text.0)
    }

    fn obey(&self, command: &str) -> Result<(), Errno> {
        let words: [&str; 3] = {
            let mut words = command.split_ascii_whitespace();
            [(); 3].map(|()| words.next().unwrap_or(""))
        };
        match words {
            ["handler", maker, ""] => self.sound.choose(match maker {
                "synthesized" => Maker::Synthesized,
                "assembler" => Maker::Assembler,
                "compiled" => Maker::Compiled,
                _ => return Err(Errno::EINVAL),
            }),
            ["inserts", inserts, ""] => self.sound.choose_inserts(match inserts {
                "one" => Some(Inserts::One),
                "eight" => Some(Inserts::Eight),
                "cheapest" => None,
                _ => return Err(Errno::EINVAL),
            }),
            [how @ ("raise" | "call"), channels, count] => {
                let entry = if how == "raise" { Entry::Interrupt } else { Entry::Call };
                let count = count.parse().map_err(|_| Errno::EINVAL)?;
                let ns = self.sound.measure(entry, activity(channels)?, count)?;
                self.state.set(Told { raised: Some((count, ns)), is_read: false });
                Ok(())
            }
            _ => Err(Errno::EINVAL),
        }
    }
}

/// `cd+ad.ulaw+da`, or `none`.
fn activity(names: &str) -> Result<Activity, Errno> {
    let mut activity = Activity::default();
    for name in names.split('+').filter(|name| *name != "none") {
        let (channel, format) = match name {
            "cd" => (Channel::CdIn, Format::Stereo),
            "ad" => (Channel::AdIn, Format::Linear),
            "ad.stereo" => (Channel::AdIn, Format::StereoIn),
            "ad.ulaw" => (Channel::AdIn, Format::MuLaw),
            "da" => (Channel::DaOut, Format::StereoOut),
            _ => return Err(Errno::EINVAL),
        };
        activity = activity.with(channel, Some(format));
    }
    Ok(activity)
}

impl Stream for Control {
    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        let mut piece = try_filled(0, to.bytes.min(PIECE_BYTES))?;
        let bytes = self.read_kernel(io, &mut piece)?;
        io.copy_out(to.address, &piece[..bytes])?;
        Ok(bytes)
    }

    fn write(&self, io: &Io<'_>, from: UserRange) -> Result<usize, Errno> {
        let mut piece = try_filled(0, from.bytes.min(PIECE_BYTES))?;
        io.copy_in(from.address, &mut piece)?;
        self.write_kernel(io, &piece)
    }

    /// The whole text at once, then the end.
    fn read_kernel(&self, _io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        let told = self.state.get();
        if told.is_read {
            return Ok(0);
        }
        let text = self.text()?;
        let bytes = text.len().min(into.len());
        into[..bytes].copy_from_slice(&text.as_bytes()[..bytes]);
        self.state.set(Told { is_read: bytes > 0, ..told });
        Ok(bytes)
    }

    fn write_kernel(&self, _io: &Io<'_>, from: &[u8]) -> Result<usize, Errno> {
        if from.len() > COMMAND_BYTES {
            return Err(Errno::EINVAL);
        }
        self.obey(core::str::from_utf8(from).map_err(|_| Errno::EINVAL)?)?;
        Ok(from.len())
    }

    fn held(&self) -> Held {
        Held::NOTHING
    }

    fn ready(&self) -> Ready {
        Ready::READABLE.with(Ready::WRITABLE)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
