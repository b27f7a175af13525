//! What is known at one place of a routine, whichever way led there.

use alloc::vec::Vec;

use super::instruction::{Flags, Instruction, Kind, Memory, Registers, Width};

/// Bit per condition of `jcc`.
pub type Conditions = u16;

/// A register holds what a word holds.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Held {
    register: u8,
    address: i32,
    width: Width,
}

/// A comparison that was made, and the conditions that did not hold after it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Test<'a> {
    /// The instruction's bytes: the same comparison of the same operands.
    code: &'a [u8],
    reads: Registers,
    memory: Memory,
    immediate: Option<(u8, u64)>,
    failed: Conditions,
}

#[derive(Clone, Default)]
pub struct Facts<'a> {
    held: Vec<Held>,
    constants: Vec<(u8, u64)>,
    tests: Vec<Test<'a>>,
    /// Whose flags stand, by number in `tests`.
    flags: Option<usize>,
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

impl<'a> Facts<'a> {
    pub fn at_entry(constant: Option<(u8, u64)>) -> Facts<'a> {
        Facts { constants: constant.into_iter().collect(), ..Facts::default() }
    }

    /// What holds on both of two ways.
    pub fn meet(&mut self, other: &Facts<'a>) {
        self.flags = None;
        self.held.retain(|held| other.held.contains(held));
        self.constants.retain(|constant| other.constants.contains(constant));
        self.tests.retain_mut(|test| match other.tests.iter().find(|same| same.code == test.code) {
            Some(same) => {
                test.failed &= same.failed;
                test.failed != 0
            }
            None => false,
        });
    }

    fn constant(&self, register: u8) -> Option<u64> {
        self.constants.iter().find(|(known, _)| *known == register).map(|(_, value)| *value)
    }

    fn holds(&self, register: u8, address: i32, width: Width) -> bool {
        self.held.contains(&Held { register, address, width })
    }

    /// Whether `instruction` does something that is not so already.
    pub fn judge(&self, instruction: &Instruction) -> Verdict {
        match instruction.kind {
            Kind::Constant { register, value } if self.constant(register) == Some(value) => Verdict::Redundant,
            Kind::Store { register, address } if self.holds(register, address, Width::Quad) => Verdict::Redundant,
            Kind::Load { register, address, width } if self.holds(register, address, width) => Verdict::Redundant,
            Kind::Load { register, address, width: width @ (Width::Quad | Width::Half) } => {
                let whole = |held: &&Held| held.address == address && held.width == Width::Quad;
                match self.held.iter().find(whole) {
                    Some(held) => Verdict::CopyOf { register, from: held.register, width },
                    None => Verdict::Needed,
                }
            }
            _ => Verdict::Needed,
        }
    }

    /// Whether a branch is known not to be taken.
    pub fn fails(&self, condition: u8) -> bool {
        let Some(test) = self.flags.map(|flags| &self.tests[flags]) else { return false };
        let by_value = || {
            let (register, value) = test.immediate?;
            let known = self.constant(register)?;
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
        test.failed & 1 << condition != 0 || by_value() == Some(true)
    }

    /// `condition` of the flags did not hold: the branch was not taken, or its opposite was.
    pub fn learn(&mut self, condition: u8) {
        let Some(flags) = self.flags else { return };
        self.tests[flags].failed |= failing(condition);
        if condition == EQUAL ^ 1
            && let Some((register, value)) = self.tests[flags].immediate
            && self.constant(register).is_none()
        {
            self.constants.push((register, value));
        }
    }

    /// Nothing is known of memory any more.
    pub fn forget_memory(&mut self) {
        self.held.clear();
        self.forget_tests(|test| test.memory != Memory::None);
    }

    fn forget_tests(&mut self, mut forget: impl FnMut(&Test<'a>) -> bool) {
        let flags = self.flags.map(|flags| self.tests[flags].code);
        self.tests.retain(|test| !forget(test));
        self.flags = flags.and_then(|code| self.tests.iter().position(|test| core::ptr::eq(test.code, code)));
    }

    /// After `instruction`, whose bytes are `code`.
    pub fn pass(&mut self, instruction: &Instruction, code: &'a [u8]) {
        let copied = match instruction.kind {
            Kind::Copy { from, .. } => self.facts_of(from),
            _ => Vec::new(),
        };
        self.kill(instruction);
        if instruction.flags != Flags::Keeps {
            self.flags = None;
        }
        match instruction.kind {
            Kind::Constant { register, value } => self.constants.push((register, value)),
            Kind::Copy { register, .. } => self.held.extend(copied.iter().map(|held| Held { register, ..*held })),
            Kind::Load { register, address, width } => self.held.push(Held { register, address, width }),
            Kind::Store { register, address } => {
                self.held.push(Held { register, address, width: Width::Quad });
            }
            Kind::Compare { immediate } if instruction.memory != Memory::Anywhere => {
                self.compared(instruction, code, immediate);
            }
            _ => {}
        }
    }

    fn facts_of(&self, register: u8) -> Vec<Held> {
        self.held.iter().filter(|held| held.register == register).copied().collect()
    }

    fn compared(&mut self, instruction: &Instruction, code: &'a [u8], immediate: Option<(u8, u64)>) {
        let known = self.tests.iter().position(|test| test.code == code);
        self.flags = Some(known.unwrap_or_else(|| {
            let (reads, memory) = (instruction.reads, instruction.memory);
            self.tests.push(Test { code, reads, memory, immediate, failed: 0 });
            self.tests.len() - 1
        }));
    }

    fn kill(&mut self, instruction: &Instruction) {
        let writes = instruction.writes;
        if writes != 0 {
            self.held.retain(|held| writes & 1 << held.register == 0);
            self.constants.retain(|(register, _)| writes & 1 << register == 0);
            self.forget_tests(|test| test.reads & writes != 0);
        }
        match instruction.memory {
            _ if instruction.fences => self.forget_memory(),
            Memory::Word { address, bytes } if instruction.stores => {
                self.held.retain(|held| !overlaps(held.address, 8, address, bytes));
                self.forget_tests(|test| match test.memory {
                    Memory::Word { address: word, bytes: size } => overlaps(word, size, address, bytes),
                    _ => false,
                });
            }
            Memory::Anywhere if instruction.stores => self.forget_memory(),
            _ => {}
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
