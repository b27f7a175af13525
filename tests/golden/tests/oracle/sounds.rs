//! Handlers of samples, synthesized and in assembly, against `Sound::interrupt`, while channels go on and off.

use std::sync::atomic::Ordering::Relaxed;

use golden::bench;
use kernel::sound::{Channel, Format, Inserts, Maker, Sound};
use machine::Samples;

use crate::race::Race;

pub struct Sounds {
    /// Served by machine code, and by its Rust twin.
    code: Sound,
    twin: Sound,
}

const FORMATS: [&[Format]; 3] =
    [&[Format::Stereo], &[Format::Linear, Format::MuLaw, Format::StereoIn], &[Format::StereoOut]];

impl Sounds {
    pub fn new() -> Sounds {
        let sound = |makers| Sound::new(bench(), makers).expect("the bench has a sample clock");
        let (twin, code) = (sound(None), sound(Some(bench().makers())));
        code.choose(Maker::Synthesized).expect("room for code");
        Sounds { code, twin }
    }

    pub fn step(&mut self, race: &mut Race) {
        match race.random.below(10) {
            0 => self.switch(race),
            1 => {
                let maker = [Maker::Synthesized, Maker::Assembler][race.random.below(2) as usize];
                self.code.choose(maker).expect("room for code");
            }
            2 => {
                let bytes: Vec<u8> = (0..race.random.below(200)).map(|_| race.random.bits() as u8).collect();
                self.both(race, "add", |sound| sound.words.channels[2].add(&bytes));
            }
            3 => self.take(race),
            4 => self.wait(race),
            5 => {
                let inserts = race.random.pick(&[Some(Inserts::One), Some(Inserts::Eight), None]);
                self.code.choose_inserts(inserts).expect("room for code");
            }
            _ => {
                for _ in 0..race.random.below(40) {
                    assert!(golden::raise_sample(), "{}: a handler has lost a register", race.place());
                    self.twin.interrupt();
                }
            }
        }
        self.compare(race);
    }

    fn both<R: PartialEq + std::fmt::Debug>(&self, race: &Race, what: &str, act: impl Fn(&Sound) -> R) {
        let code = act(&self.code);
        // The twin binds its own handler, which is none, in the bench's only slot.
        let slot = bench().sample_clock().expect("the bench has one").slot;
        let bound = slot.entry();
        assert_eq!(code, act(&self.twin), "{}: {what}", race.place());
        slot.store(bound);
    }

    fn switch(&self, race: &mut Race) {
        let channel = Channel::ALL[race.random.below(3) as usize];
        let formats = FORMATS[channel as usize];
        let format = formats[race.random.below(formats.len() as u64) as usize];
        let format = (race.random.below(3) > 0).then_some(format);
        self.both(race, "switch", |sound| sound.switch(channel, format));
    }

    fn take(&self, race: &mut Race) {
        let channel = [Channel::CdIn, Channel::AdIn][race.random.below(2) as usize];
        let Some(format) = self.code.activity().format(channel) else { return };
        let bytes = race.random.below(300) as usize;
        self.both(race, "take", |sound| {
            let mut into = vec![0; bytes];
            let count = sound.words.channels[channel as usize].take(format, &mut into);
            (count, into)
        });
    }

    /// Somebody waits for a place, near or far.
    fn wait(&self, race: &mut Race) {
        let channel = Channel::ALL[race.random.below(3) as usize];
        let Some(format) = self.code.activity().format(channel) else { return };
        let places = 1 + race.random.below(60) as u32;
        self.both(race, "signal_after", |sound| sound.signal_after(channel, format, places));
    }

    fn compare(&self, race: &Race) {
        let activity = self.code.activity();
        self.both(race, "the device's words", |sound| {
            let words = &sound.words;
            let counts = Channel::ALL.map(|channel| {
                let words = &words.channels[channel as usize];
                (activity.format(channel).map(|format| words.used(format)), words.tail.load(Relaxed))
            });
            let chained = words.channels.each_ref().map(|channel| channel.take_signal());
            (words.device.load(Relaxed), words.analog_out.load(Relaxed), counts, chained)
        });
    }
}
