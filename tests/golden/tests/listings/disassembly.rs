//! Machine code as text, with the names of the holes where their values stand.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use codestore::Birth;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, Instruction, IntelFormatter, OpKind, SymbolResolver, SymbolResult,
};
use synth::{HoleKind, Template};

use crate::claims;

/// What stands in a hole, by its offset in the code.
type Holes = BTreeMap<usize, String>;

pub fn decode(code: &[u8]) -> Vec<Instruction> {
    let decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    decoder.into_iter().collect()
}

/// Names for the fields of the instruction that is shown now.
#[derive(Default)]
struct Fields {
    displacement: Option<String>,
    immediate: Option<String>,
}

struct Names(Rc<RefCell<Fields>>);

impl SymbolResolver for Names {
    fn symbol(
        &mut self,
        instruction: &Instruction,
        _operand: u32,
        instruction_operand: Option<u32>,
        address: u64,
        _address_size: u32,
    ) -> Option<SymbolResult<'_>> {
        let fields = self.0.borrow();
        let name = match instruction.op_kind(instruction_operand?) {
            OpKind::Memory => fields.displacement.clone(),
            _ => fields.immediate.clone(),
        };
        Some(SymbolResult::with_string(address, name?))
    }
}

/// The instructions with their offsets; `heading` is asked at each offset.
fn listing(code: &[u8], holes: &Holes, mut heading: impl FnMut(usize) -> Option<String>) -> String {
    let fields = Rc::new(RefCell::new(Fields::default()));
    let mut formatter = IntelFormatter::with_options(Some(Box::new(Names(fields.clone()))), None);
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_small_hex_numbers_in_decimal(true);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_rip_relative_addresses(true);
    options.set_space_after_operand_separator(true);
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let mut text = String::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        let at = instruction.ip() as usize;
        assert!(!instruction.is_invalid(), "no instruction at {at:#x}");
        let parts = decoder.get_constant_offsets(&instruction);
        let name = |present: bool, offset: usize| if present { holes.get(&(at + offset)).cloned() } else { None };
        *fields.borrow_mut() = Fields {
            displacement: name(parts.has_displacement(), parts.displacement_offset()),
            immediate: name(parts.has_immediate(), parts.immediate_offset()),
        };
        if let Some(heading) = heading(at) {
            text.push_str(&format!("{heading}\n"));
        }
        let mut line = String::new();
        formatter.format(&instruction, &mut line);
        text.push_str(&format!("{at:04x}  {}\n", line.replace("offset {", "{")));
    }
    text
}

/// Instructions executed when no jump out of the straight line is taken.
fn straight(code: &[Instruction]) -> usize {
    let ends = |instruction: &Instruction| {
        !matches!(instruction.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch)
    };
    code.iter().position(ends).map_or(code.len(), |at| at + 1)
}

fn size(code: &[u8]) -> String {
    let instructions = decode(code);
    format!("{} instructions, {} bytes; straight way {}", instructions.len(), code.len(), straight(&instructions))
}

/// The listing of a template: its contract as the source states it, then its code.
pub fn template(template: &Template) -> String {
    let mut holes = Holes::new();
    for (hole, offset) in template.places() {
        holes.insert(offset, format!("{{{}}}", template.shape.holes[hole]));
    }
    let contract: String = claims::doc_comment(template).iter().map(|line| format!("; {line}\n")).collect();
    format!(
        "; {}: {}\n{contract}\n{}",
        template.shape.name,
        size(template.bytes),
        listing(template.bytes, &holes, |_| None)
    )
}

/// The listing of a routine: its code, cut where one template ends and the next begins.
pub fn routine(birth: &Birth, code: &[u8]) -> String {
    let mut holes = Holes::new();
    for origin in birth.origins.iter() {
        for place in origin.places() {
            let name = origin.shape.holes[place.hole];
            let value = origin.value(place, birth.address, code).expect("the hole is in the code");
            let at = place.offset;
            let text = match value.kind {
                HoleKind::Imm32 => format!("{{{name}={:#x}}}", value.value),
                HoleKind::Label => format!("{{{name}: {:04x}}}", value.value),
                HoleKind::Abs32 | HoleKind::Target => format!("{{{name}}}"),
            };
            holes.insert(at, text);
        }
    }
    let heading = |at: usize| {
        let origin = birth.origins.iter().find(|origin| origin.offset as usize == at)?;
        let landing = birth.landings.iter().find(|landing| landing.from as usize == at);
        let fault = landing.map_or(String::new(), |landing| format!(", a fault lands at {:04x}", landing.landing));
        Some(format!("\n; {}{fault}", origin.shape.name))
    };
    format!("; {}: {}\n{}", birth.name, size(code), listing(code, &holes, heading))
}
