//! The pc's code that sends to a channel: what `Virtqueue` does to offer a buffer, as instructions to paste.
//!
//! Both work on the same [`QueueWords`], so the order of bytes is that of the calls, whoever makes them.

use alloc::vec;
use core::mem::offset_of;

use machine::{Fragment, PAGE_BYTES, SendCode};
use synth::{Abs32, Fact, Imm32, Target, template};

use crate::virtqueue::{AVAILABLE, QueueWords, SIZE, USED};

template! {
    /// Chooses the top of the idle buffers; if there is none, one that the device has returned becomes the only one
    /// (which loses nothing if the call is then done in Rust). Out: eax = buffer, rdi = its bytes. Clobbers rcx.
    /// Cost: 5 instructions, 19 with the return.
    pub struct ChooseBuffer { idle_count: Abs32, used: Abs32, ring: Abs32, buffer_count: Imm32, idle: Abs32, buffers: Abs32, none: Target }
    where { USED_INDEX = USED + 2, USED_ENTRY = USED + 4, MASK = SIZE - 1 }
    "mov ecx, dword ptr [{idle_count}]",
    "dec ecx",
    "jns 70f",
    "movzx eax, word ptr [{used}]",
    "mov rdi, qword ptr [{ring}]",
    "cmp ax, word ptr [rdi + {USED_INDEX}]",
    ".byte 0x0f, 0x84",                     // je none: the device has them all
    ".long {none}",
    "mov ecx, eax",
    "and ecx, {MASK}",
    "mov ecx, dword ptr [rdi + rcx*8 + {USED_ENTRY}]",
    "cmp ecx, {buffer_count}",
    ".byte 0x0f, 0x83",                     // jae none: a buffer that we do not have
    ".long {none}",
    "inc eax",
    "mov dword ptr [{used}], eax",
    "mov dword ptr [{idle}], ecx",
    "mov dword ptr [{idle_count}], 1",
    "xor ecx, ecx",
    "70:",
    "mov eax, dword ptr [{idle} + rcx*4]",
    "mov rdi, qword ptr [{buffers} + rax*8]",
}

template! {
    /// Gives buffer eax with edx bytes to the device and tells it (virtio 1.2, 2.7.13). The processor keeps the order of
    /// stores; only the look at the device's flags could overtake the index. Clobbers rcx, rdi. Cost: 17 instructions, 15
    /// without the notification.
    pub struct SendBuffer { idle_count: Abs32, ring: Abs32, available: Abs32, notify: Abs32, queue: Imm32 }
    where { ENTRIES = AVAILABLE + 4, INDEX = AVAILABLE + 2, FLAGS = USED, MASK = SIZE - 1 }
    "dec dword ptr [{idle_count}]",
    "mov rdi, qword ptr [{ring}]",
    "mov ecx, eax",
    "shl ecx, 4",
    "mov dword ptr [rdi + rcx + 8], edx",
    "mov ecx, dword ptr [{available}]",
    "and ecx, {MASK}",
    "mov word ptr [rdi + rcx*2 + {ENTRIES}], ax",
    "mov ecx, dword ptr [{available}]",
    "inc ecx",
    "mov dword ptr [{available}], ecx",
    "mov word ptr [rdi + {INDEX}], cx",
    "mfence",
    "test byte ptr [rdi + {FLAGS}], 1",
    "jne 70f",
    "mov rcx, qword ptr [{notify}]",
    "mov dword ptr [rcx], {queue}",
    "70:",
}

/// The code for a queue that the device knows as number `queue`; it names the words, which must not move while it is used.
pub fn send_code(words: &QueueWords, queue: u32, none: Target) -> SendCode {
    let buffer_count = Imm32(words.buffer_count);
    let words = core::ptr::from_ref(words) as u64;
    let word = |offset: usize| Abs32(words + offset as u64);
    let choose = vec![
        word(offset_of!(QueueWords, idle_count)).into(),
        word(offset_of!(QueueWords, used)).into(),
        word(offset_of!(QueueWords, ring)).into(),
        buffer_count.into(),
        word(offset_of!(QueueWords, idle)).into(),
        word(offset_of!(QueueWords, buffers)).into(),
        none.into(),
    ];
    let send = vec![
        word(offset_of!(QueueWords, idle_count)).into(),
        word(offset_of!(QueueWords, ring)).into(),
        word(offset_of!(QueueWords, available)).into(),
        word(offset_of!(QueueWords, notify)).into(),
        Imm32(queue).into(),
    ];
    SendCode {
        choose: Fragment { template: ChooseBuffer::template(), holes: choose },
        send: Fragment { template: SendBuffer::template(), holes: send },
        bytes_max: PAGE_BYTES,
    }
}

/// For the golden listings.
pub fn templates() -> [synth::Template; 2] {
    [ChooseBuffer::template(), SendBuffer::template()]
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::half("idle_count", "buffers that the driver has", "never"),
    Fact::half("used", "how far the driver has looked at what the device gave back", "never"),
    Fact::word("ring", "address of the queue that device and driver share", "never"),
    Fact::value("buffer_count", "buffers of this queue", "never"),
    Fact::value("idle", "numbers of the buffers that the driver has", "never"),
    Fact::value("buffers", "addresses of the buffers", "never"),
    Fact::half("available", "how many buffers the device was given", "never"),
    Fact::word("notify", "address of the device's register", "never"),
    Fact::value("queue", "the queue's number for the device", "never"),
];
