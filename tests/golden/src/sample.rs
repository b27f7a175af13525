//! The sample clock of the bench: the pc's own handlers, entered as an interrupt does it.

use std::arch::asm;
use std::sync::atomic::AtomicU32;

use machine::{Entry, Fragment, SampleClock, SampleEntry};
use synth::Abs32;

/// Where the pc has its interrupt controller; and the slot.
struct Words {
    end_of_interrupt: AtomicU32,
    chain: AtomicU32,
    slot: machine::Slot<SampleEntry>,
}

fn words() -> &'static Words {
    static WORDS: std::sync::OnceLock<&'static Words> = std::sync::OnceLock::new();
    // Boxed: code reaches only what lies below 2 GB.
    WORDS.get_or_init(|| {
        Box::leak(Box::new(Words {
            end_of_interrupt: AtomicU32::new(0),
            chain: AtomicU32::new(0),
            // SAFETY: nobody enters it before another is stored.
            slot: machine::Slot::new(unsafe { Entry::new(0) }),
        }))
    })
}

/// There is no compiled handler: the race does what Rust does itself.
pub fn find() -> SampleClock {
    let words = words();
    let [end] = machine_pc::sample_templates();
    let end_of_interrupt = Abs32((&raw const words.end_of_interrupt) as u64);
    let end = Fragment { template: end, holes: vec![end_of_interrupt.into()] };
    let chain = ((&raw const words.chain) as u64, 1);
    // SAFETY: nobody enters it.
    let compiled = unsafe { Entry::new(0) };
    SampleClock { slot: &words.slot, end, chain, compiled }
}

pub fn bind(entry: Entry<SampleEntry>) {
    words().slot.store(entry);
}

/// Raises the interrupt once and looks whether all registers but rax and rcx, which the entry needs, are kept.
pub fn raise() -> bool {
    let slot = (&raw const words().slot) as u64;
    let (rax, rdx, rsi, rdi, r8, r15): (u64, u64, u64, u64, u64, u64);
    // SAFETY: the frame is what `iretq` takes (SDM vol. 2A, IRET): it comes back behind the jump. rax is loaded with a known
    // value after the frame is built, and looked at afterwards, like the others.
    unsafe {
        asm!(
            "mov rax, rsp",
            "mov r9d, ss",
            "push r9",
            "push rax",
            "pushfq",
            "mov r9d, cs",
            "push r9",
            "lea rax, [rip + 72f]",
            "push rax",
            "mov eax, 1001",
            "mov edx, 1002",
            "mov esi, 1003",
            "mov edi, 1004",
            "mov r8d, 1005",
            "mov r15d, 1006",
            "jmp qword ptr [rcx]",
            "72:",
            in("rcx") slot,
            out("rax") rax, out("rdx") rdx, out("rsi") rsi, out("rdi") rdi, out("r8") r8, out("r15") r15, out("r9") _,
        );
    }
    [rax, rdx, rsi, rdi, r8, r15] == [1001, 1002, 1003, 1004, 1005, 1006]
}
