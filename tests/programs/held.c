/* What the fuzzer found: each case stopped the kernel, or kept everybody else from running, or did what Linux refuses. */
#include "check.h"
#include <pthread.h>

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <termios.h>

/* A write of few bytes that starts below the end of user space, where the stack may be, and goes on behind it. */
static void copy_runs_over_the_user_limit(void)
{
    int pair[2];
    char *end = (char *)0x7ffffffff000;
    MUST(pipe(pair));
    for (int round = 0; round < 4; round++)
        SHOW(write(pair[1], end - 8, 16));
}

/* As many bytes as a pipe holds, of which the last lie where there are no addresses. */
static void long_copies_run_over_the_user_limit(void)
{
    static const int counts[] = {9, 33, 41, 4096, 4097, 4105, 50001, 65535, 65536};
    char buffer[64] = {0}, *end = (char *)0x7ffffffff000;
    int pair[2];
    MUST(pipe(pair));
    for (int i = 0; i < 4; i++)
        if (write(pair[1], buffer, 64) != 64 || read(pair[0], buffer, 64) != 64)
            exit(9);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        SHOW(write(pair[1], end - 1, counts[i]));
        SHOW(write(pair[1], end - 8, counts[i]));
    }
    MUST(write(pair[1], buffer, 41));
    SHOW(read(pair[0], end - 1, 41));
    SHOW(read(pair[0], end - 8, 50001));
    SHOW(read(pair[0], buffer, 64));
}

static void quick_timers_leave_time(void)
{
    struct itimerspec often = {{0, 1}, {0, 1}};
    int timers[20];
    for (int i = 0; i < 20; i++) {
        timers[i] = MUST(timerfd_create(i % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, 0));
        MUST(timerfd_settime(timers[i], 0, &often, NULL));
    }
    volatile long work = 0;
    for (long i = 0; i < 3000000; i++)
        work += i;
    uint64_t count = 0;
    MUST(read(timers[0], &count, 8));
    puts(count > 1000 ? "missed ones are counted" : "too few");
}

static void two_writers_of_a_full_terminal(void)
{
    int master = MUST(open("/dev/ptmx", O_RDWR | O_NOCTTY)), zero = 0, number = 0;
    char name[32];
    MUST(ioctl(master, TIOCSPTLCK, &zero));
    MUST(ioctl(master, TIOCGPTN, &number));
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    int slave = MUST(open(name, O_RDWR | O_NOCTTY));
    struct termios settings;
    MUST(tcgetattr(slave, &settings));
    settings.c_lflag = ECHO;
    MUST(tcsetattr(slave, TCSANOW, &settings));
    pid_t writers[2];
    for (int i = 0; i < 2; i++) {
        writers[i] = MUST(fork());
        if (writers[i] == 0)
            for (;;)
                if (write(master, "text", 4) == -1)
                    _exit(1);
    }
    sleep_ms(100);
    for (int i = 0; i < 2; i++) {
        int status;
        MUST(kill(writers[i], SIGKILL));
        MUST(waitpid(writers[i], &status, 0));
        say_status("writer", status);
    }
}

static volatile int turns;

static void *takes_turns(void *unused)
{
    for (;; turns++)
        sleep_ms(1);
    return unused;
}

/* Nobody reads, and no line ends: a terminal takes all there is, and forgets most of it. */
static void a_long_write_leaves_time(void)
{
    static char text[2 << 20];
    struct timespec from, to;
    pthread_t thread;
    memset(text, 1, sizeof text);
    if (pthread_create(&thread, NULL, takes_turns, NULL) != 0)
        exit(9);
    int master = MUST(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK));
    sleep_ms(5);
    turns = 0;
    clock_gettime(CLOCK_MONOTONIC, &from);
    MUST(write(master, text, sizeof text));
    int taken = turns;
    clock_gettime(CLOCK_MONOTONIC, &to);
    long ms = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
    puts(ms < 200 || taken >= 8 ? "others ran" : "nobody else ran");
}

