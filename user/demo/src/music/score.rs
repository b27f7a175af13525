//! What is played: a piece for four voices, and one for as many notes as one likes, each with a thread of its own. Both are made by rule,
//! and belong to everybody.

use crate::RATE;
use crate::options::BLOCK_MAX;
use crate::tone::Dice;

/// One note of a part.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub frames: usize,
    pub pitch: i32,
    pub loud: i32,
    pub half_life: u32,
}

/// What one thread plays: from a frame on, one note after the other.
#[derive(Clone, Debug)]
pub struct Part {
    pub start: usize,
    pub events: Vec<Event>,
    /// Which of the waves.
    pub wave: usize,
}

impl Part {
    pub fn frames(&self) -> usize {
        self.events.iter().map(|event| event.frames).sum()
    }
}

/// The loudest that all together may be.
const LOUD: i32 = 1 << 22;
/// An eighth at 100 quarters a minute.
const EIGHTH: usize = RATE * 3 / 10 / BLOCK_MAX * BLOCK_MAX;

/// Chords of two bars each: i – VI – III – VII in A minor, the roots first.
const CHORDS: [[i32; 3]; 4] = [[45, 60, 64], [41, 57, 60], [48, 55, 64], [43, 59, 62]];

/// Four voices: bass, broken chords, held notes, and a melody.
pub fn four_voices(frames: usize) -> Vec<Part> {
    let mut dice = Dice::new(1989);
    (0..4).map(|voice| Part { start: 0, events: voice_of(voice, frames, &mut dice), wave: voice }).collect()
}

fn voice_of(voice: usize, frames: usize, dice: &mut Dice) -> Vec<Event> {
    let (mut events, mut at, mut eighth) = (Vec::new(), 0, 0usize);
    while at < frames {
        let chord = CHORDS[eighth / 8 % CHORDS.len()];
        let (eighths, pitch) = match voice {
            0 => (2, chord[0] - if eighth % 8 == 6 { 5 } else { 0 }),
            1 => (1, chord[eighth % 3].max(52) + 12 * (eighth / 3 % 2) as i32),
            2 => (4, chord[1 + eighth / 4 % 2]),
            _ => (
                1 + dice.below(3) as usize,
                chord[dice.below(3) as usize].max(57) + 12 + [0, 2, 3][dice.below(3) as usize],
            ),
        };
        let length = (eighths * EIGHTH).min(frames - at);
        let half_life = (eighths * EIGHTH) as u32 / 2;
        events.push(Event { frames: length, pitch, loud: LOUD / 4, half_life });
        (at, eighth) = (at + length, eighth + eighths);
    }
    events
}

/// A cloud of notes: they begin one after the other in the first half, sound as long as that, and are all there in the middle.
pub fn cloud(notes: usize, frames: usize) -> Vec<Part> {
    const SCALE: [i32; 5] = [0, 3, 5, 7, 10];
    let mut dice = Dice::new(1992);
    let half = (frames / 2 / BLOCK_MAX).max(1) * BLOCK_MAX;
    let of_note = |note: usize| {
        let pitch = 45 + SCALE[dice.below(5) as usize] + 12 * dice.below(4) as i32;
        let event = Event { frames: half, pitch, loud: LOUD / notes as i32, half_life: half as u32 / 2 };
        // The last begins before the first ends.
        let start = half * note / notes / BLOCK_MAX * BLOCK_MAX;
        Part { start, events: vec![event], wave: note % 4 }
    };
    (0..notes).map(of_note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_notes_of_a_cloud_sound_at_once_and_end_in_time() {
        for (notes, frames) in [(1, 64 * 2), (7, 64 * 100), (1000, 64 * 2000)] {
            let parts = cloud(notes, frames);
            let middle = parts.iter().map(|part| part.start).max().unwrap();
            let sound = parts.iter().filter(|part| part.start <= middle && middle < part.start + part.frames());
            assert_eq!(sound.count(), notes);
            assert!(parts.iter().all(|part| part.start % BLOCK_MAX == 0 && part.start + part.frames() <= frames));
        }
    }

    #[test]
    fn four_voices_play_all_the_time() {
        for part in four_voices(64 * 5000) {
            assert_eq!((part.start, part.frames()), (0, 64 * 5000));
        }
    }
}
