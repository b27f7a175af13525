/* Words that threads wait at, by code where there is some: whatever else is done to the words, and to the threads, meanwhile. */
#include "check.h"
#include "registers.h"
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>

/* Words 1,024 bytes apart lead to one place in the kernel's table. */
static uint32_t words[32768] __attribute__((aligned(65536)));
#define WORD(number) (&words[(number) * 256])

static long futex(uint32_t *word, int operation, uint32_t value, uint64_t fourth, uint32_t *second, uint32_t third)
{
    return syscall(SYS_futex, word, operation, value, fourth, second, third);
}

static long wait_at(uint32_t *word)
{
    return futex(word, FUTEX_WAIT_PRIVATE, 0, 0, NULL, 0);
}

static long wake(uint32_t *word, int count)
{
    return futex(word, FUTEX_WAKE_PRIVATE, count, 0, NULL, 0);
}

/* A thread, the word that it waits at, and how. */
struct waiter {
    uint32_t *word;
    long (*wait)(uint32_t *);
    int times;
    volatile pid_t id;
    volatile int done;
    long result;
    int error;
    pthread_t thread;
};

static void *waits(void *argument)
{
    struct waiter *self = argument;
    for (int i = 0; i < 3; i++)
        wake(WORD(60), 1);
    self->id = gettid();
    for (int i = 0; i < self->times; i++) {
        errno = 0;
        self->result = self->wait(self->word);
        self->error = errno;
        self->done++;
    }
    return NULL;
}

static void begin(struct waiter *self, uint32_t *word, long (*wait)(uint32_t *))
{
    *self = (struct waiter){.word = word, .wait = wait, .times = self->times ? self->times : 1};
    if (pthread_create(&self->thread, NULL, waits, self) != 0)
        _exit(99);
    while (!self->id)
        sched_yield();
    await_state(self->id, 'S');
}

static void end(const char *name, struct waiter *self)
{
    pthread_join(self->thread, NULL);
    printf("%s: %ld %s\n", name, self->result, self->result == -1 ? strerrorname_np(self->error) : "");
}

static void woken_without_a_change(void)
{
    struct waiter one = {.times = 50};
    begin(&one, WORD(0), wait_at);
    for (int i = 0; i < 50; i++) {
        await_state(one.id, 'S');
        if (wake(WORD(0), 1) != 1)
            printf("round %d\n", i);
        while (one.done <= i)
            sched_yield();
    }
    SHOW(wake(WORD(0), 1));
    end("the last", &one);
}

static long wrong;

static long wait_guarded(uint32_t *word)
{
    struct registers before = pattern((uintptr_t)word), after;
    before.whole[4] = 0; /* no time */
    after = before;
    long result = guarded(SYS_futex, (long)word, (void *)FUTEX_WAIT_PRIVATE, 0, &after);
    wrong += memcmp(&before, &after, sizeof before) != 0;
    return result;
}

static void registers_are_kept(void)
{
    struct waiter one = {.times = 500};
    begin(&one, WORD(0), wait_guarded);
    for (int i = 0; i < 500;) {
        struct registers before = pattern(i), after = before;
        i += guarded(SYS_futex, (long)WORD(0), (void *)FUTEX_WAKE_PRIVATE, 1, &after);
        wrong += memcmp(&before, &after, sizeof before) != 0;
        sched_yield();
    }
    end("the last", &one);
    printf("wrong: %ld\n", wrong);
}

static void three_at_a_word(void)
{
    struct waiter all[3] = {0};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            begin(&all[i], WORD(0), wait_at);
        SHOW(wake(WORD(0), round == 1 ? 2 : 1));
        end("first", &all[0]);
        SHOW(wake(WORD(0), round == 2 ? INT_MAX : 1));
        if (round != 2)
            SHOW(wake(WORD(0), INT_MAX));
        end("second", &all[1]);
        end("third", &all[2]);
        SHOW(wake(WORD(0), 1));
    }
}

