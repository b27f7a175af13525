//! The handlers' machine code: a fragment for each channel, and the generic handler in assembly.
//!
//! Entered by the interrupt gate with interrupts off, on the kernel stack of the running thread, whatever it is. All end
//! with the machine's `SampleClock::end`.

use core::mem::offset_of;

use synth::{Fact, Template, template};

use super::SoundWords;
use super::channel::ChannelWords;

template! {
    /// Saves the registers that the channels' fragments use (S-79). Cost: 2 instructions.
    pub struct SoundSave {}
    "push rax",
    "push rdx",
}

template! {
    /// The simulated device makes the next sample. A real device's register changes by itself. Cost: 1 instruction.
    pub struct SoundDevice { device: Abs32 }
    "inc dword ptr [{device}]",
}

template! {
    /// CD: a frame goes from the device's register into the ring. Clobbers rax, rdx. Cost: 4 instructions.
    pub struct CdIn { device: Abs32, head: Abs32, ring: Abs32 }
    "movzx edx, word ptr [{head}]",
    "mov eax, dword ptr [{device}]",
    "mov dword ptr [{ring} + rdx*4], eax",
    "inc dword ptr [{head}]",
}

template! {
    /// A/D: a sample goes into the ring. Clobbers rax, rdx. Cost: 4 instructions.
    pub struct AdIn { device: Abs32, head: Abs32, ring: Abs32 }
    "movzx edx, word ptr [{head}]",
    "mov eax, dword ptr [{device}]",
    "mov word ptr [{ring} + rdx*2], ax",
    "inc dword ptr [{head}]",
}

template! {
    /// A/D: a sample goes into the ring as µ-law, through a table for its upper 14 bits. Clobbers rax, rdx. Cost: 6
    /// instructions.
    pub struct AdInMuLaw { device: Abs32, head: Abs32, ring: Abs32, table: Abs32 }
    "movzx edx, word ptr [{head}]",
    "movzx eax, word ptr [{device}]",
    "shr eax, 2",
    "mov al, byte ptr [{table} + rax]",
    "mov byte ptr [{ring} + rdx], al",
    "inc dword ptr [{head}]",
}

template! {
    /// D/A: a frame goes from the ring into the device's register; without one the last stays. Clobbers rax, rdx. Cost: 7
    /// instructions, 3 while the ring is dry.
    pub struct DaOut { analog_out: Abs32, head: Abs32, tail: Abs32, ring: Abs32 }
    "mov edx, dword ptr [{tail}]",
    "cmp edx, dword ptr [{head}]",
    "je 70f",
    "movzx edx, dx",
    "mov eax, dword ptr [{ring} + rdx*4]",
    "mov dword ptr [{analog_out}], eax",
    "inc dword ptr [{tail}]",
    "70:",
}

template! {
    /// Gives the registers back. Cost: 2 instructions.
    pub struct SoundRestore {}
    "pop rdx",
    "pop rax",
}

template! {
    /// The generic handler as one writes it by hand: saves all registers, asks each channel whether it is active and what
    /// it is. The twin of `Sound::interrupt`.
    pub struct SoundAssembly { words: Abs32 }
    where {
        DEVICE = offset_of!(SoundWords, device),
        ANALOG = offset_of!(SoundWords, analog_out),
        CHANNELS = offset_of!(SoundWords, channels),
        SIZE = size_of::<ChannelWords>(),
        FORMAT = offset_of!(ChannelWords, format),
        HEAD = offset_of!(ChannelWords, head),
        TAIL = offset_of!(ChannelWords, tail),
        RING = offset_of!(ChannelWords, ring_at),
        TABLE = offset_of!(ChannelWords, table_at)
    }
    "push rax",
    "push rbx",
    "push rcx",
    "push rdx",
    "push rsi",
    "push rdi",
    "push rbp",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "cld",
    "mov rbp, {words}",
    "mov esi, dword ptr [rbp + {DEVICE}]",
    "inc esi",
    "mov dword ptr [rbp + {DEVICE}], esi",
    "lea rbx, [rbp + {CHANNELS}]",
    "mov ecx, 3",
    "70:",
    "mov eax, dword ptr [rbx + {FORMAT}]",
    "test eax, eax",
    "je 79f",
    "mov rdi, qword ptr [rbx + {RING}]",
    "movzx edx, word ptr [rbx + {HEAD}]",
    "cmp eax, 1",
    "je 71f",
    "cmp eax, 2",
    "je 72f",
    "cmp eax, 3",
    "je 73f",
    "mov edx, dword ptr [rbx + {TAIL}]",
    "cmp edx, dword ptr [rbx + {HEAD}]",
    "je 79f",
    "movzx edx, dx",
    "mov eax, dword ptr [rdi + rdx*4]",
    "mov dword ptr [rbp + {ANALOG}], eax",
    "inc dword ptr [rbx + {TAIL}]",
    "jmp 79f",
    "71:",
    "mov dword ptr [rdi + rdx*4], esi",
    "jmp 78f",
    "72:",
    "mov word ptr [rdi + rdx*2], si",
    "jmp 78f",
    "73:",
    "movzx eax, si",
    "shr eax, 2",
    "mov r8, qword ptr [rbx + {TABLE}]",
    "mov al, byte ptr [r8 + rax]",
    "mov byte ptr [rdi + rdx], al",
    "78:",
    "inc dword ptr [rbx + {HEAD}]",
    "79:",
    "add rbx, {SIZE}",
    "dec ecx",
    "jne 70b",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rbp",
    "pop rdi",
    "pop rsi",
    "pop rdx",
    "pop rcx",
    "pop rbx",
    "pop rax",
}

/// What the handlers' holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word("device", "the device's sample: interrupts so far", "never"),
    Fact::word("analog_out", "the last sample for the loudspeaker", "never"),
    Fact::word("head", "places of the ring filled so far", "a channel opens or closes"),
    Fact::word("tail", "places of the ring taken so far", "a channel opens or closes"),
    Fact::value("ring", "the channel's ring", "a channel opens or closes"),
    Fact::value("table", "from 14-bit samples to µ-law", "a channel opens or closes"),
    Fact::value("words", "the server's words", "never"),
    Fact::word("end_of_interrupt", "register of the interrupt controller", "never"),
];

/// For the golden listings.
pub fn templates() -> [Template; 8] {
    [
        SoundSave::template(),
        SoundDevice::template(),
        CdIn::template(),
        AdIn::template(),
        AdInMuLaw::template(),
        DaOut::template(),
        SoundRestore::template(),
        SoundAssembly::template(),
    ]
}
