//! What a program has asked for, and what the device does for it.

use machine::Nanos;

use super::converter::Format;

/// Bytes of a frame of the device's.
const DEVICE_FRAME_BYTES: usize = 4;
/// So often a frame is repeated at most, to come to a rate of the device's.
const REPEATS_MOST: u32 = 12;
/// No program's rate is lower.
const HERTZ_LEAST: u32 = 4000;
/// The smallest fragment: devices want their pieces to begin at multiples of 128 bytes.
const FRAGMENT_LEAST: usize = 128;
/// So many fragments, where a program does not say.
const FRAGMENTS_USUAL: usize = 16;
/// Bytes of the smallest ring of a device: it must not go round between two looks, and QEMU fetches 4 KiB at once and more.
const RING_LEAST: usize = 16 << 10;
/// Fragments in a second, about, where a program does not say.
const FRAGMENTS_IN_A_SECOND: usize = 32;

/// Fragments that a program wishes for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragments {
    /// A power of two.
    pub bytes: usize,
    pub most: usize,
}

/// A program's samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    pub format: Format,
    /// 1 or 2.
    pub channels: usize,
    /// Frames a second.
    pub hertz: u32,
    /// `None`: as it is usual.
    pub fragments: Option<Fragments>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { format: Format::U8, channels: 1, hertz: 8000, fragments: None }
    }
}

impl Settings {
    pub fn frame_bytes(&self) -> usize {
        self.format.sample_bytes() * self.channels
    }

    /// The rate that a program gets who wants `wanted`: the nearest that the device comes to by repeating frames.
    pub fn nearest_rate(wanted: u32, rates: &[u32]) -> u32 {
        possible(rates).map(|(hertz, _)| hertz).min_by_key(|hertz| hertz.abs_diff(wanted)).unwrap_or(wanted)
    }

    /// How the device plays it; `rates` are its own, `ring_bytes` and `periods_most` what its ring can be.
    pub fn geometry(&self, rates: &[u32], (ring_bytes, periods_most): (usize, usize)) -> Geometry {
        let nearest = Settings::nearest_rate(self.hertz, rates);
        let by_repeats = possible(rates).filter(|(hertz, _)| *hertz == nearest);
        let repeats = by_repeats.map(|(_, repeats)| repeats).min().unwrap_or(1);
        let frame_bytes = DEVICE_FRAME_BYTES * repeats as usize;
        let usual = nearest as usize * self.frame_bytes() / FRAGMENTS_IN_A_SECOND;
        let wish = self.fragments.unwrap_or(Fragments { bytes: power_below(usual), most: FRAGMENTS_USUAL });
        // Two fragments fit at least.
        let largest = power_below(ring_bytes / 2 / frame_bytes * self.frame_bytes());
        let fragment_bytes = power_below(wish.bytes).clamp(FRAGMENT_LEAST, largest.max(FRAGMENT_LEAST));
        let period_bytes = fragment_bytes / self.frame_bytes() * frame_bytes;
        let most = (ring_bytes / period_bytes).min(periods_most);
        let fragments = wish.most.min(most).max(2);
        let periods = fragments.max(RING_LEAST.div_ceil(period_bytes).min(most));
        Geometry {
            hertz: nearest * repeats,
            repeats: repeats as usize,
            fragment_bytes,
            fragments,
            period_bytes,
            periods,
        }
    }
}

/// The rates that programs can have, with how often each frame is repeated for it.
fn possible(rates: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    let divided = rates.iter().flat_map(|rate| (1..=REPEATS_MOST).map(move |repeats| (*rate, repeats)));
    divided
        .filter(|(rate, repeats)| rate % repeats == 0 && rate / repeats >= HERTZ_LEAST)
        .map(|(rate, repeats)| (rate / repeats, repeats))
}

/// The greatest power of two that is not greater; 1 for none.
fn power_below(number: usize) -> usize {
    number.checked_ilog2().map_or(1, |power| 1 << power)
}

/// How the device plays a program's samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// The device's frames a second.
    pub hertz: u32,
    /// Frames of the device for each of the program.
    pub repeats: usize,
    /// Bytes of a program that are a period.
    pub fragment_bytes: usize,
    /// So many can be written before the first is played.
    pub fragments: usize,
    /// Bytes of the device.
    pub period_bytes: usize,
    /// Those of the ring. What is more than fragments is silent.
    pub periods: usize,
}

impl Geometry {
    pub fn ring_bytes(&self) -> usize {
        self.period_bytes * self.periods
    }

    /// Bytes of the device that can be written before the first is played.
    pub fn queue_bytes(&self) -> usize {
        self.period_bytes * self.fragments
    }

    /// Bytes of the device for a frame of the program.
    pub fn frame_bytes(&self) -> usize {
        DEVICE_FRAME_BYTES * self.repeats
    }

    pub fn period_time(&self) -> Nanos {
        self.time_of(self.period_bytes as u64)
    }

    /// How long the device plays so many of its bytes.
    pub fn time_of(&self, bytes: u64) -> Nanos {
        Nanos(bytes * Nanos::PER_SECOND / (u64::from(self.hertz) * DEVICE_FRAME_BYTES as u64))
    }
}
