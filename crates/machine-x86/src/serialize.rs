//! A serializing instruction (S-21).

use core::arch::asm;

/// The processor completes what it does and fetches its next instructions anew (SDM vol. 3A, 9.3, "Serializing
/// Instructions"). It is an `iretq` to the instruction behind it, because that needs no privilege and no hypervisor takes
/// part in it, as it does in `cpuid`. NT is clear in the kernel of both machines.
///
/// Not for a process under QEMU's translator: QEMU 7.2 takes the frame from the process's stack with the kernel's rights.
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
