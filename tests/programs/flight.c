/* Descriptors on their way through sockets: rings of sockets that nothing but their own messages holds come to an end, and
 * whatever somebody can still receive stays. A pipe's end travels with each socket: it is hung up when, and only when, the
 * socket is gone. Linux looks for such rings when another socket ends, and may take its time. */
#include "check.h"

#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#define FEW 60

/* Sends one byte with descriptors. */
static ssize_t pass(int to, const int *descriptors, int count)
{
    char control[CMSG_SPACE(253 * sizeof(int))] = {0};
    struct iovec part = {"x", 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control};
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){CMSG_LEN(count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(head), descriptors, count * sizeof(int));
    return sendmsg(to, &message, MSG_DONTWAIT);
}

/* Receives one byte; gives the count of descriptors that came with it. */
static int take(int from, int *descriptors, int flags)
{
    char byte, control[CMSG_SPACE(253 * sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(from, &message, flags | MSG_DONTWAIT) != 1)
        return -1;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int count = head ? (head->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
    if (head)
        memcpy(descriptors, CMSG_DATA(head), count * sizeof(int));
    return count;
}

static int is_open(int reader)
{
    struct pollfd one = {reader, POLLIN, 0};
    return poll(&one, 1, 0) == 0;
}

/* Waits until the pipe's other end is nowhere any more. */
static const char *fate(int reader)
{
    for (int tries = 0; tries < 2000; tries++) {
        if (!is_open(reader))
            return "gone";
        int last[2];
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, last));
        close(last[0]), close(last[1]);
        sleep_ms(tries < 10 ? 1 : 10);
    }
    return "still there";
}

static const int kinds[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};

/* Each socket in the inbox of the one before it, the first in that of the last; the pipe's end in all. */
static void make_ring(int kind, int count, int writer)
{
    int (*pairs)[2] = calloc(count, sizeof *pairs);
    for (int at = 0; at < count; at++)
        MUST(socketpair(AF_UNIX, kind, 0, pairs[at]));
    for (int at = 0; at < count; at++) {
        int list[2] = {pairs[(at + 1) % count][1], writer};
        MUST(pass(pairs[at][0], list, 2));
    }
    for (int at = 0; at < count; at++)
        close(pairs[at][0]), close(pairs[at][1]);
    free(pairs);
}

static void rings(void)
{
    static const int counts[] = {1, 2, 3, 7, 100};
    for (int kind = 0; kind < 3; kind++) {
        for (int which = 0; which < 5; which++) {
            int ends[2];
            MUST(pipe(ends));
            make_ring(kinds[kind], counts[which], ends[1]);
            close(ends[1]);
            printf("kind %d, %d in a ring: %s\n", kind, counts[which], fate(ends[0]));
            close(ends[0]);
        }
    }
}

/* Both ends of a pair, sent over it and closed, again and again. */
static void both_ends(void)
{
    int ends[2];
    MUST(pipe(ends));
    for (int round = 0; round < 2000; round++) {
        int pair[2];
        MUST(socketpair(AF_UNIX, kinds[round % 3], 0, pair));
        int list[3] = {pair[0], pair[1], ends[1]};
        MUST(pass(pair[round & 1], list, 3));
        close(pair[0]), close(pair[1]);
    }
    close(ends[1]);
    puts(fate(ends[0]));
}

/* The same with as many descriptors as messages can have, and as many messages as there is room for: without a collection this
 * is all memory. An ordinary user may have fewer in flight, and Linux takes a second for each ten thousand. */
static void many_each(void)
{
    int ends[2], is_linux = access("/proc/synthesis", F_OK) != 0, rounds = is_linux ? 5 : 200;
    MUST(pipe(ends));
    for (int round = 0; round < rounds; round++) {
        int pair[2], list[253];
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
        for (int at = 0; at < 253; at++)
            list[at] = at ? pair[at & 1] : ends[1];
        for (int end = 0; end < 2; end++)
            for (int message = 0; message < (is_linux ? 3 : 1000) && pass(pair[end], list, 253) > 0; message++)
                ;
        close(pair[0]), close(pair[1]);
    }
    close(ends[1]);
    puts(fate(ends[0]));
}

static unsigned long long state;

static unsigned below(unsigned bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % bound;
}

/* Sockets that hold each other at random. Some stay open: what can be received from them, and from what is received, lives.
 * Linux 6.18 forgets some of the others for ever: it is no judge of those. */
static void random_graph(unsigned seed)
{
    int sender[FEW], receiver[FEW], reader[FEW], holds[FEW][FEW] = {0}, lives[FEW] = {0}, kept[FEW];
    state = seed;
    int count = 2 + below(FEW - 2), ever_open = 0, judges = access("/proc/synthesis", F_OK) == 0;
    for (int at = 0; at < count; at++) {
        int pair[2], ends[2];
        MUST(socketpair(AF_UNIX, kinds[below(3)], 0, pair));
        MUST(pipe(ends));
        sender[at] = pair[0], receiver[at] = pair[1], reader[at] = ends[0];
        MUST(pass(pair[0], &ends[1], 1));
        close(ends[1]);
    }
    for (int message = 0; message < 3 * count; message++) {
        int list[3], to = below(count), many = 1 + below(3);
        for (int at = 0; at < many; at++) {
            int held = below(count);
            list[at] = receiver[held];
            holds[to][held] = 1;
        }
        MUST(pass(sender[to], list, many));
    }
    for (int at = 0; at < count; at++)
        close(sender[at]);
    for (int at = 0; at < count; at++) {
        kept[at] = lives[at] = below(8) == 0;
        if (!kept[at])
            close(receiver[at]);
    }
    for (int again = 1; again;) {
        again = 0;
        for (int from = 0; from < count; from++)
            for (int to = 0; to < count; to++)
                if (lives[from] && holds[from][to] && !lives[to])
                    lives[to] = again = 1;
    }
    for (int at = 0; at < count; at++) {
        if (!lives[at] && judges && is_open(reader[at]))
            printf("seed %u: garbage %d stays\n", seed, at);
        ever_open += lives[at];
    }
    for (int at = 0; at < count; at++)
        if (lives[at] && !is_open(reader[at]))
            printf("seed %u: %d was taken away\n", seed, at);
    printf("seed %u: %d of %d live\n", seed, ever_open, count);
    /* Those that are open still give what they got; then all goes. */
    for (int at = 0; at < count; at++) {
        int list[253], got, sum = 0;
        if (!kept[at])
            continue;
        while ((got = take(receiver[at], list, 0)) >= 0) {
            for (int one = 0; one < got; one++)
                close(list[one]);
            sum += got;
        }
        printf("%d ", sum);
        close(receiver[at]);
    }
    puts("received");
    for (int at = 0; at < count; at++) {
        if (judges && is_open(reader[at]))
            printf("seed %u: %d stays\n", seed, at);
        close(reader[at]);
    }
}

