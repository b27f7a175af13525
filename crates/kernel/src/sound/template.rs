//! The handlers' machine code: a fragment for each channel, and the generic handler in assembly.
//!
//! Entered by the interrupt gate with interrupts off, on the kernel stack of the running thread, whatever it is. All end
//! with the machine's `SampleClock::end`.

use core::mem::offset_of;

use synth::{Fact, template};

use super::SoundWords;
use super::channel::{Channel, ChannelWords, ELEMENT_PLACES, Format};

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
    /// Saves the one register that an insert uses which puts no element into the ring. Cost: 1 instruction.
    pub struct PartSave {}
    "push rax",
}

template! {
    /// A/D, an insert of a buffered queue (S-43): a sample goes into its part of the element in the making. Clobbers rax.
    /// Cost: 2 instructions.
    pub struct AdPart { device: Abs32, part: Abs32 }
    "mov eax, dword ptr [{device}]",
    "mov word ptr [{part}], ax",
}

template! {
    /// The same for two samples. Clobbers rax. Cost: 2 instructions.
    pub struct AdPartStereo { device: Abs32, part: Abs32 }
    "mov eax, dword ptr [{device}]",
    "mov dword ptr [{part}], eax",
}

template! {
    /// The same as µ-law. Clobbers rax. Cost: 4 instructions.
    pub struct AdPartMuLaw { device: Abs32, part: Abs32, table: Abs32 }
    "movzx eax, word ptr [{device}]",
    "shr eax, 2",
    "mov al, byte ptr [{table} + rax]",
    "mov byte ptr [{part}], al",
}

template! {
    /// Where the element goes: rdx = offset in a ring with places of `bytes` bytes. Cost: 2 instructions.
    pub struct ElementAt { head: Abs32, bytes: Imm32 }
    "movzx edx, word ptr [{head}]",
    "imul edx, edx, {bytes}",
}

template! {
    /// Eight bytes of the element go into the ring. Clobbers rax. Cost: 2 instructions.
    pub struct MoveElement { element: Abs32, ring: Abs32 }
    "mov rax, qword ptr [{element}]",
    "mov qword ptr [{ring} + rdx], rax",
}

template! {
    /// The element is in the ring. Cost: 1 instruction.
    pub struct ElementIn { head: Abs32 }
    where { PLACES = ELEMENT_PLACES }
    "add dword ptr [{head}], {PLACES}",
}

template! {
    /// dx = the last place of the element, for `ChainSignal`. Cost: 2 instructions.
    pub struct LastPlace { head: Abs32 }
    "mov edx, dword ptr [{head}]",
    "dec edx",
}

template! {
    /// The next interrupt's insert is another: it stands `step` bytes further. Cost: 1 instruction.
    pub struct NextInsert { slot: Abs32, step: Imm32 }
    "add qword ptr [{slot}], {step}",
}

template! {
    /// Gives the register back. Cost: 1 instruction.
    pub struct PartRestore {}
    "pop rax",
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
    /// Chains a signal to who waits for this place of the channel (S-80). In: dx = the place. It stands only in handlers that
    /// are bound while somebody waits. Cost: 5 instructions, 3 before the place.
    pub struct ChainSignal { wake_at: Abs32, chained: Abs32, chain_at: Abs32, chain: Imm32 }
    "movzx edx, dx",
    "cmp edx, dword ptr [{wake_at}]",
    "jne 70f",
    "mov dword ptr [{chained}], 1",
    "mov dword ptr [{chain_at}], {chain}",
    "70:",
}

template! {
    /// Gives the registers back. Cost: 2 instructions.
    pub struct SoundRestore {}
    "pop rdx",
    "pop rax",
}

