//! Drums, made of noise and falling tones.

use synthsignal::design::sine;

use crate::RATE;
use crate::pipe::{Sink, Source};
use crate::tone::Dice;

/// What is struck in each of the sixteen parts of a beat, and how loud, in 16ths.
const PATTERN: [(Drum, i32); 5] = [(Drum::Kick, 0), (Drum::Hat, 4), (Drum::Snare, 8), (Drum::Hat, 12), (Drum::Hat, 14)];

#[derive(Clone, Copy)]
enum Drum {
    Kick,
    Snare,
    Hat,
}

/// Reads when parts of beats begin, and writes the drums' samples up to there.
pub fn play(mut parts: Source, mut drum: Sink) {
    let mut sounds = [Drum::Kick, Drum::Snare, Drum::Hat].map(|drum| (drum as usize, sound(drum)));
    sounds.sort_by_key(|(number, _)| *number);
    let (mut part, mut at) = ([0; 2], 0usize);
    // What was struck and still sounds, from `at` on.
    let mut ahead: Vec<i32> = Vec::new();
    while parts.get(&mut part) {
        let begins = (part[0].max(0) as usize).max(at);
        let due = begins - at;
        ahead.resize(ahead.len().max(due), 0);
        if !drum.put(&ahead[..due]) {
            return;
        }
        ahead.drain(..due);
        at = begins;
        for (struck, _) in PATTERN.iter().filter(|(_, when)| *when == part[1]) {
            let sound = &sounds[*struck as usize].1;
            ahead.resize(ahead.len().max(sound.len()), 0);
            ahead.iter_mut().zip(sound).for_each(|(place, sample)| *place += sample);
        }
    }
    drum.put(&ahead);
}

fn sound(drum: Drum) -> Vec<i32> {
    let mut dice = Dice::new(drum as u32 + 1);
    let frames = match drum {
        Drum::Kick => RATE / 5,
        Drum::Snare => RATE / 8,
        Drum::Hat => RATE / 25,
    };
    let (mut turns, mut last) = (0.0, 0);
    let at = |frame: usize| {
        let left = 1.0 - frame as f64 / frames as f64;
        let level = left * left;
        let noise = dice.below(16_000) as i32 - 8_000;
        // Hats have high tones alone.
        let high = noise - last;
        last = noise;
        turns += (45.0 + 120.0 * level * level) / RATE as f64;
        let tone = sine(turns) * 14_000.0;
        let mixed = match drum {
            Drum::Kick => tone,
            Drum::Snare => tone * 0.3 + f64::from(noise),
            Drum::Hat => f64::from(high) * 0.5,
        };
        (mixed * level) as i32
    };
    (0..frames).map(at).collect()
}
