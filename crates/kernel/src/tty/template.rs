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
use codestore::{Code, Maker};
use machine::{Channel, SendCode};
use synth::{Abs32, Fact, Imm32, template};

use super::Tty;
use super::input::InputWords;
use super::output::OutputWords;
use super::ring::RingWords;
use crate::call::{FileCall, Makers, Routine, paste_send};
use crate::pipe::MoveManyRax;

template! {
    /// The filter may run; each byte can become two, and still fits. Out: rdi, rsi and rcx of the program on the stack.
    /// Cost: 10 instructions.
    pub struct FilterCheck { gate: Abs32, raw: Target, most: Imm32, user_limit: Abs32, slow: Target }
    "cmp qword ptr [{gate}], 0",
    ".byte 0x0f, 0x85",                     // jne raw
    ".long {raw}",
    "lea rax, [rdx - 1]",
    "cmp rax, {most}",
    ".byte 0x0f, 0x87",                     // ja slow
    ".long {slow}",
    "cmp rsi, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x83",                     // jae slow
    ".long {slow}",
    "push rdi",
    "push rsi",
    "push rcx",
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
    /// The program's registers. Cost: 9 instructions.
    pub struct FilterLeave {}
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdx",
    "pop rcx",
    "pop rsi",
    "pop rdi",
    "mov eax, edx",
}

template! {
    /// The other way to write: without conversions, if that is what the settings say. Cost: 2 instructions.
    pub struct RawCheck { gate: Abs32, slow: Target }
    "cmp qword ptr [{gate}], 1",
    ".byte 0x0f, 0x85",                     // jne slow
    ".long {slow}",
}

template! {
    /// Lines may be read in code. Cost: 6 instructions.
    pub struct LineCheck { gate: Abs32, user_limit: Abs32, slow: Target }
    "cmp qword ptr [{gate}], 0",
    ".byte 0x0f, 0x85",                     // jne slow
    ".long {slow}",
    "cmp rdx, 0x7fffffff",
    ".byte 0x0f, 0x87",                     // ja slow: a range that leaves the program is an error
    ".long {slow}",
    "cmp rsi, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x83",                     // jae slow
    ".long {slow}",
}

template! {
    /// The reader's group is the one in front (who is not may not read), and a line is ready: looks for the mark at its end.
    /// In: rax = the thread's tag. Out: rsi = the line, rdi = the program's buffer, eax = bytes, ecx = words; rdi, rsi
    /// and rcx of the program on the stack. Cost: 30 instructions, 36 if the mark stands in the next word.
    pub struct FindLine { foreground: Abs32, slow: Target, tail: Abs32, line_start: Abs32, marks: Abs32, base: Abs32, slow_many: Target }
    "cmp rax, qword ptr [{foreground}]",
    ".byte 0x0f, 0x85",                     // jne slow
    ".long {slow}",
    "mov rax, qword ptr [{tail}]",
    "cmp rax, qword ptr [{line_start}]",
    ".byte 0x0f, 0x84",                     // je slow: no line
    ".long {slow}",
    "push rdi",
    "push rsi",
    "push rcx",
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
    /// The line is the program's: its mark and its bytes leave the ring. Cost: 8 instructions.
    pub struct LineEnd { tail: Abs32, marks: Abs32 }
    "add qword ptr [{tail}], rax",
    "mov rcx, qword ptr [{tail}]",
    "dec ecx",
    "and ecx, 4095",
    "btr dword ptr [{marks}], ecx",
    "pop rcx",
    "pop rsi",
    "pop rdi",
}

/// The routines of one terminal, shared by all its open files.
#[derive(Clone, Default)]
pub struct TtyCode {
    pub read: Option<Code<FileCall>>,
    pub write: Option<Code<FileCall>>,
}

