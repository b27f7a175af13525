/* Who asks often gets code for its answer: poll and epoll_wait of pipes and event counters while everything about them changes. */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

/* So often a question is asked before its answer is believed to be code. */
#define OFTEN 14

static int ask(int fd, short events)
{
    struct pollfd one = {.fd = fd, .events = events, .revents = 0x5555};
    int count = poll(&one, 1, 0);
    return count << 16 | (one.revents & 0xffff);
}

static int ask_often(int fd, short events)
{
    int first = ask(fd, events);
    for (int i = 1; i < OFTEN; i++)
        if (ask(fd, events) != first)
            printf("answer %d of one question differs\n", i);
    return first;
}

static void both_ends_of_a_pipe(void)
{
    static char bytes[65536];
    int fd[2];
    MUST(pipe(fd));
    for (int side = 0; side < 2; side++)
        for (int events = 0; events < 8; events++)
            printf("empty, end %d, events %d: %x\n", side, events, ask_often(fd[side], events));
    MUST(write(fd[1], "xy", 2));
    printf("something: %x %x\n", ask_often(fd[0], POLLIN | POLLRDNORM), ask_often(fd[1], POLLOUT | POLLWRNORM));
    MUST(write(fd[1], bytes, 65536 - 4096 - 2));
    printf("room for one write: %x\n", ask_often(fd[1], POLLOUT));
    MUST(write(fd[1], bytes, 4096));
    printf("for none: %x\n", ask_often(fd[1], POLLOUT));
    MUST(read(fd[0], bytes, 4096));
    printf("for one again: %x\n", ask_often(fd[1], POLLOUT));
    MUST(fcntl(fd[0], F_SETPIPE_SZ, 1 << 17));
    printf("a wider pipe: %x %x\n", ask_often(fd[0], POLLIN), ask_often(fd[1], POLLOUT));
    MUST(close(fd[1]));
    printf("no writer: %x\n", ask_often(fd[0], POLLIN));
    while (read(fd[0], bytes, sizeof bytes) > 0)
        ;
    printf("and nothing: %x\n", ask_often(fd[0], POLLIN));
    MUST(close(fd[0]));
    printf("closed: %x\n", ask_often(fd[0], POLLIN));
    MUST(pipe(fd));
    ask_often(fd[1], POLLOUT);
    MUST(close(fd[0]));
    printf("no reader: %x %x\n", ask_often(fd[1], POLLOUT), ask_often(fd[1], 0));
}

static void an_event_counter(void)
{
    uint64_t count = UINT64_MAX - 1;
    int fd = MUST(eventfd(0, EFD_NONBLOCK));
    printf("nothing: %x %x\n", ask_often(fd, POLLIN), ask_often(fd, POLLIN | POLLOUT));
    MUST(write(fd, &count, 8));
    printf("full: %x %x\n", ask_often(fd, POLLIN), ask_often(fd, POLLIN | POLLOUT));
    MUST(read(fd, &count, 8));
    count = 1;
    MUST(write(fd, &count, 8));
    printf("one: %x %x\n", ask_often(fd, POLLOUT), ask_often(fd, POLLIN | POLLOUT));
}

static void records_that_cannot_be_used(void)
{
    struct rlimit limit, none;
    int fd[2];
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct pollfd *one = (struct pollfd *)(page + 4096 - sizeof *one);
    MUST(pipe(fd));
    MUST(write(fd[1], "x", 1));
    *one = (struct pollfd){.fd = fd[0], .events = POLLIN};
    for (int i = 0; i < OFTEN; i++)
        MUST(poll(one, 1, 0));
    MUST(mprotect(page, 4096, PROT_READ));
    SHOW(poll(one, 1, 0));
    MUST(mprotect(page, 4096, PROT_READ | PROT_WRITE));
    SHOW(poll(one, 1, -1));
    MUST(munmap(page + 4096, 4096));
    one = (struct pollfd *)(page + 4096 - 4);
    SHOW(poll(one, 1, 0));
    SHOW(syscall(SYS_poll, 8, 1, 0));
    SHOW(syscall(SYS_poll, 0x7ffffffff000, 1, 0));
    SHOW(syscall(SYS_poll, 0xffffffff80000000, 1, 0));
    one = (struct pollfd *)page;
    *one = (struct pollfd){.fd = -1, .events = POLLIN, .revents = 77};
    printf("negative: %d %d\n", poll(one, 1, 0), one->revents);
    SHOW(syscall(SYS_poll, one, 0xffffffff00000001, 0));
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    none = (struct rlimit){0, limit.rlim_max};
    MUST(setrlimit(RLIMIT_NOFILE, &none));
    SHOW(poll(one, 1, 0));
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    SHOW(poll(one, 1, 0));
}

