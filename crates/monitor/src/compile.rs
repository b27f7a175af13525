//! From a tree to code: each node appends its templates. [`interpret`] is the same in plain Rust (R6).

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use synth::{Abs32, Draft, HoleValue, Imm32, Label, Target, Template};

use crate::syntax::{Binary, Expression, Place, Unary, Width};
use crate::template as t;

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
    /// It stores to memory that is no variable ([`Rules::stores`]).
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

const FAULT: Label = Label(0);
const ZERO: Label = Label(1);

/// One pasted template. Its length is known before the jumps around it are filled.
struct Piece {
    template: Template,
    holes: Vec<HoleValue>,
    /// A fault in it ends the routine with `BadAddress`.
    faults: bool,
}

/// Compiles an expression into a routine without arguments, in C's calling convention: rax = value, rdx = [`Ended`].
///
/// # Errors
/// The name that cannot be used so.
pub fn compile(expression: &Expression, symbols: &mut dyn Symbols, rules: &Rules) -> Result<Draft, CompileError> {
    let mut code = Code { pieces: Vec::new(), symbols, rules, depth: 0 };
    code.evaluate(expression)?;
    let mut draft = Draft::new();
    t::Enter {}.append_to(&mut draft);
    for piece in &code.pieces {
        let from = draft.len();
        draft.append(&piece.template, &piece.holes);
        if piece.faults {
            draft.land(from, FAULT);
        }
    }
    t::Finish {}.append_to(&mut draft);
    for (label, why) in [(FAULT, Ended::BadAddress), (ZERO, Ended::DividedByZero)] {
        draft.place(label);
        t::Give { why: Imm32(why as u32) }.append_to(&mut draft);
    }
    Ok(draft)
}

/// What a routine may touch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Only here may it load from; `None`: wherever memory is. Both ends lie in the lowest or highest 2 GB.
    pub reach: Option<Range<u64>>,
    /// It may store where it wants, not only to variables.
    pub stores: bool,
}

struct Code<'a> {
    pieces: Vec<Piece>,
    symbols: &'a mut dyn Symbols,
    rules: &'a Rules,
    /// Words on the stack.
    depth: usize,
}

