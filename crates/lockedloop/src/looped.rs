//! The loop: measure, compare, filter, adjust.

use crate::filter::Gains;
use crate::measure::{Measure, Measured};
use crate::oscillator::{Adjust, Oscillator};
use crate::units::{Frequency, Interval, Part, Ratio};
use crate::watch::{State, Watch};

/// How a loop shall be.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The frequency of the input before anything was measured.
    pub expected: Frequency,
    /// Events made for events that come in.
    pub ratio: Ratio,
    pub gains: Gains,
    /// When it counts as locked.
    pub watch: Watch,
    /// Cycles of the input without an event after which the lock is lost.
    pub patience: u32,
}

impl Settings {
    /// Locked when eight errors in a row are below 1/16 (of a cycle; for loops of first order of the frequency), lost after four
    /// larger ones or eight cycles of silence.
    pub const fn new(expected: Frequency, ratio: Ratio, gains: Gains) -> Settings {
        let watch = Watch::new(Part(Part::WHOLE.0 / 16), 8, 4);
        Settings { expected, ratio, gains, watch, patience: 8 }
    }
}

/// Gaps of up to so many intervals are taken for events that were missed.
const MISSED_MAX: u64 = 4;
/// An odd gap counts 2, a regular one takes 1 back: what is borne in lock, and before. At twice the frequency every other gap is odd.
const ODD_MAX: u32 = 20;
const ODD_AT_FIRST_MAX: u32 = 4;

/// A software locked loop.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    measure: Measure,
    oscillator: Oscillator,
    gains: Gains,
    ratio: Ratio,
    watch: Watch,
    patience: u32,
    /// The loop's frequency without the passing part of the last correction, as one of the input.
    base: Frequency,
    /// `outputs` for each event that came in less `inputs` for each cycle made, in 2⁻³²: the phase, in parts of an output.
    residue: i64,
    /// The oscillator's phase that `residue` knows of.
    counted: u64,
    error: Part,
    /// Gaps that were not about one interval, as [`ODD_MAX`] counts them.
    odd: u32,
    is_aligned: bool,
}

impl Loop {
    /// A loop that measures with `measure`, and makes events at the expected frequency until it has heard something.
    pub fn new(measure: Measure, adjust: Adjust, settings: Settings) -> Loop {
        Loop {
            measure,
            oscillator: Oscillator::new(adjust, settings.expected.times(settings.ratio), 0),
            gains: settings.gains,
            ratio: settings.ratio,
            watch: settings.watch,
            patience: settings.patience,
            base: settings.expected,
            residue: 0,
            counted: 0,
            error: Part(0),
            odd: 0,
            is_aligned: false,
        }
    }

    pub fn state(&self) -> State {
        self.watch.state()
    }

    /// The input's frequency, as far as the loop knows.
    pub fn input_frequency(&self) -> Frequency {
        self.base
    }

    /// What the loop makes at the moment, the passing part of the correction included.
    pub fn frequency(&self) -> Frequency {
        self.oscillator.frequency()
    }

    pub fn interval(&self) -> Interval {
        self.oscillator.interval()
    }

    /// The last error: of phase, in cycles of the input; for loops of first order of the frequency.
    pub fn error(&self) -> Part {
        self.error
    }

    /// When the loop's next event is due.
    pub fn next_output(&self) -> u64 {
        self.oscillator.next()
    }

    /// The next event of the loop's own up to tick `now`.
    pub fn output_until(&mut self, now: u64) -> Option<u64> {
        let silence = self.measure.gap(now).unwrap_or(0);
        if self.base.events_in(silence) > u64::from(self.patience) {
            self.watch.lose();
            self.is_aligned = false;
        }
        self.oscillator.event_until(now)
    }

    /// An event of the input at tick `now`. Ticks never go back.
    pub fn input(&mut self, now: u64) {
        if !self.is_aligned {
            return self.begin(now);
        }
        let Some(stands_for) = self.stands_for(now) else { return };
        self.count(now, stands_for);
        if let Some(measured) = self.measure.event(now, stands_for) {
            self.correct(now, measured);
        }
    }

