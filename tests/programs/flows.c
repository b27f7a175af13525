/* Streams between sockets that many messages go through: what is sent by any call comes out in order by any other, whatever goes beside
   it. A stream that is used changes its ways inside of the kernel; programs must not see when. */
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

static uint64_t state;

static uint32_t next(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

/* The byte at a place of a stream. */
static unsigned char byte_at(unsigned long place, int side)
{
    return place * 7 + place / 251 + side * 101;
}

static void fill(unsigned char *into, unsigned long from, unsigned long count, int side)
{
    for (unsigned long i = 0; i < count; i++)
        into[i] = byte_at(from + i, side);
}

static unsigned long wrong_bytes(const unsigned char *text, unsigned long from, unsigned long count, int side)
{
    unsigned long wrong = 0;
    for (unsigned long i = 0; i < count; i++)
        wrong += text[i] != byte_at(from + i, side);
    return wrong;
}

/* What one end has sent, what the other has got, and what a kernel may count for that. */
struct way {
    unsigned long sent, got, cost;
};

enum { ROOM = 64000 };
static unsigned char text[ROOM];
static char control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
static uint64_t digest;

static void note(const char *what, long result)
{
    static int tells = -1;
    if (tells < 0)
        tells = getenv("FLOWS_TELL") != NULL;
    if (tells)
        printf("%s %ld %s\n", what, result, result < 0 ? failing(-1) : "");
    for (; *what; what++)
        digest = digest * 31 + *what;
    digest = digest * 1000003 + (result < 0 ? -errno : result) + 77;
}

/* Ends of the streams are 4096 bytes apart in cost, as no kernel counts less than a page for a long message. */
static unsigned long cost_of(unsigned long bytes)
{
    return (bytes + 4095) / 4096 * 4096 + 1280;
}

static void send_some(int fd, struct way *way, int side)
{
    unsigned long bytes = next(6) == 0 ? 1 + next(ROOM / 2) : 1 + next(200);
    struct iovec parts[3] = {{text, bytes / 3}, {text + bytes / 3, bytes / 3}, {text + bytes / 3 * 2, bytes - bytes / 3 * 2}};
    long result;
    if (way->cost + cost_of(bytes) > 180000)
        return;
    fill(text, way->sent, bytes, side);
    switch (next(12)) {
    case 0:
        note("writev", result = writev(fd, parts, 3));
        break;
    case 1:
    case 2:
        note("send", result = send(fd, text, bytes, MSG_NOSIGNAL | (next(2) ? MSG_DONTWAIT : 0)));
        break;
    case 3:
        if (next(3) == 0) {
            struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3, .msg_control = control, .msg_controllen = CMSG_SPACE(sizeof(int))};
            struct cmsghdr *head = CMSG_FIRSTHDR(&message);
            *head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
            memcpy(CMSG_DATA(head), &fd, sizeof fd);
            note("sendmsg", result = sendmsg(fd, &message, MSG_NOSIGNAL));
            break;
        }
        /* fall through */
    default:
        note("write", result = write(fd, text, bytes));
    }
    if (result > 0) {
        way->sent += result;
        way->cost += cost_of(result);
    }
}

static void take(struct way *way, long result, int side, int is_peek)
{
    if (result <= 0)
        return;
    note("wrong", wrong_bytes(text, way->got, result, side));
    way->got += is_peek ? 0 : result;
    if (way->got == way->sent)
        way->cost = 0;
}

static void receive_some(int fd, struct way *way, int side, int may_wait)
{
    unsigned long bytes = next(4) == 0 ? 1 + next(ROOM) : 1 + next(300);
    struct iovec parts[3] = {{text, bytes / 3}, {text + bytes / 3, bytes / 3}, {text + bytes / 3 * 2, bytes - bytes / 3 * 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3, .msg_control = control, .msg_controllen = sizeof control};
    int waiting = 0, flags = may_wait || way->got < way->sent ? 0 : MSG_DONTWAIT;
    long result;
    switch (next(12)) {
    case 0:
        note("peek", result = recv(fd, text, bytes, flags | MSG_PEEK));
        take(way, result, side, 1);
        return;
    case 1:
        if (flags == 0) {
            note("readv", result = readv(fd, parts, 3));
            take(way, result, side, 0);
        }
        return;
    case 2:
    case 3:
        note("recvmsg", result = recvmsg(fd, &message, flags));
        take(way, result, side, 0);
        if (result >= 0) {
            note("flags", message.msg_flags & ~MSG_CMSG_CLOEXEC);
            for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
                note("control", head->cmsg_type);
                if (head->cmsg_type == SCM_RIGHTS) {
                    int got;
                    memcpy(&got, CMSG_DATA(head), sizeof got);
                    note("close", close(got));
                }
            }
        }
        return;
    case 4:
        note("fault", recv(fd, (void *)8, bytes, flags));
        return;
    case 5:
        note("unread", ioctl(fd, FIONREAD, &waiting) == 0 ? waiting : -1);
        return;
    case 6:
    case 7:
        note("recv", result = recv(fd, text, bytes, flags));
        take(way, result, side, 0);
        return;
    default:
        if (flags == 0) {
            note("read", result = read(fd, text, bytes));
            take(way, result, side, 0);
        }
    }
}

