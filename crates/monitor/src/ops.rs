//! Operations of a stack machine with one register: what an expression is on its way from the host tool to the kernel.
//!
//! ```text
//!   0 u64 number   1 push   2 truth   3 begin call   4 u64 store to variable   5 u64, u8 call with so many arguments
//!   6, 7, 8 u16 skip so many operations: always, if zero, if not zero
//!   0x10 + unary   0x20 + binary but && and ||   0x40 + width: cut   0x50 + width: load
//! ```
//! The kernel takes them from anybody: [`decode`] checks that the stack is even wherever ways meet, so that code made of
//! them returns to where it came from.

use alloc::vec::Vec;

use crate::lower::Ended;
use crate::syntax::{Binary, Unary, Width};

/// One operation. The value is in the register; what waits is on the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Number(u64),
    Push,
    /// 0 stays, all else becomes 1.
    Truth,
    Unary(Unary),
    /// Pops the left operand; the right one is in the register.
    Binary(Binary),
    Cut(Width),
    /// Loads from the address in the register.
    Load(Width),
    /// Stores the register to a variable; it stays.
    Store(u64),
    Skip(u16),
    SkipIfZero(u16),
    SkipIfNotZero(u16),
    /// Arguments of a call will be pushed.
    BeginCall,
    Call {
        entry: u64,
        arguments: u8,
    },
}

const UNARIES: [Unary; 3] = [Unary::Negate, Unary::Complement, Unary::Not];
/// Most operations of an expression.
pub const OPS_MAX: usize = 400;
/// Most words on the stack.
pub const STACK_MAX: usize = 64;

/// Appends an operation's bytes.
pub fn encode(op: Op, out: &mut Vec<u8>) {
    let place = |found: Option<usize>, base: u8| base + found.unwrap_or(0) as u8;
    match op {
        Op::Number(value) => (out.push(0), out.extend(value.to_le_bytes())).1,
        Op::Push => out.push(1),
        Op::Truth => out.push(2),
        Op::BeginCall => out.push(3),
        Op::Store(variable) => (out.push(4), out.extend(variable.to_le_bytes())).1,
        Op::Call { entry, arguments } => {
            out.push(5);
            out.extend(entry.to_le_bytes());
            out.push(arguments);
        }
        Op::Skip(over) => (out.push(6), out.extend(over.to_le_bytes())).1,
        Op::SkipIfZero(over) => (out.push(7), out.extend(over.to_le_bytes())).1,
        Op::SkipIfNotZero(over) => (out.push(8), out.extend(over.to_le_bytes())).1,
        Op::Unary(operator) => out.push(place(UNARIES.iter().position(|known| *known == operator), 0x10)),
        Op::Binary(operator) => out.push(place(Binary::ALL.iter().position(|known| *known == operator), 0x20)),
        Op::Cut(width) => out.push(place(Width::ALL.iter().position(|known| *known == width), 0x40)),
        Op::Load(width) => out.push(place(Width::ALL.iter().position(|known| *known == width), 0x50)),
    }
}

/// What operations may name.
pub trait Allowed {
    /// There is a variable at this address.
    fn is_variable(&self, address: u64) -> bool;
    /// A function of C's calling convention that takes so many arguments begins here.
    fn is_function(&self, entry: u64, arguments: u8) -> bool;
}

/// Reads operations; `None` for what is none, names what it must not, or would leave the stack uneven.
pub fn decode(mut bytes: &[u8], allowed: &dyn Allowed) -> Option<Vec<Op>> {
    let mut ops = Vec::new();
    while let Some((code, rest)) = bytes.split_first() {
        bytes = rest;
        let mut take = |count: usize| {
            let (front, rest) = bytes.split_at_checked(count)?;
            bytes = rest;
            let mut word = [0; 8];
            word[..count].copy_from_slice(front);
            Some(u64::from_le_bytes(word))
        };
        let low = usize::from(code & 15);
        ops.push(match code {
            0 => Op::Number(take(8)?),
            1 => Op::Push,
            2 => Op::Truth,
            3 => Op::BeginCall,
            4 => Op::Store(take(8).filter(|address| allowed.is_variable(*address))?),
            5 => {
                let (entry, arguments) = (take(8)?, take(1)? as u8);
                allowed.is_function(entry, arguments).then_some(Op::Call { entry, arguments })?
            }
            6 => Op::Skip(take(2)? as u16),
            7 => Op::SkipIfZero(take(2)? as u16),
            8 => Op::SkipIfNotZero(take(2)? as u16),
            0x10.. => match code >> 4 {
                1 => Op::Unary(*UNARIES.get(low)?),
                2 => Op::Binary(Binary::ALL[low]),
                4 => Op::Cut(*Width::ALL.get(low)?),
                5 => Op::Load(*Width::ALL.get(low)?),
                _ => return None,
            },
            _ => return None,
        });
        if ops.len() > OPS_MAX {
            return None;
        }
    }
    is_even(&ops).then_some(ops)
}

