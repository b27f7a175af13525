/*
 * What a program pays for synthesis: opens, first runs and threads, as `name<TAB>key<TAB>value` lines.
 *
 *     opens LOOPS [windows] [host=FILE]
 *
 * first       the first open, with lookup, creation and publication
 * second      the next one, after a close
 * known       an open and a close of a kind that was opened often, mean of a loop
 * first_run   the first read or write after the first open (of a tty: that there is nothing)
 * later_run   the same, mean of a loop
 * character   of a text window: a character of text as long as the thesis's /etc/termcap, in writes of 4096 bytes
 * stage.*     in an image that counts: where the first open's time went, routines and bytes that it made
 *
 * A time is in ticks: periods of the time-stamp counter; under -icount that is guest instructions.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
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

static void say(const char *name, const char *key, double value)
{
	printf("%s\t%s\t%.1f\n", name, key, value);
}

/* What the kernel says of the call that ended last; nothing where it does not count. */
static void say_stages(const char *name)
{
	static char text[512];
	int fd = open("/proc/synthesis/stages", O_RDONLY | O_CLOEXEC);
	ssize_t bytes = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

	close(fd);
	text[bytes > 0 ? bytes : 0] = 0;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char key[32];
		double value;

		if (sscanf(line, "%31s %lf", key, &value) == 2)
			printf("%s\tstage.%s\t%.0f\n", name, key, value);
	}
}

static int ends[2];