static void words_that_share_a_place(void)
{
    struct waiter all[3] = {0};
    for (int i = 0; i < 3; i++)
        begin(&all[i], WORD(i), wait_at);
    SHOW(wake(WORD(3), 1));
    SHOW(wake(WORD(2), 5));
    end("third", &all[2]);
    SHOW(wake(WORD(0), 5));
    SHOW(wake(WORD(0), 5));
    end("first", &all[0]);
    begin(&all[0], WORD(0), wait_at);
    SHOW(wake(WORD(1), 1));
    end("second", &all[1]);
    SHOW(wake(WORD(0), 1));
    end("first again", &all[0]);
}

static pid_t child_with(void (*body)(void))
{
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < 3; i++)
            wake(WORD(60), 1);
        body();
        fflush(stdout);
        _exit(0);
    }
    return child;
}

static void await(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) == -1 && errno == EINTR)
        ;
    say_status("child", status);
}

static void waits_here(void)
{
    SHOW(wait_at(WORD(0)));
}

static void another_process_at_this_address(void)
{
    pid_t child = child_with(waits_here);
    await_state(child, 'S');
    for (int i = 0; i < 3; i++)
        SHOW(wake(WORD(0), 1));
    struct waiter one = {0};
    begin(&one, WORD(0), wait_at);
    SHOW(wake(WORD(0), 1));
    end("ours", &one);
    await_state(child, 'S');
    MUST(kill(child, SIGKILL));
    await(child);
    begin(&one, WORD(0), wait_at);
    SHOW(wake(WORD(0), 1));
    end("ours again", &one);
}

static void on_signal(int number)
{
    if (write(1, "handled\n", 8) != 8)
        _exit(number);
}

static void a_signal_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct waiter one = {0};
    sigaction(SIGUSR1, &action, NULL);
    begin(&one, WORD(0), wait_at);
    MUST(syscall(SYS_tgkill, getpid(), one.id, SIGUSR1));
    end("interrupted", &one);
    SHOW(wake(WORD(0), 1));
}

static void a_signal_restarts(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct waiter one = {0};
    sigaction(SIGUSR1, &action, NULL);
    begin(&one, WORD(0), wait_at);
    MUST(syscall(SYS_tgkill, getpid(), one.id, SIGUSR1));
    sleep_ms(20);
    await_state(one.id, 'S');
    SHOW(wake(WORD(0), 1));
    end("restarted", &one);
}

static void stopped_and_killed(void)
{
    pid_t child = child_with(waits_here);
    await_state(child, 'S');
    MUST(kill(child, SIGSTOP));
    await_state(child, 'T');
    MUST(kill(child, SIGCONT));
    await_state(child, 'S');
    MUST(kill(child, SIGTERM));
    await(child);
}

static void requeued(void)
{
    struct waiter all[4] = {0};
    begin(&all[0], WORD(0), wait_at);
    SHOW(futex(WORD(0), FUTEX_CMP_REQUEUE_PRIVATE, 0, INT_MAX, WORD(1), 1));
    SHOW(futex(WORD(0), FUTEX_CMP_REQUEUE_PRIVATE, 0, INT_MAX, WORD(1), 0));
    SHOW(wake(WORD(0), 1));
    SHOW(wake(WORD(1), 1));
    end("one that shares the place", &all[0]);
    begin(&all[0], WORD(0), wait_at);
    SHOW(futex(WORD(0), FUTEX_REQUEUE_PRIVATE, 0, 1, &words[7], 0));
    SHOW(wake(WORD(0), 1));
    SHOW(wake(&words[7], 1));
    end("one at another place", &all[0]);
    for (int i = 0; i < 4; i++)
        begin(&all[i], i < 2 ? WORD(0) : &words[8], wait_at);
    SHOW(futex(WORD(0), FUTEX_REQUEUE_PRIVATE, 0, INT_MAX, &words[8], 0));
    SHOW(wake(WORD(0), 5));
    SHOW(all[0].done + all[1].done);
    SHOW(wake(&words[8], 2));
    end("who was there first", &all[2]);
    end("and second", &all[3]);
    SHOW(wake(&words[8], 5));
    end("who came first", &all[0]);
    end("and second", &all[1]);
}

static void signalled_where_it_was_moved(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct waiter all[2] = {0};
    sigaction(SIGUSR1, &action, NULL);
    begin(&all[0], WORD(0), wait_at);
    begin(&all[1], &words[8], wait_at);
    SHOW(futex(WORD(0), FUTEX_REQUEUE_PRIVATE, 0, INT_MAX, &words[8], 0));
    MUST(syscall(SYS_tgkill, getpid(), all[0].id, SIGUSR1));
    end("moved", &all[0]);
    SHOW(wake(&words[8], 5));
    end("not moved", &all[1]);
    SHOW(wake(&words[8], 5));
}

