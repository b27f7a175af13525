/* What a thread has for itself: its descriptor table, made without CLONE_FILES, and its restartable sequences. */
#include "check.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>

static int ends[2];
static char stack[65536] __attribute__((aligned(16)));
static volatile int tid_word;
static long results[8];

/* The thread shares the C library's thread pointer, so it makes its calls itself. */
static long raw(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

static int closes_and_opens(void *unused)
{
    (void)unused;
    char byte = 0;
    for (int i = 0; i < 5; i++)
        results[0] = raw(SYS_read, ends[0], (long)&byte, 1);
    results[1] = byte;
    results[2] = raw(SYS_close, ends[0], 0, 0);
    results[3] = raw(SYS_open, (long)"/dev/zero", O_RDONLY, 0);
    byte = 1;
    results[4] = raw(SYS_read, results[3], (long)&byte, 1);
    results[5] = byte;
    results[6] = raw(SYS_close, ends[1], 0, 0);
    raw(SYS_exit, 0, 0, 0);
    return 0;
}

static void run_thread(int flags)
{
    flags |= CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID;
    MUST(clone(closes_and_opens, stack + sizeof stack, flags, NULL, &tid_word, NULL, &tid_word));
    for (int tid; (tid = tid_word) != 0;)
        syscall(SYS_futex, &tid_word, FUTEX_WAIT, tid, NULL, NULL, 0);
    for (int i = 0; i < 7; i++)
        printf("%s%ld", i == 0 ? "the thread: " : " ", results[i] == ends[0] && i == 3 ? -1000 : results[i]);
    printf("\n");
}

/* Reads of the parent lead where they led, in code where there is some. */
static void a_table_of_its_own(void)
{
    char byte;
    MUST(pipe(ends));
    for (int i = 0; i < 5; i++)
        MUST(write(ends[1], "a", 1) == 1 && read(ends[0], &byte, 1) == 1 ? 0 : -1);
    MUST(write(ends[1], "bcdefgh", 7));
    run_thread(0);
    SHOW(read(ends[0], &byte, 1));
    printf("%c\n", byte);
    SHOW(write(ends[1], "i", 1));
    SHOW(fcntl(ends[1], F_GETFD));
}

static void a_shared_table(void)
{
    char byte;
    MUST(pipe(ends));
    MUST(write(ends[1], "bcdefgh", 7));
    run_thread(CLONE_FILES);
    SHOW(read(ends[0], &byte, 1));
    SHOW(write(ends[1], "i", 1));
}

#define SIGNATURE 0x53053053u
#define UNREGISTER 1

struct area {
    uint32_t cpu_id_start, cpu_id;
    uint64_t sequence;
    uint32_t flags, node_id, mm_cid, rest;
} __attribute__((aligned(32)));

struct sequence {
    uint32_t version, flags;
    uint64_t start, bytes, abort;
} __attribute__((aligned(32)));

static struct area area, other;

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static long rseq(void *address, unsigned bytes, int flags, unsigned signature)
{
    return syscall(SYS_rseq, address, bytes, flags, signature);
}

/* The C library registers an area of its own when the program starts. */
static void release_the_librarys(void)
{
    if (&__rseq_offset && __rseq_size != 0) {
        char *theirs = (char *)__builtin_thread_pointer() + __rseq_offset;
        if (rseq(theirs, 32, UNREGISTER, SIGNATURE) == -1)
            MUST(rseq(theirs, __rseq_size, UNREGISTER, SIGNATURE));
    }
}

static void registration(void)
{
    release_the_librarys();
    SHOW(rseq(&area, 32, UNREGISTER, SIGNATURE));
    SHOW(rseq(&area, 31, 0, SIGNATURE));
    SHOW(rseq((char *)&area + 4, 32, 0, SIGNATURE));
    SHOW(rseq(&area, 32, 2, SIGNATURE));
    SHOW(rseq((void *)0xffff800000000000, 32, 0, SIGNATURE));
    area.cpu_id = 77;
    SHOW(rseq(&area, 32, 0, SIGNATURE));
    SHOW(rseq(&area, 32, 0, SIGNATURE));
    SHOW(rseq(&area, 32, 0, SIGNATURE + 1));
    SHOW(rseq(&other, 32, 0, SIGNATURE));
    SHOW(rseq(&area, 64, 0, SIGNATURE));
    SHOW(rseq(&area, 32, UNREGISTER | 2, SIGNATURE));
    SHOW(rseq(&other, 32, UNREGISTER, SIGNATURE));
    SHOW(rseq(&area, 32, UNREGISTER, SIGNATURE + 1));
    printf("%d %d\n", area.cpu_id == area.cpu_id_start, area.cpu_id < 4096);
    SHOW(rseq(&area, 32, UNREGISTER, SIGNATURE));
    printf("%d %u\n", (int)area.cpu_id, area.cpu_id_start);
    SHOW(rseq(&area, 32, UNREGISTER, SIGNATURE));
    SHOW(rseq(&area, 32, 0, SIGNATURE));
}

/* Turns in a sequence until it is aborted, or `flag` is set; 1 when it was aborted. */
static int turn(struct sequence *sequence, volatile int *flag)
{
    int aborted;
    __asm__ volatile("lea 1f(%%rip), %%rax\n"
                     "mov %%rax, 8(%[sequence])\n"
                     "lea 2f(%%rip), %%rcx\n"
                     "sub %%rax, %%rcx\n"
                     "mov %%rcx, 16(%[sequence])\n"
                     "lea 4f(%%rip), %%rax\n"
                     "mov %%rax, 24(%[sequence])\n"
                     "mov %[sequence], %[word]\n"
                     "1: cmpl $0, (%[flag])\n"
                     "je 1b\n"
                     "2: xor %[aborted], %[aborted]\n"
                     "jmp 5f\n"
                     ".byte 0x0f, 0xb9, 0x3d\n"
                     ".long 0x53053053\n"
                     "4: mov $1, %[aborted]\n"
                     "5:\n"
                     : [aborted] "=&r"(aborted), [word] "=m"(area.sequence)
                     : [sequence] "r"(sequence), [flag] "r"(flag)
                     : "rax", "rcx", "memory");
    return aborted;
}

static volatile int alarms, never;

static void on_alarm(int signal)
{
    (void)signal;
    alarms++;
}

static void a_signal_aborts(void)
{
    struct sequence sequence = {0};
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    release_the_librarys();
    MUST(rseq(&area, 32, 0, SIGNATURE));
    signal(SIGALRM, on_alarm);
    MUST(setitimer(ITIMER_REAL, &soon, NULL));
    while (alarms == 0)
        if (turn(&sequence, &never) != 1)
            exit(9);
    printf("aborted, %d alarm, word %d\n", alarms, area.sequence != 0);
}

static void a_sequence_that_ends_is_left_alone(void)
{
    struct sequence sequence = {0};
    volatile int set = 1;
    release_the_librarys();
    MUST(rseq(&area, 32, 0, SIGNATURE));
    int left = 0;
    for (int i = 0; i < 100; i++)
        left += turn(&sequence, &set) == 0;
    printf("%d\n", left > 90);
    signal(SIGALRM, on_alarm);
    MUST(raise(SIGALRM));
    printf("%d alarm, word %d\n", alarms, area.sequence != 0);
}

/* A child that computes for ever on this processor, so that this process has turns only. */
static pid_t rival(void)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    MUST(sched_setaffinity(0, sizeof here, &here));
    pid_t child = MUST(fork());
    if (child == 0)
        for (;;)
            ;
    return child;
}

