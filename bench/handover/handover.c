/* What it costs that one host process goes on where another one stops (ADR 62): two processes with apart address spaces hand a word of
 * shared memory to and fro, by each of the host's ways to wake another, on one core, on two and where the host likes. Then what the other
 * ways to change the memory that a program sees cost: to map again what differs, in runs of so many pages, and to let pages come back by
 * signals. Last, what a process costs that is made and ended. Nanoseconds, the fastest and the median of nine rounds.
 *
 * gcc -O2 -o handover bench/handover/handover.c && ./handover
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 10000, ROUNDS = 9, PAGE = 4096, PAGES_MOST = 1024, SPINS = 4000 };
enum way { FUTEX, SPIN_FUTEX, EVENTFD, PIPE, WAYS };
static const char *const way_names[WAYS] = { "futex", "bounded spin, then futex", "eventfd", "pipe" };

struct shared {
    _Alignas(64) atomic_uint go[2];
    _Alignas(64) atomic_uint asleep[2];
};
static struct shared *shared;
static int pipes[2][2], events[2];

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1e9 + at.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void futex_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void futex_wait(atomic_uint *word)
{
    while (!atomic_load(word))
        syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void wake(enum way way, int who)
{
    unsigned long one = 1;
    switch (way) {
    case FUTEX:
        atomic_store(&shared->go[who], 1);
        futex_wake(&shared->go[who]);
        break;
    case SPIN_FUTEX:
        atomic_store(&shared->go[who], 1);
        if (atomic_load(&shared->asleep[who]))
            futex_wake(&shared->go[who]);
        break;
    case EVENTFD:
        if (write(events[who], &one, 8) != 8)
            die("eventfd");
        break;
    default:
        if (write(pipes[who][1], &one, 1) != 1)
            die("pipe");
    }
}

static void await(enum way way, int who)
{
    unsigned long word;
    switch (way) {
    case SPIN_FUTEX:
        for (int i = 0; i < SPINS && !atomic_load_explicit(&shared->go[who], memory_order_acquire); i++)
            __builtin_ia32_pause();
        atomic_store(&shared->asleep[who], 1);
        futex_wait(&shared->go[who]);
        atomic_store(&shared->asleep[who], 0);
        atomic_store(&shared->go[who], 0);
        break;
    case FUTEX:
        futex_wait(&shared->go[who]);
        atomic_store(&shared->go[who], 0);
        break;
    case EVENTFD:
        if (read(events[who], &word, 8) != 8)
            die("eventfd");
        break;
    default:
        if (read(pipes[who][0], &word, 1) != 1)
            die("pipe");
    }
}

static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (core < 0)
        for (int each = 0; each < sysconf(_SC_NPROCESSORS_ONLN); each++)
            CPU_SET(each, &set);
    else
        CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void tell(const char *what, double *samples)
{
    qsort(samples, ROUNDS, sizeof *samples, ascending);
    printf("%-44s %9.0f %9.0f\n", what, samples[0], samples[ROUNDS / 2]);
    fflush(stdout);
}

/* One hand-over, half of a turn. */
static void hand_over(enum way way, int first, int second, const char *where)
{
    double samples[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        memset(shared, 0, sizeof *shared);
        pid_t child = fork();
        if (child == 0) {
            pin(second);
            for (int turn = 0; turn < TURNS; turn++) {
                await(way, 1);
                wake(way, 0);
            }
            _exit(0);
        }
        pin(first);
        double before = now();
        for (int turn = 0; turn < TURNS; turn++) {
            wake(way, 1);
            await(way, 0);
        }
        samples[round] = (now() - before) / TURNS / 2;
        waitpid(child, NULL, 0);
    }
    char what[80];
    snprintf(what, sizeof what, "%s, %s", way_names[way], where);
    tell(what, samples);
}

static int memory;
static char *program;

static void map(char *at, size_t pages, long first, int populate)
{
    int flags = MAP_SHARED | MAP_FIXED | (populate ? MAP_POPULATE : 0);
    if (mmap(at, pages * PAGE, PROT_READ | PROT_WRITE, flags, memory, first * PAGE) == MAP_FAILED)
        die("mmap");
}

static void touch(int pages)
{
    for (int page = 0; page < pages; page++)
        ((volatile char *)program)[page * PAGE]++;
}

/* A switch that unmaps all and maps other frames in runs. */
static void map_again(int pages, int run)
{
    double samples[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double before = now();
        for (int turn = 0; turn < 20; turn++) {
            munmap(program, PAGES_MOST * PAGE);
            for (int page = 0; page < pages; page += run)
                map(program + page * PAGE, run, (turn & 1) * PAGES_MOST + (PAGES_MOST - run - page), 1);
            touch(pages);
        }
        samples[round] = (now() - before) / 20;
    }
    char what[80];
    snprintf(what, sizeof what, "%d pages mapped again in runs of %d", pages, run);
    tell(what, samples);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    char *page = (char *)((unsigned long)info->si_addr & -PAGE);
    map(page, 1, (page - program) / PAGE, 1);
}

static void come_back(int pages)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
    sigaction(SIGSEGV, &action, NULL);
    double samples[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double before = now();
        for (int turn = 0; turn < 20; turn++) {
            munmap(program, PAGES_MOST * PAGE);
            touch(pages);
        }
        samples[round] = (now() - before) / 20;
    }
    signal(SIGSEGV, SIG_DFL);
    char what[80];
    snprintf(what, sizeof what, "%d pages come back by signals", pages);
    tell(what, samples);
}

/* A process with 512 MB of shared memory, of which it touches so many pages, until it is awaited. */
static void make_process(int pages)
{
    double samples[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double before = now();
        for (int turn = 0; turn < 50; turn++) {
            pid_t child = syscall(SYS_clone, CLONE_FILES | CLONE_FS | SIGCHLD, 0, 0, 0, 0);
            if (child == 0) {
                touch(pages);
                _exit(0);
            }
            waitpid(child, NULL, 0);
        }
        samples[round] = (now() - before) / 50;
    }
    char what[80];
    snprintf(what, sizeof what, "a process that touches %d pages", pages);
    tell(what, samples);
}

/* The next process is brought to this core first. */
static void bring(void)
{
    double samples[ROUNDS];
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    for (int round = 0; round < ROUNDS; round++) {
        double before = now();
        for (int turn = 0; turn < 1000; turn++)
            sched_setaffinity(child, sizeof set, &set);
        samples[round] = (now() - before) / 1000;
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    tell("sched_setaffinity of one that sleeps", samples);
}

int main(void)
{
    shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int who = 0; who < 2; who++)
        if ((events[who] = eventfd(0, 0)) < 0 || pipe(pipes[who]) != 0)
            die("descriptors");
    printf("%-44s %9s %9s\n", "nanoseconds", "fastest", "median");
    for (enum way way = 0; way < WAYS; way++) {
        if (way != SPIN_FUTEX)
            hand_over(way, 0, 0, "one core");
        hand_over(way, 0, 1, "two cores");
        hand_over(way, -1, -1, "where the host likes");
    }
    bring();
    memory = memfd_create("frames", 0);
    if (memory < 0 || ftruncate(memory, 512 << 20) != 0)
        die("memfd");
    program = mmap(NULL, 512 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory, 0);
    if (program == MAP_FAILED)
        die("mmap");
    pin(0);
    make_process(1);
    make_process(64);
    make_process(256);
    map_again(16, 16);
    map_again(64, 1);
    map_again(64, 16);
    map_again(1024, 1);
    map_again(1024, 16);
    map_again(1024, 1024);
    come_back(16);
    come_back(64);
    come_back(1024);
    return 0;
}