static void random_graphs(void)
{
    for (unsigned seed = 1; seed <= 40; seed++)
        random_graph(seed);
}

/* A descriptor outside of the ring, then another, then none; what was sent before is received after all searches. */
static void read_later(void)
{
    int ends[2], pair[2], list[253];
    MUST(pipe(ends));
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    list[0] = pair[0], list[1] = pair[1], list[2] = ends[1];
    MUST(pass(pair[0], list, 3));
    close(ends[1]);
    int copy = MUST(dup(pair[1]));
    close(pair[0]), close(pair[1]);
    for (int round = 0; round < 100; round++) {
        make_ring(SOCK_DGRAM, 3, ends[0]);
    }
    SHOW(is_open(ends[0]));
    SHOW(take(copy, list, MSG_PEEK));
    close(list[0]), close(list[1]), close(list[2]);
    SHOW(take(copy, list, 0));
    SHOW(write(list[0], "!", 1));
    char byte = 0;
    SHOW(read(copy, &byte, 1));
    SHOW(byte);
    SHOW(is_open(ends[0]));
    close(list[0]), close(list[1]), close(copy), close(list[2]);
    puts(fate(ends[0]));
}

/* Watching a socket does not hold it, neither from outside nor from within the ring. */
static void watched(void)
{
    int ends[2], pair[2];
    MUST(pipe(ends));
    MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    int outside = MUST(epoll_create1(0)), inside = MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN, .data = {.u64 = 7}};
    MUST(epoll_ctl(outside, EPOLL_CTL_ADD, pair[1], &event));
    MUST(epoll_ctl(inside, EPOLL_CTL_ADD, pair[1], &event));
    MUST(epoll_ctl(inside, EPOLL_CTL_ADD, ends[0], &event));
    int list[4] = {pair[1], ends[1], inside, outside};
    MUST(pass(pair[0], list, 4));
    close(pair[0]), close(inside), close(ends[1]);
    SHOW(epoll_wait(outside, &event, 1, 0));
    close(pair[1]);
    puts(fate(ends[0]));
    SHOW(epoll_wait(outside, &event, 1, 0));
}

/* What waits in a connection that nobody has accepted is held by who listens. */
static void not_accepted(void)
{
    for (int round = 0; round < 2; round++) {
        int ends[2], listener = MUST(socket(AF_UNIX, SOCK_STREAM, 0)), client = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
        struct sockaddr_un place = {AF_UNIX, "listener"};
        unlink("listener");
        MUST(pipe(ends));
        MUST(bind(listener, (void *)&place, sizeof place));
        MUST(listen(listener, 4));
        MUST(connect(client, (void *)&place, sizeof place));
        int list[2] = {listener, ends[1]};
        MUST(pass(client, list, 2));
        close(ends[1]), close(client);
        SHOW(is_open(ends[0]));
        if (round == 0) {
            int server = MUST(accept(listener, NULL, NULL));
            close(listener);
            SHOW(is_open(ends[0]));
            SHOW(take(server, list, 0));
            close(list[0]), close(list[1]), close(server);
        }
        close(listener);
        puts(fate(ends[0]));
        close(ends[0]);
    }
}

/* Who ends lets go of all descriptors. */
static void at_the_end(void)
{
    for (int round = 0; round < 3; round++) {
        int ends[2];
        MUST(pipe(ends));
        fflush(stdout);
        pid_t child = MUST(fork());
        if (child == 0) {
            int pair[2], list[2];
            MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
            list[0] = pair[1], list[1] = ends[1];
            MUST(pass(pair[0], list, 2));
            if (round == 1)
                raise(SIGKILL);
            if (round == 2)
                MUST(pass(pair[1], list, 2));
            _exit(0);
        }
        MUST(waitpid(child, NULL, 0));
        close(ends[1]);
        puts(fate(ends[0]));
        close(ends[0]);
    }
}

/* The last descriptor is replaced, and closed by exec. */
static void replaced(void)
{
    int ends[2], pair[2];
    MUST(pipe(ends));
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    int list[2] = {pair[1], ends[1]};
    MUST(pass(pair[0], list, 2));
    close(ends[1]), close(pair[0]);
    MUST(dup2(ends[0], pair[1]));
    puts(fate(ends[0]));
}

static const struct test tests[] = {
    {"rings", rings},         {"both_ends", both_ends},       {"many_each", many_each},   {"random_graphs", random_graphs},
    {"read_later", read_later}, {"watched", watched},         {"not_accepted", not_accepted}, {"at_the_end", at_the_end},
    {"replaced", replaced},
};
CHECK_MAIN(tests)
