/*
 * A condition that changes: kept as a word of data that is tested, or as a constant in live code that is patched (S-21, S-22;
 * thesis, 7.5):
 *     patch OPERATION ITERATIONS [time]
 * See ../paper/measure.h for what "time" prints. Each iteration runs a procedure that answers with the condition, through a
 * pointer; the operations that end in _N change it before each Nth run. The patched procedure is written through a second mapping,
 * as W^X asks. Before new bytes that were written so may run the processor must serialize (SDM, vol. 3A, 9.1.3): "serialized" does,
 * by iretq, or by cpuid where QEMU translates: there a program's iretq may fail, and elsewhere cpuid is a hypervisor's business.
 * "patched" does not, and is the least that patching can cost.
 */
#define _GNU_SOURCE
#include "../paper/measure.h"
#include <sys/mman.h>

static int flag;

static __attribute__((noinline)) int by_flag(void)
{
	return *(volatile int *)&flag ? 2 : 1;
}

/* mov eax, 1; ret */
static const unsigned char code[] = { 0xB8, 1, 0, 0, 0, 0xC3 };
static unsigned char *written, *run;

static void change_flag(int on)
{
	*(volatile int *)&flag = on;
}

static void change_code(int on)
{
	*(volatile unsigned char *)(written + 1) = on ? 2 : 1;
}

static int is_translated;

static unsigned cpuid(unsigned leaf)
{
	unsigned name, rest = 0;

	__asm__ volatile("cpuid" : "+a"(leaf), "=b"(name), "+c"(rest) : : "rdx", "memory");
	return name;
}

/* A return from an interrupt, to the instruction behind it. */
static void serialize(void)
{
	unsigned long to, stack;

	if (is_translated) {
		cpuid(0);
		return;
	}
	__asm__ volatile("lea -128(%%rsp), %1\n\t"
			 "xchg %1, %%rsp\n\t"
			 "mov %%ss, %k0\n\t"
			 "push %0\n\t"
			 "push %1\n\t"
			 "pushfq\n\t"
			 "mov %%cs, %k0\n\t"
			 "push %0\n\t"
			 "lea 1f(%%rip), %0\n\t"
			 "push %0\n\t"
			 "iretq\n"
			 "1:"
			 : "=&r"(to), "=&r"(stack) : : "cc", "memory");
}

static void change_code_serialized(int on)
{
	change_code(on);
	serialize();
}

static void publish(void)
{
	int memory = memfd_create("code", 0);

	expect(memory >= 0 && ftruncate(memory, 4096) == 0, "memory");
	written = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	run = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, memory, 0);
	expect(written != MAP_FAILED && run != MAP_FAILED, "two mappings");
	memcpy(written, code, sizeof code);
}

int main(int argc, char **argv)
{
	int (*answer)(void) = by_flag;
	void (*change)(int) = change_flag;
	int count, on = 0;
	unsigned long every = 0, sum = 0, wanted = 0;
	const char *number;

	expect(argc > 2, "usage: patch OPERATION ITERATIONS [time]");
	is_translated = cpuid(0x40000000) == 0x54474354; /* "TCGT" */
	publish();
	if (!strncmp(argv[1], "patched", 7)) {
		answer = (int (*)(void))(void *)run;
		change = change_code;
	} else if (!strncmp(argv[1], "serialized", 10)) {
		answer = (int (*)(void))(void *)run;
		change = change_code_serialized;
	} else if (strncmp(argv[1], "flag", 4)) {
		fprintf(stderr, "error: no operation %s\n", argv[1]);
		return 2;
	}
	number = strchr(argv[1], '_');
	every = number ? strtoul(number + 1, NULL, 10) : ~0ul;
	count = atoi(argv[2]);
	__asm__ volatile("" : "+r"(answer), "+r"(change));
	start_ticks();
	for (unsigned long left = every; count--;) {
		if (!--left) {
			left = every;
			on = !on;
			change(on);
		}
		sum += answer();
		wanted += on + 1;
	}
	stop_ticks(argc - 1, argv + 1);
	expect(sum == wanted, "the condition was answered");
	return 0;
}
