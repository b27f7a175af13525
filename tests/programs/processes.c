/* What is counted of processes, what they are limited to and how they say they want to run: the limit on processor time, the
 * use that parents are told of, policies and processors. */
#include "check.h"

#include <sched.h>

/* Spends processor time of its own until the condition holds. */
#define SPEND_UNTIL(condition)                                                                                         \
    for (volatile unsigned long rounds = 0; !(condition); rounds++)

static volatile sig_atomic_t signals_seen;
static struct rlimit seen[8];

static void count(int signal)
{
    (void)signal;
    if (signals_seen < 8)
        getrlimit(RLIMIT_CPU, &seen[signals_seen]);
    signals_seen++;
}

static void limit(rlim_t soft, rlim_t hard)
{
    MUST(setrlimit(RLIMIT_CPU, &(struct rlimit){soft, hard}));
}

static void spend_for_ever(void)
{
    SPEND_UNTIL(0);
}

static void to_the_soft_limit(void)
{
    limit(0, 5);
    spend_for_ever();
}

static void beyond_the_soft_limit(void)
{
    signal(SIGXCPU, count);
    limit(0, 5);
    SPEND_UNTIL(signals_seen >= 2);
    printf("limit %d %d, then %d\n", (int)seen[0].rlim_cur, (int)seen[0].rlim_max, (int)seen[1].rlim_cur);
}

static void to_the_hard_limit(void)
{
    signal(SIGXCPU, SIG_IGN);
    limit(0, 1);
    spend_for_ever();
}

static void both_limits_are_one(void)
{
    signal(SIGXCPU, count);
    limit(1, 1);
    SPEND_UNTIL(signals_seen);
    printf("a signal came\n");
}

/* The limit is inherited, the time is not. */
static void inherited(void)
{
    limit(1, 1);
    in_child("child", spend_for_ever);
}

static void processor_time(void)
{
    in_child("soft", to_the_soft_limit);
    in_child("beyond", beyond_the_soft_limit);
    in_child("hard", to_the_hard_limit);
    in_child("both", both_limits_are_one);
    in_child("inherited", inherited);
}

static double seconds(struct timeval time)
{
    return time.tv_sec + time.tv_usec / 1e6;
}

static struct rusage use_of(int who)
{
    struct rusage use;
    MUST(getrusage(who, &use));
    return use;
}

static double spent(struct rusage use)
{
    return seconds(use.ru_utime) + seconds(use.ru_stime);
}

enum { MUCH = 24 << 20 };

static pid_t user_of_much(void)
{
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        memset(mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, MUCH);
        SPEND_UNTIL(spent(use_of(RUSAGE_SELF)) >= 0.05);
        _exit(0);
    }
    return child;
}

static void tell(const char *when, struct rusage use)
{
    printf("%s: time %d memory %d faults %d\n", when, spent(use) >= 0.05, use.ru_maxrss >= MUCH / 1024,
           use.ru_minflt > 0);
}

static void children(void)
{
    tell("at first", use_of(RUSAGE_CHILDREN));
    struct rusage use;
    int status;
    pid_t child = user_of_much();
    siginfo_t info;
    MUST(waitid(P_PID, child, &info, WEXITED | WNOWAIT));
    tell("not waited for", use_of(RUSAGE_CHILDREN));
    MUST(wait4(child, &status, 0, &use));
    tell("wait4", use);
    tell("children", use_of(RUSAGE_CHILDREN));
    tell("own", use_of(RUSAGE_SELF));
}

static void nobody_waits(void)
{
    signal(SIGCHLD, SIG_IGN);
    user_of_much();
    TRY(wait(NULL));
    tell("ignored children", use_of(RUSAGE_CHILDREN));
}

static void grandchild(void)
{
    MUST(waitpid(user_of_much(), NULL, 0));
}

static void kept_by_fork(void)
{
    memset(mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, MUCH);
    fflush(stdout);
    if (fork() == 0) {
        printf("a child's memory %d, its children's %ld\n", use_of(RUSAGE_SELF).ru_maxrss >= MUCH / 1024,
               use_of(RUSAGE_CHILDREN).ru_maxrss);
        fflush(stdout);
        execl("/proc/self/exe", "processes", "--memory", NULL);
    }
    wait(NULL);
}

static void use(void)
{
    in_child("children", children);
    in_child("nobody waits", nobody_waits);
    in_child("grandchild", grandchild);
    tell("after grandchildren", use_of(RUSAGE_CHILDREN));
    in_child("kept", kept_by_fork);
}

struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static void policy_of(const char *when)
{
    struct attributes now = {0};
    struct sched_param parameter = {77};
    MUST(syscall(SYS_sched_getattr, 0, &now, sizeof now, 0));
    MUST(sched_getparam(0, &parameter));
    printf("%s: %#x, policy %u flags %llu nice %d, priority %d\n", when, sched_getscheduler(0), now.policy,
           (unsigned long long)now.flags, now.nice, parameter.sched_priority);
}

static void as_child(void)
{
    policy_of("child");
}

static void as_user(void)
{
    struct sched_param none = {0};
    MUST(sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &none));
    MUST(setuid(1234));
    policy_of("user");
    TRY(sched_setscheduler(0, SCHED_BATCH, &none));
    TRY(sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none));
    TRY(sched_setscheduler(0, SCHED_IDLE | SCHED_RESET_ON_FORK, &none));
    TRY(sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none));
    TRY(sched_setscheduler(getppid(), SCHED_BATCH, &none));
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    TRY(sched_setaffinity(getppid(), sizeof set, &set));
    policy_of("user");
}

static void policies(void)
{
    struct sched_param none = {0}, one = {1};
    /* The tests may have been started by nice(1). */
    MUST(setpriority(PRIO_PROCESS, 0, 0));
    policy_of("at first");
    TRY(sched_setscheduler(0, SCHED_BATCH, &none));
    policy_of("batch");
    TRY(sched_setparam(0, &none));
    TRY(sched_setparam(0, &one));
    TRY(sched_setscheduler(0, SCHED_IDLE, &none));
    policy_of("idle");
    in_child("inherits", as_child);
    TRY(sched_setscheduler(0, SCHED_BATCH, &one));
    TRY(sched_setscheduler(0, 4, &none));
    TRY(sched_setscheduler(0, 99, &none));
    TRY(sched_setscheduler(0, -1, &none));
    TRY(sched_setscheduler(0, SCHED_OTHER, NULL));
    TRY(sched_setscheduler(-1, SCHED_OTHER, &none));
    TRY(sched_setscheduler(4194304, SCHED_OTHER, &none));
    TRY(sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &none));
    TRY(setpriority(PRIO_PROCESS, 0, 5));
    policy_of("batch that is not inherited");
    TRY(sched_setparam(0, &none));
    in_child("does not inherit", as_child);
    TRY(sched_setscheduler(0, SCHED_OTHER, &none));
    policy_of("ordinary");
    in_child("user", as_user);
}

static void processors(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    TRY(sched_setaffinity(0, sizeof set, &set));
    CPU_SET(1000, &set);
    TRY(sched_setaffinity(0, sizeof set, &set));
    CPU_SET(0, &set);
    TRY(sched_setaffinity(0, sizeof set, &set));
    TRY(sched_setaffinity(0, 0, &set));
    TRY(sched_setaffinity(-1, sizeof set, &set));
    TRY(sched_setaffinity(4194304, sizeof set, &set));
    TRY(sched_setaffinity(0, sizeof set, (cpu_set_t *)8));
    CPU_ZERO(&set);
    TRY(sched_getaffinity(0, sizeof set, &set));
    printf("processor 0 %d of %d\n", CPU_ISSET(0, &set), CPU_COUNT(&set));
    TRY(sched_getaffinity(0, 1, &set));
}

static long of_status(const char *label)
{
    char line[128];
    long number = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (strncmp(line, label, strlen(label)) == 0)
            number = atol(line + strlen(label));
    fclose(status);
    return number;
}

static void told(void)
{
    printf("  locked %ld kB\n", of_status("VmLck:"));
}

