//! Core files: ELF files of type `ET_CORE` (core(5), `linux/elf.h`, `linux/elfcore.h`).

use crate::ptrace::UserRegs;
use crate::record::record;
use crate::time::Timeval;

/// `e_type` and `e_machine`.
pub const ET_CORE: u16 = 4;
pub const EM_X86_64: u16 = 62;
/// Types of program headers.
pub const PT_LOAD: u32 = 1;
pub const PT_NOTE: u32 = 4;
/// Rights of a segment.
pub const PF_X: u32 = 1;
pub const PF_W: u32 = 2;
pub const PF_R: u32 = 4;
/// Types of notes besides the register sets of [`crate::ptrace`].
pub const NT_PRPSINFO: u32 = 3;
pub const NT_AUXV: u32 = 6;
pub const NT_SIGINFO: u32 = 0x5349_4749;
pub const NT_FILE: u32 = 0x4649_4C45;
/// Which memory goes into a core file (`/proc/PID/coredump_filter`).
pub const DUMP_ANONYMOUS_PRIVATE: u32 = 1;
pub const DUMP_ANONYMOUS_SHARED: u32 = 2;
pub const DUMP_FILE_PRIVATE: u32 = 4;
pub const DUMP_FILE_SHARED: u32 = 8;
pub const DUMP_ELF_HEADERS: u32 = 16;
/// What of it there can be: huge pages and direct access too, which this kernel has not.
pub const DUMP_KNOWN: u32 = 0x1FF;
pub const DUMP_DEFAULT: u32 = 0x33;

record! {
    /// `Elf64_Ehdr`.
    ElfHeader, 64 bytes {
        e_ident: [u8; 16], e_type: u16, e_machine: u16, e_version: u32, e_entry: u64, e_phoff: u64, e_shoff: u64, e_flags: u32,
        e_ehsize: u16, e_phentsize: u16, e_phnum: u16, e_shentsize: u16, e_shnum: u16, e_shstrndx: u16,
    }
}

record! {
    /// `Elf64_Phdr`.
    ProgramHeader, 56 bytes {
        p_type: u32, p_flags: u32, p_offset: u64, p_vaddr: u64, p_paddr: u64, p_filesz: u64, p_memsz: u64, p_align: u64,
    }
}

record! {
    /// `struct elf_prstatus`: a thread's registers, and why it ended.
    PrStatus, 336 bytes {
        si_signo: i32, si_code: i32, si_errno: i32, pr_cursig: u16, _pad0: u16, pr_sigpend: u64, pr_sighold: u64, pr_pid: i32,
        pr_ppid: i32, pr_pgrp: i32, pr_sid: i32, pr_utime: Timeval, pr_stime: Timeval, pr_cutime: Timeval, pr_cstime: Timeval,
        pr_reg: UserRegs, pr_fpvalid: i32, _pad1: u32,
    }
}

record! {
    /// `struct elf_prpsinfo`: the process.
    PrPsInfo, 136 bytes {
        pr_state: u8, pr_sname: u8, pr_zomb: u8, pr_nice: i8, _pad0: u32, pr_flag: u64, pr_uid: u32, pr_gid: u32, pr_pid: i32,
        pr_ppid: i32, pr_pgrp: i32, pr_sid: i32, pr_fname: [u8; 16], pr_psargs: [u8; 80],
    }
}
