/* What one process can ask for in thousands, or in one call, without stopping the others. */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

#define MICROSECOND {.it_value.tv_nsec = 1000, .it_interval.tv_nsec = 1000}

static void say(const char *what, int holds)
{
    printf("%s: %s\n", what, holds ? "yes" : "no");
}

static void allow_descriptors(void)
{
    struct rlimit most = {20000, 20000};
    MUST(setrlimit(RLIMIT_NOFILE, &most));
}

static void be_somebody(void)
{
    int ends[2];
    char byte;
    MUST(pipe(ends));
    for (int i = 0; i < 1000; i++) {
        MUST(write(ends[1], "x", 1));
        MUST(read(ends[0], &byte, 1));
    }
}

static void others_go_on(void)
{
    for (int i = 0; i < 20; i++)
        in_child("somebody else", be_somebody);
}

/* Eighteen thousand timers of a microsecond that nobody reads; everybody else goes on. */
static void timers_that_nobody_reads(void)
{
    static int timers[18000];
    struct itimerspec quick = MICROSECOND;
    uint64_t times;
    allow_descriptors();
    for (int i = 0; i < 18000; i++) {
        MUST(timers[i] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
        MUST(timerfd_settime(timers[i], 0, &quick, NULL));
    }
    others_go_on();
    for (int i = 0; i < 18000; i += 1999)
        say("read", read(timers[i], &times, 8) == 8 && times > 100);
    for (int i = 0; i < 18000; i++)
        MUST(close(timers[i]));
}

/* Who watches the edge sees one until the timer is read. */
static void a_timer_rings_once_until_it_is_read(void)
{
    struct itimerspec quick = MICROSECOND, left;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    uint64_t times;
    int timer, instance;
    MUST(timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
    MUST(instance = epoll_create1(0));
    MUST(epoll_ctl(instance, EPOLL_CTL_ADD, timer, &event));
    quick.it_interval.tv_nsec = 1000000;
    MUST(timerfd_settime(timer, 0, &quick, NULL));
    SHOW(epoll_wait(instance, &event, 1, 1000));
    sleep_ms(20);
    SHOW(epoll_wait(instance, &event, 1, 20));
    MUST(timerfd_gettime(timer, &left));
    say("something is left", left.it_value.tv_sec == 0 && left.it_value.tv_nsec <= 1000000);
    SHOW(read(timer, &times, 8));
    say("all are counted", times >= 20);
    SHOW(epoll_wait(instance, &event, 1, 1000));
    SHOW(read(timer, &times, 8));
    say("few are counted", times >= 1 && times < 20);
    sleep_ms(3);
    quick.it_value.tv_sec = 100;
    MUST(timerfd_settime(timer, 0, &quick, &left));
    say("something was left", left.it_value.tv_sec == 0 && left.it_value.tv_nsec <= 1000000);
    SHOW(read(timer, &times, 8));
}

static volatile int caught;

static void catch(int signal)
{
    (void)signal;
    caught++;
}

static timer_t make_timer(int signal, long value_ns, long interval_ns)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal};
    struct itimerspec times = {.it_value.tv_nsec = value_ns, .it_interval.tv_nsec = interval_ns};
    MUST(timer_create(CLOCK_MONOTONIC, &event, &timer));
    MUST(timer_settime(timer, 0, &times, NULL));
    return timer;
}

/* Signals that wait: each timer has one on its way, which tells of the others when it is taken. */
static void timers_whose_signals_wait(void)
{
    sigset_t set;
    siginfo_t info;
    struct timespec now = {0, 0};
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    MUST(sigprocmask(SIG_BLOCK, &set, NULL));
    timer_t one = make_timer(SIGRTMIN, 1000000, 1000000);
    sleep_ms(20);
    SHOW(sigtimedwait(&set, &info, &now) == SIGRTMIN);
    say("it tells of the others", info.si_overrun >= 18 && timer_getoverrun(one) == info.si_overrun);
    struct itimerspec left;
    MUST(timer_gettime(one, &left));
    say("something is left", left.it_value.tv_sec == 0 && left.it_value.tv_nsec <= 1000000);
    MUST(timer_delete(one));
    while (sigtimedwait(&set, &info, &now) == SIGRTMIN)
        ;
    for (int i = 0; i < 500; i++)
        make_timer(SIGRTMIN, 1000, 1000);
    others_go_on();
    int taken = 0;
    while (taken < 500 && sigtimedwait(&set, &info, &now) == SIGRTMIN)
        taken++;
    printf("%d taken\n", taken);
}

