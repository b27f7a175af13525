/* Threads that sleep and wake by code, at pipes and event counters: whatever is unusual comes to them while they sleep. */
#include "check.h"
#include "registers.h"
#include <poll.h>
#include <sys/eventfd.h>
#include <pthread.h>
#include <sys/prctl.h>

static int to[2], from[2];
static char buffer[1 << 16];

/* So often that the calls are done in code where there is some. */
static void warm(int *ends)
{
    for (int i = 0; i < 20; i++)
        if (write(ends[1], "x", 1) != 1 || read(ends[0], buffer, 1) != 1)
            exit(9);
}

/* Counts calls after which a register was another one, or the byte. */
static long play(int number, int in, int out, int begins, int rounds)
{
    long wrong = 0;
    for (int i = 0; i < rounds; i++) {
        for (int turn = 0; turn < 2; turn++) {
            struct registers before = pattern(i * 64 + number * 2 + turn), after = before;
            char byte = i;
            int writes = turn != begins;
            long moved = guarded(writes ? SYS_write : SYS_read, writes ? out : in, &byte, 1, &after);
            wrong += moved != 1 || byte != (char)i || memcmp(&before, &after, sizeof before) != 0;
        }
    }
    return wrong;
}

static void keeps_registers(int noise)
{
    pid_t loops[3];
    for (int i = 0; i < noise; i++)
        if ((loops[i] = MUST(fork())) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (volatile double x = i;; x = x * 1.5 + 1)
                ;
        }
    MUST(pipe(to));
    MUST(pipe(from));
    pid_t child = MUST(fork());
    if (child == 0)
        _exit(play(1, to[0], from[1], 1, 2000) != 0);
    printf("wrong here: %ld\n", play(0, from[0], to[1], 0, 2000));
    int status;
    waitpid(child, &status, 0);
    say_status("there", status);
    for (int i = 0; i < noise; i++) {
        kill(loops[i], SIGKILL);
        waitpid(loops[i], NULL, 0);
    }
}

static void two_processes_keep_their_registers(void)
{
    keeps_registers(0);
}

static void they_keep_them_while_others_compute(void)
{
    keeps_registers(3);
}

static long there_wrong;

static void *other_thread(void *unused)
{
    (void)unused;
    there_wrong = play(1, to[0], from[1], 1, 2000);
    return NULL;
}

static void two_threads_keep_their_registers(void)
{
    pthread_t thread;
    MUST(pipe(to));
    MUST(pipe(from));
    pthread_create(&thread, NULL, other_thread, NULL);
    printf("wrong here: %ld\n", play(0, from[0], to[1], 0, 2000));
    pthread_join(thread, NULL);
    printf("wrong there: %ld\n", there_wrong);
}

/* A child that sleeps in `body`, in state S. */
static pid_t sleeper(void (*body)(void))
{
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        body();
        fflush(stdout);
        _exit(0);
    }
    await_state(child, 'S');
    return child;
}

static void await(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) == -1 && errno == EINTR)
        ;
    say_status("child", status);
}

static void reads_to_the_end(void)
{
    close(to[1]);
    SHOW(read(to[0], buffer, 1));
    SHOW(read(to[0], buffer, 100));
}

static void the_writer_goes(void)
{
    MUST(pipe(to));
    warm(to);
    pid_t child = sleeper(reads_to_the_end);
    MUST(close(to[0]));
    MUST(close(to[1]));
    await(child);
}

static void fill(int end)
{
    memset(buffer, 'f', sizeof buffer);
    for (int room = 65536; room > 0;)
        room -= MUST(write(end, buffer, room));
}

static void writes_into_a_full_pipe(void)
{
    close(to[0]);
    signal(SIGPIPE, SIG_IGN);
    SHOW(write(to[1], "yz", 2));
    SHOW(write(to[1], "z", 1));
}

static void the_reader_goes(void)
{
    MUST(pipe(to));
    warm(to);
    fill(to[1]);
    pid_t child = sleeper(writes_into_a_full_pipe);
    MUST(close(to[0]));
    await(child);
}

