/*
 * What it costs that one waits for another, one operation per subcommand:   wakes OPERATION ITERATIONS [time]
 * `wakes list` prints the names. One iteration is one round: there and back. See ../paper/measure.h for what "time" prints.
 */
#define _GNU_SOURCE
#include "../paper/measure.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int count;
static int to[2], from[2];
static char byte[1];

/* The measured part of an operation: `count` times the body. The counter stops in main. */
#define LOOP(body)                       \
	do {                             \
		int i = count;           \
		start_ticks();           \
		for (; i--; ) {          \
			body;            \
		}                        \
	} while (0)

/* Sends back what comes. */
static void *echo(void *unused)
{
	(void)unused;
	while (read(to[0], byte, 1) == 1)
		IGNORE(write(from[1], byte, 1));
	return NULL;
}

static void rounds(void)
{
	expect(write(to[1], byte, 1) == 1 && read(from[0], byte, 1) == 1, "first round");
	LOOP(IGNORE(write(to[1], byte, 1)); IGNORE(read(from[0], byte, 1)));
}

static void in_process(void (*body)(void))
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body();
		_exit(0);
	}
	expect(child > 0, "fork");
}

static void echo_alone(void)
{
	close(to[1]);
	echo(NULL);
}

static void start_thread(void *(*body)(void *))
{
	pthread_t thread;

	expect(pthread_create(&thread, NULL, body, NULL) == 0, "pthread_create");
}

static void op_pipe_processes(void)
{
	expect(pipe(to) == 0 && pipe(from) == 0, "pipe");
	in_process(echo_alone);
	rounds();
}

static void op_pipe_threads(void)
{
	expect(pipe(to) == 0 && pipe(from) == 0, "pipe");
	start_thread(echo);
	rounds();
}

static void op_socket_processes(void)
{
	expect(socketpair(AF_UNIX, SOCK_STREAM, 0, to) == 0, "socketpair");
	expect(socketpair(AF_UNIX, SOCK_STREAM, 0, from) == 0, "socketpair");
	in_process(echo_alone);
	rounds();
}

static void count_back(void)
{
	uint64_t number;

	while (read(to[0], &number, 8) == 8)
		IGNORE(write(from[0], &number, 8));
}

static void op_eventfd_processes(void)
{
	uint64_t one = 1, number;

	to[0] = eventfd(0, 0);
	from[0] = eventfd(0, 0);
	expect(to[0] >= 0 && from[0] >= 0, "eventfd");
	in_process(count_back);
	expect(write(to[0], &one, 8) == 8 && read(from[0], &number, 8) == 8, "first round");
	LOOP(IGNORE(write(to[0], &one, 8)); IGNORE(read(from[0], &number, 8)));
}

static _Atomic uint32_t turn;

static void await_turn(uint32_t now)
{
	while (turn != now)
		syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, 1 - now, NULL, NULL, 0);
}

static void give_turn(uint32_t next)
{
	turn = next;
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *take_turns(void *unused)
{
	(void)unused;
	for (;;) {
		await_turn(1);
		give_turn(0);
	}
	return NULL;
}

static void op_futex_threads(void)
{
	start_thread(take_turns);
	LOOP(give_turn(1); await_turn(0));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed[2] = { PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER };
static int whose;

static void pass_on(int mine)
{
	pthread_mutex_lock(&lock);
	while (whose != mine)
		pthread_cond_wait(&changed[mine], &lock);
	whose = 1 - mine;
	pthread_cond_signal(&changed[1 - mine]);
	pthread_mutex_unlock(&lock);
}

static void *pass_back(void *unused)
{
	(void)unused;
	for (;;)
		pass_on(1);
	return NULL;
}

static void op_condition_threads(void)
{
	start_thread(pass_back);
	LOOP(pass_on(0));
}

static void *nothing(void *unused)
{
	return unused;
}

static void op_create_join(void)
{
	pthread_t thread;

	LOOP(expect(pthread_create(&thread, NULL, nothing, NULL) == 0, "pthread_create"); pthread_join(thread, NULL));
}

static const struct {
	const char *name;
	void (*run)(void);
} operations[] = {
	{ "pipe_processes", op_pipe_processes },
	{ "pipe_threads", op_pipe_threads },
	{ "eventfd_processes", op_eventfd_processes },
	{ "socket_processes", op_socket_processes },
	{ "futex_threads", op_futex_threads },
	{ "condition_threads", op_condition_threads },
	{ "create_join", op_create_join },
};

/* Both on one processor, as on a machine that has one. */
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
	fprintf(stderr, "usage: wakes OPERATION ITERATIONS [time]\n");
	return 2;
}
