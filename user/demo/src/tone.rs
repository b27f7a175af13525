//! Notes: a wave, its pitch and how it dies away. All in integers, so that a note is the same everywhere.

use synthsignal::design::sine;

use crate::RATE;

const WAVE_BITS: u32 = 11;

const POINTS: usize = 1 << WAVE_BITS;

/// One turn of a wave, with its overtones, and its first point again.
pub struct Wave(Box<[i32; POINTS + 1]>);

impl Wave {
    /// `overtones`: how loud each multiple of the pitch is; together they are at most one.
    pub fn new(overtones: &[f64]) -> Wave {
        let at = |point: usize| {
            let turns = point as f64 / POINTS as f64;
            overtones.iter().enumerate().map(|(number, part)| part * sine(turns * (number + 1) as f64)).sum::<f64>()
        };
        Wave(Box::new(std::array::from_fn(|point| (at(point) * 32_767.0) as i32)))
    }

    /// The wave at a phase, in 2⁻³² turns.
    fn at(&self, phase: u32) -> i32 {
        let point = (phase >> (32 - WAVE_BITS)) as usize;
        let between = (phase >> (32 - WAVE_BITS - 15) & 0x7FFF) as i32;
        let (here, next) = (self.0[point], self.0[point + 1]);
        here + (((next - here) * between) >> 15)
    }
}

/// How much of a turn a pitch makes in one frame; 69 is 440 Hz, each number a semitone.
fn step_of(pitch: i32) -> u32 {
    const SEMITONE: f64 = 1.059_463_094_359_295_3;
    let mut hertz = 440.0;
    for _ in 69..pitch {
        hertz *= SEMITONE;
    }
    for _ in pitch..69 {
        hertz /= SEMITONE;
    }
    (hertz / RATE as f64 * 4_294_967_296.0) as u32
}

/// A note that sounds.
pub struct Note<'a> {
    wave: &'a Wave,
    phase: u32,
    step: u32,
    /// How loud it is, in 2⁻⁸: falls by a part of itself with each frame.
    level: i64,
    fades: i64,
    /// How loud it becomes, by so much with each frame, so that it does not begin with a click.
    reaches: i64,
    rises: i64,
}

/// Frames in which a note becomes as loud as it will be, and in which its end fades.
const ATTACK: i64 = 128;

impl<'a> Note<'a> {
    /// `loud`: at most 2²³; `half_life`: frames after which it is half as loud.
    pub fn new(wave: &'a Wave, pitch: i32, loud: i32, half_life: u32) -> Note<'a> {
        let reaches = i64::from(loud) << 8;
        let fades = (std::f64::consts::LN_2 / f64::from(half_life.max(1)) * f64::from(1 << 24)) as i64;
        Note { wave, phase: 0, step: step_of(pitch), level: 0, fades, reaches, rises: reaches / ATTACK }
    }

    /// The next frame; `left`: how many follow before the note is over.
    pub fn step(&mut self, left: usize) -> i32 {
        if self.rises > 0 {
            self.level += self.rises;
            if self.level >= self.reaches {
                self.rises = 0;
            }
        } else {
            self.level -= (self.level * self.fades) >> 24;
        }
        let mut level = self.level >> 8;
        if (left as i64) < ATTACK {
            level = level * left as i64 / ATTACK;
        }
        self.phase = self.phase.wrapping_add(self.step);
        ((i64::from(self.wave.at(self.phase)) * level) >> 15) as i32
    }
}

/// Numbers that look random and are the same everywhere.
pub struct Dice(u32);

impl Dice {
    pub fn new(seed: u32) -> Dice {
        Dice(seed)
    }

    pub fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((u64::from(self.0) * u64::from(limit)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pitch_is_its_frequency() {
        for (pitch, hertz) in [(69, 440.0), (57, 220.0), (60, 261.6256), (81, 880.0)] {
            let found = f64::from(step_of(pitch)) * RATE as f64 / 4_294_967_296.0;
            assert!((found / hertz - 1.0).abs() < 1e-6, "{pitch}: {found}");
        }
    }

    #[test]
    fn a_note_begins_and_ends_without_a_click() {
        let wave = Wave::new(&[0.6, 0.3, 0.1]);
        let mut note = Note::new(&wave, 60, 1 << 23, 8000);
        let frames: Vec<i32> = (0..20_000).map(|frame| note.step(19_999 - frame)).collect();
        let steepest = frames.windows(2).map(|pair| (pair[1] - pair[0]).abs()).max().unwrap();
        assert!(frames[0].abs() < 1 << 18 && frames[19_999] == 0 && steepest < 1 << 20, "{steepest}");
        assert!(frames.iter().any(|frame| frame.abs() > 1 << 22));
    }
}