static void other_threads_abort(void)
{
    struct sequence sequence = {0};
    pid_t child = rival();
    release_the_librarys();
    MUST(rseq(&area, 32, 0, SIGNATURE));
    int aborted = 0;
    for (int i = 0; i < 10; i++)
        aborted += turn(&sequence, &never);
    printf("aborted %d times\n", aborted);
    MUST(kill(child, SIGKILL));
    MUST(waitpid(child, NULL, 0));
}

static void interrupted_with(uint32_t version, uint64_t start, uint64_t bytes, uint64_t abort, unsigned signature)
{
    static uint32_t landing[2];
    struct sequence sequence = {version, 0, start, bytes, abort ? abort : (uint64_t)&landing[1]};
    landing[0] = signature;
    release_the_librarys();
    MUST(rseq(&area, 32, 0, SIGNATURE));
    signal(SIGALRM, on_alarm);
    area.sequence = (uint64_t)&sequence;
    raise(SIGALRM);
    printf("%d alarm, word %d\n", alarms, area.sequence != 0);
}

static void outside(void) { interrupted_with(0, 4096, 16, 0, SIGNATURE); }
static void of_another_version(void) { interrupted_with(1, 4096, 16, 0, SIGNATURE); }
static void without_a_signature(void) { interrupted_with(0, 4096, 16, 0, 1); }
static void that_wraps_round(void) { interrupted_with(0, 4096, UINT64_MAX - 100, 0, SIGNATURE); }
static void that_aborts_into_itself(void) { interrupted_with(0, 0, 0x7ff000000000, 0, SIGNATURE); }
static void in_the_kernel(void) { interrupted_with(0, 0xffff800000000000, 16, 0, SIGNATURE); }
static void that_aborts_to_the_kernel(void) { interrupted_with(0, 4096, 16, 0xffff800000000000, SIGNATURE); }

