/*
 * Single operations, one per subcommand:   micro OPERATION ITERATIONS [time]
 * `micro list` prints the names. See ../paper/measure.h for what "time" prints.
 */
#define _GNU_SOURCE
#include "../paper/measure.h"
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#define PAGE_BYTES 4096L
/* A call number that no kernel has. */
#define UNKNOWN_CALL 1000

static int count;
static char byte[1];
static const char *own_path;

/* The measured part of an operation: `count` times the body. The counter stops in main. */
#define LOOP(body)                       \
	do {                             \
		int i = count;           \
		start_ticks();           \
		for (; i--; ) {          \
			body;            \
		}                        \
	} while (0)

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int open_or_fail(const char *path, int flags)
{
	int f = open(path, flags, 0666);

	expect(f >= 0, path);
	return f;
}

/* A file of one page in the working directory. */
static int page_file(void)
{
	char page[PAGE_BYTES];
	int f = open_or_fail("micro.file", O_RDWR | O_CREAT | O_TRUNC);

	memset(page, 1, sizeof page);
	expect(write(f, page, sizeof page) == PAGE_BYTES, "write micro.file");
	return f;
}

static void pipe_or_fail(int fd[2])
{
	expect(pipe(fd) == 0, "pipe");
}

static void op_empty(void)
{
	LOOP(__asm__ volatile(""));
}

static void op_getppid(void)
{
	LOOP(getppid());
}

static void op_unknown(void)
{
	expect(syscall(UNKNOWN_CALL) == -1 && errno == ENOSYS, "unknown call");
	LOOP(syscall(UNKNOWN_CALL));
}

static void op_clock_vdso(void)
{
	struct timespec now;

	LOOP(clock_gettime(CLOCK_MONOTONIC, &now));
}

static void op_clock_call(void)
{
	struct timespec now;

	LOOP(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now));
}

static void op_yield(void)
{
	LOOP(sched_yield());
}

static void op_write_null(void)
{
	int f = open_or_fail("/dev/null", O_WRONLY);

	expect(write(f, byte, 1) == 1, "write null");
	LOOP(IGNORE(write(f, byte, 1)));
}

static void op_read_zero(void)
{
	int f = open_or_fail("/dev/zero", O_RDONLY);

	expect(read(f, byte, 1) == 1, "read zero");
	LOOP(IGNORE(read(f, byte, 1)));
}

static void op_pread(void)
{
	int f = page_file();

	expect(pread(f, byte, 1, 0) == 1, "pread");
	LOOP(IGNORE(pread(f, byte, 1, 0)));
}

static void op_pwrite(void)
{
	int f = page_file();

	expect(pwrite(f, byte, 1, 0) == 1, "pwrite");
	LOOP(IGNORE(pwrite(f, byte, 1, 0)));
}

/* An absolute path: what it costs to follow must not depend on the working directory. */
static void op_stat(void)
{
	static const char path[] = "/tmp/micro.file";
	struct stat about;

	close(open_or_fail(path, O_RDWR | O_CREAT));
	expect(stat(path, &about) == 0, "stat");
	LOOP(stat(path, &about));
	unlink(path);
}

static void op_fstat(void)
{
	struct stat about;
	int f = page_file();

	expect(fstat(f, &about) == 0, "fstat");
	LOOP(fstat(f, &about));
}

static void op_creat_unlink(void)
{
	LOOP(close(creat("micro.new", 0666)); unlink("micro.new"));
	expect(access("micro.new", F_OK) == -1, "unlink");
}

static void op_poll(void)
{
	int fd[2];
	struct pollfd one;

	pipe_or_fail(fd);
	expect(write(fd[1], byte, 1) == 1, "write");
	one = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	expect(poll(&one, 1, 0) == 1, "poll");
	LOOP(poll(&one, 1, 0));
}

