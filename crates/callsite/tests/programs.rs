//! The shapes against a disassembler, over all calls of programs and libraries that this host has.
//!
//! What is claimed to be an instruction must begin where the disassembler says that one begins; what is claimed to be
//! copyable must be whole instructions that name no place of their own; a borrowed no-op must be one.

use std::collections::BTreeMap;
use std::path::Path;

use callsite::{AROUND, BEFORE, find, long_no_op};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Object, ObjectSection, SectionKind};

/// The third: a program that is statically linked. python3 makes all its calls through the C library: it has no site.
const FILES: [&str; 4] =
    ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/bin/busybox", "/usr/bin/python3"];

#[derive(Default, Debug)]
struct Counts {
    jump: usize,
    borrowed: usize,
    /// A known shape whose two bytes found no no-op nearby.
    lonely: usize,
    unknown: usize,
}

#[test]
fn claims_about_real_programs_are_true() {
    for file in FILES.into_iter().filter(|file| Path::new(file).exists()) {
        let bytes = std::fs::read(file).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let mut counts = Counts::default();
        for section in object.sections().filter(|section| section.kind() == SectionKind::Text) {
            check(section.data().unwrap(), section.address(), &mut counts);
        }
        let (patched, refused) = (counts.jump + counts.borrowed, counts.lonely + counts.unknown);
        println!("{file}: {} calls, {patched} patchable, {refused} refused: {counts:?}", patched + refused);
        // What is refused keeps the trap; most are not, where a compiler made the calls.
        assert!(patched >= 3 * refused, "{file}: {counts:?}");
    }
}

fn check(code: &[u8], address: u64, counts: &mut Counts) {
    let all: Vec<Instruction> = Decoder::with_ip(64, code, address, DecoderOptions::NONE).into_iter().collect();
    let starts: BTreeMap<u64, usize> = all.iter().enumerate().map(|(index, code)| (code.ip(), index)).collect();
    for (index, call) in all.iter().enumerate().filter(|(_, code)| code.mnemonic() == Mnemonic::Syscall) {
        let at = (call.ip() - address) as usize;
        let Some(window) = at.checked_sub(BEFORE).and_then(|from| code[from..at].first_chunk::<BEFORE>()) else {
            continue;
        };
        // The number that the call would come with, if it is a constant at all.
        let number = all[index.saturating_sub(12)..index].iter().rev().find_map(loaded_number);
        let Some(shape) = find(window, number.unwrap_or(u32::MAX)) else {
            counts.unknown += 1;
            continue;
        };
        let site = call.ip() - (BEFORE - shape.at) as u64;
        let first = *starts.get(&site).unwrap_or_else(|| panic!("{site:#x} is no instruction"));
        assert_eq!(all[first].len(), shape.bytes, "{site:#x}");
        for between in &all[first + 1..index] {
            assert!(!between.is_ip_rel_memory_operand(), "{:#x} names its place", between.ip());
            let leaves = (0..between.op_count()).any(|operand| between.op_kind(operand) == OpKind::NearBranch64);
            assert!(!leaves, "{:#x} leaves", between.ip());
        }
        if shape.bytes >= 5 {
            counts.jump += 1;
            continue;
        }
        let from = (site - address) as usize;
        let Some(around) = from.checked_sub(AROUND).and_then(|start| code.get(start..from + AROUND)) else {
            counts.lonely += 1;
            continue;
        };
        match long_no_op(around, AROUND) {
            None => counts.lonely += 1,
            Some((offset, bytes)) => {
                let no_op = site - AROUND as u64 + offset as u64;
                let found = *starts.get(&no_op).unwrap_or_else(|| panic!("{no_op:#x} is no instruction"));
                assert_eq!((all[found].mnemonic(), all[found].len()), (Mnemonic::Nop, bytes), "{no_op:#x}");
                counts.borrowed += 1;
            }
        }
    }
}

fn loaded_number(code: &Instruction) -> Option<u32> {
    let accumulator = |operand| matches!(code.op_register(operand), Register::EAX | Register::RAX);
    match code.mnemonic() {
        Mnemonic::Mov if accumulator(0) => code.try_immediate(1).ok().map(|value| value as u32),
        Mnemonic::Xor if accumulator(0) && accumulator(1) => Some(0),
        _ => None,
    }
}
