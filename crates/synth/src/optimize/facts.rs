//! What is known at one place of a routine, whichever way led there.
//!
//! A routine is about few things, so each gets a number when its instruction is decoded ([`Lore`]), and what is known
//! is sets of numbers ([`Facts`]): they are copied and met at every jump.

use alloc::vec::Vec;

use super::instruction::{Flags, Instruction, Kind, Memory, Width};

/// Bit per condition of `jcc`.
pub type Conditions = u16;

/// Bit per number.
type Set = u32;

/// Things of one sort that get a number; of more nothing is known.
const MOST: usize = Set::BITS as usize;
pub const NO_NUMBER: u8 = u8::MAX;

/// A register holds what a word holds.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Held {
    address: i32,
    register: u8,
    width: Width,
}

/// A comparison.
struct Test<'a> {
    /// The instruction's bytes: the same comparison of the same operands.
    code: &'a [u8],
    memory: Memory,
    immediate: Option<(u8, i32)>,
}

/// What is over when a register is written.
#[derive(Clone, Copy, Default)]
struct About {
    held: Set,
    constants: Set,
    tests: Set,
}

/// Everything that can be known in a routine, by number.
pub struct Lore<'a> {
    held: Vec<Held>,
    constants: Vec<(u8, u64)>,
    tests: Vec<Test<'a>>,
    about: [About; 16],
    /// Tests of memory.
    of_memory: Set,
}

/// What is known.
#[derive(Clone, Copy)]
pub struct Facts {
    held: Set,
    constants: Set,
    /// Comparisons that were made.
    tests: Set,
    /// Of these, the conditions that did not hold.
    failed: [Conditions; MOST],
    /// Whose flags stand.
    flags: u8,
}

const EQUAL: u8 = 4;

/// What is below is a number. What is above may be the address of a word, which the next draft of the same plan has
/// elsewhere: equal words stay equal, but which of two comes first is not known.
const NUMBERS: u64 = 4096;

/// Conditions that do not hold if `condition` does not, after a comparison.
fn failing(condition: u8) -> Conditions {
    let bits: &[u8] = match condition {
        3 => &[3, 4, 7],         // not above or equal: below
        4 => &[4],               // not equal
        5 => &[5, 2, 7, 12, 15], // equal
        6 => &[6, 2, 4],         // above
        13 => &[13, 4, 15],      // not greater or equal: less
        14 => &[14, 4, 12],      // greater
        other => return 1 << other,
    };
    bits.iter().fold(0, |mask, bit| mask | 1 << bit)
}

/// What becomes of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Needed,
    /// It changes nothing.
    Redundant,
    /// A load of what another register holds: all of it, or its low half word.
    CopyOf {
        register: u8,
        from: u8,
        width: Width,
    },
}

/// The numbers in a set.
fn numbers(mut set: Set) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let number = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (number < MOST).then_some(number)
    })
}

fn one(number: u8) -> Set {
    if number == NO_NUMBER { 0 } else { 1 << number }
}

/// The number of `thing` in `all`, and whether it is a new one.
fn number_in<T>(all: &mut Vec<T>, thing: T, is_same: impl Fn(&T, &T) -> bool) -> (u8, bool) {
    if let Some(known) = all.iter().position(|other| is_same(other, &thing)) {
        return (known as u8, false);
    }
    if all.len() == MOST {
        return (NO_NUMBER, false);
    }
    all.push(thing);
    (all.len() as u8 - 1, true)
}