static volatile int signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void op_kill_self(void)
{
	struct sigaction action = { .sa_handler = count_signal };
	pid_t self = getpid();

	expect(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction");
	LOOP(kill(self, SIGUSR1));
	expect(signals == count, "signals taken");
}

static char *guarded;

static void open_guarded(int number)
{
	(void)number;
	signals++;
	mprotect(guarded, PAGE_BYTES, PROT_READ | PROT_WRITE);
}

static char *map_pages(long pages)
{
	char *at = mmap(NULL, pages * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	expect(at != MAP_FAILED, "mmap");
	return at;
}

static void op_segv(void)
{
	struct sigaction action = { .sa_handler = open_guarded };

	guarded = map_pages(1);
	guarded[0] = 1;
	expect(sigaction(SIGSEGV, &action, NULL) == 0, "sigaction");
	LOOP(mprotect(guarded, PAGE_BYTES, PROT_READ); *(volatile char *)guarded = 2);
	expect(signals == count, "signals taken");
}

static void op_pipe_ping_pong(void)
{
	int to[2], from[2];
	pid_t child;

	pipe_or_fail(to);
	pipe_or_fail(from);
	child = fork();
	if (child == 0) {
		close(to[1]);
		while (read(to[0], byte, 1) == 1)
			IGNORE(write(from[1], byte, 1));
		_exit(0);
	}
	expect(child > 0, "fork");
	expect(write(to[1], byte, 1) == 1 && read(from[0], byte, 1) == 1, "first round trip");
	LOOP(IGNORE(write(to[1], byte, 1)); IGNORE(read(from[0], byte, 1)));
}

static int child_status;

/* Two programs that only compute share the processor: one iteration is one millisecond. */
static void op_preempt(void)
{
	pid_t rival = fork();

	if (rival == 0)
		for (;;)
			;
	int64_t until = now_ns();
	LOOP(until += 1000000; while (now_ns() < until));
	kill(rival, SIGKILL);
	waitpid(rival, NULL, 0);
}

static void op_fork(void)
{
	LOOP(pid_t child = fork(); if (child == 0) _exit(3); waitpid(child, &child_status, 0));
	expect(WEXITSTATUS(child_status) == 3, "status of the child");
}

static void op_vfork(void)
{
	LOOP(pid_t child = vfork(); if (child == 0) _exit(3); waitpid(child, &child_status, 0));
	expect(WEXITSTATUS(child_status) == 3, "status of the child");
}

static void exec_self(void)
{
	execl(own_path, own_path, "exit", (char *)NULL);
	execl("/proc/self/exe", own_path, "exit", (char *)NULL);
	_exit(127);
}

static void op_fork_exec(void)
{
	LOOP(pid_t child = fork(); if (child == 0) exec_self(); waitpid(child, &child_status, 0));
	expect(WEXITSTATUS(child_status) == 3, "status of the program");
}

static void op_map_touch(void)
{
	LOOP(char *at = map_pages(1); *(volatile char *)at = 1; munmap(at, PAGE_BYTES));
}

/* Each page is got by a fault and given back at the end, so the figure holds both. */
static void op_page_fault(void)
{
	char *pages = map_pages(count), *at = pages;

	madvise(pages, count * PAGE_BYTES, MADV_NOHUGEPAGE);
	LOOP(*(volatile char *)at = 1; at += PAGE_BYTES);
	munmap(pages, count * PAGE_BYTES);
}

static void op_malloc(void)
{
	LOOP(void *volatile at = malloc(64); free(at));
}

static void op_putchar(void)
{
	expect(freopen("/dev/null", "w", stdout) != NULL, "freopen");
	LOOP(putchar('x'));
}

static void op_putchar_unlocked(void)
{
	expect(freopen("/dev/null", "w", stdout) != NULL, "freopen");
	LOOP(putchar_unlocked('x'));
}

/* What programs ask for most, by the count of strace -c over shells, compilers, interpreters and servers. */

static const char there[] = "/tmp/micro.file";

static void op_open_close(void)
{
	close(open_or_fail(there, O_RDWR | O_CREAT));
	LOOP(close(open(there, O_RDONLY)));
	unlink(there);
}

static void op_open_missing(void)
{
	expect(open("/tmp/micro.missing", O_RDONLY) == -1, "a missing file");
	LOOP(open("/tmp/micro.missing", O_RDONLY));
}

static void op_access(void)
{
	close(open_or_fail(there, O_RDWR | O_CREAT));
	expect(access(there, R_OK) == 0, "access");
	LOOP(access(there, R_OK));
	unlink(there);
}

static void op_statx(void)
{
	struct statx about;

	close(open_or_fail(there, O_RDWR | O_CREAT));
	expect(statx(AT_FDCWD, there, 0, STATX_BASIC_STATS, &about) == 0, "statx");
	LOOP(statx(AT_FDCWD, there, 0, STATX_BASIC_STATS, &about));
	unlink(there);
}

static void op_readlink(void)
{
	char target[64];

	expect(symlink("target", "micro.link") == 0, "symlink");
	LOOP(IGNORE(readlink("micro.link", target, sizeof target)));
	unlink("micro.link");
}

static void op_lseek(void)
{
	int f = page_file();

	LOOP(lseek(f, 17, SEEK_SET));
}

static void op_getdents(void)
{
	char entries[4096];
	int directory;

	mkdir("micro.directory", 0777);
	close(open_or_fail("micro.directory/one", O_RDWR | O_CREAT));
	close(open_or_fail("micro.directory/two", O_RDWR | O_CREAT));
	directory = open_or_fail("micro.directory", O_RDONLY | O_DIRECTORY);
	expect(syscall(SYS_getdents64, directory, entries, sizeof entries) > 0, "getdents64");
	LOOP(lseek(directory, 0, SEEK_SET); syscall(SYS_getdents64, directory, entries, sizeof entries));
	unlink("micro.directory/one");
	unlink("micro.directory/two");
	rmdir("micro.directory");
}

static void op_getcwd(void)
{
	char name[256];

	LOOP(syscall(SYS_getcwd, name, sizeof name));
}

static void op_fcntl(void)
{
	LOOP(fcntl(0, F_GETFL));
}

static void op_dup_close(void)
{
	LOOP(close(dup(0)));
}

static void op_pipe_close(void)
{
	int fd[2];

	LOOP(pipe_or_fail(fd); close(fd[0]); close(fd[1]));
}

static void op_ioctl(void)
{
	int fd[2], bytes;

	pipe_or_fail(fd);
	expect(ioctl(fd[0], FIONREAD, &bytes) == 0, "FIONREAD");
	LOOP(ioctl(fd[0], FIONREAD, &bytes));
}

static void op_writev(void)
{
	struct iovec parts[2] = { { byte, 1 }, { byte, 1 } };
	int f = open_or_fail("/dev/null", O_WRONLY);

	expect(writev(f, parts, 2) == 2, "writev");
	LOOP(IGNORE(writev(f, parts, 2)));
}

static void op_read_proc(void)
{
	char text[1024];
	int f = open_or_fail("/proc/self/stat", O_RDONLY);

	expect(pread(f, text, sizeof text, 0) > 0, "pread /proc/self/stat");
	LOOP(IGNORE(pread(f, text, sizeof text, 0)));
}

static void op_map(void)
{
	LOOP(munmap(map_pages(1), PAGE_BYTES));
}

static void op_map_file(void)
{
	int f = page_file();

	LOOP(munmap(mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE, f, 0), PAGE_BYTES));
}

static void op_mprotect(void)
{
	char *at = map_pages(1);

	*at = 1;
	LOOP(mprotect(at, PAGE_BYTES, PROT_READ); mprotect(at, PAGE_BYTES, PROT_READ | PROT_WRITE));
}

static void op_brk(void)
{
	char *end = sbrk(0);

	LOOP(brk(end + PAGE_BYTES); brk(end));
}

static void op_sigaction(void)
{
	struct sigaction action = { .sa_handler = count_signal };

	LOOP(sigaction(SIGUSR1, &action, NULL));
}

static void op_sigprocmask(void)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	LOOP(sigprocmask(SIG_BLOCK, &set, &old); sigprocmask(SIG_SETMASK, &old, NULL));
}