static int instance;

static void add(int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u64 = 0x9000000070000000u + fd};
    MUST(epoll_ctl(instance, EPOLL_CTL_ADD, fd, &event));
}

static int by_data(const void *a, const void *b)
{
    const struct epoll_event *one = a, *other = b;
    return one->data.u64 < other->data.u64 ? -1 : one->data.u64 > other->data.u64;
}

/* What is ready, in the order of descriptors, the same several times over. */
static uint64_t look(void)
{
    uint64_t digest = 0, first = 0;
    for (int i = 0; i < OFTEN; i++) {
        struct epoll_event events[24];
        int count = epoll_wait(instance, events, 24, 0);
        qsort(events, count > 0 ? count : 0, sizeof *events, by_data);
        digest = count;
        for (int at = 0; at < count; at++)
            digest = digest * 1000003 + events[at].events * 31 + (events[at].data.u64 ^ events[at].data.u64 >> 32);
        if (i == 0)
            first = digest;
        else if (digest != first)
            printf("look %d differs\n", i);
    }
    return digest;
}

static void an_instance(void)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 5};
    uint64_t one = 1;
    int fd[2], other[2], counter;
    MUST(instance = epoll_create1(0));
    printf("nothing: %llx\n", (unsigned long long)look());
    MUST(pipe(fd));
    add(fd[0], EPOLLIN);
    printf("nothing there: %llx\n", (unsigned long long)look());
    MUST(write(fd[1], "x", 1));
    printf("one: %llx\n", (unsigned long long)look());
    MUST(counter = eventfd(0, 0));
    MUST(pipe(other));
    add(counter, EPOLLIN | EPOLLOUT);
    add(other[1], EPOLLOUT);
    printf("three: %llx\n", (unsigned long long)look());
    MUST(write(counter, &one, 8));
    printf("counted: %llx\n", (unsigned long long)look());
    MUST(epoll_ctl(instance, EPOLL_CTL_MOD, fd[0], &event));
    printf("changed: %llx\n", (unsigned long long)look());
    MUST(close(other[0]));
    printf("an error: %llx\n", (unsigned long long)look());
    MUST(close(other[1]));
    printf("closed: %llx\n", (unsigned long long)look());
    MUST(close(fd[1]));
    printf("hung up: %llx\n", (unsigned long long)look());
    MUST(epoll_ctl(instance, EPOLL_CTL_DEL, fd[0], NULL));
    printf("without it: %llx\n", (unsigned long long)look());
    SHOW(syscall(SYS_epoll_wait, instance, 8, 1, 0));
    SHOW(epoll_wait(instance, &event, 0, 0));
    SHOW(syscall(SYS_epoll_wait, instance, &event, -1, 0));
    SHOW(epoll_wait(instance, (void *)0x7fffffffeff8, 1, 0));
    SHOW(epoll_wait(instance, (void *)0xfffffffffffffff0, 1, 0));
    SHOW(epoll_wait(instance, &event, 1, -1));
    int copy = MUST(dup(instance));
    MUST(close(instance));
    SHOW(epoll_wait(instance, &event, 1, 0));
    SHOW(epoll_wait(copy, &event, 1, 0));
    MUST(dup2(counter, copy));
    SHOW(epoll_wait(copy, &event, 1, 0));
}

