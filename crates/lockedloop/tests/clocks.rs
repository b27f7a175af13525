//! A CD of 44,100 samples a second is heard through a converter of 48,000, each with a clock of its own: for hours of virtual time
//! the queue between them neither runs empty nor over, and nobody hears a click.

use std::collections::VecDeque;

use lockedloop::{Frequency, State, Steering};
use means::Random;

const CD_BLOCK: usize = 588;
const CONVERTER_BLOCK: usize = 512;
const WANTED: u64 = 2048;
const QUEUE_SAMPLES: usize = 4096;
/// The CD plays a sine with this many samples in a turn.
const TURN: usize = 44;
const AMPLITUDE: f64 = 30_000.0;

/// A clock that is up to 200 millionths off, and wanders in the course of some minutes.
struct Quartz {
    hertz: f64,
    off: f64,
    period_s: f64,
    now_s: f64,
}

impl Quartz {
    fn new(hertz: f64, off: f64, random: &mut Random) -> Quartz {
        Quartz { hertz, off, period_s: 300.0 + random.below(900) as f64, now_s: 0.0 }
    }

    fn advance(&mut self, samples: usize) {
        let wander = 30e-6 * (self.now_s / self.period_s).sin();
        self.now_s += samples as f64 / (self.hertz * (1.0 + self.off + wander));
    }
}

/// Four neighbours, and the cubic through them (Lagrange), read at a place between the middle two.
struct Resampler {
    window: [f64; 4],
    place: u64,
}

const ONE: u64 = 1 << 48;

impl Resampler {
    /// The next sample; `None`: the queue is empty.
    fn next(&mut self, step: Frequency, queue: &mut VecDeque<f64>) -> Option<f64> {
        while self.place >= ONE {
            self.window.rotate_left(1);
            self.window[3] = queue.pop_front()?;
            self.place -= ONE;
        }
        let x = self.place as f64 / ONE as f64;
        self.place += step.0;
        let [a, b, c, d] = self.window;
        let (odd, even) = (x * (1.0 - x), (1.0 + x) * (2.0 - x) / 2.0);
        Some(even * (b * (1.0 - x) + c * x) - odd * (a * (2.0 - x) + d * (1.0 + x)) / 6.0)
    }
}

struct Heard {
    least: usize,
    most: usize,
    /// The largest second difference: a click is one that no sine has.
    bend: f64,
    steering: Steering,
}

fn play(seconds: f64, off: [f64; 2], seed: u64) -> Heard {
    let mut random = Random::new(seed);
    let sine: Vec<f64> =
        (0..TURN).map(|at| (AMPLITUDE * (at as f64 / TURN as f64 * std::f64::consts::TAU).sin()).round()).collect();
    let mut cd = Quartz::new(44_100.0, off[0], &mut random);
    let mut converter = Quartz::new(48_000.0, off[1], &mut random);
    let mut steering = Steering::new(Frequency::of(44_100, 48_000), WANTED, 5).unwrap();
    let (mut queue, mut resampler) = (VecDeque::new(), Resampler { window: [0.0; 4], place: 4 * ONE });
    let (mut read, mut last, mut heard) = (0, [0.0; 2], 0u64);
    let (mut least, mut most, mut bend) = (usize::MAX, 0, 0f64);
    while converter.now_s < seconds {
        while cd.now_s <= converter.now_s {
            queue.extend((read..read + CD_BLOCK).map(|at| sine[at % TURN]));
            read += CD_BLOCK;
            cd.advance(CD_BLOCK);
            most = most.max(queue.len());
        }
        converter.advance(CONVERTER_BLOCK);
        if heard == 0 && queue.len() < WANTED as usize {
            continue;
        }
        let step = steering.step(queue.len() as u64);
        for _ in 0..CONVERTER_BLOCK {
            let sample = resampler.next(step, &mut queue).expect("the queue ran empty");
            if heard > 2 {
                bend = bend.max((sample - 2.0 * last[1] + last[0]).abs());
            }
            (last, heard) = ([last[1], sample], heard + 1);
        }
        least = least.min(queue.len());
    }
    Heard { least, most, bend, steering }
}

/// A sine's second difference is at most A ω². The cubic bends at each sample of the CD, by less than a tenth of that.
fn bend_max() -> f64 {
    let turn = std::f64::consts::TAU / TURN as f64 * 44_100.0 / 48_000.0 * 1.001;
    AMPLITUDE * turn * turn * 1.1
}

#[test]
fn two_clocks_are_joined_for_hours_without_a_click() {
    let seed = Random::seed();
    println!("SYNTH_SEED={seed}");
    let heard = play(2.0 * 3600.0, [-200e-6, 200e-6], seed);
    println!("queue {}..{}, bend {:.1} of {:.1}", heard.least, heard.most, heard.bend, bend_max());
    assert!(heard.least > 256 && heard.most < QUEUE_SAMPLES, "{}..{}", heard.least, heard.most);
    assert!(heard.bend < bend_max(), "{} > {}", heard.bend, bend_max());
    assert_eq!(heard.steering.state(), State::Locked);
    let off = heard.steering.rate().beyond(Frequency::of(44_100, 48_000)).ppm();
    assert!((-480..-320).contains(&off), "the clocks are 400 millionths apart, not {off}");
}

#[test]
fn whichever_clock_is_faster_the_queue_stays_filled() {
    let seed = Random::seed();
    println!("SYNTH_SEED={seed}");
    for off in [[200e-6, -200e-6], [0.0, 0.0], [200e-6, 200e-6], [-300e-6, 300e-6]] {
        let heard = play(600.0, off, seed);
        assert!(heard.least > 0 && heard.most < QUEUE_SAMPLES, "{off:?}: {}..{}", heard.least, heard.most);
        assert!(heard.bend < bend_max(), "{off:?}: {}", heard.bend);
    }
}

/// What the bound is worth: one sample left out, or one said twice, is far above it.
#[test]
fn a_click_would_be_noticed() {
    let sine = |at: usize| AMPLITUDE * (at as f64 / TURN as f64 * std::f64::consts::TAU).sin();
    let quietest = (0..TURN)
        .map(|at| {
            let bend = |places: [usize; 3]| (sine(places[0]) - 2.0 * sine(places[1]) + sine(places[2])).abs();
            bend([at, at + 1, at + 3]).max(bend([at + 1, at + 3, at + 4]))
        })
        .fold(f64::MAX, f64::min);
    assert!(quietest > bend_max(), "{quietest} {}", bend_max());
}
