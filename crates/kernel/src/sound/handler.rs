//! Making a handler: factor the active channels' fragments, collapse them into one routine, publish.

use core::sync::atomic::Ordering;

use codestore::{Code, PublishError};
use machine::{Fragment, SampleClock};
use synth::{Abs32, Draft, Imm32};

use super::SoundWords;
use super::channel::{Activity, Channel, ChannelWords, ELEMENT_PLACES, Format};
use super::template::{
    AdIn, AdInMuLaw, AdPart, AdPartMuLaw, AdPartStereo, CdIn, ChainSignal, DaOut, ElementAt, ElementIn, LastPlace,
    MoveElement, NextInsert, PartRestore, PartSave, SoundAssembly, SoundDevice, SoundRestore, SoundSave,
};
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

/// How samples of the A/D converter enter the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inserts {
    /// Each at once.
    One,
    /// A buffered queue (S-43): eight inserts, each with a part of one element; the last puts that into the ring. Each makes
    /// the next one the handler.
    Eight,
}

impl Inserts {
    /// Those with fewer instructions. Eight save 3 or 4 an interrupt where the converter is alone, for seven of them need
    /// but one register; else 1, and the element costs 3 and 2 more for each 8 bytes.
    pub fn cheapest(activity: Activity) -> Inserts {
        match activity.format(Channel::AdIn) {
            Some(format) if activity.is_alone(Channel::AdIn) || format.bytes() < 4 => Inserts::Eight,
            _ => Inserts::One,
        }
    }
}

/// What a handler is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    pub activity: Activity,
    pub waiters: Waiters,
    pub maker: Maker,
    pub inserts: Inserts,
}

/// A handler that is made: one routine, with an entry for each insert.
pub struct Handler {
    pub code: Code<SampleHandler>,
    /// From one insert to the next; 0 if there is but one.
    step_bytes: u32,
}

impl Handler {
    /// The entry for a part of an element; the same for all if there is one insert.
    pub(super) fn entry(&self, part: u32) -> u64 {
        self.code.entry() + u64::from(part * self.step_bytes)
    }

    /// Which part `entry` is for; `None`: it is no entry of this handler.
    pub(super) fn part(&self, entry: u64) -> Option<u32> {
        (0..self.inserts()).find(|part| self.entry(*part) == entry)
    }

    pub(super) fn inserts(&self) -> u32 {
        if self.step_bytes == 0 { 1 } else { ELEMENT_PLACES }
    }
}

/// A handler as planned.
///
/// # Errors
/// No room for code; nothing has changed then.
pub fn synthesize(
    words: &SoundWords,
    clock: &SampleClock,
    end: &Fragment,
    plan: Plan,
    makers: Makers,
) -> Result<Handler, PublishError> {
    let mut draft = Draft::new();
    let mut step_bytes = 0;
    let chain = order(clock.chain);
    let name = match plan.maker {
        Maker::Synthesized => {
            let chain = (plan.waiters == Waiters::Some).then_some(chain);
            let collapse = Collapse { words, clock, end, activity: plan.activity, chain };
            match plan.inserts {
                Inserts::One => collapse.whole(&mut draft),
                Inserts::Eight => step_bytes = collapse.parts(&mut draft),
            }
            name(plan.activity)
        }
        Maker::Assembler | Maker::Compiled => {
            let (chain_at, chain) = chain;
            SoundAssembly { words: address(words), chain_at, chain }.append_to(&mut draft);
            end.append_to(&mut draft);
            "sound.assembler"
        }
    };
    let code = makers.store.publish(name, codestore::Maker::new("switch"), draft)?;
    Ok(Handler { code, step_bytes })
}

fn order((chain_at, chain): (u64, u32)) -> (Abs32, Imm32) {
    (Abs32(chain_at), Imm32(chain))
}

fn address<T>(word: &T) -> Abs32 {
    Abs32(core::ptr::from_ref(word) as u64)
}

/// Code without a loop for the active channels.
struct Collapse<'a> {
    words: &'a SoundWords,
    clock: &'a SampleClock,
    end: &'a Fragment,
    activity: Activity,
    /// If somebody waits for samples.
    chain: Option<(Abs32, Imm32)>,
}