static void op_futex_wake(void)
{
	int word = 0;

	LOOP(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
}

static void op_futex_again(void)
{
	int word = 0;

	LOOP(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0));
}

static void op_nanosleep(void)
{
	struct timespec none = { 0, 0 };

	LOOP(nanosleep(&none, NULL));
}

static void op_select(void)
{
	struct timeval none = { 0, 0 };
	int fd[2];
	fd_set set;

	pipe_or_fail(fd);
	expect(write(fd[1], byte, 1) == 1, "write");
	LOOP(FD_ZERO(&set); FD_SET(fd[0], &set); select(fd[0] + 1, &set, NULL, NULL, &none));
}

static void op_epoll_wait(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd[2], all = epoll_create1(0);

	pipe_or_fail(fd);
	expect(write(fd[1], byte, 1) == 1, "write");
	expect(epoll_ctl(all, EPOLL_CTL_ADD, fd[0], &event) == 0, "epoll_ctl");
	expect(epoll_wait(all, &event, 1, 0) == 1, "epoll_wait");
	LOOP(epoll_wait(all, &event, 1, 0));
}

static void op_epoll_ctl(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd[2], all = epoll_create1(0);

	pipe_or_fail(fd);
	expect(epoll_ctl(all, EPOLL_CTL_ADD, fd[0], &event) == 0, "epoll_ctl");
	LOOP(epoll_ctl(all, EPOLL_CTL_MOD, fd[0], &event));
}

static void op_eventfd(void)
{
	uint64_t one = 1;
	int f = eventfd(0, 0);

	LOOP(IGNORE(write(f, &one, 8)); IGNORE(read(f, &one, 8)));
}

static void op_socket_stream(void)
{
	int fd[2];

	expect(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0, "socketpair");
	LOOP(IGNORE(write(fd[0], byte, 1)); IGNORE(read(fd[1], byte, 1)));
}

