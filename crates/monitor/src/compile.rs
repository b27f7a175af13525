//! From operations to code: each is a template or two, pasted in order. [`interpret`] is the same in plain Rust (R6).

use alloc::vec::Vec;
use core::ops::Range;

use synth::{Abs32, Draft, HoleValue, Imm32, Label, Target, Template};

use crate::lower::Ended;
use crate::ops::{Op, operate};
use crate::syntax::{Binary, Unary, Width};
use crate::template as t;

const FAULT: Label = Label(0);
const ZERO: Label = Label(1);

/// One pasted template. Its length is known before the jumps around it are filled.
struct Piece {
    template: Template,
    holes: Vec<HoleValue>,
    /// A fault in it ends the routine with `BadAddress`.
    faults: bool,
}

/// Compiles operations that [`crate::decode`] has accepted into a routine without arguments, in C's calling convention:
/// rax = value, rdx = [`Ended`]. It loads from `reach` alone if one is given, which lies in the lowest or highest 2 GB.
pub fn compile(ops: &[Op], reach: Option<&Range<u64>>) -> Draft {
    let mut code = Code { pieces: Vec::new(), reach, depth: 0, calls: Vec::new() };
    // Where the pieces of each operation begin, by number and in bytes.
    let mut starts = Vec::with_capacity(ops.len() + 1);
    for op in ops {
        starts.push(code.pieces.len());
        code.paste_op(*op);
    }
    starts.push(code.pieces.len());
    let mut offsets = Vec::with_capacity(code.pieces.len() + 1);
    let mut offset = 0;
    for piece in &code.pieces {
        offsets.push(offset);
        offset += piece.template.bytes.len() as u32;
    }
    offsets.push(offset);
    for (at, op) in ops.iter().enumerate() {
        if let Op::Skip(over) | Op::SkipIfZero(over) | Op::SkipIfNotZero(over) = op {
            let (from, to) = (starts[at], starts[(at + 1 + usize::from(*over)).min(ops.len())]);
            code.pieces[from].holes = alloc::vec![Imm32(offsets[to] - offsets[from + 1]).into()];
        }
    }
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
    draft
}

struct Code<'a> {
    pieces: Vec<Piece>,
    reach: Option<&'a Range<u64>>,
    /// Words on the stack.
    depth: usize,
    /// Whether a word was put in between before the arguments of each open call.
    calls: Vec<bool>,
}

type Templates = &'static [fn() -> Template];

const BINARIES: [(Binary, Templates); 14] = [
    (Binary::Add, &[t::Add::template]),
    (Binary::Subtract, &[t::Subtract::template]),
    (Binary::Multiply, &[t::Multiply::template]),
    (Binary::BitAnd, &[t::BitAnd::template]),
    (Binary::BitOr, &[t::BitOr::template]),
    (Binary::BitXor, &[t::BitXor::template]),
    (Binary::ShiftLeft, &[t::ShiftLeft::template]),
    (Binary::ShiftRight, &[t::ShiftRight::template]),
    (Binary::Equal, &[t::Equal::template]),
    (Binary::NotEqual, &[t::Equal::template, t::Not::template]),
    (Binary::Less, &[t::Less::template]),
    (Binary::LessEqual, &[t::LessEqual::template]),
    (Binary::Greater, &[t::LessEqual::template, t::Not::template]),
    (Binary::GreaterEqual, &[t::Less::template, t::Not::template]),
];

const POPS: [fn() -> Template; 6] = [
    t::PopRdi::template,
    t::PopRsi::template,
    t::PopRdx::template,
    t::PopRcx::template,
    t::PopR8::template,
    t::PopR9::template,
];

