//! The optimizer's decoder against another one, on all templates and on random bytes: what it says of an instruction must be so.

use golden::Random;
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register, RflagsBits,
};
use synth::{Flags, Kind, Memory};

use crate::all_templates;

const RANDOM: usize = 3_000_000;
const CHECKED: u32 = RflagsBits::CF | RflagsBits::PF | RflagsBits::ZF | RflagsBits::SF | RflagsBits::OF;

fn bit(register: Register) -> u16 {
    let whole = register.full_register();
    if whole.is_gpr64() { 1 << whole.number() } else { 0 }
}

fn is_write(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn is_read(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// What is wrong with the decoder's view of the instruction at the beginning of `code`; `None` also if it refuses it.
fn wrong(factory: &mut InstructionInfoFactory, code: &[u8]) -> Option<String> {
    let ours = synth::decode(code, 0)?;
    let other: Instruction = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).decode();
    let info = factory.info(&other);
    let mut errors = Vec::new();
    let mut must = |is_so: bool, what: &str| {
        if !is_so {
            errors.push(what.to_string());
        }
    };
    must(!other.is_invalid(), "is none");
    must(usize::from(ours.bytes) == other.len(), "has another length");
    if ours.kind == Kind::Exit {
        must(other.flow_control() != iced_x86::FlowControl::Next, "goes on");
        return (!errors.is_empty()).then(|| format!("{other}: {}", errors.join(", ")));
    }
    // A repeated string instruction is told of with its count, `cpuid` by its two inputs.
    for used in info.used_registers() {
        let register = bit(used.register());
        must(!is_write(used.access()) || ours.writes & register != 0, "writes another register");
        must(!is_read(used.access()) || ours.reads & register != 0, "reads another register");
    }
    let modified = other.rflags_modified() & CHECKED;
    must(other.rflags_read() & CHECKED == 0 || ours.reads_flags, "reads flags");
    match ours.flags {
        Flags::Keeps => must(modified == 0, "writes flags"),
        Flags::WritesSome => {}
        // The others may be undefined, which is not what they were.
        Flags::WritesAll => must(modified == CHECKED, "keeps a flag"),
    }
    for memory in info.used_memory().iter().filter(|memory| is_write(memory.access())) {
        must(ours.stores, "stores");
        let is_bare = memory.base() == Register::None && memory.index() == Register::None;
        match ours.memory {
            Memory::None => must(false, "stores somewhere"),
            Memory::Stack => must(memory.base() == Register::RSP, "stores off the stack"),
            Memory::Word { address, bytes } => {
                must(is_bare && memory.displacement() as i64 == i64::from(address), "stores to another word");
                must(memory.memory_size().size() == usize::from(bytes), "stores another size");
            }
            Memory::Anywhere => {}
        }
    }
    match ours.kind {
        Kind::Compare { .. } => must(matches!(other.mnemonic(), Mnemonic::Cmp | Mnemonic::Test), "compares nothing"),
        Kind::Load { .. } => must(matches!(other.mnemonic(), Mnemonic::Mov | Mnemonic::Movzx), "is no load"),
        Kind::Store { .. } | Kind::Copy { .. } | Kind::Constant { .. } => {
            must(other.mnemonic() == Mnemonic::Mov, "moves nothing");
        }
        Kind::Jump { .. } => must(other.is_jmp_short_or_near(), "is no jump"),
        Kind::Branch { .. } => must(other.is_jcc_short_or_near(), "is no branch"),
        Kind::Exit | Kind::Plain => {}
    }
    (!errors.is_empty())
        .then(|| format!("{other} ({:02x?}): {}", &code[..usize::from(ours.bytes).min(code.len())], errors.join(", ")))
}

#[test]
fn the_optimizer_knows_every_instruction_of_the_kernels_templates() {
    let mut factory = InstructionInfoFactory::new();
    for template in all_templates() {
        let mut at = 0;
        while at < template.bytes.len() {
            let instruction = synth::decode(template.bytes, at);
            let name = template.shape.name;
            // What no routine of a quaject is made of may be unknown.
            let Some(instruction) = instruction else {
                println!("{name}: offset {at:#x} is not optimized");
                break;
            };
            assert_eq!(wrong(&mut factory, &template.bytes[at..]), None, "{name}");
            at += usize::from(instruction.bytes);
        }
    }
}

#[test]
fn the_optimizer_is_right_about_random_bytes() {
    let seed = Random::seed();
    println!("SYNTH_SEED={seed}");
    let mut random = Random::new(seed);
    let mut factory = InstructionInfoFactory::new();
    let mut known = 0;
    let mut found = std::collections::BTreeSet::new();
    for _ in 0..RANDOM {
        let mut code = [0; 16];
        code[..8].copy_from_slice(&random.bits().to_le_bytes());
        code[8..].copy_from_slice(&random.bits().to_le_bytes());
        // Most random bytes begin no instruction of those that templates have.
        if random.once_in(3) {
            code[0] = 0x48;
        }
        if random.once_in(4) {
            (code[0], code[1], code[3], code[4]) = (0x48, code[1] & 0x3F, 0x04 | code[3] & 0x38, 0x25);
        }
        known += usize::from(synth::decode(&code, 0).is_some());
        if let Some(wrong) = wrong(&mut factory, &code) {
            let kind = wrong.split(['(', ' ']).next().unwrap_or("").to_string();
            if found.insert(kind) {
                println!("{wrong}");
            }
        }
    }
    assert!(found.is_empty());
    assert!(known > RANDOM / 4, "{known} of {RANDOM} were instructions");
}