/* A small write waits until it fits whole. */
static void writes_three_pieces(void)
{
    memset(buffer, 'w', 4096);
    SHOW(write(to[1], buffer, 4096));
    SHOW(write(to[1], buffer, 1));
    SHOW(write(to[1], buffer, 65536));
}

static void a_full_pipe_is_emptied(void)
{
    MUST(pipe(to));
    warm(to);
    fill(to[1]);
    pid_t child = sleeper(writes_three_pieces);
    MUST(close(to[1]));
    long all = 0, got, filled = 0;
    while ((got = read(to[0], buffer, 4000)) > 0) {
        for (long i = 0; i < got; i++)
            filled += buffer[i] == 'f';
        all += got;
    }
    printf("%ld bytes, %ld of them first\n", all, filled);
    await(child);
}

static void on_signal(int number)
{
    if (write(1, "handled\n", 8) != 8)
        _exit(number);
}

static void reads_with(int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
    SHOW(read(to[0], buffer, 1));
    SHOW(read(to[0], buffer, 1));
}

static void reads_interrupted(void)
{
    reads_with(0);
}

static void reads_restarted(void)
{
    reads_with(SA_RESTART);
}

static void signalled(void (*body)(void), int number, char after)
{
    MUST(pipe(to));
    warm(to);
    pid_t child = sleeper(body);
    MUST(kill(child, number));
    if (after)
        await_state(child, after);
    MUST(write(to[1], "1", 1));
    MUST(write(to[1], "2", 1));
    if (number == SIGSTOP)
        MUST(kill(child, SIGCONT));
    await(child);
}

static void a_signal_interrupts(void)
{
    signalled(reads_interrupted, SIGUSR1, 'S');
}

static void a_signal_restarts(void)
{
    signalled(reads_restarted, SIGUSR1, 'S');
}

static void it_is_stopped(void)
{
    signalled(reads_interrupted, SIGSTOP, 'T');
}

static void it_is_killed(void)
{
    signalled(reads_interrupted, SIGKILL, 0);
}

static void an_alarm_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct itimerval soon = {.it_value = {0, 20000}};
    sigaction(SIGALRM, &action, NULL);
    MUST(pipe(to));
    warm(to);
    setitimer(ITIMER_REAL, &soon, NULL);
    SHOW(read(to[0], buffer, 1));
    SHOW(read(to[0], buffer, 0));
}

static void somebody_does_not_wait(void)
{
    MUST(pipe(to));
    warm(to);
    MUST(fcntl(to[0], F_SETFL, O_NONBLOCK));
    SHOW(read(to[0], buffer, 1));
    SHOW(read(to[0], buffer, 10));
    MUST(fcntl(to[0], F_SETFL, 0));
    pid_t child = sleeper(reads_interrupted);
    MUST(write(to[1], "1", 1));
    await_state(child, 'S');
    MUST(write(to[1], "2", 1));
    await(child);
    fill(to[1]);
    MUST(fcntl(to[1], F_SETFL, O_NONBLOCK));
    SHOW(write(to[1], buffer, 1));
    SHOW(write(to[1], buffer, 10));
}

static void reads_numbers(void)
{
    close(to[1]);
    int number, sum = 0, count = 0;
    while (read(to[0], &number, sizeof number) == sizeof number)
        sum += number, count++;
    if (write(from[1], &sum, sizeof sum) != sizeof sum)
        _exit(9);
}

/* Each number goes to one of the readers. */
static void many_readers(void)
{
    enum { READERS = 5, NUMBERS = 3000 };
    MUST(pipe(to));
    MUST(pipe(from));
    warm(to);
    pid_t readers[READERS];
    for (int i = 0; i < READERS; i++)
        readers[i] = sleeper(reads_numbers);
    for (int i = 0; i < NUMBERS; i++)
        MUST(write(to[1], &i, sizeof i));
    close(to[1]);
    int sum, all = 0;
    for (int i = 0; i < READERS; i++)
        MUST(read(from[0], &sum, sizeof sum)), all += sum;
    for (int i = 0; i < READERS; i++)
        waitpid(readers[i], NULL, 0);
    printf("sum %d of %d\n", all, NUMBERS * (NUMBERS - 1) / 2);
}