/* Opens; reads and writes go to the descriptors in `ends`. */
static int path(const char *name)
{
	return ends[0] = ends[1] = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

static int readable(const char *name)
{
	return ends[0] = ends[1] = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static int writable(const char *name)
{
	return ends[0] = ends[1] = open(name, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
}

static int a_pipe(const char *unused)
{
	(void)unused;
	return pipe2(ends, 0);
}

static int sockets(const char *unused)
{
	(void)unused;
	return socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
}

static int event(const char *unused)
{
	(void)unused;
	return ends[0] = ends[1] = eventfd(0, EFD_NONBLOCK);
}

static int timer(const char *unused)
{
	(void)unused;
	return ends[0] = ends[1] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
}

struct object {
	const char *name;
	int (*open)(const char *);
	const char *path;
	/* What is done most with it: 'r'ead, 'w'rite, 'b'oth. */
	char way;
	int bytes;
};

static void close_one(void)
{
	close(ends[0]);
	if (ends[1] != ends[0])
		close(ends[1]);
}

static long run(const struct object *one)
{
	static char bytes[8] = {1};

	if (one->way == 'b')
		return write(ends[1], bytes, one->bytes) + read(ends[0], bytes, one->bytes);
	return one->way == 'w' ? write(ends[1], bytes, one->bytes) : read(ends[0], bytes, one->bytes);
}

static void object(const struct object *one, const char *again)
{
	unsigned long long ticks;
	const char *name = one->name;

	begin();
	int opened = one->open(one->path);
	ticks = end();
	if (opened < 0)
		return;
	say(name, "first", ticks);
	say_stages(name);
	begin();
	run(one);
	say(name, "first_run", end());
	begin();
	for (int i = loops; i--;)
		run(one);
	say(name, "later_run", (double)end() / loops);
	close_one();
	begin();
	one->open(one->path);
	ticks = end();
	say(name, "second", ticks);
	if (again) {
		say(again, "first", ticks);
		say_stages(again);
	}
	close_one();
	for (int i = 100; i--;) {
		one->open(one->path);
		close_one();
	}
	begin();
	for (int i = loops; i--;) {
		one->open(one->path);
		close_one();
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

/* Text comes to a terminal, and its program reads it: in the fourth burst its editor becomes code. That burst is timed. */
static void pasted(const char *name)
{
	enum { BURSTS = 4 };
	static char text[600], read_back[8192];
	char slave[32];
	int unlock = 0, number = 0, master = open("/dev/ptmx", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	for (unsigned i = 0; i < sizeof text; i++)
		text[i] = i % 60 == 59 ? '\n' : 'x';
	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0 || ioctl(master, TIOCGPTN, &number) < 0)
		return;
	snprintf(slave, sizeof slave, "/dev/pts/%d", number);
	int terminal = open(slave, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	for (int burst = 1; burst <= BURSTS; burst++) {
		begin();
		ssize_t bytes = write(master, text, sizeof text);
		unsigned long long ticks = end();
		if (bytes < 0)
			return;
		if (burst == BURSTS) {
			say(name, "first", ticks);
			say_stages(name);
		}
		while (read(master, read_back, sizeof read_back) > 0 || read(terminal, read_back, sizeof read_back) > 0)
			;
	}
	close(terminal);
	close(master);
}

static int end_at_once(void *unused)
{
	(void)unused;
	syscall(SYS_exit, 0);
	return 0;
}

/* Until the call that makes it returns; the thread itself runs later or at once, so its own calls are few. */
static unsigned long long thread(const char *name)
{
	static _Alignas(16) char stack[16384];
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD;
	unsigned long long ticks;

	begin();
	int id = clone(end_at_once, stack + sizeof stack, flags, NULL);
	ticks = end();
	if (name) {
		say(name, "first", ticks);
		say_stages(name);
	}
	if (id < 0 || waitpid(id, NULL, __WALL) != id)
		exit(1);
	return ticks;
}

static int made(const char *file)
{
	/* So much that each run reads one byte of it. */
	static char bytes[1 << 16];
	int fd = open(file, O_RDWR | O_CREAT, 0600);

	return fd >= 0 && write(fd, bytes, sizeof bytes) == sizeof bytes && close(fd) == 0;
}

int main(int argc, char **argv)
{
	char file[64], fifo[64];
	const char *host = NULL;
	unsigned long long ticks = 0;
	int windows = 0;

	if (argc > 1)
		loops = atoi(argv[1]);
	for (int i = 2; i < argc; i++) {
		windows |= strcmp(argv[i], "windows") == 0;
		if (strncmp(argv[i], "host=", 5) == 0)
			host = argv[i] + 5;
	}
	/* The first line asks what stdout is. */
	printf("opens\tloops\t%d\n", loops);
	begin();
	empty = end();
	for (int i = 0; i < 100; i++) {
		begin();
		unsigned long long now = __builtin_ia32_rdtsc() - start;
		if (now < empty || i == 0)
			empty = now;
	}
	snprintf(file, sizeof file, "/tmp/opens-%d", (int)getpid());
	snprintf(fifo, sizeof fifo, "/tmp/opens-fifo-%d", (int)getpid());
	if (!made(file) || mkfifo(fifo, 0600) != 0)
		return 1;
	const struct object objects[] = {
		{"null", path, "/dev/null", 'w', 1},
		{"zero", path, "/dev/zero", 'r', 1},
		{"full", path, "/dev/full", 'r', 1},
		{"random", path, "/dev/urandom", 'r', 1},
		{"tty", path, "/dev/tty", 'r', 1},
		{"pty", path, "/dev/ptmx", 'r', 1},
		{"pipe", a_pipe, NULL, 'b', 1},
		{"fifo", path, fifo, 'b', 1},
		{"socket pair", sockets, NULL, 'b', 1},
		{"file", path, file, 'r', 1},
		{"/proc file", readable, "/proc/self/stat", 'r', 1},
		{"eventfd", event, NULL, 'b', 8},
		{"timerfd", timer, NULL, 'r', 8},
		{"sound: CD", writable, "/dev/cd", 'w', 4},
		{"sound: A/D", readable, "/dev/ad", 'r', 4},
		{"sound: D/A", readable, "/dev/da", 'r', 4},
	};
	for (unsigned i = 0; i < sizeof objects / sizeof *objects; i++)
		object(&objects[i], i == 0 ? "cached open" : NULL);
	unlink(file);
	unlink(fifo);
	if (host) {
		const struct object outside = {"host file", readable, host, 'r', 1};
		object(&outside, NULL);
	}
	/* Windows stay: the first makes what all share, and the first open of another makes that one. On Linux they would be somebody's
	   screens. */
	if (windows) {
		const struct object first = {"text window", path, "/dev/tty7", 'w', 1};
		const struct object other = {"another window", path, "/dev/tty8", 'w', 1};
		object(&first, NULL);
		termcap("text window", "/dev/tty7");
		object(&other, NULL);
		pasted("pasted-to terminal");
		pasted("another one");
	}
	thread("thread");
	for (int i = 0; i < 20; i++)
		ticks += thread(NULL);
	say("thread", "known", ticks / 20.0);
	return 0;
}
