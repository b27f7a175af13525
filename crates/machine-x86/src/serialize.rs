//! A serializing instruction (S-21).

use core::arch::asm;
use core::arch::x86_64::__cpuid;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The processor completes what it does and fetches its next instructions anew (SDM vol. 3A, 9.3, "Serializing
/// Instructions"). It is an `iretq` to the instruction behind it, because that needs no privilege and no hypervisor takes
/// part in it, as it does in `cpuid`. NT is clear in the kernel of both machines.
///
/// Not for a process: see [`serialize_in_process`].
pub fn serialize() {
    // SAFETY: the frame names the instruction behind, and the stack, segments and flags as they are. What is pushed is
    // popped by `iretq`.
    unsafe {
        asm!(
            "mov {stack}, rsp",
            "mov {word:e}, ss",
            "push {word}",
            "push {stack}",
            "pushfq",
            "mov {word:e}, cs",
            "push {word}",
            "lea {word}, [rip + 2f]",
            "push {word}",
            "iretq",
            "2:",
            stack = out(reg) _,
            word = out(reg) _,
        );
    }
}

/// The same in a process. QEMU 7.2, where it translates, takes an `iretq`'s frame from a process's stack with the kernel's
/// rights, and faults; there it is `cpuid`, which costs nothing without a hypervisor.
pub fn serialize_in_process() {
    const UNKNOWN: u8 = 0;
    const PROCESSOR: u8 = 1;
    const TRANSLATOR: u8 = 2;
    static KIND: AtomicU8 = AtomicU8::new(UNKNOWN);
    if KIND.load(Relaxed) == UNKNOWN {
        let is_translator = &__cpuid(0x4000_0000).ebx.to_le_bytes() == b"TCGT";
        KIND.store(if is_translator { TRANSLATOR } else { PROCESSOR }, Relaxed);
    }
    if KIND.load(Relaxed) == TRANSLATOR {
        __cpuid(0);
    } else {
        serialize();
    }
}