impl Collapse<'_> {
    /// One insert, the same for each interrupt.
    fn whole(&self, draft: &mut Draft) {
        let device = address(&self.words.device);
        if self.activity.is_silent() {
            SoundDevice { device }.append_to(draft);
        } else {
            SoundSave {}.append_to(draft);
            SoundDevice { device }.append_to(draft);
            Channel::ALL.into_iter().for_each(|channel| self.channel(draft, channel));
            SoundRestore {}.append_to(draft);
        }
        self.end.append_to(draft);
    }

    /// Eight inserts, one behind the other; returns the bytes of each but the last.
    fn parts(&self, draft: &mut Draft) -> u32 {
        // An insert names its own length: it is made once without, to be measured.
        let mut measured = Draft::new();
        self.part(&mut measured, 0, 0);
        let step = measured.len() as u32;
        for part in 0..ELEMENT_PLACES {
            let is_last = part == ELEMENT_PLACES - 1;
            self.part(draft, part, if is_last { step.wrapping_mul(part).wrapping_neg() } else { step });
        }
        step
    }

    fn part(&self, draft: &mut Draft, part: u32, step: u32) {
        let is_last = part == ELEMENT_PLACES - 1;
        let needs_both = is_last || !self.activity.is_alone(Channel::AdIn);
        if needs_both {
            SoundSave {}.append_to(draft)
        } else {
            PartSave {}.append_to(draft)
        }
        SoundDevice { device: address(&self.words.device) }.append_to(draft);
        self.channel(draft, Channel::CdIn);
        self.converter(draft, part);
        self.channel(draft, Channel::DaOut);
        NextInsert { slot: address(self.clock.slot), step: Imm32(step) }.append_to(draft);
        if needs_both {
            SoundRestore {}.append_to(draft)
        } else {
            PartRestore {}.append_to(draft)
        }
        self.end.append_to(draft);
    }

    fn channel(&self, draft: &mut Draft, channel: Channel) {
        let Some(format) = self.activity.format(channel) else { return };
        let of = &self.words.channels[channel as usize];
        append(draft, self.words, of, format);
        self.chain(draft, of);
    }

    fn chain(&self, draft: &mut Draft, of: &ChannelWords) {
        let (wake_at, chained) = (address(&of.wake_at), address(&of.chained));
        if let Some((chain_at, chain)) = self.chain {
            ChainSignal { wake_at, chained, chain_at, chain }.append_to(draft);
        }
    }

    /// The A/D converter's part of an element.
    fn converter(&self, draft: &mut Draft, number: u32) {
        let Some(format) = self.activity.format(Channel::AdIn) else { return };
        let of = &self.words.channels[Channel::AdIn as usize];
        let (device, head) = (address(&self.words.device), address(&of.head));
        let (element, ring) = (address(&of.element).0, of.ring_at.load(Ordering::Relaxed));
        let part = Abs32(element + u64::from(number) * format.bytes() as u64);
        match format {
            Format::StereoIn => AdPartStereo { device, part }.append_to(draft),
            Format::MuLaw => {
                let table = Abs32(of.table_at.load(Ordering::Relaxed));
                AdPartMuLaw { device, part, table }.append_to(draft);
            }
            _ => AdPart { device, part }.append_to(draft),
        }
        if number < ELEMENT_PLACES - 1 {
            return;
        }
        ElementAt { head, bytes: Imm32(format.bytes() as u32) }.append_to(draft);
        // Eight places of so many bytes are so many words.
        for at in (0..format.bytes() as u64).map(|word| word * 8) {
            MoveElement { element: Abs32(element + at), ring: Abs32(ring + at) }.append_to(draft);
        }
        ElementIn { head }.append_to(draft);
        if self.chain.is_some() {
            LastPlace { head }.append_to(draft);
        }
        self.chain(draft, of);
    }
}

fn append(draft: &mut Draft, words: &SoundWords, channel: &ChannelWords, format: Format) {
    let (device, head, tail) = (address(&words.device), address(&channel.head), address(&channel.tail));
    let ring = Abs32(channel.ring_at.load(Ordering::Relaxed));
    let table = Abs32(channel.table_at.load(Ordering::Relaxed));
    match format {
        Format::Stereo | Format::StereoIn => CdIn { device, head, ring }.append_to(draft),
        Format::Linear => AdIn { device, head, ring }.append_to(draft),
        Format::MuLaw => AdInMuLaw { device, head, ring, table }.append_to(draft),
        Format::StereoOut => {
            DaOut { analog_out: address(&words.analog_out), head, tail, ring }.append_to(draft);
        }
    }
}

fn name(activity: Activity) -> &'static str {
    if activity.is_silent() {
        return "sound.null";
    }
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