impl Code<'_> {
    fn paste(&mut self, template: Template, holes: &[HoleValue]) {
        self.pieces.push(Piece { template, holes: holes.to_vec(), faults: false });
    }

    fn plain(&mut self, template: Template) {
        self.paste(template, &[]);
    }

    fn may_fault(&mut self, template: Template) {
        self.pieces.push(Piece { template, holes: Vec::new(), faults: true });
    }

    fn push(&mut self) {
        self.plain(t::Push::template());
        self.depth += 1;
    }

    fn popped(&mut self, template: Template) {
        self.plain(template);
        self.depth -= 1;
    }

    fn constant(&mut self, value: u64) {
        if value as i64 == i64::from(value as i32) {
            self.paste(t::Small::template(), &[Abs32(value).into()]);
        } else {
            let (low, high) = (Imm32(value as u32), Imm32((value >> 32) as u32));
            self.paste(t::Large::template(), &[low.into(), high.into()]);
        }
    }

    /// The pieces of `inner` alone, and their length.
    fn apart(&mut self, inner: &Expression) -> Result<(Vec<Piece>, u32), CompileError> {
        let outer = core::mem::take(&mut self.pieces);
        let result = self.evaluate(inner);
        let pieces = core::mem::replace(&mut self.pieces, outer);
        result?;
        let bytes = pieces.iter().map(|piece| piece.template.bytes.len() as u32).sum();
        Ok((pieces, bytes))
    }

    fn evaluate(&mut self, expression: &Expression) -> Result<(), CompileError> {
        match expression {
            Expression::Number(value) => self.constant(*value),
            Expression::Value(place) => self.value(place)?,
            Expression::AddressOf(name) => match self.resolve(name)? {
                Symbol::Word(address) | Symbol::Variable(address) => self.constant(address),
                Symbol::Function { entry, .. } => self.constant(entry),
                Symbol::Constant(_) => return Err(CompileError::NotAPlace(name.to_string())),
            },
            Expression::Cut(width, inner) => {
                self.evaluate(inner)?;
                self.cut(*width);
            }
            Expression::Unary(operator, inner) => {
                self.evaluate(inner)?;
                self.plain(match operator {
                    Unary::Negate => t::Negate::template(),
                    Unary::Complement => t::Complement::template(),
                    Unary::Not => t::Not::template(),
                });
            }
            Expression::Binary(operator, left, right) => self.binary(*operator, left, right)?,
            Expression::Choose(condition, yes, no) => self.choose(condition, yes, no)?,
            Expression::Assign(place, value) => {
                let width = self.address(place)?;
                self.push();
                self.evaluate(value)?;
                self.store(width);
            }
            Expression::Update(operator, place, value) => {
                let width = self.address(place)?;
                self.push();
                self.plain(t::Again::template());
                self.load_at(width);
                self.push();
                self.evaluate(value)?;
                self.popped(t::PopLeft::template());
                self.operate(*operator);
                self.store(width);
            }
            Expression::Call(name, arguments) => self.call(name, arguments)?,
            Expression::Sequence(first, second) => {
                self.evaluate(first)?;
                self.evaluate(second)?;
            }
        }
        Ok(())
    }

    fn resolve(&mut self, name: &str) -> Result<Symbol, CompileError> {
        self.symbols.resolve(name).ok_or_else(|| CompileError::Unknown(name.to_string()))
    }

    fn value(&mut self, place: &Place) -> Result<(), CompileError> {
        match place {
            Place::Memory(width, address) => {
                self.evaluate(address)?;
                self.load(*width);
            }
            Place::Name(name) => match self.resolve(name)? {
                Symbol::Constant(value) => self.constant(value),
                Symbol::Function { entry, .. } => self.constant(entry),
                Symbol::Word(address) | Symbol::Variable(address) => {
                    self.constant(address);
                    self.load_at(Width::Word);
                }
            },
        }
        Ok(())
    }

    /// Where a place to assign to is.
    fn address(&mut self, place: &Place) -> Result<Width, CompileError> {
        match place {
            Place::Memory(..) if !self.rules.stores => Err(CompileError::MayNotStore),
            Place::Memory(width, address) => {
                self.evaluate(address)?;
                Ok(*width)
            }
            Place::Name(name) => match self.resolve(name)? {
                Symbol::Variable(address) => {
                    self.constant(address);
                    Ok(Width::Word)
                }
                _ => Err(CompileError::NotAPlace(name.to_string())),
            },
        }
    }

    /// Loads from an address that anything may be.
    fn load(&mut self, width: Width) {
        if let Some(reach) = &self.rules.reach {
            let bytes = Imm32((reach.end - reach.start) as u32);
            self.paste(t::Reach::template(), &[Abs32(reach.start).into(), bytes.into(), Target::Label(FAULT).into()]);
        }
        self.load_at(width);
    }

    fn load_at(&mut self, width: Width) {
        self.may_fault(match width {
            Width::U8 => t::LoadU8::template(),
            Width::I8 => t::LoadI8::template(),
            Width::U16 => t::LoadU16::template(),
            Width::I16 => t::LoadI16::template(),
            Width::U32 => t::LoadU32::template(),
            Width::I32 => t::LoadI32::template(),
            Width::Word => t::LoadWord::template(),
        });
    }

    /// Stores rax at the address that waits; the value is what the place then holds.
    fn store(&mut self, width: Width) {
        self.popped(t::PopAddress::template());
        self.may_fault(match width {
            Width::U8 | Width::I8 => t::Store8::template(),
            Width::U16 | Width::I16 => t::Store16::template(),
            Width::U32 | Width::I32 => t::Store32::template(),
            Width::Word => t::StoreWord::template(),
        });
        self.cut(width);
    }

    fn cut(&mut self, width: Width) {
        let template = match width {
            Width::U8 => t::CutU8::template(),
            Width::I8 => t::CutI8::template(),
            Width::U16 => t::CutU16::template(),
            Width::I16 => t::CutI16::template(),
            Width::U32 => t::CutU32::template(),
            Width::I32 => t::CutI32::template(),
            Width::Word => return,
        };
        self.plain(template);
    }

    fn binary(&mut self, operator: Binary, left: &Expression, right: &Expression) -> Result<(), CompileError> {
        self.evaluate(left)?;
        if matches!(operator, Binary::And | Binary::Or) {
            let (pieces, bytes) = self.apart(right)?;
            let skip = if operator == Binary::And { t::SkipIfZero::template() } else { t::SkipIfNotZero::template() };
            self.paste(skip, &[Imm32(bytes).into()]);
            self.pieces.extend(pieces);
            self.plain(t::Truth::template());
            return Ok(());
        }
        self.push();
        self.evaluate(right)?;
        self.popped(t::PopLeft::template());
        self.operate(operator);
        Ok(())
    }

    /// rax = rax operator rcx.
    fn operate(&mut self, operator: Binary) {
        let template = match operator {
            Binary::Add => t::Add::template(),
            Binary::Subtract => t::Subtract::template(),
            Binary::Multiply => t::Multiply::template(),
            Binary::Divide | Binary::Remainder => {
                self.paste(t::Divide::template(), &[Target::Label(ZERO).into()]);
                if operator == Binary::Divide {
                    return;
                }
                t::Remainder::template()
            }
            Binary::BitAnd => t::BitAnd::template(),
            Binary::BitOr => t::BitOr::template(),
            Binary::BitXor => t::BitXor::template(),
            Binary::ShiftLeft => t::ShiftLeft::template(),
            Binary::ShiftRight => t::ShiftRight::template(),
            Binary::Equal => t::Equal::template(),
            Binary::NotEqual => t::NotEqual::template(),
            Binary::Less => t::Less::template(),
            Binary::LessEqual => t::LessEqual::template(),
            Binary::Greater => return self.negated(t::LessEqual::template()),
            Binary::GreaterEqual => return self.negated(t::Less::template()),
            // Only whole expressions have these (see `binary`).
            Binary::And | Binary::Or => t::Truth::template(),
        };
        self.plain(template);
    }

    fn negated(&mut self, template: Template) {
        self.plain(template);
        self.plain(t::Not::template());
    }

    fn choose(&mut self, condition: &Expression, yes: &Expression, no: &Expression) -> Result<(), CompileError> {
        self.evaluate(condition)?;
        let (yes, yes_bytes) = self.apart(yes)?;
        let (no, no_bytes) = self.apart(no)?;
        let skip = t::Skip::template();
        self.paste(t::SkipIfZero::template(), &[Imm32(yes_bytes + skip.bytes.len() as u32).into()]);
        self.pieces.extend(yes);
        self.paste(skip, &[Imm32(no_bytes).into()]);
        self.pieces.extend(no);
        Ok(())
    }

    fn call(&mut self, name: &str, arguments: &[Expression]) -> Result<(), CompileError> {
        let Symbol::Function { entry, arguments: takes } = self.resolve(name)? else {
            return Err(CompileError::NotAFunction(name.to_string()));
        };
        if takes != arguments.len() || takes > crate::ARGUMENTS_MAX {
            return Err(CompileError::Arguments { name: name.to_string(), takes, given: arguments.len() });
        }
        let uneven = self.depth % 2 == 1;
        if uneven {
            self.plain(t::Align::template());
            self.depth += 1;
        }
        self.constant(entry);
        self.push();
        for argument in arguments {
            self.evaluate(argument)?;
            self.push();
        }
        let registers = [
            t::PopRdi::template(),
            t::PopRsi::template(),
            t::PopRdx::template(),
            t::PopRcx::template(),
            t::PopR8::template(),
            t::PopR9::template(),
        ];
        for register in registers[..takes].iter().rev() {
            self.popped(*register);
        }
        self.popped(t::PopRax::template());
        self.plain(t::Call::template());
        if uneven {
            self.popped(t::Unalign::template());
        }
        Ok(())
    }
}

