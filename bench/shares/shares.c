/*
 * Who gets how much of one processor:   shares LOAD MILLISECONDS [TOLERANCE]
 *   pair      two processes pass a byte to and fro
 *   mixed     the pair, and one process that only computes
 *   hogs      two processes that only compute
 *   worker    one process that waits for a byte after every 2 ms of computing, its feeder, and one that only computes
 *   groups    hackbench-like: 4 senders and 4 receivers of 100 bytes each way, and one process that only computes
 *   rates     four processes that never wait and read and write their own pipe, 0, about 8, about 16 and very many times a
 *             millisecond; for each its share of the processor, and what its quantum says that it should be (S-72).
 *             Fails when they differ by more than TOLERANCE percent of what it should be (10).
 * Prints rounds of those that communicate, and steps of those that compute.
 */
#include "../paper/measure.h"
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

static volatile uint64_t *words;
static pid_t children[32];
static int child_count;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void start(void (*body)(int from, int to, volatile uint64_t *word), int from, int to, int word)
{
	pid_t child = fork();

	expect(child >= 0, "fork");
	if (child == 0) {
		body(from, to, words + word);
		_exit(0);
	}
	children[child_count++] = child;
}

static void hog(int from, int to, volatile uint64_t *word)
{
	(void)from, (void)to;
	for (;;)
		++*word;
}

static void passer(int from, int to, volatile uint64_t *word)
{
	char byte[100];

	for (;; ++*word)
		if (read(from, byte, sizeof byte) <= 0 || write(to, byte, 100) != 100)
			_exit(1);
}

static void sender(int from, int to, volatile uint64_t *word)
{
	char bytes[100] = { 0 };

	(void)from;
	for (;; ++*word)
		if (write(to, bytes, sizeof bytes) != sizeof bytes)
			_exit(1);
}

static void receiver(int from, int to, volatile uint64_t *word)
{
	char bytes[100];

	(void)to;
	for (;; ++*word)
		if (read(from, bytes, sizeof bytes) <= 0)
			_exit(1);
}

static void worker(int from, int to, volatile uint64_t *word)
{
	for (;; ++*word) {
		char byte;

		for (volatile int i = 0; i < 300000; i++)
			;
		if (write(to, "x", 1) != 1 || read(from, &byte, 1) != 1)
			_exit(1);
	}
}

static void feeder(int from, int to, volatile uint64_t *word)
{
	char byte;

	for (;; ++*word)
		if (read(from, &byte, 1) != 1 || write(to, "y", 1) != 1)
			_exit(1);
}

static void pair(void)
{
	int there[2], back[2];
	char bytes[100] = { 0 };

	expect(pipe(there) == 0 && pipe(back) == 0, "pipe");
	start(passer, there[0], back[1], 0);
	start(passer, back[0], there[1], 1);
	expect(write(there[1], bytes, sizeof bytes) == sizeof bytes, "write");
}

static double tolerance = 10;

/* Steps of computing between two operations of each: none at all, many, some, few. */
static const int pauses[] = { -1, 60000, 30000, 500 };

#define RIVALS 4
#define CPU 8

static int64_t nanos(const struct timespec *time)
{
	return time->tv_sec * 1000000000LL + time->tv_nsec;
}

/* One of the rivals: `words[CPU + me]` gets its time, again and again. */
static void rival(int pause, int unused, volatile uint64_t *word)
{
	struct timespec time;
	int own[2];
	char byte = 1;

	(void)unused;
	expect(pipe(own) == 0, "pipe");
	for (int round = 1;; round++) {
		for (volatile int i = 0; i < (pause < 0 ? 60000 : pause); i++)
			;
		if (pause >= 0 && (write(own[1], &byte, 1) != 1 || read(own[0], &byte, 1) != 1))
			_exit(1);
		if (round % (pause == 500 ? 64 : 1) != 0)
			continue;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
		word[CPU] = nanos(&time);
	}
}

static int rates(int milliseconds)
{
	uint64_t before[RIVALS], quanta[RIVALS] = { 0 }, ran[RIVALS], quantum_sum = 0, ran_sum = 0;
	const int samples = 128;
	int wrong = 0;

	for (int i = 0; i < RIVALS; i++)
		start(rival, pauses[i], 0, i);
	usleep(milliseconds * 500);
	for (int i = 0; i < RIVALS; i++)
		before[i] = words[CPU + i];
	for (int sample = 0; sample < samples; sample++) {
		usleep(milliseconds * 1000 / samples);
		for (int i = 0; i < RIVALS; i++) {
			struct timespec quantum;

			sched_rr_get_interval(children[i], &quantum);
			quanta[i] += nanos(&quantum) / samples;
		}
	}
	for (int i = 0; i < RIVALS; i++) {
		ran[i] = words[CPU + i] - before[i];
		ran_sum += ran[i];
		quantum_sum += quanta[i];
	}
	for (int i = 0; i < RIVALS; i++) {
		double share = 100.0 * ran[i] / ran_sum, said = 100.0 * quanta[i] / quantum_sum;

		printf("rival %d: quantum %4llu us, share %4.1f %%, by quanta %4.1f %%\n", i,
		       (unsigned long long)quanta[i] / 1000, share, said);
		wrong |= fabs(share - said) > said * tolerance / 100;
	}
	/* Who computes only must not have as much as who reads and writes all the time. */
	wrong |= quanta[0] * 2 > quanta[RIVALS - 1];
	puts(wrong ? "shares do not follow the quanta" : "shares follow the quanta");
	return wrong;
}

static void end_children(void)
{
	for (int i = 0; i < child_count; i++)
		kill(children[i], SIGKILL);
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv)
{
	int there[2], back[2];
	const char *load = argc > 2 ? argv[1] : "";
	int64_t until = now_ns() + (argc > 2 ? atoll(argv[2]) : 0) * 1000000;

	words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	expect(words != MAP_FAILED, "mmap");
	if (strcmp(load, "rates") == 0) {
		if (argc > 3)
			tolerance = atof(argv[3]);
		int wrong = rates(atoi(argv[2]));

		end_children();
		return wrong;
	}
	if (strcmp(load, "pair") == 0 || strcmp(load, "mixed") == 0) {
		pair();
	} else if (strcmp(load, "worker") == 0) {
		expect(pipe(there) == 0 && pipe(back) == 0, "pipe");
		start(worker, back[0], there[1], 0);
		start(feeder, there[0], back[1], 1);
	} else if (strcmp(load, "groups") == 0) {
		expect(pipe(there) == 0, "pipe");
		for (int i = 0; i < 4; i++) {
			start(sender, 0, there[1], 0);
			start(receiver, there[0], 0, 1);
		}
	} else if (strcmp(load, "hogs") == 0) {
		start(hog, 0, 0, 0);
	} else {
		fprintf(stderr, "usage: shares pair|mixed|hogs|worker|groups|rates MILLISECONDS [TOLERANCE]\n");
		return 2;
	}
	if (strcmp(load, "pair") != 0)
		start(hog, 0, 0, 8);
	while (now_ns() < until)
		usleep((until - now_ns()) / 1000 + 1);
	end_children();
	printf("%s: rounds %llu, steps %llu\n", load, (unsigned long long)words[0], (unsigned long long)words[8]);
	return 0;
}