static void changed_and_woken(void)
{
    struct waiter all[2] = {0};
    begin(&all[0], WORD(0), wait_at);
    begin(&all[1], WORD(1), wait_at);
    SHOW(futex(WORD(0), FUTEX_WAKE_OP_PRIVATE, 1, 1, WORD(1), FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_EQ, 0)));
    printf("word: %u\n", *WORD(1));
    end("first", &all[0]);
    end("second", &all[1]);
    *WORD(1) = 0;
}

static long wait_for_bits(uint32_t *word)
{
    return futex(word, FUTEX_WAIT_BITSET_PRIVATE, 0, 0, NULL, 4);
}

static long wait_for_any_bits(uint32_t *word)
{
    return futex(word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, 0, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void bits_choose(void)
{
    struct waiter all[2] = {0};
    begin(&all[0], WORD(0), wait_for_any_bits);
    begin(&all[1], WORD(0), wait_for_bits);
    SHOW(futex(WORD(0), FUTEX_WAKE_BITSET_PRIVATE, 1, 0, NULL, 2));
    end("any bits", &all[0]);
    SHOW(futex(WORD(0), FUTEX_WAKE_BITSET_PRIVATE, 1, 0, NULL, 2));
    SHOW(futex(WORD(0), FUTEX_WAKE_BITSET_PRIVATE, 1, 0, NULL, 6));
    end("some bits", &all[1]);
    SHOW(futex(WORD(0), FUTEX_WAIT_BITSET_PRIVATE, 0, 0, NULL, 0));
}

static long wait_shared(uint32_t *word)
{
    return futex(word, FUTEX_WAIT, 0, 0, NULL, 0);
}

static void private_and_shared_are_two(void)
{
    struct waiter one = {0};
    begin(&one, WORD(0), wait_at);
    SHOW(futex(WORD(0), FUTEX_WAKE, 1, 0, NULL, 0));
    SHOW(wake(WORD(0), 1));
    end("waits at a word of its own", &one);
    begin(&one, WORD(0), wait_shared);
    SHOW(wake(WORD(0), 1));
    SHOW(futex(WORD(0), FUTEX_WAKE, 1, 0, NULL, 0));
    end("waits at any word", &one);
    uint32_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    begin(&one, shared, wait_at);
    SHOW(futex(shared, FUTEX_WAKE, 1, 0, NULL, 0));
    SHOW(wake(shared, 1));
    end("says that a shared word is its own", &one);
}

static long wait_a_little(uint32_t *word)
{
    struct timespec time = {.tv_nsec = 30000000};
    return futex(word, FUTEX_WAIT_PRIVATE, 0, (uintptr_t)&time, NULL, 0);
}

static void one_has_no_time(void)
{
    struct waiter all[2] = {0};
    begin(&all[0], WORD(0), wait_at);
    begin(&all[1], WORD(0), wait_a_little);
    end("with a time", &all[1]);
    SHOW(wake(WORD(0), 5));
    end("without", &all[0]);
}

static void words_that_are_none(void)
{
    for (int i = 0; i < 3; i++)
        SHOW(wake(WORD(0), 1));
    *WORD(0) = 1;
    SHOW(wait_at(WORD(0)));
    SHOW(wait_for_any_bits(WORD(0)));
    *WORD(0) = 0;
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SHOW(futex((uint32_t *)(page + 1), FUTEX_WAIT_PRIVATE, 0, 0, NULL, 0));
    SHOW(futex((uint32_t *)(page + 2), FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0));
    SHOW(futex((uint32_t *)page, FUTEX_WAIT_PRIVATE, 1, 0, NULL, 0));
    MUST(mprotect(page, 4096, PROT_NONE));
    SHOW(wait_at((uint32_t *)page));
    SHOW(wake((uint32_t *)page, 1));
    MUST(munmap(page, 4096));
    SHOW(wait_at((uint32_t *)page));
    SHOW(wake((uint32_t *)page, 1));
    SHOW(wait_at(NULL));
    SHOW(wait_at((uint32_t *)0xffff800000000000));
    SHOW(wake((uint32_t *)0xffff800000000000, 1));
    SHOW(wait_at((uint32_t *)0x7ffffffff000));
    SHOW(wait_at((uint32_t *)-4096));
    SHOW(wake((uint32_t *)-4, 1));
    SHOW(futex(WORD(0), FUTEX_WAKE_PRIVATE, 0, 0, NULL, 0));
    SHOW(futex(WORD(0), FUTEX_WAKE_PRIVATE, -1, 0, NULL, 0));
    SHOW(futex(WORD(0), 77 | FUTEX_PRIVATE_FLAG, 0, 0, NULL, 0));
}

static void waits_beside(void)
{
    struct waiter all[3] = {0};
    for (int i = 0; i < 3; i++)
        begin(&all[i], WORD(i % 2), wait_at);
    printf("ends\n");
    fflush(stdout);
}

static void executes_beside(void)
{
    waits_beside();
    execl("/proc/self/exe", "futexes", "words_that_are_none", NULL);
}

static void the_process_ends(void)
{
    await(child_with(waits_beside));
    await(child_with(executes_beside));
}

static void *nothing(void *argument)
{
    return argument;
}

static void many_are_joined(void)
{
    long sum = 0;
    for (long i = 0; i < 300; i++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, nothing, (void *)i);
        pthread_join(thread, &result);
        sum += (long)result;
    }
    printf("sum %ld\n", sum);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t room, filled;
static pthread_barrier_t barrier;
static long queue[4], head, tail, taken, passed;

static void *produces(void *argument)
{
    for (long i = 0; i < 2000; i++) {
        sem_wait(&room);
        pthread_mutex_lock(&lock);
        queue[head++ % 4] = (long)argument + i;
        pthread_mutex_unlock(&lock);
        sem_post(&filled);
    }
    return NULL;
}

static void *consumes(void *unused)
{
    for (long i = 0; i < 2000; i++) {
        sem_wait(&filled);
        pthread_mutex_lock(&lock);
        taken += queue[tail++ % 4];
        if (i % 16 == 0)
            sched_yield();
        pthread_mutex_unlock(&lock);
        sem_post(&room);
    }
    return unused;
}

static void *passes(void *unused)
{
    for (int i = 0; i < 500; i++) {
        pthread_barrier_wait(&barrier);
        pthread_mutex_lock(&lock);
        if (++passed % 4 == 0)
            pthread_cond_broadcast(&changed);
        else
            for (long target = (passed + 3) / 4 * 4; passed < target;)
                pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void many_threads_wait_for_each_other(void)
{
    pthread_t threads[12];
    sem_init(&room, 0, 4);
    sem_init(&filled, 0, 0);
    pthread_barrier_init(&barrier, NULL, 4);
    for (long i = 0; i < 12; i++)
        pthread_create(&threads[i], NULL, i < 4 ? produces : i < 8 ? consumes : passes, (void *)(i * 10000));
    for (int i = 0; i < 12; i++)
        pthread_join(threads[i], NULL);
    printf("taken %ld, passed %ld\n", taken, passed);
}

static const struct test tests[] = {
    {"woken_without_a_change", woken_without_a_change},
    {"registers_are_kept", registers_are_kept},
    {"three_at_a_word", three_at_a_word},
    {"words_that_share_a_place", words_that_share_a_place},
    {"another_process_at_this_address", another_process_at_this_address},
    {"a_signal_interrupts", a_signal_interrupts},
    {"a_signal_restarts", a_signal_restarts},
    {"stopped_and_killed", stopped_and_killed},
    {"requeued", requeued},
    {"signalled_where_it_was_moved", signalled_where_it_was_moved},
    {"changed_and_woken", changed_and_woken},
    {"bits_choose", bits_choose},
    {"private_and_shared_are_two", private_and_shared_are_two},
    {"one_has_no_time", one_has_no_time},
    {"words_that_are_none", words_that_are_none},
    {"the_process_ends", the_process_ends},
    {"many_are_joined", many_are_joined},
    {"many_threads_wait_for_each_other", many_threads_wait_for_each_other},
};

CHECK_MAIN(tests)