/* On a machine that does other things, too, signals are taken late, and one stands for many. */
static int is_caught_again(void)
{
    for (int i = 0; i < 250 && caught <= 2; i++)
        sleep_ms(20);
    return caught > 2;
}

static void a_timer_whose_signal_is_ignored(void)
{
    struct itimerval each = {{0, 2000}, {0, 2000}}, left;
    MUST(signal(SIGALRM, SIG_IGN) == SIG_ERR ? -1 : 0);
    MUST(setitimer(ITIMER_REAL, &each, NULL));
    sleep_ms(20);
    MUST(getitimer(ITIMER_REAL, &left));
    printf("%ld left of %ld\n", (long)left.it_value.tv_usec, (long)left.it_interval.tv_usec);
    MUST(signal(SIGALRM, catch) == SIG_ERR ? -1 : 0);
    sleep_ms(20);
    printf("%d caught\n", caught);
    MUST(setitimer(ITIMER_REAL, &each, NULL));
    say("caught again", is_caught_again());
    MUST(setitimer(ITIMER_REAL, NULL, NULL));
    MUST(signal(SIGRTMIN, SIG_IGN) == SIG_ERR ? -1 : 0);
    timer_t timer = make_timer(SIGRTMIN, 2000000, 2000000);
    sleep_ms(20);
    caught = 0;
    MUST(signal(SIGRTMIN, catch) == SIG_ERR ? -1 : 0);
    say("heeded again", is_caught_again());
    MUST(timer_delete(timer));
}

static void a_program_under_a_quick_timer(void)
{
    struct itimerval each = {{0, 300}, {0, 300}};
    MUST(signal(SIGALRM, catch) == SIG_ERR ? -1 : 0);
    MUST(setitimer(ITIMER_REAL, &each, NULL));
    /* The work comes to its end, and longer than that where the host's timer is late. */
    for (volatile long i = 0; i < 3000000 || (caught <= 2 && i < 300000000); i++)
        ;
    MUST(setitimer(ITIMER_REAL, NULL, NULL));
    say("caught", caught > 2);
}

static char much[1 << 20] __attribute__((aligned(4096)));

/* As much as the pipe holds, and no more than that. */
static void more_than_a_pipe_holds(void)
{
    struct iovec one = {much, sizeof much}, some[3] = {{much, 20480}, {much + 40960, 0}, {much + 40960, 400000}};
    int ends[2];
    MUST(pipe(ends));
    SHOW(vmsplice(ends[1], &one, 1, 0));
    SHOW(vmsplice(ends[1], &one, 1, SPLICE_F_NONBLOCK));
    SHOW(read(ends[0], much, 8192));
    SHOW(vmsplice(ends[1], some, 3, 0));
    SHOW(read(ends[0], much, sizeof much));
    SHOW(vmsplice(ends[1], some, 3, SPLICE_F_NONBLOCK));
    one.iov_len = 0;
    SHOW(vmsplice(ends[1], &one, 1, 0));
    one.iov_len = 40960;
    SHOW(vmsplice(ends[0], &one, 1, 0));
    SHOW(vmsplice(ends[0], &one, 1, 0));
    MUST(close(ends[0]));
    MUST(signal(SIGPIPE, SIG_IGN) == SIG_ERR ? -1 : 0);
    SHOW(vmsplice(ends[1], &one, 1, 0));
}

static int file;

static void lock(int type, long first, long length)
{
    struct flock record = {.l_type = type, .l_start = first, .l_len = length};
    MUST(fcntl(file, F_SETLK, &record));
}