static char *pages(size_t count, int flags)
{
    return mmap(NULL, count * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static void locked_memory(void)
{
    char *at = pages(8, 0);
    told();
    TRY(mlock(at + 4096, 3 * 4096));
    told();
    TRY(mlock(at + 100, 4096));
    told();
    TRY(munlock(at + 4096, 1));
    told();
    TRY(madvise(at, 4096, MADV_DONTNEED));
    TRY(madvise(at + 4096, 4096, MADV_DONTNEED));
    TRY(mprotect(at + 2 * 4096, 4096, PROT_READ));
    told();
    in_child("child", told);
    TRY(munmap(at, 3 * 4096));
    told();
    TRY(mlock(at, 8 * 4096));
    TRY(mlock((void *)-4096, 8192));
    TRY(munlock(at + 7 * 4096, 4096));
    TRY(syscall(SYS_mlock2, at + 6 * 4096, 4096, 1));
    told();
    TRY(syscall(SYS_mlock2, at + 6 * 4096, 4096, 2));
    TRY(munlockall());
    told();
    TRY(mlockall(MCL_CURRENT));
    printf("all locked: %d\n", of_status("VmLck:") > 32);
    TRY(munlockall());
    told();
    TRY(mlockall(MCL_FUTURE));
    told();
    at = pages(2, 0);
    told();
    in_child("child", told);
    TRY(munlockall());
    TRY(mlockall(MCL_ONFAULT));
    TRY(mlockall(0));
    TRY(mlockall(16));
    MUST(munmap(at, 8192));
    at = pages(3, MAP_LOCKED);
    told();
}

static void limited_locks(void)
{
    MUST(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){5 * 4096, 5 * 4096}));
    MUST(setuid(1234));
    char *at = pages(8, 0);
    TRY(mlock(at, 6 * 4096));
    TRY(mlock(at, 5 * 4096));
    TRY(mlock(at + 4096, 4 * 4096));
    TRY(mlock(at + 4096, 5 * 4096));
    told();
    printf("%s\n", failing(pages(1, MAP_LOCKED) == MAP_FAILED ? -1 : 0));
    TRY(munlock(at, 8 * 4096));
    at = pages(4, MAP_LOCKED);
    told();
    printf("%s\n", failing(mremap(at, 4 * 4096, 7 * 4096, MREMAP_MAYMOVE) == MAP_FAILED ? -1 : 0));
    at = mremap(at, 4 * 4096, 5 * 4096, MREMAP_MAYMOVE);
    told();
    TRY(mlockall(MCL_CURRENT));
    TRY(mlockall(MCL_FUTURE));
    printf("%s\n", failing(pages(1, 0) == MAP_FAILED ? -1 : 0));
    char *end = sbrk(0);
    TRY(brk(end + (1 << 20)));
    TRY(munlockall());
    TRY(brk(end + (1 << 20)));
    MUST(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){0, 0}));
    TRY(mlock(at, 4096));
    TRY(mlockall(MCL_FUTURE));
    TRY(munlock(at, 4096));
    printf("%s\n", failing(pages(1, MAP_LOCKED) == MAP_FAILED ? -1 : 0));
}

static void locks(void)
{
    in_child("locked", locked_memory);
    in_child("limited", limited_locks);
}

/* What /proc says of rights that the processor has not alone. */
static void maps(void)
{
    char line[300];
    for (int rights = 0; rights < 8; rights++)
        MUST(mmap((void *)(0x10000000ul + rights * 0x100000ul), 8192, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    volatile char *both = mmap((void *)0x10a00000, 8192, PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MUST(mprotect((void *)0x10300000, 4096, PROT_WRITE));
    both[0] = 'x';
    printf("written %c\n", both[0]);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        /* A host's heap may lie there, too. */
        if (strncmp(line, "10", 2) == 0 && line[8] == '-' && !strstr(line, "[heap]"))
            printf("%.22s\n", line);
    fclose(maps);
}

/* An ELF file of another kind: its class, its machine, and one segment that is there. */
static void try_foreign(const char *what, int class, int machine)
{
    unsigned char file[256] = {0x7f, 'E', 'L', 'F', class, 1, 1};
    file[16] = 2, file[18] = machine, file[20] = 1;
    /* Both classes: where the segments' headers are, how large one is, how many. */
    file[class == 2 ? 32 : 28] = class == 2 ? 64 : 52;
    file[class == 2 ? 54 : 42] = class == 2 ? 56 : 32;
    file[class == 2 ? 56 : 44] = 1;
    file[class == 2 ? 64 : 52] = 1;
    int out = MUST(open("foreign", O_WRONLY | O_CREAT | O_TRUNC, 0755));
    MUST(write(out, file, sizeof file));
    MUST(close(out));
    char *words[] = {"foreign", NULL};
    printf("%s: ", what);
    SHOW(execv("./foreign", words));
    MUST(unlink("foreign"));
}

/* Programs of 32 bits and of other processors: ENOEXEC, so that a shell can say so. A host may run the one for 80386, Synthesis never. */
static void foreign_programs(void)
{
    enum { ONE = 1, TWO = 2, I386 = 3, ARM = 40, RISCV = 243 };
    try_foreign("arm", ONE, ARM);
    try_foreign("riscv", TWO, RISCV);
    try_foreign("x86-64 in a file of 32 bits, for arm", TWO, ARM);
    if (access("/proc/synthesis", F_OK) == 0)
        try_foreign("i386", ONE, I386);
    else
        puts("i386: execv(\"./foreign\", words) = -1 ENOEXEC");
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(processor_time), T(use), T(policies), T(processors), T(locks), T(maps), T(foreign_programs),
};

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--memory") == 0) {
        printf("after execve %d\n", use_of(RUSAGE_SELF).ru_maxrss >= MUCH / 1024);
        return 0;
    }
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
