//! The fewest digits that read back (R. Giulietti: *The Schubfach way to render doubles*, 2020): one product with a power of
//! ten in fixed point for the number and for each border of what reads back as it.

use core::hint::select_unpredictable;

use crate::digits::{self, Register};
use crate::powers::{LEAST, POWERS};
use crate::{FRACTION_BITS, Parts, Room, special};

/// Bytes in which the text and what is copied too much have room.
const WRITTEN: usize = 48;

/// Digits as a whole number, times a power of ten.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Decimal {
    digits: u64,
    power: i32,
}

/// Writes the shortest text that reads back as `number`: `1.5`, `0.001`, `1e-6`, `1.2345e20`, `NaN`, `inf`. Where several are
/// equally short it is the one nearest to the number.
pub fn shortest(number: f64, room: &mut Room) -> &str {
    let Some(parts) = Parts::of(number) else { return special(number) };
    room.bytes[0] = b'-';
    let start = usize::from(parts.is_negative);
    let length = match parts.significand {
        0 => {
            room.bytes[start..start + 3].copy_from_slice(b"0.0");
            3
        }
        _ => match room.bytes[start..].first_chunk_mut() {
            Some(into) => write(without_zeros(decimal(parts)), into),
            None => 0,
        },
    };
    room.text(0, start + length)
}

/// Floor of log10(2^q), or of log10(3/4 · 2^q), for the exponents there are.
fn floor_log10(q: i32, is_three_quarters: bool) -> i32 {
    (q * 1_262_611 - if is_three_quarters { 524_031 } else { 0 }) >> 22
}

/// Floor of log2(10^k).
fn floor_log2(k: i32) -> i32 {
    (k * 1_741_647) >> 19
}

/// The high word of a product with a power of ten in fixed point, its last bit set if anything was cut off: enough to compare.
#[inline(always)]
fn product(power: u128, factor: u64) -> u64 {
    let low = u128::from(power as u64) * u128::from(factor);
    let high = (power >> 64) * u128::from(factor) + (low >> 64);
    (high >> 64) as u64 | u64::from(high as u64 > 1)
}

#[inline(always)]
fn decimal(parts: Parts) -> Decimal {
    let Parts { significand, exponent, .. } = parts;
    // Numbers without a fraction below 2^53 are their own digits.
    if (-(FRACTION_BITS as i32)..=0).contains(&exponent) && significand.trailing_zeros() as i32 >= -exponent {
        return Decimal { digits: significand >> -exponent, power: 0 };
    }
    // At a power of two the numbers below lie half as far apart.
    let is_nearer_below = significand == 1 << FRACTION_BITS && exponent > -1074;
    let is_odd = significand & 1;
    let power = floor_log10(exponent, is_nearer_below);
    let shift = exponent + floor_log2(-power) + 1;
    let ten = POWERS[(-power - LEAST) as usize];
    let at = |quarters: u64| product(ten, quarters << shift);
    let quarters = significand * 4;
    let (below, value, above) = (at(quarters - 2 + u64::from(is_nearer_below)), at(quarters), at(quarters + 2));
    // The borders read back as the number only if it is even.
    let (least, most) = (below + is_odd, above - is_odd);
    let whole = value / 4;
    // One digit less, if exactly one of the two neighbours reads back. Which it is cannot be predicted: no branches.
    let tens = whole / 10;
    let (is_lower, is_upper) = (least <= 40 * tens, 40 * tens + 40 <= most);
    let is_ten = (is_lower != is_upper) & (whole >= 10);
    let fewer = tens + u64::from(is_upper);
    let (is_lower, is_upper) = (least <= 4 * whole, 4 * whole + 4 <= most);
    // Both or none: the nearer one, the even one of two equally near.
    let middle = 4 * whole + 2;
    let is_nearer = (value > middle) | ((value == middle) & (whole & 1 == 1));
    let is_up = select_unpredictable(is_lower != is_upper, is_upper, is_nearer);
    let digits = select_unpredictable(is_ten, fewer, whole + u64::from(is_up));
    Decimal { digits, power: power + i32::from(is_ten) }
}

