//! A program's registers while its thread is in the kernel.

/// The integer registers of a program, in the order the pc's entry code pushes them. Both machines
/// are x86-64, so both use this record.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Registers {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r11: u64,
    pub rax: u64,
    pub rcx: u64,
    // The six arguments of a call lie in their order, so that they are copied as one.
    pub rdi: u64,
    pub rsi: u64,
    pub rdx: u64,
    pub r10: u64,
    pub r8: u64,
    pub r9: u64,
    /// The trap vector, or the number of the system call at entry.
    pub cause: u64,
    /// The error code of the exception, 0 where there is none.
    pub error: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
}
