//! A room: reverberation after M. R. Schroeder (*Natural sounding artificial reverberation*, 1962).

use alloc::vec;
use alloc::vec::Vec;

/// A room, by the delays of its walls in samples.
#[derive(Clone, Debug)]
pub struct Room {
    /// Echoes that come again and again, side by side.
    pub combs: Vec<usize>,
    /// Delays that only scatter, one behind the other.
    pub scatter: Vec<usize>,
    /// How much of an echo comes back, in 32,768ths.
    pub feedback: i32,
    /// How much of the high tones a wall takes, in 32,768ths.
    pub damping: i32,
}

impl Room {
    /// A hall at so many samples a second; `wider`: its walls are so many samples further away, for the other ear.
    pub fn hall(rate: usize, wider: usize) -> Room {
        let samples = |tenths_of_ms: usize| tenths_of_ms * rate / 10_000 + wider;
        Room {
            combs: [297, 371, 411, 437].map(samples).into(),
            scatter: [50, 17].map(samples).into(),
            feedback: 27_000,
            damping: 9_000,
        }
    }
}

/// A ring of the last samples.
#[derive(Clone, Debug)]
struct Delay {
    ring: Vec<i32>,
    at: usize,
}

impl Delay {
    fn new(samples: usize) -> Delay {
        Delay { ring: vec![0; samples.max(1)], at: 0 }
    }

    /// The oldest sample, in whose place another is put.
    fn oldest(&self) -> i32 {
        self.ring[self.at]
    }

    fn put(&mut self, sample: i32) {
        self.ring[self.at] = sample;
        self.at += 1;
        if self.at == self.ring.len() {
            self.at = 0;
        }
    }
}

#[derive(Clone, Debug)]
struct Comb {
    delay: Delay,
    damped: i32,
}

/// The sound of a room, for one ear. Exactly the same on every machine.
#[derive(Clone, Debug)]
pub struct Reverb {
    combs: Vec<Comb>,
    scatter: Vec<Delay>,
    feedback: i32,
    damping: i32,
}

/// `sample` × `part` / 32,768.
fn part_of(sample: i32, part: i32) -> i32 {
    ((i64::from(sample) * i64::from(part)) >> 15) as i32
}

impl Reverb {
    pub fn new(room: &Room) -> Reverb {
        Reverb {
            combs: room.combs.iter().map(|samples| Comb { delay: Delay::new(*samples), damped: 0 }).collect(),
            scatter: room.scatter.iter().map(|samples| Delay::new(*samples)).collect(),
            feedback: room.feedback.clamp(0, 32_000),
            damping: room.damping.clamp(0, 32_767),
        }
    }

    /// What comes back when `sample` sounds; samples stay below 2²⁴.
    pub fn step(&mut self, sample: i32) -> i32 {
        let mut sum = 0i32;
        for comb in &mut self.combs {
            let echo = comb.delay.oldest();
            comb.damped = echo + part_of(comb.damped - echo, self.damping);
            comb.delay.put(sample + part_of(comb.damped, self.feedback));
            sum += echo;
        }
        let mut out = sum / (self.combs.len().max(1) as i32);
        for delay in &mut self.scatter {
            let late = delay.oldest();
            let fed = out + late / 2;
            delay.put(fed);
            out = late - fed / 2;
        }
        out
    }
}
