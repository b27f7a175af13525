/* What an epoll instance reports: in turns, after a change, and when a watched file is closed; and vectors of few and of many buffers. */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int instance, ends[4][2];

/* Pipes whose reading ends are watched, each with its number as data; each holds a byte. */
static void watch_pipes(int count, uint32_t events)
{
    MUST(instance = epoll_create1(0));
    for (int i = 0; i < count; i++) {
        struct epoll_event event = {.events = events, .data.u64 = 0x100000000u * (i + 1) + i};
        MUST(pipe(ends[i]));
        MUST(epoll_ctl(instance, EPOLL_CTL_ADD, ends[i][0], &event));
        MUST(write(ends[i][1], "x", 1));
    }
}

static void wait_and_show(int room)
{
    struct epoll_event events[8] = {{0}};
    int count = epoll_wait(instance, events, room, 0);
    printf("%d ready:", count);
    for (int i = 0; i < count; i++)
        printf(" %x of %llx", events[i].events, (unsigned long long)events[i].data.u64);
    printf("\n");
}

static void each_gets_its_turn(void)
{
    watch_pipes(3, EPOLLIN);
    for (int i = 0; i < 7; i++)
        wait_and_show(1);
    wait_and_show(8);
}

static void a_change_arms_again(void)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = 0xfedcba9876543210u};
    watch_pipes(1, EPOLLIN | EPOLLONESHOT);
    wait_and_show(8);
    wait_and_show(8);
    MUST(epoll_ctl(instance, EPOLL_CTL_MOD, ends[0][0], &event));
    wait_and_show(8);
    wait_and_show(8);
    event.events = EPOLLIN | EPOLLET;
    MUST(epoll_ctl(instance, EPOLL_CTL_MOD, ends[0][0], &event));
    wait_and_show(8);
    wait_and_show(8);
    SHOW(epoll_ctl(instance, EPOLL_CTL_MOD, ends[0][1], &event));
    SHOW(epoll_ctl(instance, EPOLL_CTL_ADD, ends[0][0], &event));
    SHOW(epoll_ctl(instance, 7, ends[0][0], &event));
    SHOW(syscall(SYS_epoll_ctl, instance, EPOLL_CTL_MOD, ends[0][0], 8));
}

static void closed_files_are_not_reported(void)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 77};
    watch_pipes(4, EPOLLIN);
    wait_and_show(1);
    MUST(close(ends[1][0]));
    MUST(epoll_ctl(instance, EPOLL_CTL_DEL, ends[2][0], NULL));
    wait_and_show(8);
    /* The same number, another file. */
    MUST(dup2(ends[3][0], ends[1][0]));
    SHOW(epoll_ctl(instance, EPOLL_CTL_MOD, ends[1][0], &event));
    SHOW(epoll_ctl(instance, EPOLL_CTL_ADD, ends[1][0], &event));
    SHOW(epoll_wait(instance, &event, 0, 0));
    SHOW(epoll_ctl(instance, EPOLL_CTL_DEL, ends[1][0], NULL));
    wait_and_show(8);
    SHOW(syscall(SYS_epoll_wait, instance, 8, 1, 0));
}

/* As event loops do it: each message is read to its end before the next one comes, and each must be told of. */
static void tell_of_all(const char *what, int from, int to, int bytes)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    char text[64] = {0};
    int told = 0, room = 0;
    MUST(instance = epoll_create1(0));
    MUST(epoll_ctl(instance, EPOLL_CTL_ADD, from, &event));
    event.events = EPOLLOUT | EPOLLET;
    MUST(epoll_ctl(instance, EPOLL_CTL_ADD, to, &event));
    for (int i = 0; i < 100; i++) {
        struct epoll_event events[2];
        MUST(write(to, text, bytes) == bytes ? 0 : -1);
        int count = epoll_wait(instance, events, 2, 0);
        for (int at = 0; at < count; at++) {
            told += (events[at].events & EPOLLIN) != 0;
            room += (events[at].events & EPOLLOUT) != 0;
        }
        MUST(read(from, text, sizeof text) == bytes ? 0 : -1);
    }
    printf("%s, %d bytes: told %d times, of room %s\n", what, bytes, told, room > 0 ? "too" : "never");
    close(instance);
}

static void tell_of_eventfd(int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    uint64_t count = 3;
    int told = 0;
    MUST(instance = epoll_create1(0));
    MUST(epoll_ctl(instance, EPOLL_CTL_ADD, fd, &event));
    for (int i = 0; i < 100; i++) {
        MUST(write(fd, &count, 8));
        told += epoll_wait(instance, &event, 1, 0);
        MUST(read(fd, &count, 8));
    }
    printf("eventfd: told %d times\n", told);
}

