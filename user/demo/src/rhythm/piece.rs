//! Three pieces to be tracked, made by rule. Each has its tempo, what plays on the beat, and what plays against it.

use crate::RATE;
use crate::tone::{Dice, Note, Wave};

#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub name: &'static str,
    pub beats_a_minute: f64,
    /// In each eighth of a bar of four beats: how loud a low and a high note are, 0 to 9.
    low: [i32; 8],
    high: [i32; 8],
    /// How far a note may be from its time, in frames.
    loose: u32,
}

pub const ALL: [Piece; 3] = [
    Piece {
        name: "march",
        beats_a_minute: 120.0,
        low: [9, 0, 7, 0, 9, 0, 7, 0],
        high: [0, 5, 0, 5, 0, 5, 0, 5],
        loose: 200,
    },
    Piece {
        name: "syncopated",
        beats_a_minute: 93.7,
        low: [9, 0, 8, 4, 9, 0, 8, 0],
        high: [3, 5, 3, 0, 3, 6, 3, 5],
        loose: 500,
    },
    Piece {
        name: "fast",
        beats_a_minute: 156.0,
        low: [9, 0, 9, 0, 9, 0, 9, 0],
        high: [4, 2, 0, 2, 4, 2, 0, 3],
        loose: 300,
    },
];

impl Piece {
    pub fn play(&self, frames: usize) -> Vec<i16> {
        let waves = [Wave::new(&[0.9, 0.1]), Wave::new(&[0.4, 0.2, 0.2, 0.2])];
        let (mut dice, mut sum) = (Dice::new(7), vec![0i32; frames]);
        let eighth = 30.0 * RATE as f64 / self.beats_a_minute;
        for number in 0.. {
            let at = (number as f64 * eighth) as usize;
            if at >= frames {
                break;
            }
            for (wave, (loud, pitch)) in waves.iter().zip([(self.low[number % 8], 33), (self.high[number % 8], 69)]) {
                let begins = at + dice.below(self.loose) as usize;
                let pitch = pitch + [0, 3, 7, 5][number / 8 % 4];
                let length = eighth as usize * 9 / 10;
                let mut note = Note::new(wave, pitch, loud << 19, length as u32 / 4);
                let places = sum.iter_mut().skip(begins).take(length).enumerate();
                places.for_each(|(frame, place)| *place += note.step(length - 1 - frame) >> 8);
            }
        }
        // A little noise, as every recording has.
        sum.iter().map(|sample| (sample + dice.below(200) as i32 - 100).clamp(-32_768, 32_767) as i16).collect()
    }
}
