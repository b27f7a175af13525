/* Descriptors that one thread closes while another uses them: their code is gone from the table at once, and freed when
 * nobody can run it any more. */
#include "check.h"
#include <pthread.h>
#include <sched.h>

static pthread_barrier_t turn;
static int ends[2];
static char buffer[4096];

static void next(void)
{
    pthread_barrier_wait(&turn);
}

static pthread_t start(void *(*body)(void *))
{
    pthread_t thread;
    if (pthread_barrier_init(&turn, NULL, 2) != 0 || pthread_create(&thread, NULL, body, NULL) != 0)
        exit(9);
    return thread;
}

/* So often that the call is done in code where there is some. */
static void warm(int from, int to)
{
    for (int i = 0; i < 100; i++)
        if (write(to, "x", 1) != 1 || read(from, buffer, 1) != 1)
            exit(9);
}

static void *uses_a_closed_pipe(void *unused)
{
    (void)unused;
    warm(ends[0], ends[1]);
    next();
    next();
    SHOW(read(ends[0], buffer, 1));
    SHOW(write(ends[1], "y", 1));
    SHOW(read(ends[0], buffer, 100));
    return NULL;
}

static void another_thread_finds_it_closed(void)
{
    signal(SIGPIPE, SIG_IGN);
    MUST(pipe(ends));
    pthread_t thread = start(uses_a_closed_pipe);
    next();
    MUST(write(ends[1], "left over", 9));
    MUST(close(ends[0]));
    MUST(close(ends[1]));
    next();
    pthread_join(thread, NULL);
}

static volatile pid_t sleeper;

static void *sleeps_in_read(void *unused)
{
    (void)unused;
    warm(ends[0], ends[1]);
    sleeper = gettid();
    next();
    SHOW(read(ends[0], buffer, 1));
    SHOW(read(ends[0], buffer, 1));
    return NULL;
}

/* The sleeper keeps the pipe; only the number is gone. Which of the two threads goes on first after the write is open, so the
 * writer speaks when the reader has ended. */
static void a_sleeping_reader_gets_its_byte(void)
{
    MUST(pipe(ends));
    pthread_t thread = start(sleeps_in_read);
    next();
    await_state(sleeper, 'S');
    MUST(close(ends[0]));
    long written = write(ends[1], "z", 1);
    pthread_join(thread, NULL);
    printf("write %ld, then read '%c'\n", written, buffer[0]);
}

static int reused;

static void *reads_what_is_there_now(void *unused)
{
    (void)unused;
    warm(ends[0], ends[1]);
    reused = ends[0];
    next();
    next();
    memset(buffer, 7, 8);
    SHOW(read(reused, buffer, 8));
    printf("first %d, last %d\n", buffer[0], buffer[7]);
    next();
    next();
    SHOW(lseek(reused, 2, SEEK_SET));
    SHOW(read(reused, buffer, 8));
    printf("%.3s\n", buffer);
    next();
    next();
    SHOW(read(reused, buffer, 8));
    SHOW(lseek(reused, 0, SEEK_SET));
    return NULL;
}

/* The number leads to a device, then to a file, then nowhere: never to the pipe's ring. */
static void a_number_is_used_again(void)
{
    MUST(pipe(ends));
    pthread_t thread = start(reads_what_is_there_now);
    next();
    MUST(write(ends[1], "secret", 6));
    MUST(close(reused));
    if (open("/dev/zero", O_RDONLY) != reused)
        exit(9);
    next();
    next();
    MUST(close(reused));
    if (open("file", O_RDWR | O_CREAT | O_TRUNC, 0600) != reused)
        exit(9);
    MUST(write(reused, "abcde", 5));
    next();
    next();
    MUST(close(reused));
    next();
    pthread_join(thread, NULL);
    MUST(unlink("file"));
}

static volatile int stops;
static long strange;

static void *reads_all_the_time(void *unused)
{
    (void)unused;
    next();
    while (!stops) {
        buffer[0] = 1;
        long result = read(reused, buffer, 1);
        int byte = buffer[0];
        /* A zero, a byte of the pipe, or nothing at all. */
        if (!(result == 1 && (byte == 0 || byte == 'p')) && !(result == -1 && errno == EBADF))
            strange++;
    }
    return NULL;
}

static void a_number_changes_while_it_is_read(void)
{
    signal(SIGPIPE, SIG_IGN);
    MUST(reused = open("/dev/zero", O_RDONLY));
    pthread_t thread = start(reads_all_the_time);
    next();
    for (int round = 0; round < 500; round++) {
        MUST(close(reused));
        if (pipe(ends) < 0 || ends[0] != reused || write(ends[1], "pppp", 4) != 4)
            exit(9);
        /* The last writer stays until nobody can be asleep in the empty pipe. */
        for (int wait = 0; wait < 3; wait++)
            sched_yield();
        int zero = open("/dev/zero", O_RDONLY);
        MUST(write(ends[1], "p", 1));
        MUST(dup2(zero, reused));
        MUST(write(ends[1], "p", 1) == 1 || errno == EPIPE ? 0 : -1);
        MUST(close(zero));
        MUST(close(ends[1]));
    }
    stops = 1;
    pthread_join(thread, NULL);
    printf("strange answers: %ld\n", strange);
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(another_thread_finds_it_closed),
    T(a_sleeping_reader_gets_its_byte),
    T(a_number_is_used_again),
    T(a_number_changes_while_it_is_read),
};
CHECK_MAIN(tests)