template! {
    /// The generic handler as one writes it by hand, as in thesis figure 3.6: it saves the registers that it uses and no
    /// others, but asks of each channel whether it is active, and the A/D channel what its samples are. The twin of
    /// `Sound::interrupt`.
    pub struct SoundAssembly { words: Abs32, chain_at: Abs32, chain: Imm32 }
    where {
        DEVICE = offset_of!(SoundWords, device),
        ANALOG = offset_of!(SoundWords, analog_out),
        CD_FORMAT = channel_field(Channel::CdIn, offset_of!(ChannelWords, format)),
        CD_HEAD = channel_field(Channel::CdIn, offset_of!(ChannelWords, head)),
        CD_RING = channel_field(Channel::CdIn, offset_of!(ChannelWords, ring_at)),
        AD_FORMAT = channel_field(Channel::AdIn, offset_of!(ChannelWords, format)),
        AD_HEAD = channel_field(Channel::AdIn, offset_of!(ChannelWords, head)),
        AD_RING = channel_field(Channel::AdIn, offset_of!(ChannelWords, ring_at)),
        AD_TABLE = channel_field(Channel::AdIn, offset_of!(ChannelWords, table_at)),
        DA_FORMAT = channel_field(Channel::DaOut, offset_of!(ChannelWords, format)),
        DA_HEAD = channel_field(Channel::DaOut, offset_of!(ChannelWords, head)),
        DA_TAIL = channel_field(Channel::DaOut, offset_of!(ChannelWords, tail)),
        DA_RING = channel_field(Channel::DaOut, offset_of!(ChannelWords, ring_at)),
        CD_WAKE = channel_field(Channel::CdIn, offset_of!(ChannelWords, wake_at)),
        CD_CHAINED = channel_field(Channel::CdIn, offset_of!(ChannelWords, chained)),
        AD_WAKE = channel_field(Channel::AdIn, offset_of!(ChannelWords, wake_at)),
        AD_CHAINED = channel_field(Channel::AdIn, offset_of!(ChannelWords, chained)),
        DA_WAKE = channel_field(Channel::DaOut, offset_of!(ChannelWords, wake_at)),
        DA_CHAINED = channel_field(Channel::DaOut, offset_of!(ChannelWords, chained)),
        MU_LAW = Format::MuLaw as usize
    }
    "push rax",
    "push rdx",
    "push rbx",
    "mov rbx, {words}",
    "inc dword ptr [rbx + {DEVICE}]",
    "cmp dword ptr [rbx + {CD_FORMAT}], 0",
    "je 71f",
    "movzx eax, word ptr [rbx + {CD_HEAD}]",
    "shl eax, 2",
    "add rax, qword ptr [rbx + {CD_RING}]",
    "mov edx, dword ptr [rbx + {DEVICE}]",
    "mov dword ptr [rax], edx",
    "movzx eax, word ptr [rbx + {CD_HEAD}]",
    "cmp eax, dword ptr [rbx + {CD_WAKE}]",
    "jne 76f",
    "mov dword ptr [rbx + {CD_CHAINED}], 1",
    "mov dword ptr [{chain_at}], {chain}",
    "76:",
    "inc dword ptr [rbx + {CD_HEAD}]",
    "71:",
    "cmp dword ptr [rbx + {AD_FORMAT}], 0",
    "je 74f",
    "movzx eax, word ptr [rbx + {AD_HEAD}]",
    "movzx edx, word ptr [rbx + {DEVICE}]",
    "cmp dword ptr [rbx + {AD_FORMAT}], {MU_LAW}",
    "jae 72f",
    "add eax, eax",
    "add rax, qword ptr [rbx + {AD_RING}]",
    "mov word ptr [rax], dx",
    "jmp 73f",
    "79:",
    "mov edx, dword ptr [rbx + {DEVICE}]",
    "shl eax, 2",
    "add rax, qword ptr [rbx + {AD_RING}]",
    "mov dword ptr [rax], edx",
    "jmp 73f",
    "72:",
    "jne 79b",
    "add rax, qword ptr [rbx + {AD_RING}]",
    "shr edx, 2",
    "add rdx, qword ptr [rbx + {AD_TABLE}]",
    "mov dl, byte ptr [rdx]",
    "mov byte ptr [rax], dl",
    "73:",
    "movzx eax, word ptr [rbx + {AD_HEAD}]",
    "cmp eax, dword ptr [rbx + {AD_WAKE}]",
    "jne 77f",
    "mov dword ptr [rbx + {AD_CHAINED}], 1",
    "mov dword ptr [{chain_at}], {chain}",
    "77:",
    "inc dword ptr [rbx + {AD_HEAD}]",
    "74:",
    "cmp dword ptr [rbx + {DA_FORMAT}], 0",
    "je 75f",
    "movzx eax, word ptr [rbx + {DA_TAIL}]",
    "cmp eax, dword ptr [rbx + {DA_WAKE}]",
    "jne 78f",
    "mov dword ptr [rbx + {DA_CHAINED}], 1",
    "mov dword ptr [{chain_at}], {chain}",
    "78:",
    "mov eax, dword ptr [rbx + {DA_TAIL}]",
    "cmp eax, dword ptr [rbx + {DA_HEAD}]",
    "je 75f",
    "movzx eax, ax",
    "shl eax, 2",
    "add rax, qword ptr [rbx + {DA_RING}]",
    "mov edx, dword ptr [rax]",
    "mov dword ptr [rbx + {ANALOG}], edx",
    "inc dword ptr [rbx + {DA_TAIL}]",
    "75:",
    "pop rbx",
    "pop rdx",
    "pop rax",
}

/// Offset of a channel's field in the server's words.
const fn channel_field(channel: Channel, field: usize) -> usize {
    offset_of!(SoundWords, channels) + channel as usize * size_of::<ChannelWords>() + field
}

/// What the handlers' holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word("device", "the device's sample: interrupts so far", "never"),
    Fact::word("analog_out", "the last sample for the loudspeaker", "never"),
    Fact::word("head", "places of the ring filled so far", "a channel opens or closes"),
    Fact::word("tail", "places of the ring taken so far", "a channel opens or closes"),
    Fact::word("wake_at", "the place whose use somebody waits for", "somebody waits"),
    Fact::word("chained", "a signal is chained", "never"),
    Fact::word("chain_at", "register of the interrupt controller", "never"),
    Fact::value("chain", "the processor's order to itself to do what is chained", "never"),
    Fact::value("ring", "the channel's ring", "a channel opens or closes"),
    Fact::value("table", "from 14-bit samples to µ-law", "a channel opens or closes"),
    Fact::value("words", "the server's words", "never"),
    Fact::value("element", "the element in the making", "never"),
    Fact::value("part", "this insert's part of the element", "never"),
    Fact::value("bytes", "bytes of a place", "a channel opens or closes"),
    Fact::word("slot", "the handler of the next interrupt", "each interrupt stores another; a channel opens or closes"),
    Fact::value("step", "from this insert to the next", "never"),
    Fact::word("end_of_interrupt", "register of the interrupt controller", "never"),
];
