/*
 * What catching a system call inside one Linux process costs, five ways, with nothing behind it: each way ends in the same
 * three instructions (count, result, return). The ways take turns, so a machine that changes its speed does so for all.
 *
 *     interception [ROUNDS]        prints nanoseconds a call: median, fastest round
 *
 *   linux      getppid in the kernel: what a call costs that nobody catches
 *   trap       syscall user dispatch: SIGSYS, handler, sigreturn (Linux 5.11)
 *   page 0     `syscall` (0f 05) becomes `call *%rax` (ff d0); page 0 holds one-byte no-ops and a jump. Needs root or
 *              vm.mmap_min_addr 0
 *   patch      the `mov $nr, %eax` in front becomes a jump to a stub; the call stays (what synth run --hosted does)
 *   relocation the call and its neighbours behind it (5 bytes or more) become a jump to a stub that runs the neighbours
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define CALLS 400000
#define TRAPS 20000
#define PAGE_BYTES 4096

static volatile uint64_t calls;
static char selector;
static int64_t fake_parent = 7;

typedef long (*caller)(void);

/* `mov $110, %eax; syscall; mov %rax, %rdx; nop; mov %rdx, %rax; ret`, so that neighbours of five bytes stand behind. */
static const unsigned char SITE[] = {0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0x48, 0x89, 0xc2, 0x90, 0x48, 0x89, 0xd0, 0xc3};

static void put32(unsigned char *at, int64_t value)
{
	int32_t word = (int32_t)value;

	memcpy(at, &word, 4);
}

static unsigned char *near_code;
static size_t near_used;

static unsigned char *place(size_t bytes)
{
	unsigned char *at = near_code + near_used;

	near_used += (bytes + 63) & ~(size_t)63;
	return at;
}

static unsigned char *site(void)
{
	return memcpy(place(sizeof SITE), SITE, sizeof SITE);
}

static void jump(unsigned char *from, const unsigned char *to)
{
	from[0] = 0xe9;
	put32(from + 1, to - (from + 5));
}

/* The common end: `incq calls; mov fake_parent, %rax`. Both words lie in the low 2 GB. Returns the length. */
static size_t work(unsigned char *at)
{
	static const unsigned char CODE[] = {0x48, 0xff, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0};

	memcpy(at, CODE, sizeof CODE);
	put32(at + 4, (intptr_t)&calls);
	put32(at + 12, (intptr_t)&fake_parent);
	return sizeof CODE;
}

/* `lea back(%rip), %rcx; jmp *slot`, and behind the slot the work and `jmp *%rcx`: as the hosted machine has it. */
static void *dispatch_slot;

static size_t enter(unsigned char *at, const unsigned char *back)
{
	memcpy(at, "\x48\x8d\x0d", 3);
	put32(at + 3, back - (at + 7));
	memcpy(at + 7, "\xff\x24\x25", 3);
	put32(at + 10, (intptr_t)&dispatch_slot);
	return 14;
}

static caller patched(void)
{
	unsigned char *code = site(), *stub = place(32);

	memcpy(stub, SITE, 5);
	enter(stub + 5, code + 7);
	jump(code, stub);
	return (caller)code;
}

static caller relocated(void)
{
	unsigned char *code = site(), *stub = place(64);
	size_t at = enter(stub, stub + 14);

	/* The neighbours, three bytes long, then back behind them. */
	memcpy(stub + at, code + 7, 3);
	jump(stub + at + 3, code + 10);
	jump(code + 5, stub);
	return (caller)code;
}

/* Page 0: no-ops up to the highest number, then `pop %rcx`, as SYSCALL would leave it, and the same slot. */
static caller page_zero(void)
{
	unsigned char *zero = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	unsigned char *code;

	if (zero != NULL)
		return NULL;
	/* The compiler may take a store to address 0 for a mistake. */
	__asm__ volatile("" : "+r"(zero));
	memset(zero, 0x90, 512);
	zero[512] = 0x59;
	memcpy(zero + 513, "\xff\x24\x25", 3);
	put32(zero + 516, (intptr_t)&dispatch_slot);
	mprotect(zero, PAGE_BYTES, PROT_EXEC);
	code = site();
	memcpy(code + 5, "\xff\xd0", 2);
	return (caller)code;
}

static void on_call(int signal, siginfo_t *info, void *context)
{
	ucontext_t *user = context;

	(void)signal;
	(void)info;
	calls++;
	user->uc_mcontext.gregs[REG_RAX] = fake_parent;
}

extern char restorer_start[], restorer_end[];
__asm__(".text\n.balign 64\nrestorer_start: mov $15, %eax\n syscall\n ud2\nrestorer_end:\n");

/* The handler returns through a range that is not caught; the place behind the call counts, so it lies inside. */
static int catch_calls(void)
{
	struct {
		void (*handler)(int, siginfo_t *, void *);
		unsigned long flags;
		void *restorer;
		unsigned long mask;
	} action = {on_call, SA_SIGINFO | SA_NODEFER | 0x04000000, restorer_start, 0};

	syscall(SYS_rt_sigaction, SIGSYS, &action, NULL, 8);
	return prctl(59, 1, restorer_start, restorer_end - restorer_start, &selector);
}

static double measure(caller call, int count, int is_caught)
{
	struct timespec start, end;

	clock_gettime(CLOCK_MONOTONIC, &start);
	selector = is_caught;
	for (int i = 0; i < count; i++)
		call();
	selector = 0;
	clock_gettime(CLOCK_MONOTONIC, &end);
	return ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / count;
}

static int ascending(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
	enum { LINUX, TRAP, PAGE_ZERO, PATCH, RELOCATION, WAYS };
	static const char *const NAMES[WAYS] = {"linux", "trap", "page 0", "patch", "relocation"};
	int rounds = argc > 1 ? atoi(argv[1]) : 15, failed = 0;
	double (*times)[WAYS], column[1000];
	caller ways[WAYS];
	unsigned char *end;

	if (rounds < 1 || rounds > 1000)
		return 2;
	near_code = mmap((void *)0x30000000, 16 * PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	times = calloc(rounds, sizeof *times);
	end = place(64);
	memcpy(end + work(end), "\xff\xe1", 2);
	dispatch_slot = end;
	ways[LINUX] = ways[TRAP] = (caller)site();
	ways[PAGE_ZERO] = page_zero();
	ways[PATCH] = patched();
	ways[RELOCATION] = relocated();
	if (!ways[PAGE_ZERO])
		printf("page 0      skipped: it cannot be mapped (%s); be root or set vm.mmap_min_addr to 0\n", strerror(errno));
	if (catch_calls() != 0) {
		printf("trap        skipped: no syscall user dispatch (%s)\n", strerror(errno));
		ways[TRAP] = NULL;
	}
	for (int round = 0; round < rounds; round++)
		for (int way = 0; way < WAYS; way++) {
			uint64_t before = calls, wanted = way == TRAP ? TRAPS : CALLS;

			if (!ways[way])
				continue;
			times[round][way] = measure(ways[way], wanted, way == TRAP);
			failed |= way != LINUX && calls - before != wanted;
			failed |= way != LINUX && ways[way]() != fake_parent && way != TRAP;
		}
	for (int way = 0; way < WAYS; way++) {
		if (!ways[way])
			continue;
		for (int round = 0; round < rounds; round++)
			column[round] = times[round][way];
		qsort(column, rounds, sizeof *column, ascending);
		printf("%-11s %8.2f ns, fastest %8.2f\n", NAMES[way], column[rounds / 2], column[0]);
	}
	if (failed)
		puts("a way did not catch all calls");
	return failed;
}
