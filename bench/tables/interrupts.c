/*
 * SOSP'89, table 5: what handling interrupts costs, one operation per row:
 *     interrupts OPERATION ITERATIONS [time]
 * See ../paper/measure.h for what "time" prints. Some operations are the kernel's own: it does them by itself when
 * /proc/synthesis/interrupts or /dev/sound is told to, and says how long they took.
 */
#define _GNU_SOURCE
#include "../paper/measure.h"
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>

/* The kernel does no more at a time. */
#define AT_ONCE 8000
/* Interrupts that are looked at; more would be the same again. */
#define GAPS 301

static int count;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void print_ticks(int argc, char **argv, uint64_t ticks)
{
	char line[40];

	if (argc > 3 && strcmp(argv[3], "time") == 0)
		IGNORE(write(2, line, snprintf(line, sizeof line, "ticks %llu\n", (unsigned long long)ticks)));
}

/* Tells `file` to do `words` COUNT times, and reads behind "ns" how long that took. */
static uint64_t told(const char *file, const char *words)
{
	uint64_t sum = 0;

	for (int left = count, part; left > 0; left -= part) {
		char text[1024];
		const char *at;
		ssize_t bytes;
		int fd = open(file, O_RDWR);

		part = left < AT_ONCE ? left : AT_ONCE;
		bytes = snprintf(text, sizeof text, "%s %d", words, part);
		expect(fd >= 0 && write(fd, text, bytes) == bytes, words);
		/* A file of /proc is read from its start. */
		lseek(fd, 0, SEEK_SET);
		bytes = read(fd, text, sizeof text - 1);
		expect(bytes > 0, file);
		text[bytes] = 0;
		at = strstr(text, " ns ");
		expect(at != NULL, "no ns");
		sum += strtoull(at + 4, NULL, 10);
		close(fd);
	}
	return sum;
}

static void arm(int fd, int64_t at)
{
	struct itimerspec when = { .it_value = { at / 1000000000, at % 1000000000 } };

	expect(timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL) == 0, "timerfd_settime");
}

/* Each alarm is the first of all, so that the processor's timer is set, too. */
static uint64_t set_alarm(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	int64_t at = now_ns() + 3600 * 1000000000LL;
	uint64_t start;

	arm(fd, at);
	start = __builtin_ia32_rdtsc();
	for (int i = count; i--; at -= 1000)
		arm(fd, at);
	return __builtin_ia32_rdtsc() - start;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * The program only looks at the counter when the alarm goes off: the widest gap between two looks is the interrupt, and
 * whatever the kernel does for the alarm, till the program goes on. Prints the median, COUNT times.
 */
static uint64_t alarm_interrupt(void)
{
	static uint64_t gaps[GAPS];
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	int rounds = count < GAPS ? count | 1 : GAPS;
	uint64_t step = UINT64_MAX, expirations;

	for (int round = 0; round < rounds; round++) {
		int64_t at = now_ns() + 40000;
		uint64_t before, now, end;

		arm(fd, at);
		before = __builtin_ia32_rdtsc();
		end = before + 400000;
		for (; before < end; before = now) {
			now = __builtin_ia32_rdtsc();
			if (now - before > gaps[round])
				gaps[round] = now - before;
			if (now - before < step)
				step = now - before;
		}
		expect(read(fd, &expirations, sizeof expirations) == sizeof expirations && expirations == 1, "alarm");
	}
	qsort(gaps, rounds, sizeof gaps[0], by_size);
	return (gaps[rounds / 2] - step) * (uint64_t)count;
}

/*
 * While interrupts nest in the kernel (the word `nest` of the kernel's command line, or samples): alarms that fall into
 * calls that take long. Each rings once, is not lost, and wakes who polls; some ring in the midst of the kernel.
 */
static uint64_t inside(void)
{
	enum { BYTES = 1 << 20 };
	static char bytes[BYTES];
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), file = open("/dev/zero", O_RDWR);
	int memory = memfd_create("inside", 0);
	char text[256];
	const char *at;

	expect(fd >= 0 && file >= 0 && memory >= 0, "open");
	for (int i = 0; i < count; i++) {
		struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
		uint64_t expirations = 0;

		arm(fd, now_ns() + 2000 + 997 * (i % 50));
		expect(pwrite(memory, bytes, BYTES, 0) == BYTES, "pwrite");
		expect(pread(memory, bytes, BYTES, 0) == BYTES, "pread");
		expect(poll(&poll_fd, 1, 10000) == 1, "the alarm does not wake");
		expect(read(fd, &expirations, 8) == 8 && expirations == 1, "one expiration");
		expect(read(fd, &expirations, 8) < 0, "another expiration");
	}
	file = open("/proc/synthesis/interrupts", O_RDONLY);
	expect(read(file, text, sizeof text - 1) > 0, "interrupts");
	at = strstr(text, "inside_the_kernel ");
	expect(at != NULL, "inside_the_kernel");
	printf("%s", at);
	return 0;
}

int main(int argc, char **argv)
{
	const char *operation = argc > 2 ? argv[1] : "";
	const char *kernel = "/proc/synthesis/interrupts";
	uint64_t ticks = 0;

	expect(argc > 2, "usage: interrupts OPERATION ITERATIONS [time]");
	count = atoi(argv[2]);
	if (!strcmp(operation, "set_alarm"))
		ticks = set_alarm();
	else if (!strcmp(operation, "alarm_interrupt"))
		ticks = alarm_interrupt();
	else if (!strcmp(operation, "raw_tty"))
		ticks = told(kernel, "tty");
	else if (!strcmp(operation, "raw_ad"))
		ticks = told("/dev/sound", "raise ad.stereo");
	else if (!strcmp(operation, "raise_nothing"))
		ticks = told("/dev/sound", "raise none");
	else if (!strcmp(operation, "set_in_kernel"))
		ticks = told(kernel, "set");
	else if (!strcmp(operation, "chain_procedure"))
		ticks = told(kernel, "procedure");
	else if (!strcmp(operation, "chain_retry"))
		ticks = told(kernel, "retry");
	else if (!strcmp(operation, "chain_thread"))
		ticks = told(kernel, "thread");
	else if (!strcmp(operation, "inside"))
		ticks = inside();
	else
		expect(0, operation);
	print_ticks(argc, argv, ticks);
	return 0;
}