impl Code<'_> {
    fn paste(&mut self, template: Template, holes: &[HoleValue]) {
        self.pieces.push(Piece { template, holes: holes.to_vec(), faults: false });
    }

    fn plain(&mut self, template: Template) {
        self.paste(template, &[]);
    }

    fn paste_op(&mut self, op: Op) {
        match op {
            Op::Number(value) => self.number(value),
            Op::Push => {
                self.plain(t::Push::template());
                self.depth += 1;
            }
            Op::Truth => {
                self.plain(t::Not::template());
                self.plain(t::Not::template());
            }
            Op::Unary(Unary::Negate) => self.plain(t::Negate::template()),
            Op::Unary(Unary::Complement) => self.plain(t::Complement::template()),
            Op::Unary(Unary::Not) => self.plain(t::Not::template()),
            Op::Binary(operator) => self.binary(operator),
            Op::Cut(width) => self.cut(width),
            Op::Load(width) => self.load(width),
            Op::Store(variable) => self.paste(t::StoreVariable::template(), &[Abs32(variable).into()]),
            Op::Skip(_) => self.plain(t::Skip::template()),
            Op::SkipIfZero(_) => self.plain(t::SkipIfZero::template()),
            Op::SkipIfNotZero(_) => self.plain(t::SkipIfNotZero::template()),
            Op::BeginCall => {
                let is_odd = self.depth % 2 == 1;
                if is_odd {
                    self.plain(t::Push::template());
                    self.depth += 1;
                }
                self.calls.push(is_odd);
            }
            Op::Call { entry, arguments } => self.call(entry, arguments.into()),
        }
    }

    fn number(&mut self, value: u64) {
        if value as i64 == i64::from(value as i32) {
            self.paste(t::Small::template(), &[Abs32(value).into()]);
        } else {
            let (low, high) = (Imm32(value as u32), Imm32((value >> 32) as u32));
            self.paste(t::Large::template(), &[low.into(), high.into()]);
        }
    }

    fn binary(&mut self, operator: Binary) {
        self.plain(t::PopLeft::template());
        self.depth = self.depth.saturating_sub(1);
        if matches!(operator, Binary::Divide | Binary::Remainder) {
            self.paste(t::Divide::template(), &[Target::Label(ZERO).into()]);
            if operator == Binary::Remainder {
                self.plain(t::Remainder::template());
            }
        }
        let found = BINARIES.iter().find(|(known, _)| *known == operator);
        for template in found.map_or(&[][..], |(_, templates)| templates) {
            self.plain(template());
        }
    }

    /// Loads from an address that anything may be.
    fn load(&mut self, width: Width) {
        if let Some(reach) = self.reach {
            let bytes = Imm32((reach.end - reach.start) as u32);
            self.paste(t::Reach::template(), &[Abs32(reach.start).into(), bytes.into(), Target::Label(FAULT).into()]);
        }
        let template = match width {
            Width::U8 | Width::I8 => t::LoadU8::template(),
            Width::U16 | Width::I16 => t::LoadU16::template(),
            Width::U32 | Width::I32 => t::LoadU32::template(),
            Width::Word => t::LoadWord::template(),
        };
        self.pieces.push(Piece { template, holes: Vec::new(), faults: true });
        if matches!(width, Width::I8 | Width::I16 | Width::I32) {
            self.cut(width);
        }
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

    fn call(&mut self, entry: u64, arguments: usize) {
        self.number(entry);
        for pop in POPS[..arguments.min(POPS.len())].iter().rev() {
            self.plain(pop());
        }
        self.depth = self.depth.saturating_sub(arguments);
        self.plain(t::Call::template());
        if self.calls.pop() == Some(true) {
            self.plain(t::Unalign::template());
            self.depth -= 1;
        }
    }
}

/// What interpreted operations may touch.
pub trait World {
    fn load(&mut self, address: u64, width: Width) -> Option<u64>;
    /// `address` is a variable's.
    fn store(&mut self, address: u64, value: u64);
    fn call(&mut self, entry: u64, arguments: &[u64]) -> u64;
}

/// The generic twin of a compiled routine, for operations that [`crate::decode`] has accepted.
///
/// # Errors
/// How the routine would have ended.
pub fn interpret(ops: &[Op], world: &mut dyn World) -> Result<u64, Ended> {
    let (mut value, mut at) = (0u64, 0);
    let mut stack = Vec::new();
    while let Some(op) = ops.get(at) {
        at += 1;
        let mut skip = |wanted: bool, over: u16| at += if wanted { usize::from(over) } else { 0 };
        match *op {
            Op::Number(number) => value = number,
            Op::Push => stack.push(value),
            Op::Truth => value = u64::from(value != 0),
            Op::Unary(Unary::Negate) => value = value.wrapping_neg(),
            Op::Unary(Unary::Complement) => value = !value,
            Op::Unary(Unary::Not) => value = u64::from(value == 0),
            Op::Binary(operator) => value = operate(operator, stack.pop().unwrap_or(0), value)?,
            Op::Cut(width) => value = crate::cut(width, value),
            Op::Load(width) => value = world.load(value, width).ok_or(Ended::BadAddress)?,
            Op::Store(variable) => world.store(variable, value),
            Op::Skip(over) => skip(true, over),
            Op::SkipIfZero(over) => skip(value == 0, over),
            Op::SkipIfNotZero(over) => skip(value != 0, over),
            Op::BeginCall => {}
            Op::Call { entry, arguments } => {
                let words = stack.split_off(stack.len().saturating_sub(arguments.into()));
                value = world.call(entry, &words);
            }
        }
    }
    Ok(value)
}
