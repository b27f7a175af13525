/*
 * What threads cost (SOSP'89, tables 3 and 4), one operation per subcommand:   threads OPERATION ITERATIONS [time]
 * `threads list` prints the names. See ../paper/measure.h for what "time" prints.
 */
#define _GNU_SOURCE
#include "../paper/measure.h"
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define STACK_BYTES 65536
#define THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

static int count;

/* The measured part of an operation: `count` times the body. The counter stops in main. */
#define LOOP(body)                       \
	do {                             \
		int i = count;           \
		start_ticks();           \
		for (; i--; ) {          \
			body;            \
		}                        \
	} while (0)

static long futex(volatile int *word, int operation, int value)
{
	return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

/* Threads share everything here, the C library's own data too, so they make bare calls only. */
static pid_t start_thread(int (*body)(void *), volatile int *gone)
{
	static _Alignas(16) char stacks[2][STACK_BYTES];
	static int next;
	char *stack = stacks[next++ & 1];

	*gone = 1;
	return clone(body, stack + STACK_BYTES, THREAD | CLONE_CHILD_CLEARTID, NULL, NULL, NULL, (void *)gone);
}

static volatile int gone, stop;

static int end_at_once(void *unused)
{
	(void)unused;
	syscall(SYS_exit, 0);
	return 0;
}

static void op_create(void)
{
	LOOP(start_thread(end_at_once, &gone); while (gone) futex(&gone, FUTEX_WAIT, 1));
}

static int yield_on(void *unused)
{
	(void)unused;
	while (!stop)
		syscall(SYS_sched_yield);
	syscall(SYS_exit, 0);
	return 0;
}

static void op_yield_alone(void)
{
	LOOP(syscall(SYS_sched_yield));
}

static void op_yield_threads(void)
{
	start_thread(yield_on, &gone);
	syscall(SYS_sched_yield);
	LOOP(syscall(SYS_sched_yield));
}

static void op_yield_processes(void)
{
	pid_t child = fork();

	if (child == 0) {
		signal(SIGALRM, SIG_DFL);
		alarm(60);
		for (;;)
			syscall(SYS_sched_yield);
	}
	syscall(SYS_sched_yield);
	LOOP(syscall(SYS_sched_yield));
	kill(child, SIGKILL);
}

static inline void use_vector_registers(void)
{
	__asm__ volatile("addps %%xmm0, %%xmm1" ::: "xmm1");
}

static int yield_on_with_vectors(void *unused)
{
	(void)unused;
	while (!stop) {
		use_vector_registers();
		syscall(SYS_sched_yield);
	}
	syscall(SYS_exit, 0);
	return 0;
}

static void op_yield_vector(void)
{
	start_thread(yield_on_with_vectors, &gone);
	syscall(SYS_sched_yield);
	LOOP(use_vector_registers(); syscall(SYS_sched_yield));
}

static volatile int ball;

/* Waits for the ball, then throws it back. */
static void turn(int mine)
{
	while (ball != mine)
		futex(&ball, FUTEX_WAIT, !mine);
	ball = !mine;
	futex(&ball, FUTEX_WAKE, 1);
}

static int throw_back(void *unused)
{
	(void)unused;
	for (;;)
		turn(1);
	return 0;
}

static void op_wake_nobody(void)
{
	LOOP(futex(&ball, FUTEX_WAKE, 1));
}

static void op_block(void)
{
	start_thread(throw_back, &gone);
	turn(0);
	LOOP(turn(0));
}

static void op_stop_start(void)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		for (;;)
			pause();
	LOOP(kill(child, SIGSTOP); waitpid(child, &status, WUNTRACED); kill(child, SIGCONT);
	     waitpid(child, &status, WCONTINUED));
	expect(WIFCONTINUED(status), "status of the child");
	kill(child, SIGKILL);
}

/* The tracer has the other process do one instruction, and hears of it. */
static void op_step(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		for (;;)
			__asm__ volatile("");
	}
	expect(waitpid(child, &status, 0) == child && WIFSTOPPED(status), "the child stops");
	LOOP(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL); waitpid(child, &status, 0));
	expect(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP, "a step");
	kill(child, SIGKILL);
}

