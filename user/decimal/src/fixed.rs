//! A number of decimals, exactly: the fraction as a fixed-point number of as many words as it needs, multiplied by ten to the
//! eighteenth again and again.

use crate::{Parts, Room, digits};

/// More decimals no double has.
pub const DECIMALS_MAX: usize = 1074;

/// Words of 64 bits that the largest whole part, and the smallest fraction, need.
const WHOLE_WORDS: usize = 16;
const FRACTION_WORDS: usize = 17;
/// Digits that are made at a time.
const STEP: usize = 18;
const TEN: u64 = 10u64.pow(STEP as u32);

/// Writes `number` with so many decimals, rounded half to even as its exact value says. `None`: infinite, not a number, or more
/// than `DECIMALS_MAX` decimals.
pub fn fixed(number: f64, decimals: usize, room: &mut Room) -> Option<&str> {
    let parts = Parts::of(number).filter(|_| decimals <= DECIMALS_MAX)?;
    room.bytes[0] = b'-';
    // A place is left for a digit that rounding carries.
    let start = 1 + usize::from(parts.is_negative);
    let whole = start + write_whole(parts, &mut room.bytes[start..]);
    let end = if decimals > 0 { whole + 1 + decimals } else { whole };
    let is_up = if decimals > 0 {
        room.bytes[whole] = b'.';
        write_fraction(parts, &mut room.bytes[whole + 1..end])
    } else {
        let is_odd = room.bytes[whole - 1] & 1 == 1;
        Fraction::of(parts).is_up(is_odd)
    };
    room.bytes[start - 1] = b'0';
    let is_carried = is_up && carry(&mut room.bytes[start - 1..end]);
    let from = if is_carried { start - 1 } else { start };
    if parts.is_negative {
        room.bytes[from - 1] = b'-';
    }
    Some(room.text(from - usize::from(parts.is_negative), end))
}

/// Adds one to the last digit; whether it was carried into the first byte, a zero in front of all.
fn carry(text: &mut [u8]) -> bool {
    for (at, byte) in text.iter_mut().enumerate().rev() {
        match *byte {
            b'.' => {}
            b'9' => *byte = b'0',
            _ => {
                *byte += 1;
                return at == 0;
            }
        }
    }
    false
}

/// Writes the whole part; the number of its digits.
fn write_whole(parts: Parts, into: &mut [u8]) -> usize {
    let Parts { significand, exponent, .. } = parts;
    if exponent <= 11 {
        let whole = match exponent {
            0.. => significand << exponent,
            -63.. => significand >> -exponent,
            _ => 0,
        };
        let count = digits::count(whole);
        digits::write(whole, &mut into[..count]);
        return count;
    }
    let mut words = [0u64; WHOLE_WORDS];
    let (word, bit) = (exponent as usize / 64, exponent as u32 % 64);
    let shifted = u128::from(significand) << bit;
    words[word] = shifted as u64;
    if word + 1 < WHOLE_WORDS {
        words[word + 1] = (shifted >> 64) as u64;
    }
    write_words(&mut words, into)
}

/// Divides by 10^18 until nothing is left; digits come from the end.
fn write_words(words: &mut [u64; WHOLE_WORDS], into: &mut [u8]) -> usize {
    // 309 digits are 18 steps at most.
    let mut steps = [0u64; 18];
    let mut count = 0;
    let mut used = WHOLE_WORDS;
    loop {
        while used > 0 && words[used - 1] == 0 {
            used -= 1;
        }
        if used == 0 {
            break;
        }
        let mut rest = 0u64;
        for word in words[..used].iter_mut().rev() {
            let value = u128::from(rest) << 64 | u128::from(*word);
            *word = (value / u128::from(TEN)) as u64;
            rest = (value % u128::from(TEN)) as u64;
        }
        steps[count] = rest;
        count += 1;
    }
    let mut at = digits::count(steps[count - 1]);
    digits::write(steps[count - 1], &mut into[..at]);
    for step in steps[..count - 1].iter().rev() {
        digits::write(*step, &mut into[at..at + STEP]);
        at += STEP;
    }
    at
}

/// What is behind the point: a fixed-point number, the highest word first.
struct Fraction {
    words: [u64; FRACTION_WORDS],
    used: usize,
}

impl Fraction {
    fn of(parts: Parts) -> Fraction {
        let Parts { significand, exponent, .. } = parts;
        let mut words = [0; FRACTION_WORDS];
        if exponent >= 0 {
            return Fraction { words, used: 0 };
        }
        let bits = -exponent as usize;
        let (word, shift) = (bits.div_ceil(64), (64 - bits % 64) % 64);
        // The significand ends at bit `bits` behind the point; what stands in front of the point falls off.
        let placed = u128::from(significand) << shift;
        words[word - 1] = placed as u64;
        if word >= 2 {
            words[word - 2] = (placed >> 64) as u64;
        }
        Fraction { words, used: word }
    }

    /// Multiplies by a power of ten up to 10^18; what comes in front of the point.
    fn take(&mut self, ten: u64) -> u64 {
        let mut carry = 0u64;
        for word in self.words[..self.used].iter_mut().rev() {
            let product = u128::from(*word) * u128::from(ten) + u128::from(carry);
            *word = product as u64;
            carry = (product >> 64) as u64;
        }
        while self.used > 0 && self.words[self.used - 1] == 0 {
            self.used -= 1;
        }
        carry
    }

    /// Whether it rounds up: more than a half, or a half behind an odd digit.
    fn is_up(&self, is_odd: bool) -> bool {
        const HALF: u64 = 1 << 63;
        let is_more = self.words[1..self.used.max(1)].iter().any(|word| *word != 0);
        match self.words[0] {
            HALF => is_more || is_odd,
            first => first > HALF,
        }
    }
}

/// Writes the decimals, cut off; whether they have to be rounded up.
fn write_fraction(parts: Parts, into: &mut [u8]) -> bool {
    let mut fraction = Fraction::of(parts);
    for piece in into.chunks_mut(STEP) {
        if fraction.used == 0 {
            piece.fill(b'0');
            continue;
        }
        let ten = if piece.len() == STEP { TEN } else { 10u64.pow(piece.len() as u32) };
        digits::write(fraction.take(ten), piece);
    }
    let is_odd = into.last().is_some_and(|last| last & 1 == 1);
    fraction.is_up(is_odd)
}