static void nowhere(void)
{
    release_the_librarys();
    MUST(rseq(&area, 32, 0, SIGNATURE));
    signal(SIGALRM, on_alarm);
    area.sequence = 8;
    raise(SIGALRM);
    printf("%d alarm\n", alarms);
}

static void sequences_of_all_kinds(void)
{
    in_child("outside", outside);
    in_child("of another version", of_another_version);
    in_child("without a signature", without_a_signature);
    in_child("that wraps round", that_wraps_round);
    in_child("that aborts into itself", that_aborts_into_itself);
    in_child("in the kernel", in_the_kernel);
    in_child("that aborts to the kernel", that_aborts_to_the_kernel);
    in_child("nowhere", nowhere);
}

/* The area goes while somebody else runs. */
static void its_memory_goes(void)
{
    struct area *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    release_the_librarys();
    MUST(rseq(page, 32, 0, SIGNATURE));
    MUST(munmap(page, 4096));
    signal(SIGALRM, SIG_DFL);
    alarm(5);
    for (;;)
        ;
}

static void without_memory(void)
{
    pid_t child = rival();
    in_child("without memory", its_memory_goes);
    MUST(kill(child, SIGKILL));
    MUST(waitpid(child, NULL, 0));
}

#define MANY 2000

static pthread_mutex_t many_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t many_changed = PTHREAD_COND_INITIALIZER;
static int many_waiting, many_released;

static void *one_of_many(void *number)
{
    pthread_mutex_lock(&many_lock);
    many_waiting++;
    pthread_cond_broadcast(&many_changed);
    while (!many_released)
        pthread_cond_wait(&many_changed, &many_lock);
    pthread_mutex_unlock(&many_lock);
    return number;
}

/* All wait on one word at a time, and are woken at once. */
static void thousands_of_threads(void)
{
    static pthread_t threads[MANY];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16384);
    for (long i = 0; i < MANY; i++) {
        errno = pthread_create(&threads[i], &attributes, one_of_many, (void *)i);
        MUST(errno ? -1 : 0);
    }
    pthread_mutex_lock(&many_lock);
    while (many_waiting < MANY)
        pthread_cond_wait(&many_changed, &many_lock);
    many_released = 1;
    pthread_cond_broadcast(&many_changed);
    pthread_mutex_unlock(&many_lock);
    long sum = 0;
    for (int i = 0; i < MANY; i++) {
        void *number;
        pthread_join(threads[i], &number);
        sum += (long)number;
    }
    printf("%d threads, sum %ld\n", MANY, sum);
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(a_table_of_its_own),
    T(a_shared_table),
    T(registration),
    T(a_signal_aborts),
    T(a_sequence_that_ends_is_left_alone),
    T(other_threads_abort),
    T(sequences_of_all_kinds),
    T(without_memory),
    T(thousands_of_threads),
};
CHECK_MAIN(tests)
