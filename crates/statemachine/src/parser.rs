//! Parsers on the processor's stack (S-115; thesis 7.4.1): "the parser stack using the hardware, jsr and rts for the state
//! transitions".
//!
//! A grammar is a few levels of operators that bind from loosely to tightly, numbers and parentheses. [`generate`] writes a
//! routine for each level and one for operands. To begin a part is `call`, to end it `ret`; what a parser's tables push, the
//! state to come back to, is the return address, and operands wait beside it. A syntax error deep inside cuts the whole parse
//! away with one `leave`. [`evaluate`] is the same in plain Rust, with tables and a stack of its own (R6).

#![allow(unsafe_code, reason = "the template macro names linker symbols")]

use alloc::vec::Vec;

use synth::{Draft, Imm32, Label, Target, template};

/// What an operator does with two 64-bit words; all wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Add,
    Subtract,
    Multiply,
    And,
    Or,
    Xor,
}

/// Levels of operators, each a byte of the text, that group from the left. The first level binds most loosely. At most
/// [`LEVELS_MAX`].
pub type Grammar = [&'static [(u8, Operation)]];

/// More levels than a draft has labels for are refused.
pub const LEVELS_MAX: usize = 3;
/// Most parentheses inside each other. Each takes (levels + 2) words of the stack, and as many again while operands wait.
pub const DEPTH_MAX: u32 = 64;

template! {
    /// Entry, C's calling convention: `parse(text, end)`. In: rdi = text, rsi = its end. Out: rax = value, rdx = 0; rdx = 1 when
    /// the text is not of the grammar. Inside: rsi = next byte, rdi = end, r8 = parentheses that may still open.
    pub struct ParserEnter { depth: Imm32, start: Target, fail: Target }
    "push rbp",
    "mov rbp, rsp",
    "xchg rsi, rdi",
    "mov r8d, {depth}",
    ".byte 0xe8", ".long {start}",
    "cmp rsi, rdi",
    ".byte 0x0f, 0x85", ".long {fail}",
    "xor edx, edx",
    "leave",
    "ret",
}

template! {
    /// A mistake anywhere: what is on the stack is forgotten.
    pub struct ParserFail {}
    "mov edx, 1",
    "leave",
    "ret",
}

template! {
    /// A level begins with an operand of the next one.
    pub struct LevelBegin { tighter: Target }
    ".byte 0xe8", ".long {tighter}",
}

template! {
    /// Looks at the next byte; at the end of the text the level ends.
    pub struct LevelLook {}
    "cmp rsi, rdi",
    "jae 5f",
    "movzx ecx, byte ptr [rsi]",
    "jmp 6f",
    "5: ret",
    "6:",
}

template! {
    /// Another byte: the level ends.
    pub struct LevelEnd {}
    "ret",
}

macro_rules! operator {
    ($name:ident, $instruction:literal) => {
        template! {
            /// If the byte in ecx is the operator: the left operand waits on the stack while the right one is parsed.
            pub struct $name { byte: Imm32, tighter: Target, again: Target }
            "cmp ecx, {byte}",
            "jne 5f",
            "inc rsi",
            "push rax",
            ".byte 0xe8", ".long {tighter}",
            "mov rcx, rax",
            "pop rax",
            $instruction,
            ".byte 0xe9", ".long {again}",
            "5:",
        }
    };
}

operator!(OperatorAdd, "add rax, rcx");
operator!(OperatorSubtract, "sub rax, rcx");
operator!(OperatorMultiply, "imul rax, rcx");
operator!(OperatorAnd, "and rax, rcx");
operator!(OperatorOr, "or rax, rcx");
operator!(OperatorXor, "xor rax, rcx");

template! {
    /// An operand: a decimal number, or anything in parentheses.
    pub struct Operand { start: Target, fail: Target }
    "cmp rsi, rdi",
    ".byte 0x0f, 0x83", ".long {fail}", // jae
    "movzx ecx, byte ptr [rsi]",
    "cmp ecx, '('",
    "jne 5f",
    "dec r8d",
    ".byte 0x0f, 0x88", ".long {fail}", // js
    "inc rsi",
    ".byte 0xe8", ".long {start}",
    "cmp rsi, rdi",
    ".byte 0x0f, 0x83", ".long {fail}",
    "cmp byte ptr [rsi], ')'",
    ".byte 0x0f, 0x85", ".long {fail}", // jne
    "inc rsi",
    "inc r8d",
    "ret",
    "5: sub ecx, '0'",
    "cmp ecx, 9",
    ".byte 0x0f, 0x87", ".long {fail}", // ja
    "xor eax, eax",
    "6: lea rax, [rax + rax * 4]",
    "lea rax, [rcx + rax * 2]",
    "inc rsi",
    "cmp rsi, rdi",
    "jae 7f",
    "movzx ecx, byte ptr [rsi]",
    "sub ecx, '0'",
    "cmp ecx, 9",
    "jbe 6b",
    "7: ret",
}

const FAIL: Label = Label(0);

/// The entry of a level, or of operands behind the last level.
fn entry(level: usize) -> Label {
    Label(1 + level as u8)
}

fn again(level: usize) -> Label {
    Label(2 + (LEVELS_MAX + level) as u8)
}

/// The parser of a grammar as one routine. `None`: too many levels.
pub fn generate(grammar: &Grammar) -> Option<Draft> {
    if grammar.len() > LEVELS_MAX {
        return None;
    }
    let mut draft = Draft::new();
    let (start, fail) = (Target::Label(entry(0)), Target::Label(FAIL));
    ParserEnter { depth: Imm32(DEPTH_MAX), start, fail }.append_to(&mut draft);
    draft.place(FAIL);
    ParserFail {}.append_to(&mut draft);
    for (level, operators) in grammar.iter().enumerate() {
        let tighter = Target::Label(entry(level + 1));
        draft.place(entry(level));
        LevelBegin { tighter }.append_to(&mut draft);
        draft.place(again(level));
        LevelLook {}.append_to(&mut draft);
        for (byte, operation) in *operators {
            append_operator(&mut draft, *byte, *operation, tighter, Target::Label(again(level)));
        }
        LevelEnd {}.append_to(&mut draft);
    }
    draft.place(entry(grammar.len()));
    Operand { start, fail }.append_to(&mut draft);
    Some(draft)
}

fn append_operator(draft: &mut Draft, byte: u8, operation: Operation, tighter: Target, again: Target) {
    let byte = Imm32(byte.into());
    match operation {
        Operation::Add => OperatorAdd { byte, tighter, again }.append_to(draft),
        Operation::Subtract => OperatorSubtract { byte, tighter, again }.append_to(draft),
        Operation::Multiply => OperatorMultiply { byte, tighter, again }.append_to(draft),
        Operation::And => OperatorAnd { byte, tighter, again }.append_to(draft),
        Operation::Or => OperatorOr { byte, tighter, again }.append_to(draft),
        Operation::Xor => OperatorXor { byte, tighter, again }.append_to(draft),
    }
}

/// What waits on the table-driven parser's stack.
enum Waiting {
    Parenthesis,
    Operator { level: usize, operation: Operation, left: u64 },
}

/// The value of a text, by a stack in memory and a search of the grammar at each byte. `None`: not of the grammar.
pub fn evaluate(grammar: &Grammar, text: &[u8]) -> Option<u64> {
    let mut waiting: Vec<Waiting> = Vec::new();
    let (mut at, mut open) = (0, 0);
    loop {
        while text.get(at) == Some(&b'(') {
            open += 1;
            if open > DEPTH_MAX {
                return None;
            }
            waiting.push(Waiting::Parenthesis);
            at += 1;
        }
        let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let digit = |value: u64, byte: &u8| value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        let mut value = text[at..at + digits].iter().fold(0, digit);
        at += digits;
        loop {
            let next = text.get(at).copied();
            let found = next.and_then(|byte| find(grammar, byte));
            value = reduce(&mut waiting, value, found.map_or(0, |(level, _)| level));
            if let Some((level, operation)) = found {
                waiting.push(Waiting::Operator { level, operation, left: value });
                at += 1;
                break;
            }
            match (waiting.pop(), next) {
                (None, None) => return Some(value),
                (Some(Waiting::Parenthesis), Some(b')')) => {
                    open -= 1;
                    at += 1;
                }
                _ => return None,
            }
        }
    }
}

fn find(grammar: &Grammar, byte: u8) -> Option<(usize, Operation)> {
    let of_level =
        |level: usize| grammar[level].iter().find(|(operator, _)| *operator == byte).map(|found| (level, found.1));
    (0..grammar.len()).find_map(of_level)
}

/// Does what waits and binds at least as tightly as `level`.
fn reduce(waiting: &mut Vec<Waiting>, mut value: u64, level: usize) -> u64 {
    while let Some(Waiting::Operator { level: waits, operation, left }) = waiting.last() {
        if *waits < level {
            break;
        }
        value = match operation {
            Operation::Add => left.wrapping_add(value),
            Operation::Subtract => left.wrapping_sub(value),
            Operation::Multiply => left.wrapping_mul(value),
            Operation::And => left & value,
            Operation::Or => left | value,
            Operation::Xor => left ^ value,
        };
        waiting.pop();
    }
    value
}
