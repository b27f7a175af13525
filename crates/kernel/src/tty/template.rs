//! The tty's machine code: `write` through the output filter straight into the device's buffer, `read` of a finished line.
//!
//! ```text
//!   program's bytes ─▶ filter: line ends, columns ─▶ device buffer ─▶ machine's send
//! ```
//! Filter and device are one routine (collapsed layers, S-10, S-96): no ring lies between. It works while the gate that
//! `Tty::settle` keeps is open: nothing waits in front, output is not stopped, the settings are those it was made for,
//! and no one but the filter has a say. Columns are words that it shares with the Rust twin.

use core::mem::offset_of;

use abi::nr;
use machine::{Channel, SendCode};
use quaject::{Makers, create, interface, quaject};
use synth::{Abs32, Fact, Imm32, Template, template};

use super::Tty;
use super::input::InputWords;
use super::output::OutputWords;
use super::ring::RingWords;
use crate::call::FileCall;
use crate::call::fragments::{
    AllDone, AtMost, CountWords, GiveBack, Keep, MoveMany, MoveManyRax, OneToMost, UserAddress,
};
use crate::channel::paste_channel;

template! {
    /// The filter may run. Cost: 2 instructions.
    pub struct MayFilter { gate: Abs32, raw: Target }
    "cmp qword ptr [{gate}], 0",
    ".byte 0x0f, 0x85",                     // jne raw
    ".long {raw}",
}

template! {
    /// The filter's registers. In: rdi = the buffer's bytes, eax = its number. Out: rdx = end of the program's bytes,
    /// r8 + rdi = column, r9 = column of the line being typed, r10 = the buffer's number; the program's rdx, r8, r9, r10, r11
    /// and the buffer's address on the stack. Cost: 11 instructions.
    pub struct FilterReady { column: Abs32, line_column: Abs32 }
    "push rdx",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push rdi",
    "mov r10d, eax",
    "add rdx, rsi",
    "mov r8d, dword ptr [{column}]",
    "sub r8, rdi",
    "mov r9d, dword ptr [{line_column}]",
}

template! {
    /// The filter: `CookTtyOut::put` with ONLCR alone, for the bytes from rsi to rdx. Eight printable bytes go at once; if
    /// some of eight are not, those in front of the first go with it. Out: rdi = end of what the device gets. Clobbers rax, rcx, r11.
    pub struct Filter { continuation: Abs32 }
    "70:",                                  // eight bytes?
    "lea rcx, [rsi + 8]",
    "cmp rcx, rdx",
    "ja 72f",
    "mov rax, qword ptr [rsi]",
    "movabs rcx, 0x0101010101010101",       // beyond 0x7e: the top bit of the byte, or of the byte plus 1
    "add rcx, rax",
    "or rcx, rax",
    "movabs r11, 0x6060606060606060",       // below 0x20: not the top bit of the byte plus 0x60
    "add r11, rax",
    "not r11",
    "or rcx, r11",
    "movabs r11, 0x8080808080808080",
    "mov qword ptr [rdi], rax",
    "and rcx, r11",
    "jne 71f",
    "add rsi, 8",
    "add rdi, 8",
    "jmp 70b",
    "71:",                                  // carries only spoil the bytes behind the first
    "bsf rcx, rcx",
    "shr ecx, 3",
    "add rdi, rcx",
    "add rsi, rcx",
    "movzx eax, byte ptr [rsi]",
    "inc rsi",
    "jmp 73f",
    "72:",                                  // single bytes
    "cmp rsi, rdx",
    "je 79f",
    "movzx eax, byte ptr [rsi]",
    "inc rsi",
    "lea ecx, [rax - 0x20]",
    "cmp ecx, 0x5e",
    "ja 73f",
    "mov byte ptr [rdi], al",
    "inc rdi",
    "jmp 72b",
    "73:",                                  // a byte that is not printable
    "cmp al, 10",
    "je 75f",
    "cmp al, 13",
    "je 76f",
    "cmp al, 9",
    "je 77f",
    "cmp al, 8",
    "je 78f",
    "mov byte ptr [rdi], al",
    "inc rdi",
    "test al, al",
    "jns 74f",
    "and eax, 0xc0",
    "cmp eax, dword ptr [{continuation}]",
    "jne 70b",
    "74:",                                  // it has no column
    "dec r8",
    "jmp 70b",
    "75:",                                  // newline
    "mov word ptr [rdi], 0x0a0d",
    "inc rdi",
    "jmp 80f",
    "76:",                                  // return
    "mov byte ptr [rdi], al",
    "80:",
    "inc rdi",
    "mov r8, rdi",
    "neg r8",
    "xor r9d, r9d",
    "jmp 70b",
    "77:",                                  // tab: to the next column that 8 divides
    "lea rcx, [r8 + rdi]",
    "or ecx, 7",
    "inc ecx",
    "jmp 81f",
    "78:",                                  // back, where there is a left
    "lea rcx, [r8 + rdi]",
    "sub ecx, 1",
    "adc ecx, 0",
    "81:",
    "mov byte ptr [rdi], al",
    "inc rdi",
    "mov r8, rcx",
    "sub r8, rdi",
    "jmp 70b",
    "79:",
}