/* The next record lies on a page that is not there. */
static void events_that_find_no_memory(void)
{
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd[2];
    MUST(instance = epoll_create1(0));
    for (int i = 0; i < 3; i++) {
        MUST(pipe(fd));
        MUST(write(fd[1], "x", 1));
        add(fd[0], EPOLLIN);
    }
    look();
    MUST(mprotect(page + 4096, 4096, PROT_NONE));
    SHOW(epoll_wait(instance, (struct epoll_event *)(page + 4096 - 12), 3, 0));
    SHOW(epoll_wait(instance, (struct epoll_event *)(page + 4096 - 36), 3, 0));
    printf("still: %llx\n", (unsigned long long)look());
}

static int shared[2];

static void *closer(void *unused)
{
    (void)unused;
    MUST(close(shared[0]));
    return NULL;
}

/* The descriptor goes away, or is another file, by the hand of another thread; children have descriptors of their own. */
static void descriptors_that_others_change(void)
{
    struct epoll_event event;
    pthread_t thread;
    int status, fd[2];
    MUST(pipe(shared));
    MUST(write(shared[1], "x", 1));
    MUST(instance = epoll_create1(0));
    add(shared[0], EPOLLIN);
    printf("before: %x %llx\n", ask_often(shared[0], POLLIN), (unsigned long long)look());
    pid_t child = MUST(fork());
    if (child == 0) {
        printf("child: %x %llx\n", ask_often(shared[0], POLLIN), (unsigned long long)look());
        close(shared[0]);
        printf("child: %x\n", ask_often(shared[0], POLLIN));
        MUST(epoll_ctl(instance, EPOLL_CTL_DEL, shared[1], &event) == -1 ? 0 : -1);
        fflush(stdout);
        _exit(0);
    }
    MUST(waitpid(child, &status, 0));
    printf("after: %x %llx\n", ask_often(shared[0], POLLIN), (unsigned long long)look());
    MUST(pthread_create(&thread, NULL, closer, NULL));
    pthread_join(thread, NULL);
    printf("closed: %x %llx\n", ask_often(shared[0], POLLIN), (unsigned long long)look());
    MUST(pipe(fd));
    printf("another: %x %llx\n", ask_often(fd[0], POLLIN), (unsigned long long)look());
}

static uint64_t state;

static int below(int most)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % most;
}

#define PAIRS 5

