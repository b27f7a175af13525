/*
 * Thesis, table 3.3: what a switch costs when a quantum ends, the interrupt with it, from the last instruction of one thread to
 * the first of the next, one operation per row:
 *     switches OPERATION ITERATIONS [time]
 * See ../paper/measure.h for what "time" prints: here the median of the switches that were seen, times ITERATIONS.
 */
#define _GNU_SOURCE
#include "../paper/measure.h"
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SWITCHES 301
#define STACK_BYTES 65536
#define THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)
/* Ticks in which switches are looked for. */
#define WINDOW 400000000

static int count, with_vectors;
static uint64_t gaps[SWITCHES];
static int switches;
static volatile uint64_t *times;

/* A step of the loop: in programs with vectors it uses them, so that their state belongs to the switch. */
static inline uint64_t now(void)
{
	if (with_vectors)
		__asm__ volatile("addps %%xmm0, %%xmm1" ::: "xmm1");
	return __builtin_ia32_rdtsc();
}

/*
 * Writes the counter down again and again. When the rival has written meanwhile, the gap from its last time to ours is a switch
 * and one step. Returns the ticks of a step without one.
 */
static uint64_t watch(uint64_t until)
{
	uint64_t at = now(), step = UINT64_MAX;

	while (at < until && switches < SWITCHES) {
		uint64_t before = at, theirs;

		times[0] = at;
		theirs = times[8];
		at = now();
		if (theirs > before && at > theirs)
			gaps[switches++] = at - theirs;
		else if (at - before < step)
			step = at - before;
	}
	return step;
}

static int rival(void *unused)
{
	(void)unused;
	for (;;)
		times[8] = now();
	return 0;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The median of the switches from the rival to us. */
static uint64_t cost(int is_process)
{
	static _Alignas(16) char stack[STACK_BYTES];
	uint64_t step, gap;
	pid_t child = 0;

	times = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	expect(times != MAP_FAILED, "mmap");
	if (is_process && (child = fork()) == 0)
		rival(NULL);
	if (!is_process)
		expect(clone(rival, stack + STACK_BYTES, THREAD, NULL) > 0, "clone");
	step = watch(__builtin_ia32_rdtsc() + WINDOW);
	if (is_process) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	expect(switches > 3, "no switch");
	qsort(gaps, switches, sizeof gaps[0], by_size);
	gap = gaps[switches / 2];
	return gap > step ? gap - step : 0;
}

static __attribute__((noinline, noclone)) void procedure(void)
{
	__asm__ volatile("");
}

static uint64_t calls(void)
{
	uint64_t begun = __builtin_ia32_rdtsc();

	for (int i = count; i--;)
		procedure();
	return __builtin_ia32_rdtsc() - begun;
}

/* On one processor, as the paper's machine had. */
static void stay_here(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	expect(sched_setaffinity(0, sizeof here, &here) == 0, "sched_setaffinity");
}

int main(int argc, char **argv)
{
	uint64_t ticks;
	char line[60];

	count = argc > 2 ? atoi(argv[2]) : 0;
	if (count == 0)
		goto usage;
	stay_here();
	with_vectors = strstr(argv[1], "vector") != NULL;
	if (strcmp(argv[1], "procedure") == 0)
		ticks = calls();
	else if (strcmp(argv[1], "integer") == 0 || strcmp(argv[1], "vector") == 0)
		ticks = cost(0) * count;
	else if (strcmp(argv[1], "space_integer") == 0 || strcmp(argv[1], "space_vector") == 0)
		ticks = cost(1) * count;
	else
		goto usage;
	if (argc > 3 && strcmp(argv[3], "time") == 0)
		IGNORE(write(2, line, snprintf(line, sizeof line, "ticks %llu\n", (unsigned long long)ticks)));
	/* A rival that is a thread goes with us. */
	exit(0);
usage:
	fprintf(stderr, "usage: switches procedure|integer|vector|space_integer|space_vector ITERATIONS [time]\n");
	return 2;
}