impl<'a> Lore<'a> {
    pub fn new() -> Lore<'a> {
        const USUAL: usize = 12;
        let (held, constants, tests) =
            (Vec::with_capacity(USUAL), Vec::with_capacity(USUAL), Vec::with_capacity(USUAL));
        Lore { held, constants, tests, about: [About::default(); 16], of_memory: 0 }
    }

    /// The number of what can be known once `instruction`, whose bytes are `code`, has run.
    pub fn number_of(&mut self, instruction: &Instruction, code: &'a [u8]) -> u8 {
        match instruction.kind {
            Kind::Constant { register, value } => self.constant(register, value),
            Kind::Load { register, address, width } => self.held(Held { address, register, width }),
            Kind::Store { register, address } => self.held(Held { address, register, width: Width::Quad }),
            Kind::Compare { immediate } if instruction.memory != Memory::Anywhere => {
                self.test(instruction, code, immediate)
            }
            _ => NO_NUMBER,
        }
    }

    pub fn constant(&mut self, register: u8, value: u64) -> u8 {
        let (number, _) = number_in(&mut self.constants, (register, value), |one, other| one == other);
        self.about[usize::from(register)].constants |= one(number);
        number
    }

    fn held(&mut self, held: Held) -> u8 {
        let (number, _) = number_in(&mut self.held, held, |one, other| one == other);
        self.about[usize::from(held.register)].held |= one(number);
        number
    }

    fn test(&mut self, instruction: &Instruction, code: &'a [u8], immediate: Option<(u8, i32)>) -> u8 {
        let test = Test { code, memory: instruction.memory, immediate };
        let (number, is_new) = number_in(&mut self.tests, test, |one, other| one.code == other.code);
        if is_new {
            for register in numbers(instruction.reads.into()) {
                self.about[register].tests |= one(number);
            }
            if instruction.memory != Memory::None {
                self.of_memory |= one(number);
            }
        }
        number
    }
}

impl Facts {
    /// Nothing is known, but perhaps a constant.
    pub fn new(constant: Option<u8>) -> Facts {
        let constants = constant.map_or(0, one);
        Facts { held: 0, constants, tests: 0, failed: [0; MOST], flags: NO_NUMBER }
    }

    /// What holds on both of two ways.
    pub fn meet(&mut self, other: &Facts) {
        self.flags = NO_NUMBER;
        self.held &= other.held;
        self.constants &= other.constants;
        self.tests &= other.tests;
        for test in numbers(self.tests) {
            self.failed[test] &= other.failed[test];
        }
    }

    fn constant(&self, lore: &Lore<'_>, register: u8) -> Option<u64> {
        let known = self.constants & lore.about[usize::from(register)].constants;
        numbers(known).next().map(|number| lore.constants[number].1)
    }

    /// Whether `instruction`, which is about `number`, does something that is not so already.
    pub fn judge(&self, lore: &Lore<'_>, instruction: &Instruction, number: u8) -> Verdict {
        match instruction.kind {
            Kind::Constant { .. } if self.constants & one(number) != 0 => Verdict::Redundant,
            Kind::Store { .. } | Kind::Load { .. } if self.held & one(number) != 0 => Verdict::Redundant,
            Kind::Load { register, address, width: width @ (Width::Quad | Width::Half) } => {
                let is_whole = |held: &Held| held.address == address && held.width == Width::Quad;
                match numbers(self.held).map(|number| lore.held[number]).find(is_whole) {
                    Some(held) => Verdict::CopyOf { register, from: held.register, width },
                    None => Verdict::Needed,
                }
            }
            _ => Verdict::Needed,
        }
    }

    /// Whether a branch is known not to be taken.
    pub fn fails(&self, lore: &Lore<'_>, condition: u8) -> bool {
        let Some(test) = lore.tests.get(usize::from(self.flags)) else { return false };
        let by_value = || {
            let (register, value) = test.immediate?;
            let (known, value) = (self.constant(lore, register)?, i64::from(value) as u64);
            let ordered = known == value || known.min(value) < NUMBERS;
            Some(match condition {
                2 => ordered && known >= value,
                3 => ordered && known < value,
                4 => known != value,
                5 => known == value,
                6 => ordered && known > value,
                7 => ordered && known <= value,
                _ => return None,
            })
        };
        self.failed[usize::from(self.flags)] & 1 << condition != 0 || by_value() == Some(true)
    }

    /// `condition` of the flags did not hold: the branch was not taken, or its opposite was.
    pub fn learn(&mut self, lore: &mut Lore<'_>, condition: u8) {
        let Some(test) = lore.tests.get(usize::from(self.flags)) else { return };
        self.failed[usize::from(self.flags)] |= failing(condition);
        if condition == EQUAL ^ 1
            && let Some((register, value)) = test.immediate
            && self.constant(lore, register).is_none()
        {
            self.constants |= one(lore.constant(register, i64::from(value) as u64));
        }
    }

