//! Layer 4: the kernel's quajects, a folder each. One kernel, two machines: nothing here knows
//! which machine it runs on.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod file;
pub mod pipe;
pub mod schedule;
pub mod space;
pub mod stream;
pub mod thread;
pub mod tty;

/// Register contract of the routines behind a descriptor's `read` and `write` entry: entered by `jmp` from the thread's
/// dispatch code, on the thread's kernel stack with the program's stack pointer on top; rax = call number,
/// rdi, rsi, rdx = arguments, rcx and r11 as `syscall` left them. All registers but rax, rcx and r11 are kept.
pub enum FileCall {}
