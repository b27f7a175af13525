//! From the PVH entry (32-bit, no paging) to `boot_rust` in the higher half.
//!
//! The loader jumps to `pvh_entry` with `ebx` = physical address of `hvm_start_info`
//! (Xen public headers, `arch-x86/hvm/start_info.h`); QEMU, Firecracker and Cloud Hypervisor agree.
//!
//! ```text
//! boot tables: PML4[0]   -> identity, first 1 GB (only until boot_rust drops it)
//!              PML4[273] -> direct map, first 4 GB   (0xffff_8880_0000_0000)
//!              PML4[511] -> PDPT[510] -> image window, first 1 GB (0xffff_ffff_8000_0000)
//! ```

use core::arch::global_asm;

global_asm!(
    r#"
    .pushsection .note.pvh, "a", @note
    .align 4
    .long 4, 8, 18                      /* name size, descriptor size, XEN_ELFNOTE_PHYS32_ENTRY */
    .asciz "Xen"
    .quad pvh_entry - 0xFFFFFFFF80000000
    .popsection

    .pushsection .boot.text, "ax", @progbits
    .set phys_boot_pml4, boot_pml4 - 0xFFFFFFFF80000000
    .set phys_boot_pdpt_low, boot_pdpt_low - 0xFFFFFFFF80000000
    .set phys_boot_pdpt_direct, boot_pdpt_direct - 0xFFFFFFFF80000000
    .set phys_boot_pdpt_high, boot_pdpt_high - 0xFFFFFFFF80000000
    .set phys_boot_pd, boot_pd - 0xFFFFFFFF80000000
    .set phys_boot_gdt_pointer, boot_gdt_pointer - 0xFFFFFFFF80000000
    .set phys_boot_stack_top, boot_stack_top - 0xFFFFFFFF80000000
    .set phys_boot_long_mode, boot_long_mode - 0xFFFFFFFF80000000
    .code32
    .globl pvh_entry
    pvh_entry:
        cli
        cld
        mov esp, offset phys_boot_stack_top     /* the loader owes us no stack, and some leave 0 here */
        rdtsc
        mov esi, eax                    /* entry time, kept for the boot bench */
        mov ebp, edx
        /* the loader zeroes .bss; only the tables need values */
        mov eax, offset phys_boot_pdpt_low + 3
        mov dword ptr [phys_boot_pml4], eax
        mov eax, offset phys_boot_pdpt_direct + 3
        mov dword ptr [phys_boot_pml4 + 273*8], eax
        mov eax, offset phys_boot_pdpt_high + 3
        mov dword ptr [phys_boot_pml4 + 511*8], eax
        mov eax, offset phys_boot_pd + 3
        mov dword ptr [phys_boot_pdpt_low], eax
        mov dword ptr [phys_boot_pdpt_high + 510*8], eax
        mov edi, offset phys_boot_pdpt_direct
        mov ecx, 4
    2:  mov dword ptr [edi], eax
        add eax, 4096
        add edi, 8
        loop 2b
        /* four page directories of 2 MB pages: the first 4 GB */
        mov edi, offset phys_boot_pd
        mov eax, 0x83
        mov ecx, 2048
    3:  mov dword ptr [edi], eax
        add eax, 0x200000
        add edi, 8
        loop 3b
        mov eax, cr4
        or eax, 0x6A0                   /* PAE, PGE, OSFXSR, OSXMMEXCPT */
        mov cr4, eax
        mov eax, offset phys_boot_pml4
        mov cr3, eax
        mov ecx, 0xC0000080             /* EFER: LME, NXE, SCE */
        rdmsr
        or eax, 0x901
        wrmsr
        mov eax, cr0
        and eax, 0xFFFFFFFB             /* EM off */
        or eax, 0x80010023              /* PG, WP, NE, MP, PE */
        mov cr0, eax
        lgdt [phys_boot_gdt_pointer]
        /* far jump to 64-bit code, still at its physical address */
        push 0x10
        mov eax, offset phys_boot_long_mode
        push eax
        retf
    .code64
    boot_long_mode:
        mov ax, 0x18
        mov ss, ax
        mov ds, ax
        mov es, ax
        xor eax, eax
        mov fs, ax
        mov gs, ax
        mov rax, offset boot_high
        jmp rax
    boot_high:
        lea rsp, [rip + boot_stack_top]
        mov edi, ebx
        mov esi, esi
        shl rbp, 32
        or rsi, rbp
        xor ebp, ebp
        call boot_rust
        ud2
    .align 8
    boot_gdt:
        .quad 0
        .quad 0
        .quad 0x00AF9B000000FFFF        /* 0x10 kernel code */
        .quad 0x00CF93000000FFFF        /* 0x18 kernel data */
    boot_gdt_pointer:
        .word 31
        .quad boot_gdt - 0xFFFFFFFF80000000
    .popsection

    .pushsection .bss.boot, "aw", @nobits
    .align 4096
    .globl boot_pml4
    boot_pml4: .skip 4096
    boot_pdpt_low: .skip 4096
    boot_pdpt_direct: .skip 4096
    boot_pdpt_high: .skip 4096
    .globl boot_pdpt_high
    .globl boot_pd
    boot_pd: .skip 4*4096
    /* As a thread's area: the record of no thread, which is zeros for whoever asks for the running one's; a page that is taken away
       when memory is sealed, so that a stack that is too deep ends there and not in somebody's data; the stack. */
    .balign 32768
    .skip 4096
    .globl boot_guard_page
    boot_guard_page: .skip 4096
    .globl boot_stack
    boot_stack: .skip 32768 - 8192
    .globl boot_stack_top
    boot_stack_top:
    .popsection
"#
);
