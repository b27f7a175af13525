//! The code of a parser. Registers:
//!
//! ```text
//!   rsi  next token       r8   parts that may still begin inside each other    eax, ecx  scratch
//!   r10  first token      r9   where the next part of the answer goes          rdx       why it failed
//!   r11  the answer
//! ```
//! The operator whose right side is being parsed waits on the stack, below the return address.
#![allow(unsafe_code, reason = "the template macro names linker symbols")]

use alloc::vec::Vec;

use synth::{Template, jump, template};

/// Appends a part to the answer: the action, and the number of the token at rcx.
macro_rules! complete {
    () => {
        "sub rcx, r10\n shl ecx, 8\n or ecx, {action}\n mov dword ptr [r9], ecx\n add r9, 4"
    };
}

/// The next token is needed here.
macro_rules! expect {
    ($token:literal) => {
        concat!("mov edx, {", $token, "}\n movzx eax, byte ptr [rsi]\n cmp eax, edx\n", jump!(jne fail))
    };
}

/// A part begins inside this one; what fails there is that there are too many.
macro_rules! deeper {
    () => {
        concat!("mov edx, {why}\n dec r8d\n", jump!(js fail))
    };
}

template! {
    /// Entry, C's calling convention: `parse(tokens, answer)`. Out: rax = parts of the answer, or the number of the token where
    /// it failed; edx = 0, or why.
    pub struct ParseEnter { depth: Imm32, start: Target, why: Imm32, fail: Target }
    "push rbp",
    "mov rbp, rsp",
    "mov r10, rdi",
    "mov r11, rsi",
    "mov r9, rsi",
    "mov rsi, rdi",
    "mov r8d, {depth}",
    jump!(call start),
    "mov edx, {why}",
    "cmp byte ptr [rsi], 0",
    jump!(jne fail),
    "xor edx, edx",
    "mov rax, r9",
    "sub rax, r11",
    "shr rax, 2",
    "leave",
    "ret",
}

template! {
    /// A mistake anywhere: what is on the stack is forgotten. In: edx = why.
    pub struct ParseFail {}
    "mov rax, rsi",
    "sub rax, r10",
    "leave",
    "ret",
}

template! {
    /// A level begins with a part of the next one.
    pub struct BeginLevel { tighter: Target }
    jump!(call tighter),
}

template! {
    /// Looks at the next token.
    pub struct LookAhead {}
    "movzx eax, byte ptr [rsi]",
}

template! {
    /// What follows belongs to a looser level.
    pub struct EndLevel {}
    "ret",
}

template! {
    /// Goes on elsewhere: with the next level.
    pub struct GoOn { to: Target }
    jump!(jmp to),
}

template! {
    /// An operator that groups from the left: the level looks again behind it.
    pub struct LeftOperator { operator: Imm32, tighter: Target, action: Imm32, again: Target }
    "cmp eax, {operator}",
    "jne 5f",
    "push rsi",
    "inc rsi",
    jump!(call tighter),
    "pop rcx",
    complete!(),
    jump!(jmp again),
    "5:",
}

template! {
    /// An operator behind which this level comes once more: one that groups from the right, or a prefix.
    pub struct NestedOperator { operator: Imm32, why: Imm32, fail: Target, own: Target, action: Imm32 }
    "cmp eax, {operator}",
    "jne 5f",
    "push rsi",
    "inc rsi",
    deeper!(),
    jump!(call own),
    "inc r8d",
    "pop rcx",
    complete!(),
    "ret",
    "5:",
}

template! {
    /// `condition ask expression otherwise` and this level once more.
    pub struct ChoiceOperator { ask: Imm32, why: Imm32, fail: Target, start: Target, otherwise: Imm32, own: Target, action: Imm32 }
    "cmp eax, {ask}",
    "jne 5f",
    "push rsi",
    "inc rsi",
    deeper!(),
    jump!(call start),
    expect!("otherwise"),
    "inc rsi",
    jump!(call own),
    "inc r8d",
    "pop rcx",
    complete!(),
    "5:",
}

template! {
    /// `open expression close` behind an operand.
    pub struct IndexOperator { open: Imm32, why: Imm32, fail: Target, start: Target, close: Imm32, action: Imm32, again: Target }
    "cmp eax, {open}",
    "jne 5f",
    "push rsi",
    "inc rsi",
    deeper!(),
    jump!(call start),
    expect!("close"),
    "inc rsi",
    "inc r8d",
    "pop rcx",
    complete!(),
    jump!(jmp again),
    "5:",
}

template! {
    /// An operand by itself.
    pub struct LeafOperand { leaf: Imm32, action: Imm32 }
    "cmp eax, {leaf}",
    "jne 5f",
    "mov rcx, rsi",
    complete!(),
    "inc rsi",
    "ret",
    "5:",
}

template! {
    /// An expression in brackets.
    pub struct GroupOperand { open: Imm32, why: Imm32, fail: Target, start: Target, close: Imm32 }
    "cmp eax, {open}",
    "jne 5f",
    "inc rsi",
    deeper!(),
    jump!(call start),
    expect!("close"),
    "inc rsi",
    "inc r8d",
    "ret",
    "5:",
}

template! {
    /// A call begins with its name and the bracket; maybe it ends at once. Goes on at `other` if this is none.
    pub struct CallBegin { name: Imm32, other: Target, action: Imm32, why: Imm32, fail: Target, open: Imm32, close: Imm32, done: Target }
    "cmp eax, {name}",
    jump!(jne other),
    "push rsi",
    "mov rcx, rsi",
    complete!(),
    "inc rsi",
    deeper!(),
    expect!("open"),
    "inc rsi",
    "movzx eax, byte ptr [rsi]",
    "cmp eax, {close}",
    jump!(je done),
}

template! {
    /// An argument, and more behind a comma.
    pub struct CallArguments { inner: Target, comma: Imm32 }
    "6: .byte 0xe8", ".long {inner}",
    "movzx eax, byte ptr [rsi]",
    "cmp eax, {comma}",
    "jne 7f",
    "inc rsi",
    "jmp 6b",
    "7:",
}

template! {
    /// The call is complete.
    pub struct CallEnd { close: Imm32, fail: Target, action: Imm32 }
    expect!("close"),
    "inc rsi",
    "inc r8d",
    "pop rcx",
    complete!(),
    "ret",
}

template! {
    /// No operand begins so.
    pub struct NoOperand { why: Imm32, fail: Target }
    "mov edx, {why}",
    jump!(jmp fail),
}

/// All templates, for their listings.
pub fn templates() -> Vec<Template> {
    [
        ParseEnter::template(),
        ParseFail::template(),
        BeginLevel::template(),
        LookAhead::template(),
        EndLevel::template(),
        GoOn::template(),
        LeftOperator::template(),
        NestedOperator::template(),
        ChoiceOperator::template(),
        IndexOperator::template(),
        LeafOperand::template(),
        GroupOperand::template(),
        CallBegin::template(),
        CallArguments::template(),
        CallEnd::template(),
        NoOperand::template(),
    ]
    .into()
}
