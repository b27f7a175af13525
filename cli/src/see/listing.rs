//! Code as text: the heading, the facts, the instructions with names for what they name.

use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;

use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, OpKind, SymbolResolver, SymbolResult};

use super::code::{Certificate, Hole, Order, Part, Routine};

const ADDRESS: u8 = 0;
const NUMBER: u8 = 1;
const LABEL: u8 = 3;

/// The routines in this order; they come by address.
pub fn sorted(mut all: Vec<Routine>, order: Order) -> Vec<Routine> {
    match order {
        Order::Size => all.sort_by_key(|routine| (std::cmp::Reverse(routine.bytes), routine.address)),
        Order::Name => all.sort_by_key(|routine| (routine.name.clone(), routine.address)),
        Order::Address => {}
    }
    all
}

/// All live routines, and what they take together.
pub fn table(all: &[Routine]) -> String {
    let mut text = String::from(" BYTES ADDRESS            NAME                 MADE BY\n");
    for routine in all {
        let Routine { bytes, address, name, maker } = routine;
        let _ = writeln!(text, "{bytes:>6} {address:#018x} {name:<20} {maker}");
    }
    let (bytes, units): (u64, u64) = all
        .iter()
        .map(|routine| (u64::from(routine.bytes), u64::from(routine.bytes.div_ceil(64)) * 64))
        .fold((0, 0), |(bytes, units), (more, places)| (bytes + more, units + places));
    let _ = writeln!(text, "{bytes:>6} bytes in {} routines, {units} with the rest of their cache lines", all.len());
    text
}

/// One routine: what it is, from what it was made, and its instructions.
pub fn show(title: &str, entry: u64, certificate: &Certificate, all: &[Routine], why: bool) -> String {
    let Certificate { routine, references, contract, parts, code } = certificate;
    let names = Names { routine, all };
    let mut text = String::new();
    let at = match entry - routine.address {
        0 => String::new(),
        offset => format!(" + {offset:#x}"),
    };
    let contract = contract.rsplit("::").next().unwrap_or(contract);
    let title = if title == routine.name { String::new() } else { format!("{title}: ") };
    let _ = writeln!(text, "{title}{}{at}  made by {}  {} bytes  live", routine.name, routine.maker, routine.bytes);
    let _ = writeln!(text, "  at     {:#x}, contract {contract}, {references} references", routine.address);
    let from: Vec<_> = parts.iter().map(|part| part.name.as_str()).collect();
    let _ = writeln!(text, "  from   {}", from.join(" + "));
    if why {
        text += &facts(parts, &names);
    } else {
        text += &holes(parts, &names);
    }
    text.push('\n');
    text + &instructions(code, parts, &names)
}

/// Each hole once: templates of one routine are filled with the same words.
fn distinct(parts: &[Part]) -> Vec<&Hole> {
    let mut seen: Vec<&Hole> = Vec::new();
    for hole in parts.iter().flat_map(|part| &part.holes).filter(|hole| hole.kind != LABEL) {
        if !seen.iter().any(|known| known.name == hole.name && known.value == hole.value) {
            seen.push(hole);
        }
    }
    seen
}

fn holes(parts: &[Part], names: &Names<'_>) -> String {
    let mut text = String::new();
    for hole in distinct(parts) {
        let _ = write!(text, "\n         {}", names.hole(hole));
    }
    if text.is_empty() { text } else { format!("  holes  {}\n", text.trim_start()) }
}

fn facts(parts: &[Part], names: &Names<'_>) -> String {
    let mut text = String::from("  folded\n");
    for hole in distinct(parts) {
        let _ = writeln!(text, "    {}", names.hole(hole));
        if hole.is.is_empty() {
            let _ = writeln!(text, "        (nobody wrote down what it stands for)");
        } else {
            let _ = writeln!(text, "        is     {}", hole.is);
            let _ = writeln!(text, "        until  {}", hole.until);
        }
    }
    text
}

/// Names for addresses.
struct Names<'a> {
    routine: &'a Routine,
    all: &'a [Routine],
}