/* Another process asks who is in the way of each byte. */
static void ask(void)
{
    for (long at = 0; at < 200; at++) {
        struct flock record = {.l_type = at % 2 ? F_RDLCK : F_WRLCK, .l_start = at, .l_len = 1};
        MUST(fcntl(file, F_GETLK, &record));
        if (record.l_type == F_UNLCK)
            printf(".");
        else
            printf("[%s %ld+%ld]", record.l_type == F_RDLCK ? "r" : "w", (long)record.l_start, (long)record.l_len);
    }
    printf("\n");
}

static void locks_are_cut_and_joined(void)
{
    unsigned random = 7;
    MUST(file = open("locks", O_CREAT | O_RDWR, 0600));
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < 20; i++) {
            static const int types[] = {F_RDLCK, F_WRLCK, F_UNLCK};
            random = random * 1103515245 + 12345;
            lock(types[random >> 28 & 1 ? 2 : random >> 20 & 1], random >> 8 & 127, 1 + (random >> 16 & 7));
        }
        if (round % 4 == 3)
            lock(round % 8 == 3 ? F_RDLCK : F_UNLCK, 150, 0);
        in_child("asked", ask);
    }
}

static void children_in_thousands(void)
{
    static pid_t all[1200];
    int status, found = 0;
    for (int i = 0; i < 1200; i++)
        if (MUST(all[i] = fork()) == 0) {
            if (i % 3 == 0)
                setpgid(0, 0);
            _exit(i % 100);
        }
    for (int i = 1199; i >= 600; i--)
        found += waitpid(all[i], &status, 0) == all[i] && WEXITSTATUS(status) == i % 100;
    printf("%d by number\n", found);
    SHOW(waitpid(all[700], &status, 0));
    SHOW(waitpid(-all[3], &status, 0) == all[3]);
    SHOW(waitpid(-all[3], &status, 0));
    for (found = 0; wait(NULL) > 0; found++)
        ;
    printf("%d of any number, %s\n", found, failing(-1));
}

/* Strings long and short, as many as there may be: the program that gets them counts. */
static void many_arguments(void)
{
    enum { LONG = 10, SHORT = 40000 };
    static char text[120000], *words[2 + LONG + SHORT + 1];
    memset(text, 'x', sizeof text - 1);
    words[0] = "sh";
    words[1] = "-c";
    words[2] = "echo ${#}; echo ${#9}";
    for (int i = 3; i < 2 + LONG + SHORT; i++)
        words[i] = i < 3 + LONG ? text : "y";
    pid_t child = MUST(fork());
    if (child == 0) {
        execv("/bin/busybox", words);
        _exit(9);
    }
    int status;
    MUST(waitpid(child, &status, 0));
    say_status("sh", status);
    words[1 + LONG + SHORT] = (char *)8;
    SHOW(execv("/bin/busybox", words));
}

/* The copy is of one moment: what the parent writes afterwards is its own. */
static void a_fork_of_much_memory(void)
{
    enum { BYTES = 48 << 20 };
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int at = 0; at < BYTES; at += 4096)
        memory[at] = 1;
    pid_t child = MUST(fork());
    int sum = 0, status;
    for (int at = 0; at < BYTES; at += 4096)
        sum += memory[at]++;
    if (child == 0)
        _exit(sum == BYTES / 4096 ? 0 : 1);
    MUST(waitpid(child, &status, 0));
    say_status("child", status);
    printf("%d pages\n", sum);
}

/* Cut by its opening, and closed when its name has gone. */
static void a_large_file_goes(void)
{
    enum { BYTES = 32 << 20 };
    static char text[1 << 20];
    memset(text, 7, sizeof text);
    for (int turn = 0; turn < 2; turn++) {
        int file = MUST(open("large", O_RDWR | O_CREAT, 0600));
        for (int done = 0; done < BYTES; done += sizeof text)
            MUST(write(file, text, sizeof text));
        if (turn == 0) {
            int cut = MUST(open("large", O_WRONLY | O_TRUNC));
            printf("%ld bytes\n", (long)lseek(file, 0, SEEK_END));
            close(cut);
        }
        unlink("large");
        SHOW(pread(file, text, 3, BYTES - 2));
        SHOW(close(file));
    }
}