/// What an interpreted expression may touch.
pub trait World: Symbols {
    fn load(&mut self, address: u64, width: Width) -> Option<u64>;
    /// `false`: there is no such memory.
    fn store(&mut self, address: u64, width: Width, value: u64) -> bool;
    fn call(&mut self, entry: u64, arguments: &[u64]) -> u64;
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

/// The generic twin of a compiled routine: walks the tree. It expects names that `compile` has accepted.
///
/// # Errors
/// How the routine would have ended.
pub fn interpret(expression: &Expression, world: &mut dyn World) -> Result<u64, Ended> {
    Ok(match expression {
        Expression::Number(value) => *value,
        Expression::Value(Place::Memory(width, address)) => {
            let address = interpret(address, world)?;
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
        Expression::Cut(width, inner) => cut(*width, interpret(inner, world)?),
        Expression::Unary(operator, inner) => {
            let value = interpret(inner, world)?;
            match operator {
                Unary::Negate => value.wrapping_neg(),
                Unary::Complement => !value,
                Unary::Not => u64::from(value == 0),
            }
        }
        Expression::Binary(operator, left, right) => {
            let left = interpret(left, world)?;
            match (operator, left) {
                (Binary::And, 0) => 0,
                (Binary::Or, 1..) => 1,
                _ => operate(*operator, left, interpret(right, world)?)?,
            }
        }
        Expression::Choose(condition, yes, no) => {
            let chosen = if interpret(condition, world)? != 0 { yes } else { no };
            interpret(chosen, world)?
        }
        Expression::Assign(place, value) => {
            let (address, width) = address(place, world)?;
            let value = interpret(value, world)?;
            put(world, address, width, value)?
        }
        Expression::Update(operator, place, value) => {
            let (address, width) = address(place, world)?;
            let old = world.load(address, width).ok_or(Ended::BadAddress)?;
            let value = operate(*operator, old, interpret(value, world)?)?;
            put(world, address, width, value)?
        }
        Expression::Call(name, arguments) => {
            let mut words = Vec::new();
            for argument in arguments {
                words.push(interpret(argument, world)?);
            }
            match world.resolve(name) {
                Some(Symbol::Function { entry, .. }) => world.call(entry, &words),
                _ => return Err(Ended::BadAddress),
            }
        }
        Expression::Sequence(first, second) => {
            interpret(first, world)?;
            interpret(second, world)?
        }
    })
}

fn put(world: &mut dyn World, address: u64, width: Width, value: u64) -> Result<u64, Ended> {
    if world.store(address, width, value) { Ok(cut(width, value)) } else { Err(Ended::BadAddress) }
}

fn address(place: &Place, world: &mut dyn World) -> Result<(u64, Width), Ended> {
    match place {
        Place::Memory(width, address) => Ok((interpret(address, world)?, *width)),
        Place::Name(name) => match world.resolve(name) {
            Some(Symbol::Variable(address)) => Ok((address, Width::Word)),
            _ => Err(Ended::BadAddress),
        },
    }
}

fn operate(operator: Binary, left: u64, right: u64) -> Result<u64, Ended> {
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
