//! Making a handler: factor the active channels' fragments, collapse them into one routine, publish.

use core::sync::atomic::{AtomicU32, Ordering};

use codestore::Code;
use machine::{Entry, Fragment, Keeps, KernelValue, SampleClock, SampleEntry, SampleProcedure};
use quaject::{Contract, quaject};
use synth::{Abs32, Draft, Imm32, Paste};

use super::channel::{Activity, Channel, ChannelWords, ELEMENT_PLACES, Format};
use super::template::{
    AdIn, AdInMuLaw, AdPart, AdPartMuLaw, AdPartStereo, CdIn, ChainSignal, DaOut, ElementAt, ElementIn, LastPlace,
    MoveElement, NextInsert, PartRestore, PartSave, SoundAssembly, SoundDevice, SoundRestore, SoundSave,
};
use crate::call::Makers;
use crate::interrupt::{Chain, HandlerRoutine};

/// Register contract of interrupt handlers: entered by the interrupt through the slot, interrupts off, every register
/// kept, left through the machine's end.
pub enum SampleHandler {}

impl Keeps<SampleEntry> for SampleHandler {}

/// With the machine's end of procedures.
impl Keeps<SampleProcedure> for SampleHandler {}

impl Contract for SampleHandler {
    const NAME: &'static str = "sample handler";
    const PEEPHOLES: bool = false;
    type Routine = HandlerRoutine;
}

quaject! {
    /// The Sound-IO device server: what all handlers work on, at addresses that the code has folded in.
    #[derive(Default)]
    pub quaject SoundWords ("sound", made by "switch", at most 0 inactive)
    facts(super::template::FACTS)
    pastes(SoundSave, SoundDevice, CdIn, AdIn, AdInMuLaw, PartSave, AdPart, AdPartStereo, AdPartMuLaw, ElementAt, MoveElement, ElementIn, LastPlace, NextInsert, PartRestore, DaOut, ChainSignal, SoundRestore, SoundAssembly)
    data {
        /// The simulated device: interrupts so far.
        pub device: AtomicU32,
        /// The last sample for the loudspeaker.
        pub analog_out: AtomicU32,
        /// By [`Channel`].
        pub channels: [ChannelWords; 3],
    }
    factors(sound) {
        let words = address(sound);
        let device = address(&sound.device);
    }
    callouts SoundCallouts<'a> {
        /// What is active.
        active: Active<'a>,
        /// How a handler chains, and the machine's end of an interrupt.
        chain: Chain,
        end: &'a Fragment,
    }
    callbacks {}
    callentries SoundCode {
        /// Code without a loop for the active channels, one insert for all interrupts: made anew for each activity.
        whole: SampleHandler(0)
            named "sound.null" | "sound.cd" | "sound.ad.one" | "sound.cd+ad.one" | "sound.ad.ulaw.one" | "sound.cd+ad.ulaw.one" | "sound.da"
                | "sound.cd+da" | "sound.ad+da.one" | "sound.cd+ad+da.one" | "sound.ad.ulaw+da.one" | "sound.cd+ad.ulaw+da.one"
            needs(active, end) uses()
        {
            paste (active.save());
            paste SoundDevice { device };
            paste (active.channel(Channel::CdIn));
            paste (active.channel(Channel::AdIn));
            paste (active.channel(Channel::DaOut));
            paste (active.restore());
            paste (*end);
        }
        /// As `whole`, with eight inserts (S-43).
        inserts: SampleHandler(0)
            named "sound.ad" | "sound.cd+ad" | "sound.ad.ulaw" | "sound.cd+ad.ulaw"
                | "sound.ad+da" | "sound.cd+ad+da" | "sound.ad.ulaw+da" | "sound.cd+ad.ulaw+da"
            needs(active) uses()
        {
            paste (active);
        }
        /// The generic one: the same for all activities.
        assembler: SampleHandler(0) named "sound.assembler" needs(chain, end) uses() {
            paste SoundAssembly { words, chain_at: chain.at, chain: chain.order };
            paste (*end);
        }
    }
}

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
    pub(super) fn entry(&self, part: u32) -> Entry<SampleHandler> {
        self.code.step(part * self.step_bytes).expect("a handler has a step for each part of an element")
    }

    /// Which part `entry` is for; `None`: it is no entry of this handler.
    pub(super) fn part(&self, entry: u64) -> Option<u32> {
        (0..self.inserts()).find(|part| self.entry(*part).address() == entry)
    }

    pub(super) fn inserts(&self) -> u32 {
        if self.step_bytes == 0 { 1 } else { ELEMENT_PLACES }
    }
}

