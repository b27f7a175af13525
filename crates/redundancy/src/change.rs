//! When a difference of values is worth a change.

use crate::mutant;

/// Rules for change with hysteresis: values are estimates, and a copy that is made and dropped in turn costs both times.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// By which share a newcomer must be worth more than what has to go for it.
    pub margin: f32,
    /// Seconds over which the cost of making a copy must be earned. A copy that is at hand anyway costs nothing.
    pub horizon: f32,
}

impl Change {
    /// Whether a copy is made: `value` for it, both in seconds per second and byte; `create` seconds and byte to make it.
    pub fn creates(&self, value: f32, displaced: f32, create: f32) -> bool {
        let margin = if mutant::is("change.margin") { 0.0 } else { self.margin };
        let asked = displaced.max(0.0) * (1.0 + margin) + create / self.horizon;
        value > asked && value > 0.0
    }

    /// Whether a copy that is there goes although its place is not needed: at a value below what a new one would need by
    /// the margin, so that a value about 0 leads to neither.
    pub fn drops(&self, value: f32, gain: f32) -> bool {
        value < -self.margin * gain.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_near_change_nothing() {
        let change = Change { margin: 0.2, horizon: 10.0 };
        for (own, other) in [(1.0, 1.1), (1.1, 1.0), (1.0, 1.0)] {
            assert!(!change.creates(own, other, 0.0) && !change.creates(other, own, 0.0));
        }
        assert!(change.creates(1.3, 1.0, 0.0));
        assert!(!change.creates(0.0, -1.0, 0.0), "worth nothing");
        assert!(!change.drops(0.0, 1.0) && !change.drops(-0.1, 1.0) && change.drops(-0.3, 1.0));
    }

    #[test]
    fn making_a_copy_must_be_earned() {
        let change = Change { margin: 0.0, horizon: 10.0 };
        assert!(!change.creates(1.0, 0.5, 6.0));
        assert!(change.creates(1.0, 0.5, 4.0));
    }
}
