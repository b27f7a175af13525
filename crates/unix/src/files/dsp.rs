//! /dev/dsp and /dev/audio: the machine's sound device as the Open Sound System shows it.
//!
//! Both are the same device, which one program has open at a time; they differ in what samples are at first. What a program asks for
//! and the device cannot do is told back as the nearest that it can.

use alloc::sync::Arc;

use abi::Errno;
use abi::file::{O_ACCMODE, O_NONBLOCK, O_RDONLY};
use abi::sound::*;
use kernel::playback::{Format, Fragments, Playing, Settings};

use crate::call::{Call, CallResult};
use crate::devices::{Device, Opened};
use crate::files::open_file::{Body, OpenFile};

/// Numbers of both (Linux `devices.txt`).
const SOUND_MAJOR: u32 = 14;
const DSP: u32 = 3;
const AUDIO: u32 = 4;

pub(crate) const DEVICE: Device = Device {
    names: |show| {
        [("dsp", DSP), ("audio", AUDIO)]
            .iter()
            .for_each(|(name, minor)| show(format_args!("{name}"), (SOUND_MAJOR, *minor), 0o666));
    },
    open: |call, _, numbers, flags| match numbers {
        (SOUND_MAJOR, DSP) => Some(open(call, Format::U8, flags)),
        (SOUND_MAJOR, AUDIO) => Some(open(call, Format::MuLaw, flags)),
        _ => None,
    },
    request: |call, file, request, argument| {
        let playing = file.stream_of::<Playing>()?;
        Some(serve(call, file, playing, request, argument))
    },
};

/// Formats that samples can have.
const FORMATS: u32 = AFMT_MU_LAW | AFMT_U8 | AFMT_S8 | AFMT_S16_LE | AFMT_S16_BE;

/// Errors: `EINVAL` for reading alone, which the device cannot do; those of `Playback::open`.
fn open(call: &Call<'_>, format: Format, flags: u32) -> Opened {
    if flags & O_ACCMODE == O_RDONLY {
        return Err(Errno::EINVAL);
    }
    let playing = call.unix.playback.open(Settings { format, ..Settings::default() })?;
    Ok(Body::Stream(playing))
}

/// Error: `EINVAL` for requests that are not known, as Linux has it.
fn serve(call: &Call<'_>, file: &Arc<OpenFile>, playing: &Playing, request: u32, argument: u64) -> CallResult {
    match request {
        SNDCTL_DSP_RESET => playing.reset(),
        SNDCTL_DSP_SYNC => call.with_io(false, |io| playing.sync(io))?,
        SNDCTL_DSP_POST => playing.post(),
        SNDCTL_DSP_NONBLOCK => file.set_flags(file.flags() | O_NONBLOCK),
        SNDCTL_DSP_SETTRIGGER => set_trigger(playing, call.read(argument)?),
        SNDCTL_DSP_SETFRAGMENT => set_fragment(playing, call.read(argument)?)?,
        SNDCTL_DSP_SPEED | SNDCTL_DSP_SETFMT | SNDCTL_DSP_CHANNELS | SNDCTL_DSP_STEREO => {
            return change(call, playing, request, argument);
        }
        SNDCTL_DSP_GETOSPACE => return call.write(argument, &room(playing)).map(|()| 0),
        SNDCTL_DSP_GETOPTR => return call.write(argument, &pointer(playing)).map(|()| 0),
        _ => return call.write(argument, &asked(playing, request)?).map(|()| 0),
    }
    Ok(0)
}

/// Requests that name a setting, and are told what it really is.
fn change(call: &Call<'_>, playing: &Playing, request: u32, argument: u64) -> CallResult {
    let wanted: u32 = call.read(argument)?;
    let change = |settings: &mut Settings| match request {
        SNDCTL_DSP_SPEED => settings.hertz = wanted,
        SNDCTL_DSP_SETFMT => settings.format = format(wanted, settings.format),
        SNDCTL_DSP_STEREO => settings.channels = if wanted == 0 { 1 } else { 2 },
        _ => settings.channels = wanted.clamp(1, 2) as usize,
    };
    let settings = call.with_io(false, |io| playing.change(io, change))?;
    let told = match request {
        SNDCTL_DSP_SPEED => settings.hertz,
        SNDCTL_DSP_SETFMT => number(settings.format),
        SNDCTL_DSP_STEREO => settings.channels as u32 - 1,
        _ => settings.channels as u32,
    };
    call.write(argument, &told).map(|()| 0)
}

/// Requests whose answer is a number. Error: `EINVAL`.
fn asked(playing: &Playing, request: u32) -> Result<u32, Errno> {
    let settings = playing.settings();
    Ok(match request {
        SNDCTL_DSP_GETBLKSIZE => playing.geometry().fragment_bytes as u32,
        SNDCTL_DSP_GETFMTS => FORMATS,
        SNDCTL_DSP_GETCAPS => DSP_REVISION | DSP_CAP_REALTIME | DSP_CAP_TRIGGER,
        SNDCTL_DSP_GETODELAY => playing.queued_bytes() as u32,
        SNDCTL_DSP_GETTRIGGER if playing.is_held_back() => 0,
        SNDCTL_DSP_GETTRIGGER => PCM_ENABLE_OUTPUT,
        SOUND_PCM_READ_RATE => settings.hertz,
        SOUND_PCM_READ_BITS => 8 * settings.format.sample_bytes() as u32,
        SOUND_PCM_READ_CHANNELS => settings.channels as u32,
        OSS_GETVERSION => SOUND_VERSION,
        _ => return Err(Errno::EINVAL),
    })
}

/// The format for a number; for those that are not known 16 bits, which all programs can give.
fn format(number: u32, now: Format) -> Format {
    match number {
        AFMT_QUERY => now,
        AFMT_MU_LAW => Format::MuLaw,
        AFMT_U8 => Format::U8,
        AFMT_S8 => Format::I8,
        AFMT_S16_BE => Format::I16Big,
        _ => Format::I16Little,
    }
}

fn number(format: Format) -> u32 {
    match format {
        Format::MuLaw => AFMT_MU_LAW,
        Format::U8 => AFMT_U8,
        Format::I8 => AFMT_S8,
        Format::I16Little => AFMT_S16_LE,
        Format::I16Big => AFMT_S16_BE,
    }
}

/// The upper half says how many fragments, the lower one how large each is, as a power of two. Error: `EINVAL`.
fn set_fragment(playing: &Playing, wish: u32) -> Result<(), Errno> {
    /// No ring is larger.
    const POWER_MOST: u32 = 20;
    let most = match wish >> 16 {
        0 => return Err(Errno::EINVAL),
        most => most as usize,
    };
    playing.choose_fragments(Fragments { bytes: 1 << (wish & 0xFFFF).min(POWER_MOST), most })
}

fn set_trigger(playing: &Playing, trigger: u32) {
    match (trigger & PCM_ENABLE_OUTPUT != 0, playing.is_held_back()) {
        (true, true) => playing.release(),
        (false, false) => playing.hold_back(),
        _ => {}
    }
}

fn room(playing: &Playing) -> AudioBufInfo {
    let (geometry, bytes) = (playing.geometry(), playing.room_bytes());
    AudioBufInfo {
        fragments: (bytes / geometry.fragment_bytes) as i32,
        fragstotal: geometry.fragments as i32,
        fragsize: geometry.fragment_bytes as i32,
        bytes: bytes as i32,
    }
}

fn pointer(playing: &Playing) -> CountInfo {
    let pointer = playing.pointer();
    CountInfo { bytes: pointer.bytes as i32, blocks: pointer.fragments as i32, ptr: pointer.place as i32 }
}