/* Pages that are supplied, given back, and asked for by the thousand. */
static void much_memory_at_once(void)
{
    enum { BYTES = 48 << 20, PAGES = BYTES / 4096 };
    static unsigned char present[PAGES];
    int rights = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS, there = 0;
    char *memory = mmap(NULL, BYTES, rights, kind | MAP_POPULATE, -1, 0);
    SHOW(mincore(memory, BYTES, present));
    for (int i = 0; i < PAGES; i++)
        there += present[i] & 1;
    printf("%d of %d\n", there, PAGES);
    memory[BYTES - 1] = 7;
    SHOW(madvise(memory, BYTES, MADV_DONTNEED));
    printf("%d\n", memory[BYTES - 1]);
    SHOW(mlock(memory, BYTES));
    SHOW(madvise(memory, BYTES, MADV_DONTNEED));
    SHOW(munlock(memory, BYTES));
    SHOW(madvise(memory, BYTES, MADV_FREE));
    SHOW(munmap(memory + BYTES / 2, 4096));
    SHOW(madvise(memory, BYTES, 23 /* MADV_POPULATE_WRITE */));
    SHOW(madvise(memory, BYTES / 2, 23));
    SHOW(munmap(memory, BYTES));
}

/* Storage for a file, copies from file to file, and many small buffers. */
static void much_of_files_at_once(void)
{
    enum { BYTES = 24 << 20, BUFFERS = 1024 };
    static struct iovec buffers[BUFFERS];
    int from = MUST(open("from", O_RDWR | O_CREAT, 0600)), to = MUST(open("to", O_RDWR | O_CREAT, 0600));
    SHOW(fallocate(from, 0, 0, BYTES));
    SHOW(pwrite(from, "end", 3, BYTES - 3));
    SHOW(sendfile(to, from, NULL, BYTES));
    SHOW(lseek(from, 0, SEEK_CUR));
    char end[4] = "";
    SHOW(pread(to, end, 3, BYTES - 3));
    puts(end);
    loff_t start = 0, target = BYTES;
    SHOW(copy_file_range(from, &start, to, &target, BYTES, 0));
    SHOW(lseek(to, 0, SEEK_END));
    MUST(lseek(from, 0, SEEK_SET));
    for (int i = 0; i < BUFFERS; i++)
        buffers[i] = (struct iovec){much, 8192};
    SHOW(writev(from, buffers, BUFFERS));
    SHOW(lseek(from, 0, SEEK_CUR));
    MUST(lseek(from, 0, SEEK_SET));
    SHOW(readv(from, buffers, BUFFERS));
    SHOW(lseek(from, 0, SEEK_CUR));
    SHOW(ftruncate(from, 0));
    unlink("from");
    unlink("to");
}

/* As much as a wide pipe holds, by one call. */
static void a_wide_pipe(void)
{
    int ends[2];
    MUST(pipe(ends));
    SHOW(fcntl(ends[1], F_SETPIPE_SZ, sizeof much));
    memset(much, 3, sizeof much);
    SHOW(write(ends[1], much, sizeof much));
    memset(much, 0, sizeof much);
    SHOW(read(ends[0], much, sizeof much));
    printf("%d %d\n", much[0], much[sizeof much - 1]);
}

static const struct test tests[] = {
#define T(name) {#name, name}
    T(timers_that_nobody_reads),
    T(a_timer_rings_once_until_it_is_read),
    T(timers_whose_signals_wait),
    T(a_timer_whose_signal_is_ignored),
    T(a_program_under_a_quick_timer),
    T(more_than_a_pipe_holds),
    T(locks_are_cut_and_joined),
    T(children_in_thousands),
    T(many_arguments),
    T(a_fork_of_much_memory),
    T(a_large_file_goes),
    T(much_memory_at_once),
    T(much_of_files_at_once),
    T(a_wide_pipe),
};
CHECK_MAIN(tests)