impl Names<'_> {
    /// The routine that an address lies in, with the offset.
    fn code(&self, address: u64) -> Option<String> {
        let routine = self.all.iter().find(|routine| address.wrapping_sub(routine.address) < routine.bytes.into())?;
        Some(match address - routine.address {
            0 => routine.name.clone(),
            offset => format!("{}+{offset:#x}", routine.name),
        })
    }

    /// A hole with its value, and what that leads to.
    fn hole(&self, hole: &Hole) -> String {
        let mut text = format!("{} = {:#x}", hole.name, hole.value);
        if let Some(name) = self.code(hole.value).filter(|_| hole.kind != NUMBER) {
            let _ = write!(text, " -> {name}");
        }
        if let Some(now) = hole.now {
            match self.code(now) {
                Some(name) => _ = write!(text, " -> {name} ({now:#x})"),
                None => _ = write!(text, ", now {now:#x}"),
            }
        }
        text
    }
}

/// Names for the fields of the instruction that is shown now.
#[derive(Default)]
struct Shown {
    routine: Option<(u64, u64)>,
    displacement: Option<String>,
    immediate: Option<String>,
}

struct Resolver(Rc<RefCell<Shown>>);

impl SymbolResolver for Resolver {
    fn symbol(
        &mut self,
        instruction: &Instruction,
        _operand: u32,
        instruction_operand: Option<u32>,
        address: u64,
        _address_size: u32,
    ) -> Option<SymbolResult<'_>> {
        let shown = self.0.borrow();
        let name = match instruction.op_kind(instruction_operand?) {
            OpKind::Memory => shown.displacement.clone(),
            // A jump inside a template.
            OpKind::NearBranch64 if shown.immediate.is_none() => shown
                .routine
                .filter(|(base, bytes)| address.wrapping_sub(*base) < *bytes)
                .map(|(base, _)| format!("{:04x}", address - base)),
            _ => shown.immediate.clone(),
        };
        Some(SymbolResult::with_string(address, name?))
    }
}

/// The instructions, cut where one template ends and the next begins.
fn instructions(code: &[u8], parts: &[Part], names: &Names<'_>) -> String {
    let shown = Rc::new(RefCell::new(Shown::default()));
    let mut formatter = IntelFormatter::with_options(Some(Box::new(Resolver(shown.clone()))), None);
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(true);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_space_after_operand_separator(true);
    let base = names.routine.address;
    let mut decoder = Decoder::with_ip(64, code, base, DecoderOptions::NONE);
    let mut text = String::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        let at = (instruction.ip() - base) as usize;
        if let Some(part) = parts.iter().find(|part| part.offset as usize == at && part.bytes > 0) {
            let _ = writeln!(text, "; {}", part.name);
        }
        let fields = decoder.get_constant_offsets(&instruction);
        // Such a field counts from the instruction's end; any other is a value.
        let is_near =
            instruction.is_ip_rel_memory_operand() || instruction.op_kinds().any(|kind| kind == OpKind::NearBranch64);
        let name =
            |present: bool, offset: usize| present.then(|| name_of(parts, at + offset, is_near, code, names)).flatten();
        *shown.borrow_mut() = Shown {
            routine: Some((base, code.len() as u64)),
            displacement: name(fields.has_displacement(), fields.displacement_offset()),
            immediate: name(fields.has_immediate(), fields.immediate_offset()),
        };
        let mut line = String::new();
        formatter.format(&instruction, &mut line);
        let _ = writeln!(text, "  {at:04x}  {}", line.replace("offset ", ""));
    }
    text
}

