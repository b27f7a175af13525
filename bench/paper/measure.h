/*
 * What the measured programs share: how often to loop, and the counter around the loop.
 *
 *     program [ITERATIONS [time]]
 *
 * Without arguments a program is the paper's. With "time" it also prints `ticks N` on stderr: the
 * time-stamp counter's advance over the loop. Under QEMU's -icount one tick is one guest
 * instruction; on a real machine it is one period of the counter.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Results the paper's loop ignores on purpose; a checked pass before and after it looks at them. */
#define IGNORE(call) ((void)!(call))

static unsigned long long loop_start;

static inline int iterations(int argc, char **argv, int paper)
{
	return argc > 1 ? atoi(argv[1]) : paper;
}

/* Not inlined, so that the loop between the two calls is compiled as if they were not there. */
static __attribute__((noinline, unused)) void start_ticks(void)
{
	loop_start = __builtin_ia32_rdtsc();
}

static __attribute__((noinline, unused)) void stop_ticks(int argc, char **argv)
{
	unsigned long long ticks = __builtin_ia32_rdtsc() - loop_start;
	char line[40];

	if (argc > 2 && strcmp(argv[2], "time") == 0)
		IGNORE(write(2, line, snprintf(line, sizeof line, "ticks %llu\n", ticks)));
}

/* Ends the program with status 1 when a checked pass did not get what it asked for. */
static inline void expect(int as_expected, const char *what)
{
	if (as_expected)
		return;
	fprintf(stderr, "wrong result: %s (errno %d)\n", what, errno);
	exit(1);
}

#endif
