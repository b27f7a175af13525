//! Making a handler: factor the active channels' fragments, collapse them into one routine, publish.

use core::sync::atomic::Ordering;

use codestore::{Code, PublishError};
use machine::{Fragment, SampleClock};
use synth::{Abs32, Draft, Imm32};

use super::SoundWords;
use super::channel::{Activity, Channel, ChannelWords, Format};
use super::template::{AdIn, AdInMuLaw, CdIn, ChainSignal, DaOut, SoundAssembly, SoundDevice, SoundRestore, SoundSave};
use crate::call::Makers;

/// Register contract of interrupt handlers: entered by the interrupt through the slot, interrupts off, every register
/// kept, left through the machine's end.
pub enum SampleHandler {}

/// Whether somebody waits for samples. The handler for nobody looks after nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiters {
    None,
    Some,
}

/// Who makes the handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Maker {
    /// Made for what is active.
    Synthesized,
    /// The same for all, in assembly.
    Assembler,
    /// The same for all, in Rust.
    Compiled,
}

/// A handler for `activity`.
///
/// # Errors
/// No room for code; nothing has changed then.
pub fn synthesize(
    words: &SoundWords,
    clock: &SampleClock,
    end: &Fragment,
    activity: Activity,
    waiters: Waiters,
    maker: Maker,
    makers: Makers,
) -> Result<Code<SampleHandler>, PublishError> {
    let mut draft = Draft::new();
    let name = match maker {
        Maker::Synthesized => collapse(&mut draft, words, (waiters == Waiters::Some).then_some(clock.chain), activity),
        Maker::Assembler | Maker::Compiled => {
            let (chain_at, chain) = order(clock.chain);
            SoundAssembly { words: address(words), chain_at, chain }.append_to(&mut draft);
            "sound.assembler"
        }
    };
    end.append_to(&mut draft);
    makers.store.publish(name, codestore::Maker::new("switch"), draft)
}

fn order((chain_at, chain): (u64, u32)) -> (Abs32, Imm32) {
    (Abs32(chain_at), Imm32(chain))
}

fn address<T>(word: &T) -> Abs32 {
    Abs32(core::ptr::from_ref(word) as u64)
}

/// One routine without a loop; returns its name.
fn collapse(draft: &mut Draft, words: &SoundWords, chain: Option<(u64, u32)>, activity: Activity) -> &'static str {
    let device = address(&words.device);
    if activity.is_silent() {
        SoundDevice { device }.append_to(draft);
        return "sound.null";
    }
    SoundSave {}.append_to(draft);
    SoundDevice { device }.append_to(draft);
    for channel in Channel::ALL {
        if let Some(format) = activity.format(channel) {
            let words_of = &words.channels[channel as usize];
            append(draft, words, words_of, format);
            if let Some((chain_at, chain)) = chain.map(order) {
                let (wake_at, chained) = (address(&words_of.wake_at), address(&words_of.chained));
                ChainSignal { wake_at, chained, chain_at, chain }.append_to(draft);
            }
        }
    }
    SoundRestore {}.append_to(draft);
    name(activity)
}

fn append(draft: &mut Draft, words: &SoundWords, channel: &ChannelWords, format: Format) {
    let (device, head, tail) = (address(&words.device), address(&channel.head), address(&channel.tail));
    let ring = Abs32(channel.ring_at.load(Ordering::Relaxed));
    let table = Abs32(channel.table_at.load(Ordering::Relaxed));
    match format {
        Format::Stereo => CdIn { device, head, ring }.append_to(draft),
        Format::Linear => AdIn { device, head, ring }.append_to(draft),
        Format::MuLaw => AdInMuLaw { device, head, ring, table }.append_to(draft),
        Format::StereoOut => {
            DaOut { analog_out: address(&words.analog_out), head, tail, ring }.append_to(draft);
        }
    }
}

fn name(activity: Activity) -> &'static str {
    let [cd, ad, da] = Channel::ALL.map(|channel| activity.format(channel));
    match (cd.is_some(), ad, da.is_some()) {
        (true, None, false) => "sound.cd",
        (true, None, true) => "sound.cd+da",
        (true, Some(Format::MuLaw), false) => "sound.cd+ad.ulaw",
        (true, Some(_), false) => "sound.cd+ad",
        (true, Some(Format::MuLaw), true) => "sound.cd+ad.ulaw+da",
        (true, Some(_), true) => "sound.cd+ad+da",
        (false, Some(Format::MuLaw), false) => "sound.ad.ulaw",
        (false, Some(_), false) => "sound.ad",
        (false, Some(Format::MuLaw), true) => "sound.ad.ulaw+da",
        (false, Some(_), true) => "sound.ad+da",
        (false, None, _) => "sound.da",
    }
}