static void polls(void)
{
    struct pollfd one = {.fd = to[0], .events = POLLIN};
    _exit(poll(&one, 1, -1) != 1);
}

static void a_poller_beside_the_reader(void)
{
    MUST(pipe(to));
    warm(to);
    pid_t reader = sleeper(reads_interrupted), poller = sleeper(polls);
    MUST(write(to[1], "1", 1));
    await_state(reader, 'S');
    MUST(write(to[1], "23", 2));
    await(reader);
    await(poller);
}

static void the_ring_is_resized(void)
{
    MUST(pipe(to));
    warm(to);
    pid_t child = sleeper(reads_interrupted);
    MUST(fcntl(to[1], F_SETPIPE_SZ, 4096));
    MUST(write(to[1], "1", 1));
    await_state(child, 'S');
    MUST(fcntl(to[1], F_SETPIPE_SZ, 65536));
    MUST(write(to[1], "2", 1));
    await(child);
}

static volatile pid_t other;
static int reads = 2;

static void *sleeps_here(void *unused)
{
    (void)unused;
    warm(to);
    other = gettid();
    SHOW(read(to[0], buffer, 1));
    if (reads > 1)
        SHOW(read(to[0], buffer + 1, 1));
    return NULL;
}

static pthread_t sleeping_thread(void)
{
    pthread_t thread;
    MUST(pipe(to));
    MUST(pipe(from));
    warm(to);
    warm(from);
    pthread_create(&thread, NULL, sleeps_here, NULL);
    while (!other)
        sched_yield();
    await_state(other, 'S');
    return thread;
}

/* The call goes on with the file that it began with; the next one finds the new one. */
static void its_number_leads_elsewhere(void)
{
    pthread_t thread = sleeping_thread();
    MUST(write(from[1], "new", 3));
    MUST(dup2(from[0], to[0]));
    MUST(write(to[1], "old", 3));
    pthread_join(thread, NULL);
    printf("read %c, then %c\n", buffer[0], buffer[1]);
}

static void its_number_is_closed_with_the_writer(void)
{
    pthread_t thread = sleeping_thread();
    MUST(close(to[0]));
    MUST(close(to[1]));
    pthread_join(thread, NULL);
}

/* It is woken, and has not run yet. */
static void its_number_is_closed_behind_the_byte(void)
{
    reads = 1;
    pthread_t thread = sleeping_thread();
    long written = write(to[1], "z", 1);
    close(to[0]);
    pthread_join(thread, NULL);
    printf("write %ld, then read %c\n", written, buffer[0]);
}

static void its_range_is_closed(void)
{
    pthread_t thread = sleeping_thread();
    MUST(close_range(to[0], to[0], 0));
    long written = write(to[1], "z", 1);
    pthread_join(thread, NULL);
    printf("write %ld, then read %c\n", written, buffer[0]);
}

static void sleeps_while_another_executes(void)
{
    sleeping_thread();
    execl("/proc/self/exe", "handover", "list-nothing", NULL);
}

static void another_thread_executes(void)
{
    in_child("child", sleeps_while_another_executes);
}

static void ends_with_a_sleeper(void)
{
    sleeping_thread();
    exit(7);
}

static void another_thread_ends_the_process(void)
{
    in_child("child", ends_with_a_sleeper);
}

static int here, there;
/* Not an address that a program has; the compiler must not know. */
static void *volatile nowhere = (void *)16;

static void counts_back(void)
{
    uint64_t number, sum = 0;
    for (int i = 0; i < 2000; i++) {
        MUST(read(here, &number, 8));
        sum += number;
        MUST(write(there, &number, 8));
    }
    printf("sum %lu\n", sum);
}