/* Random changes of pipes and counters and of what is watched, each with random questions. */
static void changes_from(uint64_t seed)
{
    static char bytes[70000];
    int fd[PAIRS][2], is_watched[PAIRS][2], is_full[PAIRS] = {0}, is_pipe[PAIRS];
    uint64_t digest = seed, one;
    state = seed;
    MUST(instance = epoll_create1(0));
    for (int i = 0; i < PAIRS; i++) {
        MUST(pipe2(fd[i], O_NONBLOCK));
        is_watched[i][0] = is_watched[i][1] = 0;
        is_pipe[i] = 1;
    }
    for (int step = 0; step < 6000; step++) {
        int i = below(PAIRS), side = below(2), kind = below(20);
        int *is_here = &is_watched[i][side];
        struct epoll_event event = {.events = below(4) == 0 ? 0 : EPOLLIN | EPOLLOUT, .data.u64 = below(1 << 20)};
        switch (kind) {
        case 0:
            close(fd[i][0]);
            close(fd[i][1]);
            is_watched[i][0] = is_watched[i][1] = is_full[i] = 0;
            is_pipe[i] = below(3) > 0;
            if (!is_pipe[i]) {
                MUST(fd[i][0] = eventfd(below(2), EFD_NONBLOCK));
                MUST(fd[i][1] = eventfd(0, EFD_NONBLOCK | (below(2) ? EFD_SEMAPHORE : 0)));
            } else
                MUST(pipe2(fd[i], O_NONBLOCK));
            break;
        case 1:
            if (below(4) == 0) {
                close(fd[i][side]);
                fd[i][side] = -1;
                *is_here = 0;
            }
            break;
        case 2:
        case 3:
            event.events |= below(12) == 0 ? EPOLLONESHOT : 0;
            digest = digest * 31 + epoll_ctl(instance, *is_here ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd[i][side], &event);
            *is_here = 1;
            break;
        case 4:
            if (below(3) == 0) {
                digest = digest * 31 + epoll_ctl(instance, EPOLL_CTL_DEL, fd[i][side], NULL);
                *is_here = 0;
            }
            break;
        case 5:
        case 6:
        case 7:
            one = 1 + below(3);
            memcpy(bytes, &one, 8);
            /* Linux counts room in pages: so a pipe has little in it, or all that it holds. */
            if (is_pipe[i] && below(6) == 0) {
                read(fd[i][0], bytes, 70000);
                digest = digest * 31 + write(fd[i][1], bytes, 65536);
                is_full[i] = 1;
            } else if (!is_full[i])
                digest = digest * 31 + write(fd[i][1], bytes, 8);
            break;
        case 8:
        case 9:
            digest = digest * 31 + read(fd[i][side], bytes, is_full[i] || below(3) == 0 ? 70000 : 8);
            is_full[i] &= side;
            break;
        default:
            break;
        }
        for (int times = below(12); times > 0; times--) {
            struct epoll_event events[24];
            if (kind & 1) {
                digest = digest * 31 + ask(fd[i][side], below(8));
                continue;
            }
            int count = epoll_wait(instance, events, 24, 0);
            qsort(events, count > 0 ? count : 0, sizeof *events, by_data);
            for (int at = 0; at < count; at++)
                digest = digest * 1000003 + events[at].events * 31 + events[at].data.u64;
        }
        if (step % 1000 == 999)
            printf("seed %llu, step %d: %llx\n", (unsigned long long)seed, step, (unsigned long long)digest);
    }
    for (int i = 0; i < PAIRS; i++) {
        close(fd[i][0]);
        close(fd[i][1]);
    }
    close(instance);
}

static void random_changes(void)
{
    signal(SIGPIPE, SIG_IGN);
    for (uint64_t seed = 1; seed <= 4; seed++)
        changes_from(seed);
}

static volatile int taken;

static void take(int number)
{
    (void)number;
    taken++;
}

/* A question that is answered is not interrupted; one that waits is. */
static void questions_and_signals(void)
{
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    struct sigaction action = {.sa_handler = take};
    struct epoll_event event;
    int fd[2];
    MUST(pipe(fd));
    MUST(sigaction(SIGALRM, &action, NULL));
    MUST(instance = epoll_create1(0));
    add(fd[0], EPOLLIN);
    ask_often(fd[0], POLLIN);
    look();
    MUST(setitimer(ITIMER_REAL, &soon, NULL));
    struct pollfd one = {.fd = fd[0], .events = POLLIN};
    SHOW(poll(&one, 1, -1));
    MUST(setitimer(ITIMER_REAL, &soon, NULL));
    SHOW(epoll_wait(instance, &event, 1, -1));
    MUST(setitimer(ITIMER_REAL, &soon, NULL));
    MUST(write(fd[1], "x", 1));
    while (taken < 3)
        MUST(poll(&one, 1, 0));
    SHOW(epoll_wait(instance, &event, 1, -1));
    printf("%d signals\n", taken);
}

static const struct test tests[] = {
    {"both_ends_of_a_pipe", both_ends_of_a_pipe},
    {"an_event_counter", an_event_counter},
    {"records_that_cannot_be_used", records_that_cannot_be_used},
    {"an_instance", an_instance},
    {"events_that_find_no_memory", events_that_find_no_memory},
    {"descriptors_that_others_change", descriptors_that_others_change},
    {"random_changes", random_changes},
    {"questions_and_signals", questions_and_signals},
};

CHECK_MAIN(tests)