static void every_arrival_is_an_edge(void)
{
    int fd[2];
    for (int bytes = 1; bytes <= 5; bytes += 4) {
        MUST(pipe(fd));
        tell_of_all("pipe", fd[0], fd[1], bytes);
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
        tell_of_all("stream socket", fd[0], fd[1], bytes);
        MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, fd));
        tell_of_all("datagram socket", fd[0], fd[1], bytes);
        MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd));
        tell_of_all("packet socket", fd[0], fd[1], bytes);
    }
    MUST(fd[0] = eventfd(0, 0));
    tell_of_eventfd(fd[0]);
}

static void vectors_of_few_and_of_many_buffers(void)
{
    static const int counts[] = {0, 1, 2, 4, 5, 8, 9, 64};
    char text[4096], back[4096];
    struct iovec parts[64];
    int fd[2];
    MUST(pipe(fd));
    for (int i = 0; i < (int)sizeof text; i++)
        text[i] = i * 7;
    for (int i = 0; i < 8; i++)
        for (int bytes = 1; bytes <= 64; bytes *= 4) {
            for (int part = 0; part < counts[i]; part++)
                parts[part] = (struct iovec){text + part * 64, part % 3 == 1 ? 0 : bytes};
            long written = writev(fd[1], parts, counts[i]);
            printf("%d of %d: %ld", counts[i], bytes, written);
            for (int part = 0; part < counts[i]; part++)
                parts[part].iov_base = back + part * 64;
            memset(back, 0, sizeof back);
            long got = written > 0 ? readv(fd[0], parts, counts[i]) : 0;
            unsigned long sum = 0;
            for (int at = 0; at < (int)sizeof back; at++)
                sum = sum * 31 + (unsigned char)back[at];
            printf(" %ld %lx\n", got, sum);
        }
    parts[0] = (struct iovec){(void *)8, 1};
    parts[1] = (struct iovec){text, -1};
    SHOW(writev(fd[1], parts, 2));
    parts[1].iov_len = 1;
    SHOW(writev(fd[1], parts, 2));
    SHOW(syscall(SYS_writev, fd[1], 8, 2));
    SHOW(syscall(SYS_writev, fd[1], parts, -1));
}

static int watch(int outer, int inner)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = inner};
    return epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event);
}

static int make(int *instances, int count)
{
    struct rlimit most = {4096, 4096};
    MUST(setrlimit(RLIMIT_NOFILE, &most));
    for (int i = 0; i < count; i++)
        MUST(instances[i] = epoll_create1(0));
    return count;
}

static int is_ready(int instance)
{
    struct epoll_event event;
    return epoll_wait(instance, &event, 1, 0);
}

static void instances_watch_each_other_only_so_deep(void)
{
    int at[12], pair[2];
    make(at, 12);
    for (int i = 0; i < 6; i++) {
        printf("down %d: ", i);
        TRY(watch(at[i], at[i + 1]));
    }
    for (int i = 11; i > 6; i--) {
        printf("up %d: ", i);
        TRY(watch(at[i - 1], at[i]));
    }
    TRY(watch(at[4], at[6]));
    TRY(watch(at[0], at[0]));
    TRY(watch(at[3], at[1]));
    MUST(pipe(pair));
    TRY(watch(at[4], pair[0]));
    TRY(watch(at[3], pair[0]));
    printf("%d ready\n", is_ready(at[0]));
    MUST(write(pair[1], "x", 1));
    printf("%d ready\n", is_ready(at[0]));
    MUST(close(at[2]));
    printf("%d ready\n", is_ready(at[0]));
    TRY(watch(at[0], at[4]));
    printf("%d ready\n", is_ready(at[0]));
}

/* How many instances can watch one that watches a pipe; then how many can watch those. */
static void only_so_many_ways_lead_up_from_a_file(void)
{
    static int at[2000];
    int pair[2], made = make(at, 1700), used = 1, watching = 0;
    MUST(pipe(pair));
    MUST(watch(at[0], pair[0]));
    while (used < made && watch(at[used], at[0]) == 0)
        used++;
    printf("one between: %d, %s\n", used - 1, failing(-1));
    for (int i = used; i < made && watch(at[i], at[1]) == 0; i++)
        watching++;
    printf("two between: %d, %s\n", watching, failing(-1));
    SHOW(epoll_ctl(at[2], EPOLL_CTL_DEL, at[0], NULL));
    TRY(watch(at[2], at[0]));
    TRY(watch(at[2], at[0]));
    TRY(watch(at[1650], at[0]));
    MUST(close(at[3]));
    TRY(watch(at[1650], at[0]));
    watching = 0;
    for (int i = 0; i < 1600; i++)
        watching += watch(at[i], pair[1]) == 0;
    printf("directly: %d\n", watching);
}

