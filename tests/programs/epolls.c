/* What an epoll instance reports: in turns, after a change, and when a watched file is closed; and vectors of few and of many buffers. */
#include "check.h"

#include <sys/epoll.h>
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

#define T(name) {#name, name}
static const struct test tests[] = {
    T(each_gets_its_turn),
    T(a_change_arms_again),
    T(closed_files_are_not_reported),
    T(vectors_of_few_and_of_many_buffers),
};
CHECK_MAIN(tests)
