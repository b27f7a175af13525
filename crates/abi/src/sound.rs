//! The Open Sound System's requests and numbers (`linux/soundcard.h`).

use crate::record::{numbers, record};

numbers! {
    /// `ioctl` requests of /dev/dsp and /dev/audio.
    SOUND_IOCTLS: u32 {
        SNDCTL_DSP_RESET = 0x5000, SNDCTL_DSP_SYNC = 0x5001, SNDCTL_DSP_SPEED = 0xc004_5002,
        SNDCTL_DSP_STEREO = 0xc004_5003, SNDCTL_DSP_GETBLKSIZE = 0xc004_5004, SNDCTL_DSP_SETFMT = 0xc004_5005,
        SNDCTL_DSP_CHANNELS = 0xc004_5006, SNDCTL_DSP_POST = 0x5008, SNDCTL_DSP_SETFRAGMENT = 0xc004_500a,
        SNDCTL_DSP_GETFMTS = 0x8004_500b, SNDCTL_DSP_GETOSPACE = 0x8010_500c, SNDCTL_DSP_NONBLOCK = 0x500e,
        SNDCTL_DSP_GETCAPS = 0x8004_500f, SNDCTL_DSP_GETTRIGGER = 0x8004_5010, SNDCTL_DSP_SETTRIGGER = 0x4004_5010,
        SNDCTL_DSP_GETOPTR = 0x800c_5012, SNDCTL_DSP_GETODELAY = 0x8004_5017, SOUND_PCM_READ_RATE = 0x8004_5002,
        SOUND_PCM_READ_BITS = 0x8004_5005, SOUND_PCM_READ_CHANNELS = 0x8004_5006, OSS_GETVERSION = 0x8004_4d76,
    }
}

numbers! {
    /// Formats of samples.
    SOUND_FORMATS: u32 {
        AFMT_MU_LAW = 0x01, AFMT_U8 = 0x08, AFMT_S16_LE = 0x10, AFMT_S16_BE = 0x20, AFMT_S8 = 0x40,
    }
}
/// Asks which format it is.
pub const AFMT_QUERY: u32 = 0;

/// The lowest byte of the capabilities.
pub const DSP_REVISION: u32 = 1;
/// `SNDCTL_DSP_GETOPTR` is exact.
pub const DSP_CAP_REALTIME: u32 = 0x200;
pub const DSP_CAP_TRIGGER: u32 = 0x1000;

/// For `SNDCTL_DSP_SETTRIGGER`.
pub const PCM_ENABLE_OUTPUT: u32 = 2;

/// What `OSS_GETVERSION` says of these requests: 3.8.1, as Linux does.
pub const SOUND_VERSION: u32 = 0x03_0801;

record! {
    /// `audio_buf_info`: room, in fragments and bytes.
    AudioBufInfo, 16 bytes { fragments: i32, fragstotal: i32, fragsize: i32, bytes: i32 }
}
record! {
    /// `count_info`: how far the device has come.
    CountInfo, 12 bytes { bytes: i32, blocks: i32, ptr: i32 }
}
