/* Programs that only compute, and share the processor: nobody enters the kernel by a call, so turns, signals and
 * alarms come by the timer alone. */
#include "check.h"
#include <pthread.h>

static volatile sig_atomic_t count;

static void counted(int signal)
{
    (void)signal;
    count++;
}

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* A child that counts in a shared word and does nothing else. */
static pid_t counter(volatile uint64_t *word)
{
    pid_t child = fork();
    MUST(child);
    if (child == 0)
        for (;;)
            (*word)++;
    return child;
}

static volatile uint64_t *shared_words(void)
{
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(9);
    return at;
}

static void ended(pid_t child)
{
    int status = 0;
    MUST(waitpid(child, &status, 0));
    printf("signalled %d by %d\n", WIFSIGNALED(status), WTERMSIG(status));
}

/* Both children and this process make progress, again and again. */
static void everybody_progresses(void)
{
    volatile uint64_t *words = shared_words();
    pid_t first = counter(&words[0]), second = counter(&words[1]);
    for (int round = 0; round < 20; round++) {
        uint64_t one = words[0], two = words[1];
        while (words[0] == one || words[1] == two)
            ;
    }
    puts("all went on");
    kill(first, SIGKILL);
    kill(second, SIGKILL);
    ended(first);
    ended(second);
}

/* Who computes gets about what the others get. */
static void turns_are_fair(void)
{
    volatile uint64_t *words = shared_words();
    pid_t children[3];
    for (int i = 0; i < 3; i++)
        children[i] = counter(&words[i]);
    usleep(600000);
    for (int i = 0; i < 3; i++)
        kill(children[i], SIGSTOP);
    for (int i = 0; i < 3; i++)
        printf("%d\n", words[i] > (words[0] + words[1] + words[2]) / 30);
    for (int i = 0; i < 3; i++) {
        kill(children[i], SIGKILL);
        ended(children[i]);
    }
}

/* An alarm for somebody who computes comes in time although others compute, too. */
static void alarm_while_computing(void)
{
    volatile uint64_t *words = shared_words();
    pid_t rival = counter(words);
    signal(SIGALRM, counted);
    int64_t start = clock_ms(CLOCK_MONOTONIC);
    struct itimerval every = {.it_interval = {0, 20000}, .it_value = {0, 20000}};
    MUST(setitimer(ITIMER_REAL, &every, NULL));
    while (count < 10)
        ;
    int64_t took = clock_ms(CLOCK_MONOTONIC) - start;
    printf("in time %d\n", took >= 195 && took < 2000);
    every = (struct itimerval){0};
    MUST(setitimer(ITIMER_REAL, &every, NULL));
    kill(rival, SIGKILL);
    ended(rival);
}

/* A signal from another program reaches one that computes, within a few turns: measured by what the sender computes meanwhile, since
 * a machine that does other things, too, lets nobody compute for a while. */
static void signals_while_computing(void)
{
    volatile uint64_t *words = shared_words();
    pid_t rival = counter(words), child = fork();
    MUST(child);
    if (child == 0) {
        signal(SIGUSR1, counted);
        words[1] = 1;
        for (;;)
            words[2] = count;
    }
    while (words[1] == 0)
        ;
    for (uint64_t sent = 1; sent <= 20; sent++) {
        kill(child, SIGUSR1);
        int64_t start = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
        while (words[2] != sent)
            ;
        if (clock_ms(CLOCK_PROCESS_CPUTIME_ID) - start > 200)
            printf("signal %d was late\n", (int)sent);
    }
    puts("all came");
    kill(child, SIGTERM);
    ended(child);
    kill(rival, SIGKILL);
    ended(rival);
}

static void stopped_while_computing(void)
{
    volatile uint64_t *words = shared_words();
    pid_t child = counter(&words[0]), rival = counter(&words[1]);
    int status;
    while (words[0] == 0)
        ;
    kill(child, SIGSTOP);
    MUST(waitpid(child, &status, WUNTRACED));
    uint64_t before = words[0];
    for (int64_t start = clock_ms(CLOCK_MONOTONIC); clock_ms(CLOCK_MONOTONIC) - start < 20;)
        ;
    printf("stopped %d, stands %d\n", WIFSTOPPED(status), words[0] == before);
    kill(child, SIGCONT);
    while (words[0] == before)
        ;
    puts("goes on");
    kill(child, SIGKILL);
    kill(rival, SIGKILL);
    ended(child);
    ended(rival);
}

/* Time is charged to who computes although nobody calls, and no more than went by. */
static void time_is_charged(void)
{
    volatile uint64_t *words = shared_words();
    pid_t rival = counter(words);
    int64_t wall = clock_ms(CLOCK_MONOTONIC), own = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    while (clock_ms(CLOCK_MONOTONIC) - wall < 300)
        ;
    own = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - own;
    kill(rival, SIGKILL);
    ended(rival);
    struct rusage children;
    getrusage(RUSAGE_CHILDREN, &children);
    int64_t theirs = children.ru_utime.tv_sec * 1000 + children.ru_utime.tv_usec / 1000 +
                     children.ru_stime.tv_sec * 1000 + children.ru_stime.tv_usec / 1000;
    printf("charged %d, not more than went by %d\n", own + theirs > 30, own <= 310);
}

/* Registers and thread-local words are each thread's own over many turns. */
static _Thread_local volatile uint64_t mine;

static void *keeps_its_values(void *argument)
{
    double value = (uintptr_t)argument;
    uint64_t wrong = 0;
    mine = (uintptr_t)argument;
    for (int64_t start = clock_ms(CLOCK_MONOTONIC); clock_ms(CLOCK_MONOTONIC) - start < 100;) {
        double sum = 0;
        for (int i = 0; i < 10000; i++) {
            sum += value;
            __asm__ volatile("" : "+x"(sum), "+x"(value));
        }
        wrong += sum != 10000 * value || mine != (uintptr_t)argument;
    }
    return (void *)wrong;
}

static void values_survive(void)
{
    pthread_t threads[4];
    void *wrong = NULL;
    for (uintptr_t i = 0; i < 4; i++)
        MUST(-pthread_create(&threads[i], NULL, keeps_its_values, (void *)(i + 3)));
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &wrong);
        printf("wrong %d\n", (int)(uintptr_t)wrong);
    }
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(everybody_progresses), T(turns_are_fair), T(alarm_while_computing), T(signals_while_computing),
    T(stopped_while_computing), T(time_is_charged), T(values_survive),
};
CHECK_MAIN(tests)
