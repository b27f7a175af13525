//! What an expression means: a walk over its tree, for comparison with what is made of it.

use alloc::vec::Vec;

use crate::compile::World;
use crate::lower::{Ended, Symbol, Symbols};
use crate::ops::{cut, operate};
use crate::syntax::{Binary, Expression, Place, Unary, Width};

/// Walks the tree. It expects names that `lower` has accepted.
///
/// # Errors
/// How the routine would have ended.
pub fn walk<W: Symbols + World>(expression: &Expression, world: &mut W) -> Result<u64, Ended> {
    Ok(match expression {
        Expression::Number(value) => *value,
        Expression::Value(Place::Memory(width, address)) => {
            let address = walk(address, world)?;
            world.load(address, *width).ok_or(Ended::BadAddress)?
        }
        Expression::Value(Place::Name(name)) => match world.resolve(name).ok_or(Ended::BadAddress)? {
            Symbol::Constant(value) | Symbol::Function { entry: value, .. } => value,
            Symbol::Word(address) | Symbol::Variable(address) => {
                world.load(address, Width::Word).ok_or(Ended::BadAddress)?
            }
        },
        Expression::AddressOf(name) => match world.resolve(name).ok_or(Ended::BadAddress)? {
            Symbol::Word(value) | Symbol::Variable(value) | Symbol::Constant(value) => value,
            Symbol::Function { entry, .. } => entry,
        },
        Expression::Cut(width, inner) => cut(*width, walk(inner, world)?),
        Expression::Unary(operator, inner) => {
            let value = walk(inner, world)?;
            match operator {
                Unary::Negate => value.wrapping_neg(),
                Unary::Complement => !value,
                Unary::Not => u64::from(value == 0),
            }
        }
        Expression::Binary(operator, left, right) => {
            let left = walk(left, world)?;
            match (operator, left) {
                (Binary::And, 0) => 0,
                (Binary::Or, 1..) => 1,
                _ => operate(*operator, left, walk(right, world)?)?,
            }
        }
        Expression::Choose(condition, yes, no) => {
            let chosen = if walk(condition, world)? != 0 { yes } else { no };
            walk(chosen, world)?
        }
        Expression::Assign(place, value) => {
            let address = variable(place, world)?;
            let value = walk(value, world)?;
            world.store(address, value);
            value
        }
        Expression::Update(operator, place, value) => {
            let address = variable(place, world)?;
            let old = world.load(address, Width::Word).ok_or(Ended::BadAddress)?;
            let value = operate(*operator, old, walk(value, world)?)?;
            world.store(address, value);
            value
        }
        Expression::Call(name, arguments) => {
            let mut words = Vec::new();
            for argument in arguments {
                words.push(walk(argument, world)?);
            }
            match world.resolve(name) {
                Some(Symbol::Function { entry, .. }) => world.call(entry, &words),
                _ => return Err(Ended::BadAddress),
            }
        }
        Expression::Sequence(first, second) => {
            walk(first, world)?;
            walk(second, world)?
        }
    })
}

fn variable<W: Symbols>(place: &Place, world: &mut W) -> Result<u64, Ended> {
    match place {
        Place::Name(name) => match world.resolve(name) {
            Some(Symbol::Variable(address)) => Ok(address),
            _ => Err(Ended::BadAddress),
        },
        Place::Memory(..) => Err(Ended::BadAddress),
    }
}