    /// The first event of the input, or the first after the lock was lost: an event of ours falls on it.
    fn begin(&mut self, now: u64) {
        self.oscillator.align(now);
        self.counted = self.oscillator.phase(now);
        self.residue = 0;
        self.measure.restart(Some(now));
        self.is_aligned = true;
    }

    /// How many events one that comes now stands for, if some before it were missed; `None`: it is none itself. An odd gap is
    /// borne now and then; if all are odd, the input has become another one.
    fn stands_for(&mut self, now: u64) -> Option<u64> {
        let gap = self.measure.gap(now).unwrap_or(0);
        let intervals = self.base.events_in(gap.saturating_mul(2)).div_ceil(2);
        if intervals == 1 {
            self.odd = self.odd.saturating_sub(1);
            return Some(1);
        }
        self.odd += 2;
        let is_locked = self.state() == State::Locked;
        let is_borne = self.odd <= if is_locked { ODD_MAX } else { ODD_AT_FIRST_MAX } && intervals <= MISSED_MAX;
        match (is_borne, is_locked) {
            (true, _) => (intervals > 0).then_some(intervals),
            (false, true) => {
                self.seek_again(now);
                None
            }
            (false, false) => Some(1),
        }
    }

    /// All that was known may be wrong; only the frequency stays until another is measured.
    fn seek_again(&mut self, now: u64) {
        self.watch.lose();
        self.odd = 0;
        self.begin(now);
    }

    /// Puts an event, and the cycles made until now, on the account.
    fn count(&mut self, now: u64, events: u64) {
        let phase = self.oscillator.phase(now);
        let made = phase.wrapping_sub(self.counted) as i64;
        let due = (events as i64 * i64::from(self.ratio.outputs())) << Part::BITS;
        let account = i128::from(self.residue) + i128::from(due) - i128::from(made) * i128::from(self.ratio.inputs());
        self.residue = account.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        self.counted = phase;
    }

    /// The residue as a part of the input's cycle.
    fn phase_error(&self) -> Part {
        Part(self.residue / i64::from(self.ratio.outputs()))
    }

    fn correct(&mut self, now: u64, measured: Measured) {
        let heard = Frequency::of(measured.events, measured.ticks);
        let is_locked = self.state() == State::Locked;
        let has_slipped = self.phase_error().abs() > Part(Part::WHOLE.0 / 2);
        let is_far = has_slipped || heard.beyond(self.base).abs() > Part(Part::WHOLE.0 / 8);
        if !is_locked && self.gains.follows_phase() && is_far {
            return self.take_over(heard, now);
        }
        let frequency = heard.beyond(self.base);
        let phase = Part(self.phase_error().0 / measured.events.max(1) as i64);
        self.error = if self.gains.follows_phase() { self.phase_error() } else { frequency };
        let gains = if is_locked { self.gains } else { self.gains.eager() };
        let correction = gains.step(frequency, phase);
        self.base = self.base.changed(correction.lasting);
        self.set(self.base.changed(correction.passing), now);
        if self.watch.note(self.error) {
            self.seek_again(now);
        }
    }

    /// What is heard is so far away that a filter would take long: the frequency and the phase are simply taken over.
    fn take_over(&mut self, heard: Frequency, now: u64) {
        self.error = heard.beyond(self.base);
        self.base = heard;
        self.set(heard, now);
        self.begin(now);
        self.watch.note(self.error);
    }

    fn set(&mut self, input: Frequency, now: u64) {
        self.oscillator.set(input.times(self.ratio), now);
        // An interval that was changed as a whole has another phase now, which is what the change was for.
        if self.is_aligned {
            let phase = self.oscillator.phase(now);
            let moved = phase.wrapping_sub(self.counted) as i64;
            self.residue = self.residue.saturating_sub(moved.saturating_mul(self.ratio.inputs().into()));
            self.counted = phase;
        }
    }
}
