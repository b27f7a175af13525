/*
 * What a program pays for synthesis: opens, first runs and threads, as `name<TAB>key<TAB>ticks` lines.
 *
 *     opens LOOPS
 *
 * first       the first open, with lookup, creation and publication
 * second      the next one, after a close
 * known       an open and a close of a kind that was opened often, mean of a loop
 * first_run   the first read or write of one byte after the first open (of a tty: that there is nothing)
 * later_run   the same, mean of a loop
 * character   of a text window: a character of text as long as the thesis's /etc/termcap, in writes of 4096 bytes
 *
 * A tick is one period of the time-stamp counter; under -icount that is one guest instruction.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int loops = 1000;
static unsigned long long start, empty;

static __attribute__((noinline)) void begin(void)
{
	start = __builtin_ia32_rdtsc();
}

static __attribute__((noinline)) unsigned long long end(void)
{
	unsigned long long ticks = __builtin_ia32_rdtsc() - start;

	return ticks > empty ? ticks - empty : 0;
}

static void say(const char *name, const char *key, double ticks)
{
	printf("%s\t%s\t%.1f\n", name, key, ticks);
}

static int ends[2];

/* Opens; reads and writes go to the descriptors in `ends`. */
static int open_path(const char *path)
{
	return ends[0] = ends[1] = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

static int open_one(const char *path)
{
	return path ? open_path(path) : pipe2(ends, 0);
}

static void close_one(const char *path)
{
	close(ends[0]);
	if (!path)
		close(ends[1]);
}

/* One byte through: what each object does most. */
static long run(const char *path, char way)
{
	static char byte = 'x';

	if (way == 'b')
		return write(ends[1], &byte, 1) + read(ends[0], &byte, 1);
	return way == 'w' ? write(ends[1], &byte, 1) : read(ends[0], &byte, 1);
}

static void object(const char *name, const char *path, char way)
{
	unsigned long long ticks;

	begin();
	int opened = open_one(path);
	ticks = end();
	if (opened < 0)
		return;
	say(name, "first", ticks);
	begin();
	run(path, way);
	say(name, "first_run", end());
	begin();
	for (int i = loops; i--;)
		run(path, way);
	say(name, "later_run", (double)end() / loops);
	close_one(path);
	begin();
	open_one(path);
	say(name, "second", end());
	close_one(path);
	for (int i = 100; i--;) {
		open_one(path);
		close_one(path);
	}
	begin();
	for (int i = loops; i--;) {
		open_one(path);
		close_one(path);
	}
	say(name, "known", (double)end() / loops);
}

/* Lines like those of /etc/termcap; the thesis's had 110,620 bytes. */
static void termcap(const char *name, const char *path)
{
	static const char line[] = "xterm|vs100|xterm terminal emulator (X Window System):am:km\n";
	static char text[110620];
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	for (unsigned i = 0; i < sizeof text; i++)
		text[i] = line[i % (sizeof line - 1)];
	for (int round = 0; round < 3; round++) {
		begin();
		for (unsigned at = 0; at < sizeof text; at += 4096)
			if (write(fd, text + at, sizeof text - at < 4096 ? sizeof text - at : 4096) < 0)
				return;
		unsigned long long ticks = end();
		if (round == 2)
			say(name, "character", (double)ticks / sizeof text);
	}
	close(fd);
}

static int end_at_once(void *unused)
{
	(void)unused;
	syscall(SYS_exit, 0);
	return 0;
}

/* Until the call that makes it returns; the thread itself runs later or at once, so its own calls are few. */
static unsigned long long thread(void)
{
	static _Alignas(16) char stack[16384];
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | SIGCHLD;
	unsigned long long ticks;

	begin();
	int id = clone(end_at_once, stack + sizeof stack, flags & ~CLONE_SIGHAND, NULL);
	ticks = end();
	if (id < 0 || waitpid(id, NULL, __WALL) != id)
		exit(1);
	return ticks;
}

int main(int argc, char **argv)
{
	char file[64];
	unsigned long long ticks = 0;

	if (argc > 1)
		loops = atoi(argv[1]);
	begin();
	empty = end();
	for (int i = 0; i < 100; i++) {
		begin();
		unsigned long long now = __builtin_ia32_rdtsc() - start;
		if (now < empty || i == 0)
			empty = now;
	}
	snprintf(file, sizeof file, "/tmp/opens-%d", (int)getpid());
	/* So much that each run reads one byte of it. */
	static char bytes[1 << 16];
	int made = open(file, O_RDWR | O_CREAT, 0600);
	if (made < 0 || write(made, bytes, sizeof bytes) != sizeof bytes || close(made) != 0)
		return 1;
	object("null", "/dev/null", 'w');
	object("zero", "/dev/zero", 'r');
	object("tty", "/dev/tty", 'r');
	object("pipe", NULL, 'b');
	object("file", file, 'r');
	unlink(file);
	/* Windows stay: the first makes what all share, and the first open of another makes that one. On Linux they would be somebody's
	   screens. */
	if (argc > 2 && strcmp(argv[2], "windows") == 0) {
		object("text window", "/dev/tty7", 'w');
		termcap("text window", "/dev/tty7");
		object("another window", "/dev/tty8", 'w');
	}
	say("thread", "first", thread());
	for (int i = 0; i < 20; i++)
		ticks += thread();
	say("thread", "known", ticks / 20.0);
	return 0;
}