static void a_file_comes_last(void)
{
    static int at[300];
    int pair[2];
    make(at, 300);
    MUST(pipe(pair));
    for (int i = 1; i < 12; i++)
        for (int k = 0; k < 10; k++)
            MUST(watch(at[20 + i * 10 + k], at[i]));
    for (int i = 1; i < 12; i++)
        MUST(watch(at[i], at[0]));
    TRY(watch(at[0], pair[0]));
    TRY(epoll_ctl(at[0], EPOLL_CTL_DEL, pair[0], NULL));
    MUST(close(at[11]));
    TRY(watch(at[0], pair[0]));
    MUST(write(pair[1], "x", 1));
    printf("%d %d ready\n", is_ready(at[30]), is_ready(at[131]));
}

/* Five layers, each instance watching all of the next: 2^30 ways, a bounded walk. */
static void wide_layers_are_walked_once(void)
{
    enum { WIDE = 64, LAYERS = 5 };
    static int at[WIDE * LAYERS];
    int pair[2];
    make(at, WIDE * LAYERS);
    for (int layer = 0; layer + 1 < LAYERS; layer++)
        for (int i = 0; i < WIDE; i++)
            for (int k = 0; k < WIDE; k++)
                MUST(watch(at[layer * WIDE + i], at[(layer + 1) * WIDE + k]));
    printf("%d ready\n", is_ready(at[0]));
    MUST(pipe(pair));
    TRY(watch(at[WIDE * LAYERS - 1], pair[0]));
    TRY(watch(at[0], pair[0]));
    MUST(write(pair[1], "x", 1));
    printf("%d ready\n", is_ready(at[0]));
    struct epoll_event event;
    SHOW(epoll_wait(at[1], &event, 1, 1));
}

static int many[2000][2];

static void *write_later(void *unused)
{
    (void)unused;
    await_state(getpid(), 'S');
    MUST(write(many[1234][1], "x", 1));
    return NULL;
}

/* Files without number are looked at in parts, with others in between: who wakes the waiter meanwhile is not missed. */
static void many_files_are_waited_for(void)
{
    struct epoll_event events[4];
    pthread_t writer;
    struct rlimit most = {4096, 4096};
    MUST(setrlimit(RLIMIT_NOFILE, &most));
    MUST(instance = epoll_create1(0));
    for (int i = 0; i < 2000; i++) {
        MUST(pipe(many[i]));
        MUST(watch(instance, many[i][0]));
    }
    for (int turn = 0; turn < 20; turn++) {
        char byte;
        MUST(pthread_create(&writer, NULL, write_later, NULL) ? -1 : 0);
        int ready = MUST(epoll_wait(instance, events, 4, 20000));
        printf("%d ready, right one: %d\n", ready, events[0].data.u64 == (uint64_t)many[1234][0]);
        MUST(pthread_join(writer, NULL) ? -1 : 0);
        MUST(read(many[1234][0], &byte, 1));
    }
    struct pollfd records[1900];
    for (int i = 0; i < 1900; i++)
        records[i] = (struct pollfd){many[i][0], POLLIN, 0};
    SHOW(poll(records, 1900, 5));
    MUST(pthread_create(&writer, NULL, write_later, NULL) ? -1 : 0);
    SHOW(poll(records, 1900, 20000));
    printf("%x\n", records[1234].revents);
    MUST(pthread_join(writer, NULL) ? -1 : 0);
    MUST(close(many[1234][0]));
    SHOW(epoll_wait(instance, events, 4, 0));
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(each_gets_its_turn),
    T(a_change_arms_again),
    T(closed_files_are_not_reported),
    T(every_arrival_is_an_edge),
    T(vectors_of_few_and_of_many_buffers),
    T(instances_watch_each_other_only_so_deep),
    T(only_so_many_ways_lead_up_from_a_file),
    T(a_file_comes_last),
    T(wide_layers_are_walked_once),
    T(many_files_are_waited_for),
};
CHECK_MAIN(tests)
