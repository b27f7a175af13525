//! `write` to a channel of the machine: one routine down to the device's ring (the machine gives instructions to paste).

use abi::nr;
use codestore::{Code, Maker, PublishError};
use machine::{Channel, SendCode};
use synth::{Imm32, template};

use super::FileCall;
use super::routine::{Makers, Routine};
use crate::pipe::MoveMany;

template! {
    /// At least one byte and at most a buffer's fill may be sent. Out: rdi, rsi and rcx of the program on the stack.
    /// Cost: 8 instructions.
    pub struct SendCheck { most: Imm32, user_limit: Abs32, slow: Target }
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
    /// The count for the copy. Cost: 2 instructions.
    pub struct SendReady {}
    "mov ecx, edx",
    "shr ecx, 3",
}

template! {
    /// The device has the bytes. Cost: 4 instructions.
    pub struct SendEnd {}
    "pop rcx",
    "pop rsi",
    "pop rdi",
    "mov eax, edx",
}

/// Appends the whole way: checks, copy, device, back to the program.
pub(crate) fn paste_send(routine: &mut Routine, send: &SendCode) {
    let (user_limit, slow) = (routine.user_limit(), routine.slow());
    let most = Imm32(send.bytes_max as u32 - 1);
    routine.paste(|draft| SendCheck { most, user_limit, slow }.append_to(draft));
    routine.paste(|draft| send.choose.append_to(draft));
    routine.paste(|draft| SendReady {}.append_to(draft));
    routine.paste_user_many(|draft| MoveMany {}.append_to(draft));
    routine.paste(|draft| send.send.append_to(draft));
    routine.paste(|draft| SendEnd {}.append_to(draft));
    routine.leave();
}

/// `write` to a channel. `None` if the machine has no code for it or there is no room for the routine.
pub fn console_write(channel: Channel, makers: Makers) -> Option<Code<FileCall>> {
    publish(channel, makers)?.ok()
}

fn publish(channel: Channel, makers: Makers) -> Option<Result<Code<FileCall>, PublishError>> {
    let mut routine = Routine::new(makers, nr::WRITE);
    let send = makers.machine.send_code(channel, routine.slow_many())?;
    paste_send(&mut routine, &send);
    Some(routine.publish("console.write", Maker::new("boot")))
}

/// For the golden listings.
pub fn templates() -> [synth::Template; 3] {
    [SendCheck::template(), SendReady::template(), SendEnd::template()]
}
