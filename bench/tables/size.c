/*
 * What the kernel needs of memory (thesis, table 3.6):   size
 * Prints for each stage its name, the bytes of code that the kernel has written since the stage before it, and the bytes of
 * memory it has taken; both from its gauges.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)
#define PAGE_BYTES 4096L
#define STACK_BYTES 4096
#define THREADS 100
#define FILES 300
#define FILE_BYTES (400 << 10)

static char text[8192], stacks[THREADS + 1][STACK_BYTES] __attribute__((aligned(4096))), data[FILE_BYTES];
static volatile int never;

static long gauge(const char *name)
{
	char *at = strstr(text, name);

	if (at == NULL) {
		fprintf(stderr, "error: no gauge %s: this is not Synthesis\n", name);
		exit(2);
	}
	return atol(at + strlen(name));
}

static void look(long *code, long *used)
{
	int file = open("/proc/synthesis/gauges", O_RDONLY);
	long bytes = read(file, text, sizeof text - 1);

	close(file);
	text[bytes > 0 ? bytes : 0] = 0;
	*code = gauge("code_bytes ");
	*used = (gauge("total_frames ") - gauge("free_frames ")) * PAGE_BYTES;
}

static void stage(const char *name)
{
	static long code, used;
	long now_code, now_used;

	look(&now_code, &now_used);
	if (name != NULL)
		printf("%s %ld %ld\n", name, now_code - code, now_used - used);
	look(&code, &used);
}

/* Threads share the C library's data, so they make bare calls only. */
static int sleep_for_ever(void *unused)
{
	(void)unused;
	for (;;)
		syscall(SYS_futex, &never, FUTEX_WAIT, 0, NULL, NULL, 0);
	return 0;
}

static void threads(int from, int to)
{
	for (int i = from; i < to; i++)
		if (clone(sleep_for_ever, stacks[i] + STACK_BYTES, THREAD, NULL) < 0)
			exit(1);
	sched_yield();
}

int main(void)
{
	char line[80];
	int resident = open("/proc/self/statm", O_RDONLY), pages = 0;

	setvbuf(stdout, NULL, _IOFBF, 1 << 12);
	memset(stacks, 1, sizeof stacks);
	memset(data, 1, sizeof data);
	stage(NULL);
	stage(NULL);
	if (read(resident, line, sizeof line) < 1 || sscanf(line, "%*d %d", &pages) != 1)
		return 1;
	printf("program 0 %ld\n", pages * PAGE_BYTES);
	printf("running %ld %ld\n", gauge("code_bytes "), (gauge("total_frames ") - gauge("free_frames ")) * PAGE_BYTES);
	fflush(stdout);
	stage(NULL);
	threads(0, 1);
	stage("thread");
	int file = open("/tmp/size", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (file < 0 || write(file, data, sizeof data) != sizeof data)
		return 1;
	stage("file");
	threads(1, THREADS + 1);
	stage("threads");
	for (int i = 0; i < FILES; i++) {
		int opened = open("/tmp/size", O_RDWR);
		if (opened < 0 || read(opened, line, 1) != 1)
			return 1;
	}
	stage("open");
	return 0;
}
