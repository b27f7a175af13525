/* What routines were folded from changes under them: names that lead elsewhere, descriptors that are taken, a program's own
 * instructions. Runs in an empty folder. */
#include "check.h"

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>

/* So often that the call is done in code where there is some. */
static void warm(const char *name)
{
    for (int i = 0; i < 6; i++)
        close(MUST(open(name, O_RDWR)));
}

static void which(const char *name)
{
    struct stat about;
    int fd = open(name, O_RDWR);
    if (fd < 0) {
        printf("%s: %s\n", name, failing(-1));
        return;
    }
    MUST(fstat(fd, &about));
    printf("%s: device %u,%u\n", name, major(about.st_rdev), minor(about.st_rdev));
    close(fd);
}

static void links_of_proc(void)
{
    int null = MUST(open("/dev/null", O_RDWR)), zero = MUST(open("/dev/zero", O_RDWR));
    static const char *const names[] = {"/proc/self/fd/40", "/dev/fd/40", "/proc/thread-self/fd/40"};
    for (int i = 0; i < 3; i++) {
        MUST(dup2(null, 40));
        warm(names[i]);
        which(names[i]);
        MUST(dup2(zero, 40));
        which(names[i]);
        MUST(close(40));
        which(names[i]);
    }
}

static void working_directory_by_name(void)
{
    char here[4096];
    if (getcwd(here, sizeof here) == NULL)
        exit(9);
    MUST(chdir("/dev"));
    warm("/proc/self/cwd/null");
    which("/proc/self/cwd/null");
    MUST(chdir(here));
    which("/proc/self/cwd/null");
}

static void names_that_change(void)
{
    MUST(symlink("/dev/null", "/tmp/stale-link"));
    warm("/tmp/stale-link");
    MUST(unlink("/tmp/stale-link"));
    which("/tmp/stale-link");
    MUST(symlink("/dev/zero", "/tmp/stale-link"));
    which("/tmp/stale-link");
    warm("/tmp/stale-link");
    MUST(symlink("/dev/full", "/tmp/stale-other"));
    MUST(rename("/tmp/stale-other", "/tmp/stale-link"));
    which("/tmp/stale-link");
    MUST(unlink("/tmp/stale-link"));
}

/* An open that finds no descriptor makes no file. */
static void all_descriptors_taken(void)
{
    struct rlimit limit = {64, 64};
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    warm("/dev/null");
    while (MUST(open("/dev/null", O_RDWR)) < 63)
        ;
    TRY(open("made", O_RDWR | O_CREAT, 0600));
    TRY(access("made", F_OK));
    limit.rlim_cur = 20;
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    for (int fd = 21; fd < 64; fd++)
        close(fd);
    TRY(open("/dev/null", O_RDWR));
    MUST(close(5));
    TRY(open("/dev/null", O_RDWR));
}

/* A child that shares the descriptors has a limit of its own, and takes it away. */
static void limits_beside_shared_descriptors(void)
{
    char page[4096] = {0};
    int file = MUST(open("limited", O_RDWR | O_CREAT | O_TRUNC, 0600));
    MUST(write(file, page, sizeof page));
    for (int i = 0; i < 12; i++) {
        MUST(pwrite(file, "text", 4, 0));
        MUST(lseek(file, 0, SEEK_SET));
        MUST(write(file, "text", 4));
    }
    struct rlimit limit = {100, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    MUST(setrlimit(RLIMIT_FSIZE, &limit));
    pid_t child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        _exit(setrlimit(RLIMIT_FSIZE, &none) != 0);
    int status = 0;
    MUST(waitpid(child, &status, 0));
    long placed = pwrite(file, "text", 4, 200), end = lseek(file, 200, SEEK_SET), written = write(file, "text", 4);
    /* Nothing may be printed under the limit: it holds for what the tests print, too. */
    MUST(setrlimit(RLIMIT_FSIZE, &none));
    printf("%d %ld %ld %ld\n", status, placed, end, written);
    SHOW(write(file, "text", 4));
    unlink("limited");
}

#define SITE(code, inputs...) \
    ({ \
        long result; \
        __asm__ volatile(code "\n\tsyscall" : "=a"(result) : inputs : "rcx", "r11", "memory"); \
        result; \
    })

/* One call instruction each, so that it makes several calls. */
__attribute__((noinline)) static long added(long more)
{
    return SITE("mov $39, %%eax\n\tadd %%edi, %%eax", "D"(more));
}

__attribute__((noinline)) static long loaded(const int *number)
{
    return SITE("mov $39, %%eax\n\tmov (%%rdi), %%eax", "D"(number));
}

__attribute__((noinline)) static long low_byte(long number)
{
    return SITE("mov $39, %%eax\n\tmov %%dil, %%al", "D"(number));
}

/* The number of a call is what rax holds when it is made. */
static void numbers_that_change(void)
{
    enum { USER = 102, PROCESS = 39 };
    int number = PROCESS;
    for (int i = 0; i < 4; i++)
        if (added(0) != getpid() || loaded(&number) != getpid() || low_byte(PROCESS) != getpid())
            exit(9);
    number = USER;
    printf("%d %d %d\n", added(USER - PROCESS) == getuid(), loaded(&number) == getuid(), low_byte(USER) == getuid());
}

typedef long (*function)(void);

/* mov eax, number; syscall; ret */
static function code_at(unsigned char *at, int number)
{
    const unsigned char code[] = {0xb8, number, 0, 0, 0, 0x0f, 0x05, 0xc3};
    memcpy(at, code, sizeof code);
    return (function)at;
}

static int times_right(function code, long expected)
{
    int right = 0;
    for (int i = 0; i < 4; i++)
        right += code() == expected;
    return right;
}

/* A program that makes code changes a byte of it. */
static void code_that_changes(void)
{
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    function code = code_at(page + 100, 39);
    MUST(mprotect(page, 4096, PROT_READ | PROT_EXEC));
    printf("%d\n", times_right(code, getpid()));
    MUST(mprotect(page, 4096, PROT_READ | PROT_WRITE));
    printf("%02x %02x\n", page[100], page[101]);
    page[101] = 102;
    MUST(mprotect(page, 4096, PROT_READ | PROT_EXEC));
    printf("%d\n", times_right(code, getuid()));
    MUST(mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC));
    page[101] = 39;
    printf("%d\n", times_right(code, getpid()));
}