static void random_bytes_come_all(void)
{
    static char bytes[100000], *volatile nowhere = (char *)-1l;
    int file = MUST(open("/dev/urandom", O_RDONLY));
    SHOW(read(file, bytes, sizeof bytes));
    SHOW(syscall(SYS_getrandom, bytes, sizeof bytes, 0));
    SHOW(read(file, nowhere, 9));
    SHOW(read(file, bytes, 0));
}

/* RLIMIT_FSIZE holds for bytes that the file has already. */
static void limit_below_the_size_of_a_file(void)
{
    char page[4096] = {0};
    int file = MUST(open("limited", O_RDWR | O_CREAT | O_TRUNC, 0600));
    MUST(write(file, page, sizeof page));
    MUST(lseek(file, 0, SEEK_SET));
    for (int round = 0; round < 3; round++)
        MUST(write(file, "text", 4));
    struct rlimit limit = {100, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    MUST(setrlimit(RLIMIT_FSIZE, &limit));
    MUST(lseek(file, 96, SEEK_SET));
    /* Nothing may be printed under the limit: it holds for what the tests print, too. */
    long written[4];
    for (int round = 0; round < 4; round++)
        written[round] = write(file, "abc", 3);
    int reason = errno;
    limit.rlim_cur = RLIM_INFINITY;
    MUST(setrlimit(RLIMIT_FSIZE, &limit));
    printf("%ld %ld %ld %ld %s\n", written[0], written[1], written[2], written[3], strerrorname_np(reason));
    SHOW(write(file, "abc", 3));
    SHOW(write(file, "abc", 3));
    unlink("limited");
}

/* A buffer that is not there costs a stream nothing. */
static void bytes_wait_for_a_better_buffer(void)
{
    char text[64] = "", *volatile nowhere = (char *)8;
    int ends[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends));
    MUST(write(ends[0], "something to read", 17));
    struct iovec part = {nowhere, 8};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    SHOW(read(ends[1], nowhere, 8));
    SHOW(recv(ends[1], nowhere, 8, 0));
    SHOW(recvmsg(ends[1], &message, 0));
    SHOW(read(ends[1], text, 9));
    SHOW(recv(ends[1], text + 9, sizeof text, 0));
    puts(text);
    SHOW(read(ends[1], text, sizeof text));
}

static void what_is_empty_moves_nothing(void)
{
    int file = MUST(open("appended", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600));
    MUST(write(file, "0123456789", 10));
    MUST(lseek(file, 3, SEEK_SET));
    struct iovec none = {NULL, 0}, wild[2] = {{(void *)-1l, 4}, {"", -1ul}};
    SHOW(write(file, "", 0));
    SHOW(writev(file, &none, 1));
    SHOW(lseek(file, 0, SEEK_CUR));
    SHOW(writev(file, wild, 2));
    SHOW(lseek(file, INT64_MAX, SEEK_END));
    SHOW(pwrite(file, wild[1].iov_base, 9, INT64_MAX - 4));
    int zero = MUST(open("/dev/zero", O_RDWR)), full = MUST(open("/dev/full", O_RDWR));
    SHOW(pwrite(zero, "text", 4, INT64_MAX - 2));
    SHOW(pread(zero, &none, 8, INT64_MAX - 2));
    SHOW(write(full, "", 0));
    unlink("appended");
}

static const struct test tests[] = {
    {"copy_runs_over_the_user_limit", copy_runs_over_the_user_limit},
    {"long_copies_run_over_the_user_limit", long_copies_run_over_the_user_limit},
    {"bytes_wait_for_a_better_buffer", bytes_wait_for_a_better_buffer},
    {"what_is_empty_moves_nothing", what_is_empty_moves_nothing},
    {"quick_timers_leave_time", quick_timers_leave_time},
    {"two_writers_of_a_full_terminal", two_writers_of_a_full_terminal},
    {"a_long_write_leaves_time", a_long_write_leaves_time},
    {"random_bytes_come_all", random_bytes_come_all},
    {"limit_below_the_size_of_a_file", limit_below_the_size_of_a_file},
};
CHECK_MAIN(tests)
