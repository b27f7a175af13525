//! From a tree to operations of a stack machine ([`Op`]): the host tool does this, the kernel makes code of them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::ops::Op;
use crate::syntax::{Binary, Expression, Place, Width};

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Symbol {
    /// A number, or a place in code that is not called: a callentry with a contract of its own.
    Constant(u64),
    /// A word at this address, to look at.
    Word(u64),
    /// A word at this address, to assign to.
    Variable(u64),
    /// A function of C's calling convention that takes so many words.
    Function { entry: u64, arguments: usize },
}

/// What names mean.
pub trait Symbols {
    /// `None`: there is no such name. A name that begins with `$` may be made on the spot.
    fn resolve(&mut self, name: &str) -> Option<Symbol>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CompileError {
    Unknown(String),
    /// It cannot be assigned to, or has no address.
    NotAPlace(String),
    NotAFunction(String),
    /// It stores to memory that is no variable.
    MayNotStore,
    /// A function of so many arguments was given others.
    Arguments {
        name: String,
        takes: usize,
        given: usize,
    },
}

/// How a routine ended: rdx when it returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Ended {
    Well = 0,
    /// It loaded or stored where there is no memory, or none of that kind.
    BadAddress = 1,
    DividedByZero = 2,
}

impl Ended {
    /// From what rdx held.
    pub fn from_word(word: u64) -> Ended {
        match word {
            0 => Ended::Well,
            2 => Ended::DividedByZero,
            _ => Ended::BadAddress,
        }
    }
}

/// The operations of an expression.
///
/// # Errors
/// The name that cannot be used so.
pub fn lower(expression: &Expression, symbols: &mut dyn Symbols) -> Result<Vec<Op>, CompileError> {
    let mut lowering = Lowering { ops: Vec::new(), symbols };
    lowering.evaluate(expression)?;
    Ok(lowering.ops)
}

struct Lowering<'a> {
    ops: Vec<Op>,
    symbols: &'a mut dyn Symbols,
}

impl Lowering<'_> {
    fn evaluate(&mut self, expression: &Expression) -> Result<(), CompileError> {
        match expression {
            Expression::Number(value) => self.ops.push(Op::Number(*value)),
            Expression::Value(place) => self.value(place)?,
            Expression::AddressOf(name) => match self.resolve(name)? {
                Symbol::Word(value) | Symbol::Variable(value) | Symbol::Function { entry: value, .. } => {
                    self.ops.push(Op::Number(value));
                }
                Symbol::Constant(_) => return Err(CompileError::NotAPlace(name.to_string())),
            },
            Expression::Cut(width, inner) => {
                self.evaluate(inner)?;
                self.ops.push(Op::Cut(*width));
            }
            Expression::Unary(operator, inner) => {
                self.evaluate(inner)?;
                self.ops.push(Op::Unary(*operator));
            }
            Expression::Binary(operator, left, right) => self.binary(*operator, left, right)?,
            Expression::Choose(condition, yes, no) => {
                self.evaluate(condition)?;
                let to_no = self.hole(Op::SkipIfZero(0));
                self.evaluate(yes)?;
                let to_end = self.hole(Op::Skip(0));
                self.fill(to_no);
                self.evaluate(no)?;
                self.fill(to_end);
            }
            Expression::Assign(place, value) => {
                let variable = self.variable(place)?;
                self.evaluate(value)?;
                self.ops.push(Op::Store(variable));
            }
            Expression::Update(operator, place, value) => {
                let variable = self.variable(place)?;
                self.ops.extend([Op::Number(variable), Op::Load(Width::Word), Op::Push]);
                self.evaluate(value)?;
                self.ops.extend([Op::Binary(*operator), Op::Store(variable)]);
            }
            Expression::Call(name, arguments) => self.call(name, arguments)?,
            Expression::Sequence(first, second) => {
                self.evaluate(first)?;
                self.evaluate(second)?;
            }
        }
        Ok(())
    }

    /// An operation that [`Self::fill`] has skip to where it is called.
    fn hole(&mut self, op: Op) -> usize {
        self.ops.push(op);
        self.ops.len() - 1
    }

    fn fill(&mut self, at: usize) {
        let distance = (self.ops.len() - at - 1) as u16;
        if let Op::Skip(over) | Op::SkipIfZero(over) | Op::SkipIfNotZero(over) = &mut self.ops[at] {
            *over = distance;
        }
    }

    fn resolve(&mut self, name: &str) -> Result<Symbol, CompileError> {
        self.symbols.resolve(name).ok_or_else(|| CompileError::Unknown(name.to_string()))
    }

    fn value(&mut self, place: &Place) -> Result<(), CompileError> {
        match place {
            Place::Memory(width, address) => {
                self.evaluate(address)?;
                self.ops.push(Op::Load(*width));
            }
            Place::Name(name) => match self.resolve(name)? {
                Symbol::Constant(value) | Symbol::Function { entry: value, .. } => self.ops.push(Op::Number(value)),
                Symbol::Word(address) | Symbol::Variable(address) => {
                    self.ops.extend([Op::Number(address), Op::Load(Width::Word)]);
                }
            },
        }
        Ok(())
    }

    /// The variable to assign to.
    fn variable(&mut self, place: &Place) -> Result<u64, CompileError> {
        let Place::Name(name) = place else { return Err(CompileError::MayNotStore) };
        match self.resolve(name)? {
            Symbol::Variable(address) => Ok(address),
            _ => Err(CompileError::NotAPlace(name.to_string())),
        }
    }

    fn binary(&mut self, operator: Binary, left: &Expression, right: &Expression) -> Result<(), CompileError> {
        self.evaluate(left)?;
        if matches!(operator, Binary::And | Binary::Or) {
            let skip = if operator == Binary::And { Op::SkipIfZero(0) } else { Op::SkipIfNotZero(0) };
            let skip = self.hole(skip);
            self.evaluate(right)?;
            self.fill(skip);
            self.ops.push(Op::Truth);
            return Ok(());
        }
        self.ops.push(Op::Push);
        self.evaluate(right)?;
        self.ops.push(Op::Binary(operator));
        Ok(())
    }

    fn call(&mut self, name: &str, arguments: &[Expression]) -> Result<(), CompileError> {
        let Symbol::Function { entry, arguments: takes } = self.resolve(name)? else {
            return Err(CompileError::NotAFunction(name.to_string()));
        };
        if takes != arguments.len() || takes > crate::ARGUMENTS_MAX {
            return Err(CompileError::Arguments { name: name.to_string(), takes, given: arguments.len() });
        }
        self.ops.push(Op::BeginCall);
        for argument in arguments {
            self.evaluate(argument)?;
            self.ops.push(Op::Push);
        }
        self.ops.push(Op::Call { entry, arguments: takes as u8 });
        Ok(())
    }
}