static void take(int number)
{
	(void)number;
	ball = 0;
	futex(&ball, FUTEX_WAKE, 1);
}

static int wait_for_signals(void *unused)
{
	static volatile int never;

	(void)unused;
	for (;;)
		futex(&never, FUTEX_WAIT, 0);
	return 0;
}

/* The other thread sleeps; its handler runs and wakes this one, which sleeps meanwhile. */
static void op_signal(void)
{
	struct sigaction action = { .sa_handler = take };
	pid_t self = getpid(), thread;

	expect(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction");
	thread = start_thread(wait_for_signals, &gone);
	syscall(SYS_sched_yield);
	LOOP(ball = 1; syscall(SYS_tgkill, self, thread, SIGUSR1); while (ball) futex(&ball, FUTEX_WAIT, 1));
}

#define SWITCHES 1001

static uint64_t gaps[SWITCHES];
static int switches;

/*
 * Writes the time-stamp counter down until it is `until`, or there are enough switches. When the rival has written meanwhile,
 * the gap from its last time to ours is a switch, its timer interrupt and one step. Returns the ticks of a step without one.
 */
static uint64_t compute(volatile uint64_t *mine, const volatile uint64_t *rival, uint64_t until)
{
	uint64_t now = __builtin_ia32_rdtsc(), step = UINT64_MAX;

	while (now < until && switches < SWITCHES) {
		uint64_t before = now, theirs;

		*mine = now;
		theirs = *rival;
		now = __builtin_ia32_rdtsc();
		if (theirs > before)
			gaps[switches++] = now - theirs;
		else if (now - before < step)
			step = now - before;
	}
	return step;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* What a switch between two programs that only compute costs, the median, and `count` times that. */
static void op_preempt(int argc, char **argv)
{
	volatile uint64_t *times = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const uint64_t window = 400000000;
	uint64_t step, cost;
	pid_t rival = fork();
	char line[60];

	if (rival == 0) {
		for (;;)
			compute(times + 8, times, UINT64_MAX), switches = 0;
	}
	step = compute(times, times + 8, __builtin_ia32_rdtsc() + window);
	kill(rival, SIGKILL);
	waitpid(rival, NULL, 0);
	expect(switches > 3, "no switch");
	qsort(gaps, switches, sizeof gaps[0], by_size);
	cost = gaps[switches / 2] - step;
	if (argc > 3 && strcmp(argv[3], "time") == 0)
		IGNORE(write(2, line, snprintf(line, sizeof line, "ticks %llu\n", (unsigned long long)(cost * count))));
	exit(0);
}

static const struct {
	const char *name;
	void (*run)(void);
} operations[] = {
	{ "create", op_create },
	{ "yield_alone", op_yield_alone },
	{ "yield_threads", op_yield_threads },
	{ "yield_processes", op_yield_processes },
	{ "yield_vector", op_yield_vector },
	{ "wake_nobody", op_wake_nobody },
	{ "block", op_block },
	{ "stop_start", op_stop_start },
	{ "step", op_step },
	{ "signal", op_signal },
};

/* On one processor, as the papers' machines had: elsewhere a thread that yields may find nobody to yield to. */
static void stay_here(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	expect(sched_setaffinity(0, sizeof here, &here) == 0, "sched_setaffinity");
}

int main(int argc, char **argv)
{
	const size_t known = sizeof operations / sizeof operations[0];

	count = argc > 2 ? atoi(argv[2]) : 1;
	stay_here();
	if (argc > 2 && strcmp(argv[1], "preempt") == 0)
		op_preempt(argc, argv);
	for (size_t i = 0; argc > 1 && i < known; i++) {
		if (strcmp(argv[1], "list") == 0)
			puts(operations[i].name);
		if (strcmp(argv[1], operations[i].name) != 0)
			continue;
		operations[i].run();
		stop_ticks(argc - 1, argv + 1);
		exit(0);
	}
	if (argc == 2 && strcmp(argv[1], "list") == 0)
		return 0;
	fprintf(stderr, "usage: threads OPERATION ITERATIONS [time]\n");
	return 2;
}
