/*
 * The thesis's table 3.5, the cost of a call that does nothing, one way to call per operation:
 *     calls OPERATION ITERATIONS [time]
 * See ../paper/measure.h for what "time" prints. The call is getppid, which the C library does not answer by itself.
 */
#define _GNU_SOURCE
#include "../paper/measure.h"
#include "vdso.h"
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

/* Call sites of both kinds that have not been run, 16 bytes each: the hosted machine makes a stub for each at its second call. */
#define SITES 4096
extern char general_sites[], cached_sites[];
__asm__(".text\n"
	".balign 16\n"
	"general_sites:\n"
	".rept 4096\n"
	"mov %edi, %eax\n"
	"mov 8(%rsp), %r9\n"
	"syscall\n"
	"ret\n"
	".balign 16\n"
	".endr\n"
	"cached_sites:\n"
	".rept 4096\n"
	"mov $110, %eax\n"
	"syscall\n"
	"ret\n"
	".balign 16\n"
	".endr\n");

static long call_site(char *sites, int number, long call)
{
	expect(number < SITES, "so many call sites");
	return ((long (*)(long))(void *)(sites + 16 * number))(call);
}

#define GENERAL_INLINED(number)                                                                          \
	__asm__ volatile("mov 8(%%rsp), %%r9\n"                                                          \
			 "syscall" : "=a"(result) : "a"(number) : "rcx", "r9", "r11", "memory")
#define CACHED_INLINED()                                                                                 \
	__asm__ volatile("mov $110, %%eax\n"                                                             \
			 "syscall" : "=a"(result) : : "rcx", "r11", "memory")

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
	} else if (!strcmp(operation, "gate")) {
		/* Linux's gate for 32-bit programs, where getppid is 64. */
		LOOP(__asm__ volatile("int $0x80" : "=a"(result) : "a"(64L) : "r8", "r9", "r10", "r11", "memory"));
	} else if (!strcmp(operation, "first_general")) {
		LOOP((call_site(general_sites, i, number), result = call_site(general_sites, i, number)));
	} else if (!strcmp(operation, "first_cached")) {
		LOOP((call_site(cached_sites, i, number), result = call_site(cached_sites, i, number)));
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