fn without_zeros(mut decimal: Decimal) -> Decimal {
    while decimal.digits.is_multiple_of(100) {
        decimal = Decimal { digits: decimal.digits / 100, power: decimal.power + 2 };
    }
    if decimal.digits.is_multiple_of(10) {
        decimal = Decimal { digits: decimal.digits / 10, power: decimal.power + 1 };
    }
    decimal
}

/// Writes the text; the number of its bytes. Between 1e-5 and 1e16 without an exponent. What is stored too much is overwritten,
/// or is no part of the text.
fn write(decimal: Decimal, into: &mut [u8; WRITTEN]) -> usize {
    let Decimal { digits, power } = decimal;
    let count = digits::count(digits);
    let register = Register::new(digits, count);
    // Digits in front of the point.
    let point = count as i32 + power;
    match point {
        // 1234e7 -> 12340000000.0
        _ if power >= 0 && point <= 16 => {
            let whole = point as usize;
            register.store(at(into, 0));
            into[whole..whole + 2].copy_from_slice(b".0");
            whole + 2
        }
        // 1234e-2 -> 12.34
        1..=16 => {
            split(register, point as usize, into);
            count + 1
        }
        // 1234e-6 -> 0.001234
        -4..=0 => {
            let zeros = -point as usize;
            into[..6].copy_from_slice(b"0.0000");
            register.store(at(into, 2 + zeros));
            2 + zeros + count
        }
        // 1234e30 -> 1.234e33
        _ => {
            split(register, 1, into);
            let mantissa = count + usize::from(count > 1);
            mantissa + write_exponent(point - 1, at(into, mantissa))
        }
    }
}

/// So many digits, a point, and the others.
fn split(register: Register, whole: usize, into: &mut [u8; WRITTEN]) {
    register.store(at(into, 0));
    register.store_from(whole, at(into, whole + 1));
    into[whole] = b'.';
}

fn at<const N: usize>(into: &mut [u8; WRITTEN], place: usize) -> &mut [u8; N] {
    into[place..].first_chunk_mut().expect("there is room behind each place")
}

/// Up to three digits and a sign, without a branch: which of them there are can hardly be predicted.
fn write_exponent(exponent: i32, into: &mut [u8; 8]) -> usize {
    into[..2].copy_from_slice(b"e-");
    let start = 1 + usize::from(exponent < 0);
    let exponent = exponent.unsigned_abs();
    let length = 1 + usize::from(exponent >= 10) + usize::from(exponent >= 100);
    let digits = (exponent / 100) | ((exponent / 10 % 10) << 8) | ((exponent % 10) << 16) | 0x30_3030;
    into[start..start + 4].copy_from_slice(&(digits >> (8 * (3 - length))).to_le_bytes());
    start + length
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each power in the table is its definition: with ten's power as a whole number of many words.
    #[test]
    fn powers_are_rounded_up() {
        for (at, power) in POWERS.iter().enumerate() {
            let k = at as i32 + LEAST;
            let shift = floor_log2(k) - 127;
            // power - 1 < 10^k / 2^shift <= power, all sides multiplied until they are whole.
            let five = |times: i32| {
                let mut words = [0u32; 64];
                words[0] = 1;
                (0..times).for_each(|_| multiply(&mut words, 5));
                words
            };
            let of = |value: u128| {
                let mut words = [0u32; 64];
                (0..4).for_each(|word| words[word] = (value >> (32 * word)) as u32);
                words
            };
            // 10^k = 5^k · 2^k; for k < 0 the fives stand on the other side.
            let twos = k - shift;
            let (mut ten, mut high, mut low) = (five(k.max(0)), of(*power), of(*power - 1));
            for words in [&mut high, &mut low] {
                (0..-k).for_each(|_| multiply(words, 5));
                (0..-twos).for_each(|_| multiply(words, 2));
            }
            (0..twos).for_each(|_| multiply(&mut ten, 2));
            let order = |words: &[u32; 64]| words.iter().rev().copied().collect::<std::vec::Vec<_>>();
            assert!(order(&low) < order(&ten) && order(&ten) <= order(&high), "10^{k}");
        }
    }

    fn multiply(words: &mut [u32; 64], by: u32) {
        let mut carry = 0u64;
        for word in words {
            carry += u64::from(*word) * u64::from(by);
            *word = carry as u32;
            carry >>= 32;
        }
        assert_eq!(carry, 0);
    }

    extern crate std;
}
