//! Floating-point numbers as text, by fixed-point arithmetic (S-114).
//!
//! The thesis (7.4.1) tells of a `printf` whose conversion of floating-point numbers, in fixed-point arithmetic, is faster than the
//! coprocessor's instruction. Here are both things that are asked for today, and both are exact:
//!
//! - [`shortest`]: the fewest digits that read back as the same number (what Rust's `{:?}` and the crate `ryu` print).
//! - [`fixed`]: so many decimals, the exact value rounded half to even (what C's `%.3f` and Rust's `{:.3}` print).
//!
//! ```
//! let mut room = synthdecimal::Room::new();
//! assert_eq!(synthdecimal::shortest(0.1 + 0.2, &mut room), "0.30000000000000004");
//! assert_eq!(synthdecimal::fixed(2.5, 0, &mut room), Some("2"));
//! ```

#![no_std]
#![deny(unsafe_code)]

mod digits;
mod fixed;
mod powers;
mod shortest;

pub use fixed::{DECIMALS_MAX, fixed};
pub use shortest::shortest;

/// Bytes that the longest text has: a sign, a digit that rounding carries, 309 digits, a point, and the decimals.
const ROOM: usize = 1 + 1 + 309 + 1 + DECIMALS_MAX;

/// Where the text is written.
pub struct Room {
    bytes: [u8; ROOM],
}

impl Default for Room {
    fn default() -> Room {
        Room::new()
    }
}

impl Room {
    pub const fn new() -> Room {
        Room { bytes: [b'0'; ROOM] }
    }

    #[allow(unsafe_code, reason = "to look for bytes that cannot be there would take a third of the time")]
    fn text(&self, from: usize, to: usize) -> &str {
        // SAFETY: 1. `bytes` is private and begins as zeros. 2. Nothing but digits, `-`, `.` and `e` is ever written to it, so
        // all of it is ASCII.
        unsafe { core::str::from_utf8_unchecked(&self.bytes[from..to]) }
    }
}

/// A finite number is `significand` · 2^`exponent`.
#[derive(Clone, Copy)]
struct Parts {
    is_negative: bool,
    significand: u64,
    exponent: i32,
}

const FRACTION_BITS: u32 = 52;

impl Parts {
    /// `None`: infinite, or not a number.
    fn of(number: f64) -> Option<Parts> {
        let bits = number.to_bits();
        let fraction = bits & ((1 << FRACTION_BITS) - 1);
        let biased = (bits >> FRACTION_BITS) as i32 & 0x7ff;
        let (significand, exponent) = match biased {
            0 => (fraction, -1074),
            0x7ff => return None,
            _ => (fraction | 1 << FRACTION_BITS, biased - 1075),
        };
        Some(Parts { is_negative: bits >> 63 != 0, significand, exponent })
    }
}

/// What is no number as a text; as `ryu` and C have them.
fn special(number: f64) -> &'static str {
    match () {
        () if number.is_nan() => "NaN",
        () if number > 0.0 => "inf",
        () => "-inf",
    }
}