template! {
    /// All bytes are in the buffer: the columns say so. Out: eax = the buffer's number, edx = bytes in it. Cost: 7 instructions.
    pub struct FilterEnd { column: Abs32, line_column: Abs32 }
    "lea rcx, [r8 + rdi]",
    "mov dword ptr [{column}], ecx",
    "mov dword ptr [{line_column}], r9d",
    "mov eax, r10d",
    "pop rcx",
    "mov rdx, rdi",
    "sub rdx, rcx",
}

template! {
    /// The filter's registers are the program's again. Cost: 5 instructions.
    pub struct FilterLeave {}
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdx",
}

template! {
    /// The other way to write: without conversions, if that is what the settings say. Cost: 2 instructions.
    pub struct RawCheck { gate: Abs32, slow: Target }
    "cmp qword ptr [{gate}], 1",
    ".byte 0x0f, 0x85",                     // jne slow
    ".long {slow}",
}

template! {
    /// Lines may be read in code. Cost: 2 instructions.
    pub struct MayRead { gate: Abs32, slow: Target }
    "cmp qword ptr [{gate}], 0",
    ".byte 0x0f, 0x85",                     // jne slow
    ".long {slow}",
}

template! {
    /// The reader's group is the one in front (who is not may not read). In: rax = the thread's tag. Cost: 2 instructions.
    pub struct InFront { foreground: Abs32, slow: Target }
    "cmp rax, qword ptr [{foreground}]",
    ".byte 0x0f, 0x85",                     // jne slow
    ".long {slow}",
}

template! {
    /// A line is ready. Out: rax = tail. Cost: 3 instructions.
    pub struct LineThere { tail: Abs32, line_start: Abs32, slow: Target }
    "mov rax, qword ptr [{tail}]",
    "cmp rax, qword ptr [{line_start}]",
    ".byte 0x0f, 0x84",                     // je slow: no line
    ".long {slow}",
}

template! {
    /// Looks for the mark at the end of the line. In: rax = tail. Out: rsi = the line, rdi = the program's buffer, eax = bytes,
    /// ecx = words. Cost: 22 instructions, 28 if the mark stands in the next word.
    pub struct FindLine { marks: Abs32, base: Abs32, slow_many: Target }
    "mov ecx, eax",
    "and ecx, 4095",
    "mov edi, ecx",
    "shr edi, 6",
    "mov rax, qword ptr [{marks} + rdi*8]",
    "shr rax, cl",
    "shl rax, cl",                          // without the marks in front of the line
    "test rax, rax",
    "jne 71f",
    "70:",
    "inc edi",
    "cmp edi, 64",
    ".byte 0x0f, 0x83",                     // jae slow: it turns round the end of the ring
    ".long {slow_many}",
    "mov rax, qword ptr [{marks} + rdi*8]",
    "test rax, rax",
    "je 70b",
    "71:",
    "bsf rax, rax",
    "shl edi, 6",
    "add eax, edi",
    "cmp byte ptr [{base} + rax], 0",
    ".byte 0x0f, 0x84",                     // je slow: an end of file
    ".long {slow_many}",
    "inc eax",
    "sub eax, ecx",
    "cmp rdx, rax",
    ".byte 0x0f, 0x82",                     // jb slow: more than was asked for
    ".long {slow_many}",
    "mov rdi, rsi",
    "lea rsi, [{base} + rcx]",
    "mov ecx, eax",
    "shr ecx, 3",
}

template! {
    /// The line is the program's: its mark and its bytes leave the ring. Cost: 5 instructions.
    pub struct LineEnd { tail: Abs32, marks: Abs32 }
    "add qword ptr [{tail}], rax",
    "mov rcx, qword ptr [{tail}]",
    "dec ecx",
    "and ecx, 4095",
    "btr dword ptr [{marks}], ecx",
}