static void op_socket_send(void)
{
	int fd[2];

	expect(socketpair(AF_UNIX, SOCK_DGRAM, 0, fd) == 0, "socketpair");
	LOOP(send(fd[0], byte, 1, 0); recv(fd[1], byte, 1, 0));
}

static void op_wait_nobody(void)
{
	LOOP(waitpid(-1, NULL, WNOHANG));
}

static void op_getrusage(void)
{
	struct rusage usage;

	LOOP(getrusage(RUSAGE_SELF, &usage));
}

static void op_prlimit(void)
{
	struct rlimit limit;

	LOOP(getrlimit(RLIMIT_NOFILE, &limit));
}

static void op_setitimer(void)
{
	struct itimerval far = { { 0, 0 }, { 1000, 0 } };

	LOOP(setitimer(ITIMER_REAL, &far, NULL));
}

static void op_uname(void)
{
	struct utsname name;

	LOOP(uname(&name));
}

static void op_getrandom(void)
{
	char bytes[16];

	LOOP(IGNORE(getrandom(bytes, sizeof bytes, 0)));
}

static void op_thread_kill(void)
{
	struct sigaction action = { .sa_handler = SIG_IGN };
	pid_t self = getpid();

	sigaction(SIGUSR1, &action, NULL);
	LOOP(syscall(SYS_tgkill, self, self, SIGUSR1));
}

static const struct {
	const char *name;
	void (*run)(void);
} operations[] = {
	{ "empty", op_empty },
	{ "getppid", op_getppid },
	{ "unknown", op_unknown },
	{ "clock_vdso", op_clock_vdso },
	{ "clock_call", op_clock_call },
	{ "sched_yield", op_yield },
	{ "write_null", op_write_null },
	{ "read_zero", op_read_zero },
	{ "pread", op_pread },
	{ "pwrite", op_pwrite },
	{ "stat", op_stat },
	{ "fstat", op_fstat },
	{ "creat_unlink", op_creat_unlink },
	{ "poll", op_poll },
	{ "kill_self", op_kill_self },
	{ "segv", op_segv },
	{ "pipe_ping_pong", op_pipe_ping_pong },
	{ "preempt", op_preempt },
	{ "fork", op_fork },
	{ "vfork", op_vfork },
	{ "fork_exec", op_fork_exec },
	{ "map_touch", op_map_touch },
	{ "page_fault", op_page_fault },
	{ "malloc", op_malloc },
	{ "putchar", op_putchar },
	{ "putchar_unlocked", op_putchar_unlocked },
	{ "open_close", op_open_close },
	{ "open_missing", op_open_missing },
	{ "access", op_access },
	{ "statx", op_statx },
	{ "readlink", op_readlink },
	{ "lseek", op_lseek },
	{ "getdents", op_getdents },
	{ "getcwd", op_getcwd },
	{ "fcntl", op_fcntl },
	{ "dup_close", op_dup_close },
	{ "pipe_close", op_pipe_close },
	{ "ioctl", op_ioctl },
	{ "writev", op_writev },
	{ "read_proc", op_read_proc },
	{ "map", op_map },
	{ "map_file", op_map_file },
	{ "mprotect", op_mprotect },
	{ "brk", op_brk },
	{ "sigaction", op_sigaction },
	{ "sigprocmask", op_sigprocmask },
	{ "futex_wake", op_futex_wake },
	{ "futex_again", op_futex_again },
	{ "nanosleep", op_nanosleep },
	{ "select", op_select },
	{ "epoll_wait", op_epoll_wait },
	{ "epoll_ctl", op_epoll_ctl },
	{ "eventfd", op_eventfd },
	{ "socket_stream", op_socket_stream },
	{ "socket_send", op_socket_send },
	{ "wait_nobody", op_wait_nobody },
	{ "getrusage", op_getrusage },
	{ "prlimit", op_prlimit },
	{ "setitimer", op_setitimer },
	{ "uname", op_uname },
	{ "getrandom", op_getrandom },
	{ "thread_kill", op_thread_kill },
};

int main(int argc, char **argv)
{
	const size_t known = sizeof operations / sizeof operations[0];

	if (argc == 2 && strcmp(argv[1], "exit") == 0)
		return 3;
	own_path = argv[0];
	count = argc > 2 ? atoi(argv[2]) : 1;
	for (size_t i = 0; argc > 1 && i < known; i++) {
		if (strcmp(argv[1], "list") == 0)
			puts(operations[i].name);
		if (strcmp(argv[1], operations[i].name) != 0)
			continue;
		operations[i].run();
		stop_ticks(argc - 1, argv + 1);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "list") == 0)
		return 0;
	fprintf(stderr, "usage: micro OPERATION ITERATIONS [time]\n");
	return 2;
}
