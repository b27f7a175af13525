//! The loop between two devices that are joined by a queue and drift against each other.

use crate::filter::{Gains, Unstable};
use crate::units::{Frequency, Part};
use crate::watch::{State, Watch};

/// Steers the rate at which a queue is emptied (or a resampler's ratio) so that the queue stays as full as it should be.
///
/// The queue's fill is the residue of a loop that measures and adjusts frequency: what has come in less what has gone out. Nobody
/// reads a clock.
///
/// ```
/// use lockedloop::{Frequency, Steering};
///
/// // 44,100 samples a second come in, 75 times a second somebody looks at the queue.
/// let mut steering = Steering::new(Frequency::of(44_100, 48_000), 512, 5).unwrap();
/// let faster = steering.step(600);     // the queue is too full: take more for each sample that goes out
/// assert!(faster > Frequency::of(44_100, 48_000));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Steering {
    base: Frequency,
    bounds: [Frequency; 2],
    wanted: u64,
    gains: Gains,
    watch: Watch,
}

/// The rate is kept within 1/64 of what it should be by design: no two clocks are worse, and more would be heard as another pitch.
const REACH: Part = Part(Part::WHOLE.0 / 64);
/// An error of the whole fill changes the rate for the moment by the proportional gain, but at most by 1/32 of that.
const CALM: u32 = 5;

impl Steering {
    /// `nominal`: taken out for each tick, if both clocks were right; `wanted`: the fill to keep; the gain is 2⁻ˢʰⁱᶠᵗ.
    ///
    /// # Errors
    /// The gain is too small.
    pub fn new(nominal: Frequency, wanted: u64, shift: u32) -> Result<Steering, Unstable> {
        Ok(Steering {
            base: nominal,
            bounds: [nominal.changed(Part(-REACH.0)), nominal.changed(REACH)],
            wanted: wanted.max(1),
            gains: Gains::second_order_of(shift, 2 * shift + 2 + CALM)?,
            watch: Watch::new(Part(Part::WHOLE.0 / 4), 8, 4),
        })
    }

    /// Looks at the fill of the queue; the rate until the next look.
    pub fn step(&mut self, fill: u64) -> Frequency {
        let error = Part::of(i128::from(fill) - i128::from(self.wanted), self.wanted);
        self.watch.note(error);
        let calm = error.shifted(CALM);
        let correction = self.gains.step(Part(0), calm);
        self.base = self.base.changed(correction.lasting).clamp(self.bounds[0], self.bounds[1]);
        self.base.changed(correction.passing).clamp(self.bounds[0], self.bounds[1])
    }

    /// The rate without the passing part of the last correction: how the clocks stand to each other.
    pub fn rate(&self) -> Frequency {
        self.base
    }

    pub fn state(&self) -> State {
        self.watch.state()
    }
}