static void two_processes_count(void)
{
    here = MUST(eventfd(0, 0));
    there = MUST(eventfd(0, 0));
    pid_t child = sleeper(counts_back);
    uint64_t number, sum = 0;
    for (uint64_t i = 1; i <= 2000; i++) {
        MUST(write(here, &i, 8));
        MUST(read(there, &number, 8));
        sum += number;
    }
    printf("sum %lu\n", sum);
    await(child);
}

static void counts_what_is_unusual(void)
{
    uint64_t number = 7;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    SHOW(read(here, &number, 8));
    SHOW(read(here, &number, 4));
    SHOW(read(here, nowhere, 8));
    SHOW(read(here, buffer, 100));
    printf("number %d\n", buffer[0]);
    SHOW(write(here, nowhere, 8));
    number = -1;
    SHOW(write(here, &number, 8));
    number = -2;
    SHOW(write(here, &number, 8));
    MUST(fcntl(here, F_SETFL, O_NONBLOCK));
    number = 1;
    SHOW(write(here, &number, 8));
    SHOW(read(here, &number, 8));
    printf("number %lx\n", number);
    SHOW(read(here, &number, 8));
}

static void a_counter_is_unusual(void)
{
    uint64_t one = 1;
    here = MUST(eventfd(0, 0));
    for (int i = 0; i < 20; i++) {
        MUST(write(here, &one, 8));
        MUST(read(here, buffer, 8));
    }
    pid_t child = sleeper(counts_what_is_unusual);
    MUST(kill(child, SIGUSR1));
    await_state(child, 'S');
    MUST(write(here, &one, 8));
    await_state(child, 'S');
    MUST(write(here, &one, 8));
    await(child);
}

static void takes_from_a_semaphore(void)
{
    uint64_t number;
    for (int i = 0; i < 30; i++)
        MUST(read(here, &number, 8)), MUST(write(there, &number, 8));
}

static void three_take_from_a_semaphore(void)
{
    uint64_t many = 30, number = 0, sum = 0;
    here = MUST(eventfd(0, EFD_SEMAPHORE));
    there = MUST(eventfd(0, 0));
    pid_t children[3];
    for (int i = 0; i < 3; i++)
        children[i] = sleeper(takes_from_a_semaphore);
    for (int i = 0; i < 3; i++)
        MUST(write(here, &many, 8));
    for (; sum < 90; sum += number)
        MUST(read(there, &number, 8));
    printf("sum %lu\n", sum);
    for (int i = 0; i < 3; i++)
        await(children[i]);
}

static const struct test tests[] = {
    {"two_processes_count", two_processes_count},
    {"a_counter_is_unusual", a_counter_is_unusual},
    {"three_take_from_a_semaphore", three_take_from_a_semaphore},
    {"two_processes_keep_their_registers", two_processes_keep_their_registers},
    {"they_keep_them_while_others_compute", they_keep_them_while_others_compute},
    {"two_threads_keep_their_registers", two_threads_keep_their_registers},
    {"the_writer_goes", the_writer_goes},
    {"the_reader_goes", the_reader_goes},
    {"a_full_pipe_is_emptied", a_full_pipe_is_emptied},
    {"a_signal_interrupts", a_signal_interrupts},
    {"a_signal_restarts", a_signal_restarts},
    {"it_is_stopped", it_is_stopped},
    {"it_is_killed", it_is_killed},
    {"an_alarm_interrupts", an_alarm_interrupts},
    {"somebody_does_not_wait", somebody_does_not_wait},
    {"many_readers", many_readers},
    {"a_poller_beside_the_reader", a_poller_beside_the_reader},
    {"the_ring_is_resized", the_ring_is_resized},
    {"its_number_leads_elsewhere", its_number_leads_elsewhere},
    {"its_number_is_closed_with_the_writer", its_number_is_closed_with_the_writer},
    {"its_number_is_closed_behind_the_byte", its_number_is_closed_behind_the_byte},
    {"its_range_is_closed", its_range_is_closed},
    {"another_thread_executes", another_thread_executes},
    {"another_thread_ends_the_process", another_thread_ends_the_process},
};

CHECK_MAIN(tests)
