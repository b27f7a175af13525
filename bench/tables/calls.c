/*
 * The thesis's table 3.5, the cost of a call that does nothing, one way to call per operation:
 *     calls OPERATION ITERATIONS [time]
 * See ../paper/measure.h for what "time" prints. The call is getppid, which the C library does not answer by itself.
 */
#define _GNU_SOURCE
#include "../paper/measure.h"
#include <elf.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#define UNKNOWN_CALL 1000

static int count;

#define LOOP(body)                       \
	do {                             \
		int i = count;           \
		start_ticks();           \
		for (; i--; ) {          \
			body;            \
		}                        \
	} while (0)

static __attribute__((noinline)) int procedure(void)
{
	int result = 110;

	__asm__ volatile("" : "+r"(result));
	return result;
}

/*
 * Stubs. The hosted machine leads `mov eax, number; syscall` straight to the call's entry, and what the C library's syscall()
 * ends with, where the number is the caller's, to the thread's dispatch: so the first are its cached calls, and the second
 * its general ones. The virtual machine has the dispatch for both.
 */
long general_stub(long number);
long cached_stub(void);
__asm__(".text\n"
	".balign 16\n"
	"general_stub: mov %edi, %eax\n"
	"mov 8(%rsp), %r9\n"
	"syscall\n"
	"ret\n"
	".balign 16\n"
	"cached_stub: mov $110, %eax\n"
	"syscall\n"
	"ret\n");

#define GENERAL_INLINED(number)                                                                          \
	__asm__ volatile("mov 8(%%rsp), %%r9\n"                                                          \
			 "syscall" : "=a"(result) : "a"(number) : "rcx", "r9", "r11", "memory")
#define CACHED_INLINED()                                                                                 \
	__asm__ volatile("mov $110, %%eax\n"                                                             \
			 "syscall" : "=a"(result) : : "rcx", "r11", "memory")

/* A function of the vDSO, by its symbol; NULL where the kernel has none of this name. */
static void *vdso_function(const char *name)
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

static void run(const char *operation)
{
	long parent = getppid(), number = SYS_getppid, result = parent;
	int (*own)(void) = (int (*)(void))vdso_function("__synthesis_getpid");

	__asm__ volatile("" : "+r"(number));
	own = own ? own : getpid;
	if (!strcmp(operation, "procedure")) {
		LOOP(procedure());
	} else if (!strcmp(operation, "unknown")) {
		LOOP(syscall(UNKNOWN_CALL));
	} else if (!strcmp(operation, "general")) {
		LOOP(result = general_stub(number));
	} else if (!strcmp(operation, "general_inlined")) {
		LOOP(GENERAL_INLINED(number));
	} else if (!strcmp(operation, "cached")) {
		LOOP(result = cached_stub());
	} else if (!strcmp(operation, "cached_inlined")) {
		LOOP(CACHED_INLINED());
	} else if (!strcmp(operation, "user_level")) {
		LOOP(own());
		expect(own() == getpid(), "user-level getpid");
	} else if (!strcmp(operation, "libc_getpid")) {
		LOOP(getpid());
	} else {
		fprintf(stderr, "error: no operation %s\n", operation);
		exit(2);
	}
	expect(result == parent, "getppid");
}

int main(int argc, char **argv)
{
	expect(argc > 2, "usage: calls OPERATION ITERATIONS [time]");
	count = atoi(argv[2]);
	run(argv[1]);
	stop_ticks(argc - 1, argv + 1);
	return 0;
}
