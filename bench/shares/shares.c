/*
 * Who gets how much of one processor:   shares LOAD MILLISECONDS
 *   pair      two processes pass a byte to and fro
 *   mixed     the pair, and one process that only computes
 *   hogs      two processes that only compute
 *   worker    one process that waits for a byte after every 2 ms of computing, its feeder, and one that only computes
 *   groups    hackbench-like: 4 senders and 4 receivers of 100 bytes each way, and one process that only computes
 * Prints rounds of those that communicate, and steps of those that compute.
 */
#include "../paper/measure.h"
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

int main(int argc, char **argv)
{
	int there[2], back[2];
	const char *load = argc > 2 ? argv[1] : "";
	int64_t until = now_ns() + (argc > 2 ? atoll(argv[2]) : 0) * 1000000;

	words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	expect(words != MAP_FAILED, "mmap");
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
		fprintf(stderr, "usage: shares pair|mixed|hogs|worker|groups MILLISECONDS\n");
		return 2;
	}
	if (strcmp(load, "pair") != 0)
		start(hog, 0, 0, 8);
	while (now_ns() < until)
		usleep((until - now_ns()) / 1000 + 1);
	for (int i = 0; i < child_count; i++)
		kill(children[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	printf("%s: rounds %llu, steps %llu\n", load, (unsigned long long)words[0], (unsigned long long)words[8]);
	return 0;
}