static void look(int fd)
{
    struct pollfd record = {fd, POLLIN | POLLRDHUP, 0};
    note("poll", poll(&record, 1, 0));
    note("ready", record.revents);
}

static void shake(uint64_t seed, int rounds)
{
    signal(SIGPIPE, SIG_IGN);
    state = seed;
    for (int round = 0; round < rounds; round++) {
        int fd[2], ended = 0, on = 0;
        struct way ways[2] = {{0}};
        digest = 0;
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
        int steps = 50 + next(2000);
        for (int step = 0; step < steps; step++) {
            int side = next(2);
            switch (next(ended ? 20 : 40)) {
            case 0:
                look(fd[side]);
                break;
            case 1:
                note("bad write", write(fd[side], (void *)8, 1 + next(100)));
                break;
            case 2:
                note("nothing", write(fd[side], text, 0));
                break;
            case 3:
                on = next(2);
                note("flags", fcntl(fd[side], F_SETFL, on ? O_NONBLOCK : 0));
                break;
            case 4:
                if (next(8) == 0) {
                    on = next(2);
                    note("credentials", setsockopt(fd[side], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
                }
                break;
            case 5:
                if (next(30) == 0) {
                    ended = 1;
                    note("shutdown", shutdown(fd[side], next(3)));
                }
                break;
            case 6 ... 20:
                send_some(fd[side], &ways[side], side);
                break;
            default:
                receive_some(fd[side], &ways[!side], !side, ended);
            }
        }
        note("close", close(fd[0]));
        look(fd[1]);
        for (int i = 0; i < 4; i++) {
            long result = recv(fd[1], text, ROOM, MSG_DONTWAIT);
            note("rest", result);
            take(&ways[0], result, 0, 0);
        }
        note("write", send(fd[1], text, 1, MSG_NOSIGNAL));
        note("close", close(fd[1]));
        printf("round %d: sent %lu and %lu, got %lu and %lu: %016lx\n", round, ways[0].sent, ways[1].sent, ways[0].got, ways[1].got,
               (unsigned long)digest);
        fflush(stdout);
    }
}

static void what_is_sent_comes_out_1(void) { shake(1, 40); }
static void what_is_sent_comes_out_2(void) { shake(20261122, 40); }
static void what_is_sent_comes_out_3(void) { shake(777, 40); }

enum { LENGTH = 1500000 };

/* How an end waits. */
enum how { BLOCKING, POLLING, EDGES };

static void await(int fd, int events, enum how how)
{
    static __thread int instance = 0;
    struct epoll_event event = {.events = (events & POLLIN ? EPOLLIN : 0) | (events & POLLOUT ? EPOLLOUT : 0) | EPOLLET};
    struct pollfd record = {fd, events, 0};
    if (how == POLLING)
        MUST(poll(&record, 1, 60000));
    if (how == EDGES) {
        if (instance == 0) {
            MUST(instance = epoll_create1(0));
            MUST(epoll_ctl(instance, EPOLL_CTL_ADD, fd, &event));
        }
        MUST(epoll_wait(instance, &event, 1, 60000) == 0 ? -1 : 0);
    }
}

struct end {
    int fd, side;
    enum how how;
    uint64_t seed;
    unsigned long wrong, done;
};

static uint32_t own_next(struct end *end, uint32_t below)
{
    end->seed = end->seed * 6364136223846793005u + 1442695040888963407u;
    return (end->seed >> 33) % below;
}

static void *send_all(void *argument)
{
    struct end *end = argument;
    unsigned char *part = malloc(100000);
    while (end->done < LENGTH) {
        unsigned long bytes = own_next(end, 20) == 0 ? 1 + own_next(end, 100000) : 1 + own_next(end, 400);
        if (bytes > LENGTH - end->done)
            bytes = LENGTH - end->done;
        fill(part, end->done, bytes, end->side);
        for (unsigned long done = 0; done < bytes;) {
            long result = write(end->fd, part + done, bytes - done);
            if (result < 0 && errno == EAGAIN)
                await(end->fd, POLLOUT, end->how);
            else
                done += MUST(result);
        }
        end->done += bytes;
    }
    free(part);
    return NULL;
}

static void *receive_all(void *argument)
{
    struct end *end = argument;
    unsigned char *part = malloc(100000);
    while (end->done < LENGTH) {
        long result = read(end->fd, part, own_next(end, 9) == 0 ? 100000 : 1 + own_next(end, 700));
        if (result < 0 && errno == EAGAIN) {
            await(end->fd, POLLIN, end->how);
            continue;
        }
        if (MUST(result) == 0)
            break;
        end->wrong += wrong_bytes(part, end->done, result, end->side);
        end->done += result;
    }
    free(part);
    return NULL;
}

/* Two processes, in each a thread for each direction. */
static void both_ways(enum how here, enum how there)
{
    int fd[2];
    pid_t child;
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
    fflush(stdout);
    MUST(child = fork());
    int side = child == 0;
    enum how how = side ? there : here;
    MUST(close(fd[!side]));
    MUST(fcntl(fd[side], F_SETFL, how == BLOCKING ? 0 : O_NONBLOCK));
    struct end out = {.fd = fd[side], .side = side, .how = how, .seed = 5 + side};
    struct end in = {.fd = fd[side], .side = !side, .how = how, .seed = 55 + side};
    pthread_t sender;
    MUST(pthread_create(&sender, NULL, send_all, &out) ? -1 : 0);
    receive_all(&in);
    MUST(pthread_join(sender, NULL) ? -1 : 0);
    int status = in.wrong != 0 || in.done != LENGTH || out.done != LENGTH;
    if (child == 0)
        _exit(status);
    printf("got %lu, %lu wrong", in.done, in.wrong);
    MUST(waitpid(child, &status, 0));
    printf("; the other: %x\n", status);
}

static void all_comes_both_ways(void) { both_ways(BLOCKING, BLOCKING); }
static void all_comes_to_who_polls(void) { both_ways(POLLING, BLOCKING); }
static void all_comes_to_who_waits_for_edges(void) { both_ways(EDGES, POLLING); }

/* A poller that came before the stream has been used sees what comes later. */
static void *send_later(void *argument)
{
    struct end *end = argument;
    unsigned char byte = 9, answer;
    for (int i = 0; i < 300; i++) {
        MUST(write(end->fd, &byte, 1));
        MUST(read(end->fd, &answer, 1));
    }
    MUST(shutdown(end->fd, SHUT_WR));
    return NULL;
}

static void who_watches_from_the_start_sees_all(void)
{
    int fd[2], instance, seen = 0;
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    MUST(instance = epoll_create1(0));
    MUST(epoll_ctl(instance, EPOLL_CTL_ADD, fd[0], &event));
    struct end end = {.fd = fd[1]};
    pthread_t sender;
    MUST(pthread_create(&sender, NULL, send_later, &end) ? -1 : 0);
    for (;;) {
        unsigned char byte;
        MUST(epoll_wait(instance, &event, 1, 60000) == 1 ? 0 : -1);
        long result = MUST(read(fd[0], &byte, 1));
        if (result == 0)
            break;
        seen++;
        MUST(write(fd[0], &byte, 1));
    }
    MUST(pthread_join(sender, NULL) ? -1 : 0);
    printf("seen %d\n", seen);
}

/* Who sleeps in a read when the other side ends, is shut down, or is killed. */
static void sleepers_are_told_of_the_end(void)
{
    for (int way = 0; way < 4; way++) {
        int fd[2];
        unsigned char byte = 1;
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
        fflush(stdout);
        pid_t child = MUST(fork());
        if (child == 0) {
            MUST(close(fd[0]));
            for (int i = 0; i < 100; i++) {
                MUST(read(fd[1], &byte, 1));
                MUST(write(fd[1], &byte, 1));
            }
            if (way == 0)
                _exit(0);
            if (way == 1)
                MUST(shutdown(fd[1], SHUT_RDWR));
            if (way == 2)
                raise(SIGKILL);
            if (way == 3)
                MUST(shutdown(fd[1], SHUT_WR));
            _exit(read(fd[1], &byte, 1));
        }
        MUST(close(fd[1]));
        for (int i = 0; i < 100; i++) {
            MUST(write(fd[0], &byte, 1));
            MUST(read(fd[0], &byte, 1));
        }
        printf("%d: end %ld", way, (long)read(fd[0], &byte, 1));
        signal(SIGPIPE, SIG_IGN);
        MUST(close(fd[0]));
        int status;
        MUST(waitpid(child, &status, 0));
        printf(", status %x\n", status);
    }
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(what_is_sent_comes_out_1),
    T(what_is_sent_comes_out_2),
    T(what_is_sent_comes_out_3),
    T(all_comes_both_ways),
    T(all_comes_to_who_polls),
    T(all_comes_to_who_waits_for_edges),
    T(who_watches_from_the_start_sees_all),
    T(sleepers_are_told_of_the_end),
};
CHECK_MAIN(tests)