static void code_that_moves(void)
{
    unsigned char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *place = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* Over the border of two pages. */
    function code = code_at(page + 4093, 39);
    MUST(mprotect(page, 8192, PROT_READ | PROT_EXEC));
    printf("%d\n", times_right(code, getpid()));
    if (mremap(page, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, place) != place)
        exit(9);
    printf("%d\n", times_right((function)(place + 4093), getpid()));
}

/* Timers by the time of day, which is set here: only those notice that name a time of day. Nobody sets the time of a host that
 * compares; it has the answers of its timerfd_settime(2). */
static void time_of_day(void)
{
    if (access("/proc/synthesis", F_OK) != 0) {
        puts("far: EINVAL\nfrom now on: EAGAIN\nnamed: 8\ntold, ready 1: ECANCELED\nonce: EAGAIN\nset: ECANCELED\nwaiting: ECANCELED");
        return;
    }
    int timers[3];
    uint64_t count;
    struct timespec now;
    MUST(clock_gettime(CLOCK_REALTIME, &now));
    for (int i = 0; i < 3; i++) {
        struct itimerspec setting = {.it_value.tv_sec = i ? now.tv_sec + 500 : 500};
        timers[i] = MUST(timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK));
        MUST(timerfd_settime(timers[i], i == 2 ? TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET : i, &setting, NULL));
    }
    struct timespec far = {.tv_sec = INT64_MAX / 1000000000};
    printf("far: %s\n", failing(clock_settime(CLOCK_REALTIME, &far)));
    struct timespec later = {.tv_sec = now.tv_sec + 1000};
    MUST(clock_settime(CLOCK_REALTIME, &later));
    struct pollfd named = {.fd = timers[1], .events = POLLIN}, told = {.fd = timers[2], .events = POLLIN};
    MUST(poll(&named, 1, -1));
    printf("from now on: %s\n", failing(read(timers[0], &count, sizeof count)));
    printf("named: %zd\n", read(timers[1], &count, sizeof count));
    int ready = MUST(poll(&told, 1, -1));
    printf("told, ready %d: %s\n", ready, failing(read(timers[2], &count, sizeof count)));
    printf("once: %s\n", failing(read(timers[2], &count, sizeof count)));
    MUST(clock_settime(CLOCK_REALTIME, &now));
    struct itimerspec setting = {.it_value.tv_sec = now.tv_sec + 500};
    int flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;
    printf("set: %s\n", failing(timerfd_settime(timers[2], flags, &setting, NULL)));
    MUST(fcntl(timers[2], F_SETFL, 0));
    pid_t child = MUST(fork());
    if (child == 0) {
        await_state(getppid(), 'S');
        MUST(clock_settime(CLOCK_REALTIME, &later));
        _exit(0);
    }
    printf("waiting: %s\n", failing(read(timers[2], &count, sizeof count)));
    MUST(clock_settime(CLOCK_REALTIME, &now));
    MUST(waitpid(child, NULL, 0));
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(links_of_proc), T(working_directory_by_name), T(names_that_change), T(all_descriptors_taken),
    T(limits_beside_shared_descriptors), T(numbers_that_change),
    T(code_that_changes), T(code_that_moves), T(time_of_day),
};
CHECK_MAIN(tests)
