//! A loop beside an input that is not what was expected: what tests and plots are made of.

use lockedloop::{Adjust, Frequency, Gains, Loop, Measure, Ratio, Settings, State, by_frequency, by_interval};
use means::Random;

/// Ticks are nanoseconds.
pub const SECOND: f64 = 1e9;
/// What the loop expects of its input.
pub const HERTZ: f64 = 100.0;

/// What comes in, by the number of the event.
pub struct Input<'a> {
    /// Its frequency, as a multiple of the expected one.
    pub speed: &'a dyn Fn(usize) -> f64,
    /// Each event is off by up to this part of an interval, either way.
    pub jitter: f64,
    /// One event in so many is missing; 0: none.
    pub missing: u64,
    /// Behind one event in so many comes one that is none; 0: never.
    pub spurious: u64,
}

impl Input<'_> {
    pub fn steady(speed: &dyn Fn(usize) -> f64) -> Input<'_> {
        Input { speed, jitter: 0.0, missing: 0, spurious: 0 }
    }
}

/// One event of the input, and where the loop stood.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The loop's frequency as a multiple of what the input truly has.
    pub speed: f64,
    /// The nearest event of the loop's own, less the true one, in cycles of the input.
    pub phase: f64,
    pub state: State,
    /// Events made since the one before.
    pub made: u32,
}

#[derive(Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    pub measure: fn() -> Measure,
    pub adjust: Adjust,
    /// Events for each measurement.
    pub events: usize,
}

/// The window of those that measure a frequency: five events.
fn window() -> Measure {
    by_frequency((4.5 * SECOND / HERTZ) as u64)
}

pub const KINDS: [Kind; 4] = [
    Kind { name: "measures frequency, adjusts frequency", measure: window, adjust: Adjust::Frequency, events: 5 },
    Kind { name: "measures frequency, adjusts interval", measure: window, adjust: Adjust::Interval, events: 5 },
    Kind { name: "measures interval, adjusts frequency", measure: by_interval, adjust: Adjust::Frequency, events: 1 },
    Kind { name: "measures interval, adjusts interval", measure: by_interval, adjust: Adjust::Interval, events: 1 },
];

pub fn expected() -> Frequency {
    Frequency::of(HERTZ as u64, SECOND as u64)
}

/// Runs a loop with `outputs` events for each that comes in.
pub fn run(kind: Kind, gains: Gains, outputs: u32, events: usize, input: &Input, seed: u64) -> Vec<Point> {
    let mut random = Random::new(seed);
    let mut own = Loop::new((kind.measure)(), kind.adjust, Settings::new(expected(), Ratio::of(outputs, 1), gains));
    let (mut points, mut truth, mut last_made, mut count) = (Vec::new(), SECOND, 0, 0u64);
    for event in 0..events {
        let interval = SECOND / (HERTZ * (input.speed)(event));
        truth += interval;
        let heard = truth + interval * input.jitter * (random.below(2001) as f64 / 1000.0 - 1.0);
        let mut made = 0;
        while let Some(at) = own.output_until(heard as u64) {
            (made, count) = (made + 1, count + 1);
            // With a ratio the loop's first event falls on one of the input, and so does each sixteenth from there.
            last_made = at;
        }
        if input.missing == 0 || event == 0 || !random.once_in(input.missing) {
            own.input(heard as u64);
        }
        if input.spurious != 0 && random.once_in(input.spurious) {
            own.input((heard + interval * 0.3) as u64);
        }
        let step = SECOND / (HERTZ * (input.speed)(event) * f64::from(outputs));
        let off = (truth - last_made as f64) / step;
        points.push(Point {
            speed: own.frequency().0 as f64 / expected().0 as f64 / f64::from(outputs) / (input.speed)(event),
            phase: (off.round() - off) / f64::from(outputs),
            state: own.state(),
            made,
        });
    }
    points
}
