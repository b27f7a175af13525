//! How a debugger finds the caller of synthesized code (DWARF 5, 6.4; gdb reads it from `.eh_frame`).
//!
//! A routine for calls is entered by jumps and has no frame. Two facts describe all of them, and
//! `tests/golden` holds the listings to the second:
//! 1. A routine runs on the program's stack, or on its thread's kernel stack, whose last word is then the program's rsp.
//! 2. The return address is in rcx; a routine that needs rcx first pushes rdi, rsi and rcx, in this order.

use alloc::vec::Vec;

use machine_x86::THREAD_AREA_BYTES;

use crate::layout::THREADS;

/// How to get from an address inside the code to its caller.
#[derive(Clone, Copy, Debug)]
pub enum Frames {
    /// A routine for calls, see above.
    Call,
    /// `sw_in`, `sw_out`: the word at rsp is where the thread goes on.
    Switch,
    /// A call-site stub: goes on behind the call, on the program's stack.
    Stub { back: u64 },
}

/// DWARF numbers of registers (System V ABI, AMD64 supplement, 3.6.2).
const RCX: u8 = 2;
const RSP: u8 = 7;
const RETURN: u8 = 16;

/// Call frame instructions.
const DEF_CFA: u8 = 0x0C;
const DEF_CFA_EXPRESSION: u8 = 0x0F;
const VAL_EXPRESSION: u8 = 0x16;
const OFFSET: u8 = 0x80;

/// Operations of expressions.
const DEREF: u8 = 0x06;
const CONST1U: u8 = 0x08;
const CONST2U: u8 = 0x0A;
const CONST8U: u8 = 0x0E;
const MINUS: u8 = 0x1C;
const OR: u8 = 0x21;
const SHR: u8 = 0x25;
const BRA: u8 = 0x28;
const EQ: u8 = 0x29;
const GE: u8 = 0x2A;
const SKIP: u8 = 0x2F;
const LITERAL: u8 = 0x30;
const REGISTER: u8 = 0x70;

impl Frames {
    pub fn of_routine(name: &str) -> Frames {
        match name {
            "thread.sw_in" | "thread.sw_out" => Frames::Switch,
            _ => Frames::Call,
        }
    }
}

/// The section for code at `address`: a CIE, an FDE, the end.
pub fn eh_frame(address: u64, bytes: u64, frames: Frames) -> Vec<u8> {
    let mut section = Vec::new();
    // Version 1, no augmentation, addresses in units of 1, offsets in units of -8, the column of the return address.
    let mut cie = alloc::vec![0, 0, 0, 0, 1, 0, 1, 0x78, RETURN];
    match frames {
        Frames::Call => {
            expression(&mut cie, &[DEF_CFA_EXPRESSION], &program_stack());
            expression(&mut cie, &[VAL_EXPRESSION, RETURN], &return_address());
        }
        Frames::Stub { back } => {
            cie.extend_from_slice(&[DEF_CFA, RSP, 0]);
            let mut address = alloc::vec![CONST8U];
            address.extend_from_slice(&back.to_le_bytes());
            expression(&mut cie, &[VAL_EXPRESSION, RETURN], &address);
        }
        Frames::Switch => cie.extend_from_slice(&[DEF_CFA, RSP, 8, OFFSET | RETURN, 1]),
    }
    record(&mut section, cie);
    let mut fde = Vec::new();
    // The distance back to the CIE, from here.
    fde.extend_from_slice(&(section.len() as u32 + 4).to_le_bytes());
    fde.extend_from_slice(&address.to_le_bytes());
    fde.extend_from_slice(&bytes.to_le_bytes());
    record(&mut section, fde);
    section.extend_from_slice(&[0; 4]);
    section
}

/// Appends a length and as much, padded with no-ops.
fn record(section: &mut Vec<u8>, mut bytes: Vec<u8>) {
    bytes.resize((bytes.len() + 4).next_multiple_of(8) - 4, 0);
    section.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    section.extend_from_slice(&bytes);
}

fn expression(into: &mut Vec<u8>, instruction: &[u8], code: &[u8]) {
    into.extend_from_slice(instruction);
    into.push(code.len() as u8);
    into.extend_from_slice(code);
}

/// Is rsp in the threads' window, which is aligned to its size?
fn is_kernel_stack() -> [u8; 6] {
    const WINDOW_BITS: u32 = 27;
    const { assert!(THREADS.is_multiple_of(1 << WINDOW_BITS) && THREADS >> WINDOW_BITS < 32) };
    [REGISTER + RSP, 0, LITERAL + WINDOW_BITS as u8, SHR, LITERAL + (THREADS >> WINDOW_BITS) as u8, EQ]
}

/// The address `below` bytes below the top of the kernel stack that rsp is in.
fn below_top(below: u8) -> [u8; 9] {
    let [low, high] = (THREAD_AREA_BYTES as u16 - 1).to_le_bytes();
    [REGISTER + RSP, 0, CONST2U, low, high, OR, CONST1U, below - 1, MINUS]
}

/// The program's rsp.
fn program_stack() -> Vec<u8> {
    let on_kernel_stack = [&below_top(8)[..], &[DEREF]].concat();
    choose(&is_kernel_stack(), &on_kernel_stack, &[REGISTER + RSP, 0])
}

/// rcx, or where it was pushed.
fn return_address() -> Vec<u8> {
    const PUSHED: u8 = 3 * 8;
    let is_pushed = [&below_top(8)[..], &[REGISTER + RSP, 0, MINUS, LITERAL + PUSHED, GE]].concat();
    let pushed = [&below_top(8 + PUSHED)[..], &[DEREF]].concat();
    let in_rcx = [REGISTER + RCX, 0];
    let on_kernel_stack = choose(&is_pushed, &pushed, &in_rcx);
    choose(&is_kernel_stack(), &on_kernel_stack, &in_rcx)
}

/// `if condition { yes } else { no }`, each leaving one value.
fn choose(condition: &[u8], yes: &[u8], no: &[u8]) -> Vec<u8> {
    let over_no = (no.len() as i16 + 3).to_le_bytes();
    let over_yes = (yes.len() as i16).to_le_bytes();
    [condition, &[BRA], &over_no, no, &[SKIP], &over_yes, yes].concat()
}
