//! From errors to corrections.

use crate::units::Part;

/// What a filter makes of an error.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Correction {
    /// Changes the frequency for good.
    pub lasting: Part,
    /// Changes it until the next measurement.
    pub passing: Part,
}

/// How strongly a loop answers an error. Gains are negative powers of two: a shift each.
///
/// **First order**: the loop's frequency goes a part of the way to the measured one, `f += error / 2^shift`. It settles without
/// swinging, and its phase is where it happens to be.
///
/// **Second order**: the error is the phase. A proportional part pulls it in until the next measurement; an integral part changes
/// the frequency for good, so that no error stays when the frequency has changed. With P and I the phase error follows
/// z² − (2 − P − I) z + (1 − P): it settles when 0 < I, 0 < P < 2 and 2 P + I < 4, and does not swing when 4 I ≤ P².
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gains {
    order: Order,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    First { shift: u32 },
    Second { proportional: u32, integral: u32 },
}

/// Gains that would not settle, or that are too small to move anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unstable;

/// The smallest gain is 2⁻¹⁶.
const SHIFT_MAX: u32 = 16;

impl Gains {
    /// A gain of 2⁻ˢʰⁱᶠᵗ.
    ///
    /// # Errors
    /// The gain is too small.
    pub const fn first_order(shift: u32) -> Result<Gains, Unstable> {
        if shift > SHIFT_MAX {
            return Err(Unstable);
        }
        Ok(Gains { order: Order::First { shift } })
    }

    /// A proportional gain of 2⁻ˢʰⁱᶠᵗ, and the largest integral gain with which nothing swings: P² / 4.
    ///
    /// # Errors
    /// The gain is too small.
    pub const fn second_order(shift: u32) -> Result<Gains, Unstable> {
        Gains::second_order_of(shift, 2 * shift + 2)
    }

    /// Gains of 2⁻ᵖʳᵒᵖᵒʳᵗⁱᵒⁿᵃˡ and 2⁻ⁱⁿᵗᵉᵍʳᵃˡ.
    ///
    /// # Errors
    /// The integral gain is above the proportional one: that rings for long, and with delays it does not settle. Or one is too
    /// small.
    pub const fn second_order_of(proportional: u32, integral: u32) -> Result<Gains, Unstable> {
        if integral < proportional || proportional > SHIFT_MAX || integral > 2 * SHIFT_MAX + 2 {
            return Err(Unstable);
        }
        Ok(Gains { order: Order::Second { proportional, integral } })
    }

    pub(crate) fn follows_phase(self) -> bool {
        matches!(self.order, Order::Second { .. })
    }

    /// Larger gains for as long as there is no lock: who is far away hurries, and noise hurts nobody yet.
    pub(crate) fn eager(self) -> Gains {
        let order = match self.order {
            Order::First { .. } => self.order,
            Order::Second { proportional, integral } => {
                let faster = proportional.saturating_sub(2).max(proportional.min(2));
                Order::Second { proportional: faster, integral: integral - 2 * (proportional - faster) }
            }
        };
        Gains { order }
    }

    /// `phase`: in cycles for each event since the last measurement, so that gains mean the same however many there were.
    pub(crate) fn step(self, frequency: Part, phase: Part) -> Correction {
        match self.order {
            Order::First { shift } => Correction { lasting: frequency.shifted(shift), passing: Part(0) },
            Order::Second { proportional, integral } => {
                Correction { lasting: phase.shifted(integral), passing: phase.shifted(proportional) }
            }
        }
    }
}