impl Tty {
    /// Makes the routines of this tty: `write` if it is connected to a channel of the machine. They know addresses inside the
    /// tty, so no one may run them who does not keep it. What cannot be made is left out.
    pub fn synthesize(&self, channel: Option<Channel>, makers: Makers) -> TtyCode {
        TtyCode { read: self.read_code(makers), write: channel.and_then(|channel| self.write_code(channel, makers)) }
    }

    fn write_code(&self, channel: Channel, makers: Makers) -> Option<Code<FileCall>> {
        let words = &raw const *self.output.words() as u64;
        let word = |offset: usize| Abs32(words + offset as u64);
        let gate = word(offset_of!(OutputWords, gate));
        let mut routine = Routine::new(makers, nr::WRITE);
        let send = makers.machine.send_code(channel, routine.slow_many())?;
        paste_filter(&mut routine, &send, word);
        routine.begin_many();
        let slow = routine.slow();
        routine.paste(|draft| RawCheck { gate, slow }.append_to(draft));
        paste_send(&mut routine, &send);
        routine.publish("tty.write", Maker::new("open")).ok()
    }

    fn read_code(&self, makers: Makers) -> Option<Code<FileCall>> {
        let words = self.input.words() as *const InputWords as u64;
        let ring = self.input.ring().words() as *const RingWords as u64;
        let word = |offset: usize| Abs32(words + offset as u64);
        let tail = Abs32(ring + offset_of!(RingWords, tail) as u64);
        let marks = word(offset_of!(InputWords, marks));
        let load_tag = makers.machine.load_tag()?;
        let mut routine = Routine::new(makers, nr::READ);
        let (slow, slow_many, user_limit) = (routine.slow(), routine.slow_many(), routine.user_limit());
        let find = FindLine {
            foreground: word(offset_of!(InputWords, foreground)),
            slow,
            tail,
            line_start: word(offset_of!(InputWords, line_start)),
            marks,
            base: Abs32(self.input.ring().base()),
            slow_many,
        };
        let gate = word(offset_of!(InputWords, gate));
        routine.paste(|draft| LineCheck { gate, user_limit, slow }.append_to(draft));
        routine.paste(|draft| draft.append(&load_tag, &[]));
        routine.paste(|draft| find.append_to(draft));
        routine.paste_user_many(|draft| MoveManyRax {}.append_to(draft));
        routine.paste(|draft| LineEnd { tail, marks }.append_to(draft));
        routine.leave();
        routine.publish("tty.read", Maker::new("open")).ok()
    }
}

/// Appends the way through the filter; `word` gives the addresses of [`OutputWords`].
fn paste_filter(routine: &mut Routine, send: &SendCode, word: impl Fn(usize) -> Abs32) {
    let column = word(offset_of!(OutputWords, column));
    let line_column = word(offset_of!(OutputWords, line_column));
    let continuation = word(offset_of!(OutputWords, continuation));
    let check = FilterCheck {
        gate: word(offset_of!(OutputWords, gate)),
        raw: routine.many(),
        most: Imm32(send.bytes_max as u32 / 2 - 1),
        user_limit: routine.user_limit(),
        slow: routine.slow(),
    };
    routine.paste(|draft| check.append_to(draft));
    routine.paste(|draft| send.choose.append_to(draft));
    routine.paste(|draft| FilterReady { column, line_column }.append_to(draft));
    routine.paste_user_filter(|draft| Filter { continuation }.append_to(draft));
    routine.paste(|draft| FilterEnd { column, line_column }.append_to(draft));
    routine.paste(|draft| send.send.append_to(draft));
    routine.paste(|draft| FilterLeave {}.append_to(draft));
    routine.leave();
}

/// For the golden listings.
pub fn templates() -> [synth::Template; 9] {
    [
        FilterCheck::template(),
        FilterReady::template(),
        Filter::template(),
        FilterEnd::template(),
        FilterLeave::template(),
        RawCheck::template(),
        LineCheck::template(),
        FindLine::template(),
        LineEnd::template(),
    ]
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