quaject! {
    /// A tty as its open files see it: between a program and a line. It borrows the words of both filters, which do not move
    /// as long as the tty lives.
    pub quaject Line ("tty", made by "open", at most 0 inactive)
    facts(FACTS)
    data { input: u64, ring: u64, bytes: u64, output: u64 }
    factors(line) {
        let output = |offset: usize| Abs32(line.output + offset as u64);
        let input = |offset: usize| Abs32(line.input + offset as u64);
        let write_gate = output(offset_of!(OutputWords, gate));
        let column = output(offset_of!(OutputWords, column));
        let line_column = output(offset_of!(OutputWords, line_column));
        let continuation = output(offset_of!(OutputWords, continuation));
        let read_gate = input(offset_of!(InputWords, gate));
        let foreground = input(offset_of!(InputWords, foreground));
        let line_start = input(offset_of!(InputWords, line_start));
        let marks = input(offset_of!(InputWords, marks));
        let tail = Abs32(line.ring + offset_of!(RingWords, tail) as u64);
        let base = Abs32(line.bytes);
    }
    callouts LineCallouts {
        /// The device below, if it is a channel of the machine: its instructions.
        device: SendCode,
        /// Who reads.
        load_tag: Template,
    }
    callbacks {
        /// The reader sleeps until a line is finished.
        no_line: slow,
    }
    callentries TtyCode {
        read: FileCall(nr::READ) named "tty.read" needs(load_tag) uses(user_limit, slow, slow_many) {
            paste MayRead { gate: read_gate, slow };
            paste AtMost { most: Imm32(i32::MAX as u32), slow };
            paste UserAddress { user_limit, slow };
            paste (*load_tag);
            paste InFront { foreground, slow };
            paste LineThere { tail, line_start, slow: no_line };
            paste Keep {};
            paste FindLine { marks, base, slow_many };
            paste_user_many MoveManyRax {};
            paste LineEnd { tail, marks };
            paste GiveBack {};
            leave;
        }
        write: FileCall(nr::WRITE) named "tty.write" needs(device) uses(user_limit, slow, many) {
            paste UserAddress { user_limit, slow };
            paste MayFilter { gate: write_gate, raw: many };
            // Each byte can become two, and still fits.
            paste OneToMost { most: Imm32(device.bytes_max as u32 / 2 - 1), slow };
            paste Keep {};
            paste (&device.choose);
            paste FilterReady { column, line_column };
            paste_user_filter Filter { continuation };
            paste FilterEnd { column, line_column };
            paste (&device.send);
            paste FilterLeave {};
            paste GiveBack {};
            paste AllDone {};
            leave;
            begin_many;
            paste RawCheck { gate: write_gate, slow };
            paste OneToMost { most: Imm32(device.bytes_max as u32 - 1), slow };
            paste UserAddress { user_limit, slow };
            paste Keep {};
            paste (&device.choose);
            paste CountWords {};
            paste_user_many MoveMany {};
            paste (&device.send);
            paste GiveBack {};
            paste AllDone {};
            leave;
        }
    }
}

impl Tty {
    /// Connects a program's calls, the tty and the channel below it: the interfacer's stages. The routines know addresses
    /// inside the tty, so no one may run them who does not keep it. What cannot be made is left out.
    pub fn synthesize(&self, channel: Option<Channel>, makers: Makers) -> TtyCode {
        let line = Line {
            input: self.input.words() as *const InputWords as u64,
            ring: self.input.ring().words() as *const RingWords as u64,
            bytes: self.input.ring().base(),
            output: &raw const *self.output.words() as u64,
        };
        let device = channel.and_then(|channel| paste_channel(channel, makers));
        let callouts = LineCallouts { device, load_tag: makers.machine.load_tag() };
        let drafts = interface::factor(&line, makers, &callouts);
        create::publish::<Line>(makers, interface::optimize::<Line>(drafts))
    }
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word(
        "gate",
        "which way is open now: code may do the usual case",
        "tcsetattr, ^S, output that waits: looked at in each call",
    ),
    Fact::value("raw", "the part for a tty that does not process output", "never"),
    Fact::half("column", "where the cursor is, for tabs and erasing", "the terminal goes"),
    Fact::half("line_column", "where the line being edited begins", "the terminal goes"),
    Fact::half("continuation", "which bytes go on a character (IUTF8)", "tcsetattr stores another"),
    Fact::word("foreground", "process group in front", "tcsetpgrp: compared at each call"),
    Fact::word("tail", "first byte that nobody has read", "the terminal goes"),
    Fact::word("line_start", "where the line being edited begins", "the terminal goes"),
    Fact::value("marks", "ends of lines in the ring", "the terminal goes"),
    Fact::value("base", "first byte of the ring", "the terminal goes"),
];