/// A handler as planned. `None`: no room for code; nothing has changed then.
pub fn synthesize(
    words: &SoundWords,
    clock: &SampleClock,
    end: &Fragment,
    plan: Plan,
    makers: Makers,
) -> Option<Handler> {
    let Plan { activity, waiters, .. } = plan;
    let chain = Chain::from(clock);
    let signals = (waiters == Waiters::Some).then_some(chain);
    let active = Active { words, clock, end, activity, signals, step_bytes: KernelValue::new(0) };
    let callouts = SoundCallouts { active: Some(active), chain: Some(chain), end: Some(end) };
    let factored = match (plan.maker, plan.inserts) {
        (Maker::Synthesized, Inserts::One) => SoundCode::whole(words, makers, &callouts).variant(whole_of(activity)),
        (Maker::Synthesized, Inserts::Eight) => {
            SoundCode::inserts(words, makers, &callouts).variant(inserts_of(activity))
        }
        (Maker::Assembler | Maker::Compiled, _) => SoundCode::assembler(words, makers, &callouts),
    };
    let code = factored.create(makers)?;
    Some(Handler { code, step_bytes: callouts.active?.step_bytes.get() })
}

/// Which of the declared names a handler for `activity` has, with one insert.
fn whole_of(activity: Activity) -> usize {
    let [cd, ad, da] = Channel::ALL.map(|channel| activity.format(channel));
    let ad = match ad {
        None => 0,
        Some(Format::MuLaw) => 4,
        Some(_) => 2,
    };
    usize::from(cd.is_some()) + ad + 6 * usize::from(da.is_some())
}

/// As `whole_of`, with eight, which the A/D converter's samples are for.
fn inserts_of(activity: Activity) -> usize {
    let [cd, ad, da] = Channel::ALL.map(|channel| activity.format(channel));
    usize::from(cd.is_some()) + 2 * usize::from(ad == Some(Format::MuLaw)) + 4 * usize::from(da.is_some())
}

fn address<T>(word: &T) -> Abs32 {
    Abs32(core::ptr::from_ref(word) as u64)
}

/// The active channels as fragments.
struct Active<'a> {
    words: &'a SoundWords,
    clock: &'a SampleClock,
    end: &'a Fragment,
    activity: Activity,
    /// If somebody waits for samples.
    signals: Option<Chain>,
    /// From one of eight inserts to the next.
    step_bytes: KernelValue<u32>,
}

/// Eight inserts, one behind the other.
impl Paste for &Active<'_> {
    fn paste(self, draft: &mut Draft) {
        // An insert names its own length: it is made once without, to be measured.
        let mut measured = Draft::new();
        self.part(&mut measured, 0, 0);
        let step = measured.len() as u32;
        for part in 0..ELEMENT_PLACES {
            let is_last = part == ELEMENT_PLACES - 1;
            self.part(draft, part, if is_last { step.wrapping_mul(part).wrapping_neg() } else { step });
        }
        self.step_bytes.set(step);
    }
}

/// One channel, if it is active.
struct Served<'a>(&'a Active<'a>, Channel);

impl Paste for Served<'_> {
    fn paste(self, draft: &mut Draft) {
        let Served(active, channel) = self;
        let Some(format) = active.activity.format(channel) else { return };
        let of = &active.words.channels[channel as usize];
        append(draft, active.words, of, format);
        active.signal(draft, of);
    }
}

impl Active<'_> {
    fn save(&self) -> Option<SoundSave> {
        (!self.activity.is_silent()).then_some(SoundSave {})
    }

    fn restore(&self) -> Option<SoundRestore> {
        (!self.activity.is_silent()).then_some(SoundRestore {})
    }

    fn channel(&self, channel: Channel) -> Served<'_> {
        Served(self, channel)
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
        self.channel(Channel::CdIn).paste(draft);
        self.converter(draft, part);
        self.channel(Channel::DaOut).paste(draft);
        NextInsert { slot: address(self.clock.slot), step: Imm32(step) }.append_to(draft);
        if needs_both {
            SoundRestore {}.append_to(draft)
        } else {
            PartRestore {}.append_to(draft)
        }
        self.end.append_to(draft);
    }

    fn signal(&self, draft: &mut Draft, of: &ChannelWords) {
        let (wake_at, chained) = (address(&of.wake_at), address(&of.chained));
        if let Some(chain) = self.signals {
            ChainSignal { wake_at, chained, chain_at: chain.at, chain: chain.order }.append_to(draft);
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
        if self.signals.is_some() {
            LastPlace { head }.append_to(draft);
        }
        self.signal(draft, of);
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