/// Wherever two ways meet the stack holds as much on both, no call's arguments are taken from below its begin, and in the
/// end it is empty.
fn is_even(ops: &[Op]) -> bool {
    // Depth and open calls at the end of each skip, 255: no skip ends there.
    let mut expected = alloc::vec![(255u8, 0u8); ops.len() + 1];
    let (mut depth, mut calls) = (0u8, Vec::new());
    for (at, op) in ops.iter().enumerate() {
        if expected[at].0 != 255 && expected[at] != (depth, calls.len() as u8) {
            return false;
        }
        // Nothing below the last open call's begin is popped.
        let floor = calls.last().map_or(0, |(begin, _)| *begin);
        match op {
            Op::Push => depth += 1,
            Op::Binary(_) if depth > floor => depth -= 1,
            Op::BeginCall => {
                // For evenness a word may be put in between; `compile` does it where the depth is odd.
                calls.push((depth + depth % 2, depth % 2));
                depth += depth % 2;
            }
            Op::Call { arguments, .. } if depth == floor + arguments => {
                let Some((begin, padding)) = calls.pop() else { return false };
                depth = begin - padding;
            }
            Op::Skip(over) | Op::SkipIfZero(over) | Op::SkipIfNotZero(over) => {
                let Some(end) = expected.get_mut(at + 1 + usize::from(*over)) else { return false };
                let here = (depth, calls.len() as u8);
                if end.0 != 255 && *end != here {
                    return false;
                }
                *end = here;
            }
            Op::Binary(_) | Op::Call { .. } => return false,
            _ => {}
        }
        if usize::from(depth) > STACK_MAX || calls.len() > STACK_MAX {
            return false;
        }
    }
    let end = expected[ops.len()];
    depth == 0 && calls.is_empty() && (end.0 == 255 || end == (0, 0))
}

/// The value cut to a width, as a word.
pub fn cut(width: Width, value: u64) -> u64 {
    match width {
        Width::U8 => u64::from(value as u8),
        Width::I8 => value as i8 as u64,
        Width::U16 => u64::from(value as u16),
        Width::I16 => value as i16 as u64,
        Width::U32 => u64::from(value as u32),
        Width::I32 => value as i32 as u64,
        Width::Word => value,
    }
}

/// `left operator right`.
///
/// # Errors
/// Division by zero.
pub fn operate(operator: Binary, left: u64, right: u64) -> Result<u64, Ended> {
    let (a, b) = (left as i64, right as i64);
    Ok(match operator {
        Binary::Add => left.wrapping_add(right),
        Binary::Subtract => left.wrapping_sub(right),
        Binary::Multiply => left.wrapping_mul(right),
        Binary::Divide | Binary::Remainder if b == 0 => return Err(Ended::DividedByZero),
        Binary::Divide => a.wrapping_div(b) as u64,
        Binary::Remainder => a.wrapping_rem(b) as u64,
        Binary::BitAnd => left & right,
        Binary::BitOr => left | right,
        Binary::BitXor => left ^ right,
        Binary::ShiftLeft => left << (right & 63),
        Binary::ShiftRight => (a >> (right & 63)) as u64,
        Binary::Equal => (a == b).into(),
        Binary::NotEqual => (a != b).into(),
        Binary::Less => (a < b).into(),
        Binary::LessEqual => (a <= b).into(),
        Binary::Greater => (a > b).into(),
        Binary::GreaterEqual => (a >= b).into(),
        Binary::And => (left != 0 && right != 0).into(),
        Binary::Or => (left != 0 || right != 0).into(),
    })
}