    /// Nothing is known of memory any more.
    pub fn forget_memory(&mut self, lore: &Lore<'_>) {
        self.held = 0;
        self.forget_tests(lore.of_memory);
    }

    fn forget_tests(&mut self, over: Set) {
        self.tests &= !over;
        if over & one(self.flags) != 0 {
            self.flags = NO_NUMBER;
        }
    }

    /// After `instruction`, which is about `number`.
    pub fn pass(&mut self, lore: &mut Lore<'_>, instruction: &Instruction, number: u8) {
        let copied = match instruction.kind {
            Kind::Copy { from, .. } => self.held & lore.about[usize::from(from)].held,
            _ => 0,
        };
        self.kill(lore, instruction);
        if instruction.flags != Flags::Keeps {
            self.flags = NO_NUMBER;
        }
        match instruction.kind {
            Kind::Constant { .. } => self.constants |= one(number),
            Kind::Load { .. } | Kind::Store { .. } => self.held |= one(number),
            Kind::Copy { register, .. } => {
                for number in numbers(copied) {
                    let held = Held { register, ..lore.held[number] };
                    self.held |= one(lore.held(held));
                }
            }
            Kind::Compare { .. } if number != NO_NUMBER => {
                if self.tests & one(number) == 0 {
                    self.tests |= one(number);
                    self.failed[usize::from(number)] = 0;
                }
                self.flags = number;
            }
            _ => {}
        }
    }

    fn kill(&mut self, lore: &Lore<'_>, instruction: &Instruction) {
        for register in numbers(instruction.writes.into()) {
            let about = lore.about[register];
            self.held &= !about.held;
            self.constants &= !about.constants;
            self.forget_tests(about.tests);
        }
        match instruction.memory {
            _ if instruction.fences => self.forget_memory(lore),
            Memory::Word { address, bytes } if instruction.stores => self.store(lore, address, bytes),
            Memory::Anywhere if instruction.stores => self.forget_memory(lore),
            _ => {}
        }
    }

    /// A word is written.
    fn store(&mut self, lore: &Lore<'_>, address: i32, bytes: u8) {
        for number in numbers(self.held) {
            if overlaps(lore.held[number].address, 8, address, bytes) {
                self.held &= !(1 << number);
            }
        }
        for number in numbers(self.tests & lore.of_memory) {
            if let Memory::Word { address: word, bytes: size } = lore.tests[number].memory
                && overlaps(word, size, address, bytes)
            {
                self.forget_tests(1 << number);
            }
        }
    }
}

fn overlaps(one: i32, one_bytes: u8, other: i32, other_bytes: u8) -> bool {
    let (one, other) = (i64::from(one), i64::from(other));
    one < other + i64::from(other_bytes) && other < one + i64::from(one_bytes)
}

#[cfg(test)]
mod tests {
    use super::failing;

    /// Which conditions hold after `cmp a, b` of small numbers.
    fn holding(a: i8, b: i8) -> u16 {
        let (ua, ub) = (a as u8, b as u8);
        let overflow = a.checked_sub(b).is_none();
        let sign = a.wrapping_sub(b) < 0;
        let parity = (a.wrapping_sub(b) as u8).count_ones().is_multiple_of(2);
        let even = [overflow, ua < ub, a == b, ua <= ub, sign, parity, a < b, a <= b];
        even.iter().enumerate().fold(0, |mask, (pair, holds)| mask | 1 << (2 * pair + usize::from(!holds)))
    }

    #[test]
    fn what_follows_from_a_failed_condition_is_so_for_all_numbers() {
        for a in i8::MIN..=i8::MAX {
            for b in i8::MIN..=i8::MAX {
                let holds = holding(a, b);
                for condition in (0..16).filter(|condition| holds & 1 << condition == 0) {
                    assert_eq!(failing(condition) & holds, 0, "condition {condition} of {a} and {b}");
                }
            }
        }
    }
}