/// The name for the 32-bit field at offset `at`: that of the hole whose value stands there. `is_near`: as a distance.
fn name_of(parts: &[Part], at: usize, is_near: bool, code: &[u8], names: &Names<'_>) -> Option<String> {
    let part = parts.iter().find(|part| (part.offset as usize..(part.offset + part.bytes) as usize).contains(&at))?;
    let field = i32::from_le_bytes(*code.get(at..)?.first_chunk()?);
    let target = (at as u64 + 4).wrapping_add_signed(field.into());
    let hole = part.holes.iter().find(|hole| match hole.kind {
        ADDRESS => !is_near && hole.value == field as i64 as u64,
        NUMBER => !is_near && hole.value == u64::from(field as u32) && hole.value > 9,
        LABEL => is_near && hole.value == target,
        _ => is_near && hole.value == names.routine.address.wrapping_add(target),
    })?;
    Some(match hole.kind {
        LABEL => format!("{{{} {:04x}}}", hole.name, hole.value),
        NUMBER => format!("{{{} {:#x}}}", hole.name, hole.value),
        _ => match names.code(hole.value) {
            Some(name) => format!("{{{} {name}}}", hole.name),
            None => format!("{{{}}}", hole.name),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate() -> Certificate {
        let routine = Routine { address: 0x1000, bytes: 15, name: "null.read".into(), maker: "boot".into() };
        let hole = |name: &str, kind, value| Hole {
            name: name.into(),
            kind,
            value,
            now: (kind == ADDRESS).then_some(0x2000),
            is: "a word".into(),
            until: "never".into(),
        };
        // mov rax, [0x7000]; mov eax, 0x1234; jmp out
        let code = vec![0x48, 0x8b, 0x04, 0x25, 0, 0x70, 0, 0, 0xb8, 0x34, 0x12, 0, 0, 0xeb, 0];
        let holes = vec![hole("limit", ADDRESS, 0x7000), hole("number", NUMBER, 0x1234)];
        let parts = vec![Part { name: "NullRead".into(), offset: 0, bytes: 15, holes }];
        Certificate { routine, references: 2, contract: "kernel::call::FileCall".into(), parts, code }
    }

    fn all() -> Vec<Routine> {
        let slow = Routine { address: 0x2000, bytes: 8, name: "thread.slow".into(), maker: "boot".into() };
        vec![certificate().routine, slow]
    }

    #[test]
    fn an_immediate_is_no_target_of_a_jump() {
        // mov eax, 6; jmp the end: read as a distance, the 6 would lead where the label is, 11.
        let code = vec![0xb8, 6, 0, 0, 0, 0xe9, 1, 0, 0, 0, 0x90, 0xc3];
        let label = |value| Hole {
            kind: LABEL,
            value,
            name: "end".into(),
            now: None,
            is: "a label".into(),
            until: "never".into(),
        };
        let parts = vec![Part { name: "Both".into(), offset: 0, bytes: 12, holes: vec![label(11)] }];
        let all = all();
        let routine = Routine { address: 0x1000, bytes: 12, name: "both".into(), maker: "boot".into() };
        let text = instructions(&code, &parts, &Names { routine: &routine, all: &all });
        assert!(text.contains("mov eax, 6\n") && text.contains("jmp {end 000b}"), "{text}");
    }

    #[test]
    fn holes_have_their_names_where_their_values_stand() {
        let text = show("read", 0x1000, &certificate(), &all(), false);
        let expected = "\
read: null.read  made by boot  15 bytes  live
  at     0x1000, contract FileCall, 2 references
  from   NullRead
  holes  limit = 0x7000 -> thread.slow (0x2000)
         number = 0x1234

; NullRead
  0000  mov rax, [{limit}]
  0008  mov eax, {number 0x1234}
  000d  jmp 0x100f
";
        assert_eq!(text, expected);
    }

    #[test]
    fn why_says_what_each_value_stands_for() {
        let text = show("read", 0x1000, &certificate(), &all(), true);
        assert!(
            text.contains("limit = 0x7000 -> thread.slow (0x2000)\n        is     a word\n        until  never\n"),
            "{text}"
        );
    }

    #[test]
    fn the_largest_comes_first() {
        let text = table(&sorted(all(), Order::Size));
        assert!(text.find("null.read") < text.find("thread.slow"), "{text}");
        assert!(text.ends_with("    23 bytes in 2 routines, 128 with the rest of their cache lines\n"), "{text}");
    }
}
