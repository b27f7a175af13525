/* Finding a function of the vDSO, as any program may. */
#ifndef VDSO_H
#define VDSO_H
#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

/* A function of the vDSO, by its symbol; NULL where the kernel has none of this name. */
static inline void *vdso_function(const char *name)
{
	uintptr_t base = getauxval(AT_SYSINFO_EHDR), symbols = 0, strings = 0, hash = 0;
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)base;
	const Elf64_Phdr *program = (const Elf64_Phdr *)(base + (base ? header->e_phoff : 0));

	for (int i = 0; base && i < header->e_phnum; i++)
		if (program[i].p_type == PT_DYNAMIC)
			for (const Elf64_Dyn *entry = (const Elf64_Dyn *)(base + program[i].p_vaddr); entry->d_tag; entry++) {
				symbols = entry->d_tag == DT_SYMTAB ? base + entry->d_un.d_ptr : symbols;
				strings = entry->d_tag == DT_STRTAB ? base + entry->d_un.d_ptr : strings;
				hash = entry->d_tag == DT_HASH ? base + entry->d_un.d_ptr : hash;
			}
	for (uint32_t i = 0; hash && i < ((const uint32_t *)hash)[1]; i++) {
		const Elf64_Sym *symbol = (const Elf64_Sym *)symbols + i;

		if (strcmp((const char *)strings + symbol->st_name, name) == 0)
			return (void *)(base + symbol->st_value);
	}
	return NULL;
}
#endif
