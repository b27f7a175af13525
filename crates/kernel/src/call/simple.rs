//! Routines without data of their own: /dev/null and /dev/zero. All open files share one copy (R4).

use abi::nr;
use codestore::{Code, Maker, PublishError};
use synth::template;

use super::routine::{Makers, Routine};
use super::{FileCall, LimitWord};

template! {
    /// Reads the end of file. A range that leaves the program, or is negative, is an error, found in Rust.
    pub struct NullRead { user_limit: Abs32, slow: Target }
    "lea rax, [rsi + rdx]",
    "cmp rax, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x87",                     // ja slow
    ".long {slow}",
    "cmp rax, rsi",
    ".byte 0x0f, 0x82",                     // jb slow: the sum has turned round
    ".long {slow}",
    "xor eax, eax",
}

template! {
    /// Writes to nowhere: the count is the result. A range that leaves the program is an error, found in Rust.
    pub struct NullWrite { user_limit: Abs32, slow: Target }
    "cmp rdx, 0x10000",
    ".byte 0x0f, 0x87",                     // ja slow
    ".long {slow}",
    "lea rax, [rsi + rdx]",
    "cmp rsi, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x83",                     // jae slow
    ".long {slow}",
    "cmp rax, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x87",                     // ja slow
    ".long {slow}",
    "mov eax, edx",
}

template! {
    /// Before the zeros are stored.
    pub struct ZeroReadCheck { user_limit: Abs32, slow: Target }
    "cmp rdx, 0x10000",
    ".byte 0x0f, 0x87",                     // ja slow
    ".long {slow}",
    "cmp rsi, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x83",                     // jae slow
    ".long {slow}",
    "push rdi",
    "push rsi",
    "push rcx",
    "mov rdi, rsi",
    "mov ecx, edx",
    "shr ecx, 3",
    "xor eax, eax",
}

template! {
    /// Stores the zeros: eight bytes an instruction, then single ones.
    pub struct ZeroReadStore {}
    "rep stosq",
    "mov ecx, edx",
    "and ecx, 7",
    "rep stosb",
}

template! {
    /// Gives the registers back.
    pub struct ZeroReadEnd {}
    "pop rcx",
    "pop rsi",
    "pop rdi",
    "mov eax, edx",
}

/// `read` of /dev/null.
pub fn null_read(makers: Makers) -> Result<Code<FileCall>, PublishError> {
    let mut routine = Routine::new(makers, nr::READ);
    let (user_limit, slow): (LimitWord, _) = (routine.user_limit(), routine.slow());
    routine.paste(|draft| NullRead { user_limit, slow }.append_to(draft));
    routine.leave_uncounted();
    routine.publish("null.read", Maker::new("boot"))
}

/// `write` to /dev/null.
pub fn null_write(makers: Makers) -> Result<Code<FileCall>, PublishError> {
    let mut routine = Routine::new(makers, nr::WRITE);
    let (user_limit, slow): (LimitWord, _) = (routine.user_limit(), routine.slow());
    routine.paste(|draft| NullWrite { user_limit, slow }.append_to(draft));
    routine.leave_uncounted();
    routine.publish("null.write", Maker::new("boot"))
}

/// `read` of /dev/zero.
pub fn zero_read(makers: Makers) -> Result<Code<FileCall>, PublishError> {
    let mut routine = Routine::new(makers, nr::READ);
    let (user_limit, slow): (LimitWord, _) = (routine.user_limit(), routine.slow());
    routine.paste(|draft| ZeroReadCheck { user_limit, slow }.append_to(draft));
    routine.paste_user_many(|draft| ZeroReadStore {}.append_to(draft));
    routine.paste(|draft| ZeroReadEnd {}.append_to(draft));
    routine.leave_uncounted();
    routine.publish("zero.read", Maker::new("boot"))
}

/// For the golden listings.
pub fn templates() -> [synth::Template; 5] {
    [
        NullRead::template(),
        NullWrite::template(),
        ZeroReadCheck::template(),
        ZeroReadStore::template(),
        ZeroReadEnd::template(),
    ]
}
