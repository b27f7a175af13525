//! Whole numbers as decimal digits.

/// All pairs of digits.
const PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut at = 0;
    while at < 100 {
        pairs[2 * at] = b'0' + (at / 10) as u8;
        pairs[2 * at + 1] = b'0' + (at % 10) as u8;
        at += 1;
    }
    pairs
};

/// Powers of ten that fit.
const TENS: [u64; 20] = {
    let mut tens = [1; 20];
    let mut at = 1;
    while at < 20 {
        tens[at] = tens[at - 1] * 10;
        at += 1;
    }
    tens
};

/// How many digits a number has; 0 has one.
pub(crate) fn count(number: u64) -> usize {
    // 1233 / 4096 is a little more than log10(2).
    let about = (((64 - (number | 1).leading_zeros()) * 1233) >> 12) as usize;
    about + usize::from(number | 1 >= TENS[about])
}

/// Writes exactly `into.len()` digits, zeros in front.
pub(crate) fn write(mut number: u64, into: &mut [u8]) {
    let mut end = into.len();
    // By eight digits, in words of 32 bits, whose divisions are cheap.
    while end >= 8 && number >= 100_000_000 {
        into[end - 8..end].copy_from_slice(&(eight((number % 100_000_000) as u32) | ZEROS as u64).to_le_bytes());
        number /= 100_000_000;
        end -= 8;
    }
    let mut number = number as u32;
    while end >= 2 {
        let pair = (number % 100) as usize * 2;
        number /= 100;
        into[end - 2..end].copy_from_slice(&PAIRS[pair..pair + 2]);
        end -= 2;
    }
    if end == 1 {
        into[0] = b'0' + (number % 10) as u8;
    }
}

/// The digits of a number below 10^17, as bytes of a register: shifted and stored, never stored and loaded again, which would
/// wait for the stores.
#[derive(Clone, Copy)]
pub(crate) struct Register {
    /// The first of seventeen digits, or none.
    lead: u8,
    /// 1 where there is a lead.
    leads: usize,
    /// What follows it, sixteen digits from the lowest byte on, zeros behind.
    rest: u128,
}

const ZEROS: u128 = 0x3030_3030_3030_3030_3030_3030_3030_3030;

impl Register {
    /// `count`: digits of the number.
    pub(crate) fn new(number: u64, count: usize) -> Register {
        let (high, low) = (number / 100_000_000, (number % 100_000_000) as u32);
        let sixteen = u128::from(eight(low)) << 64 | u128::from(eight((high % 100_000_000) as u32));
        let rest = sixteen >> (8 * 16usize.saturating_sub(count));
        Register { lead: b'0' + (high / 100_000_000) as u8, leads: usize::from(count > 16), rest }
    }

    /// Stores all digits, and zeros behind them.
    pub(crate) fn store(self, into: &mut [u8; 17]) {
        into[0] = self.lead;
        into[self.leads..self.leads + 16].copy_from_slice(&(self.rest | ZEROS).to_le_bytes());
    }

    /// Stores the digits from number `from` on, which is not 0, and zeros behind them.
    pub(crate) fn store_from(self, from: usize, into: &mut [u8; 16]) {
        into.copy_from_slice(&((self.rest >> (8 * (from - self.leads))) | ZEROS).to_le_bytes());
    }
}

/// Eight digits of a number below 10^8, the first in the lowest byte: halves, quarters and eighths of one word by products.
fn eight(number: u32) -> u64 {
    let halves = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    let hundreds = ((halves * 10_486) >> 20) & 0x7f_0000_007f;
    let pairs = ((halves - 100 * hundreds) << 16) + hundreds;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    ((pairs - 10 * tens) << 8) + tens
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    #[test]
    fn all_eighths_are_right() {
        for number in (0..100_000_000).step_by(997).chain(99_999_000..100_000_000).chain(0..20_000) {
            let text = (eight(number) | ZEROS as u64).to_le_bytes();
            assert_eq!(text.as_slice(), std::format!("{number:08}").as_bytes());
        }
    }

    #[test]
    fn digits_are_stored_from_anywhere() {
        for (number, text) in
            [(7u64, "7"), (1_234_567_890_123_456, "1234567890123456"), (98_765_432_101_234_567, "98765432101234567")]
        {
            let register = Register::new(number, text.len());
            let (mut all, mut some) = ([0; 17], [0; 16]);
            register.store(&mut all);
            assert!(all.starts_with(text.as_bytes()), "{number}");
            for from in 1..text.len() {
                register.store_from(from, &mut some);
                assert!(some.starts_with(&text.as_bytes()[from..]), "{number} from {from}");
            }
        }
    }
}
