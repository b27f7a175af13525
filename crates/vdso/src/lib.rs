//! Layer 0: the vDSO, a shared object that the kernel maps into every program so that it can ask
//! the time without a kernel call. This is synthesis the other way round: the kernel's variables
//! come to the caller, not the caller to the kernel.
//!
//! ```text
//!   base - 4096   time page   read only; written by the kernel through its frame
//!   base          IMAGE       read and execute; AT_SYSINFO_EHDR = base
//! ```
//!
//! `build.rs` compiles `user/vdso.rs` with the Rust compiler and links it with the C compiler that
//! Rust links with anyway; so the ELF tables are a real linker's and no binary is in the source.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), forbid(unsafe_code))]

mod time_page;
mod user_calls;

#[cfg(test)]
mod tests;

pub use time_page::{PROCESSOR_IN_TSC_AUX, TIME_PAGE_BYTES, TimePage};
pub use user_calls::{Head, PR_SYNTHESIS_USER_CALL, USER_CALLS, constant_head, is_head, slow_head};

/// Where the user-level call for kernel call `number` lies in [`IMAGE`]; `None` when there is none.
pub fn user_call_offset(number: u64) -> Option<usize> {
    user_calls::find(IMAGE, number)
}

/// The shared object, a whole number of 4096-byte pages. It has one `PT_LOAD` segment that starts
/// at file offset 0 and address 0, so pages of the file are pages of memory.
pub static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vdso.so"));
