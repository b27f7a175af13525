/* What options of local sockets do, beside what they return, compared with Linux: how long one waits, for how much, and what fits. */
#include "check.h"
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

static const int kinds[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};

static void set(int socket, int name, int value)
{
    MUST(setsockopt(socket, SOL_SOCKET, name, &value, sizeof value));
}

static int get(int socket, int name)
{
    int value = -1;
    socklen_t size = sizeof value;
    MUST(getsockopt(socket, SOL_SOCKET, name, &value, &size));
    return value;
}

static void wait_at_most(int socket, int name, int milliseconds)
{
    struct timeval time = {milliseconds / 1000, milliseconds % 1000 * 1000};
    MUST(setsockopt(socket, SOL_SOCKET, name, &time, sizeof time));
}

/* Enough messages each way that whatever a kernel does for sockets in use is done. */
static void warm(int ends[2])
{
    char byte;
    for (int i = 0; i < 40; i++) {
        MUST(write(ends[0], "x", 1));
        MUST(read(ends[1], &byte, 1));
        MUST(write(ends[1], "y", 1));
        MUST(read(ends[0], &byte, 1));
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

/* Whether the time since then is at least this, and not for ever. */
static const char *lasted(double since, double seconds)
{
    double passed = now() - since;
    return passed < seconds ? "too short" : passed < seconds + 60 ? "as said" : "too long";
}

static void readers_wait_so_long(void)
{
    for (int i = 0; i < 3; i++) {
        int ends[2];
        char text[8];
        MUST(socketpair(AF_UNIX, kinds[i], 0, ends));
        warm(ends);
        wait_at_most(ends[1], SO_RCVTIMEO, 60);
        double start = now();
        TRY(read(ends[1], text, sizeof text));
        TRY(recv(ends[1], text, sizeof text, 0));
        printf("twice: %s\n", lasted(start, 0.12));
        MUST(write(ends[0], "here", 4));
        SHOW(read(ends[1], text, sizeof text));
        struct iovec part = {text, sizeof text};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        TRY(recvmsg(ends[1], &message, 0));
        struct timeval time;
        socklen_t size = sizeof time;
        MUST(getsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &time, &size));
        printf("%d bytes: %ld s, %ld us\n", size, (long)time.tv_sec, (long)time.tv_usec);
        /* The other end waits for ever. */
        if (!fork()) {
            MUST(read(ends[0], text, sizeof text));
            _exit(0);
        }
        wait_at_most(ends[1], SO_RCVTIMEO, 0);
        MUST(write(ends[1], "go", 2));
        MUST(wait(NULL));
    }
}

static void writers_wait_so_long(void)
{
    for (int i = 0; i < 3; i++) {
        int ends[2];
        static char block[4096];
        MUST(socketpair(AF_UNIX, kinds[i], 0, ends));
        warm(ends);
        wait_at_most(ends[0], SO_SNDTIMEO, 60);
        double start = now();
        long result;
        for (int n = 0; n < 1000 && (result = write(ends[0], block, sizeof block)) > 0; n++)
            ;
        printf("full: %s, %s\n", failing(result), lasted(start, 0.06));
        MUST(read(ends[1], block, sizeof block));
        TRY(send(ends[0], block, 1, MSG_DONTWAIT) != 1 && errno != EAGAIN);
    }
}

static void two_listen(int backlog, struct sockaddr_un *name, socklen_t *size, int *server)
{
    *server = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
    MUST(bind(*server, (void *)&(sa_family_t){AF_UNIX}, sizeof(sa_family_t)));
    MUST(listen(*server, backlog));
    *size = sizeof *name;
    MUST(getsockname(*server, (void *)name, size));
}

static void connections_wait_so_long(void)
{
    struct sockaddr_un name;
    socklen_t size;
    int server;
    two_listen(0, &name, &size, &server);
    wait_at_most(server, SO_RCVTIMEO, 60);
    double start = now();
    TRY(accept(server, NULL, NULL));
    printf("accept: %s\n", lasted(start, 0.06));
    int first = MUST(socket(AF_UNIX, SOCK_STREAM, 0)), second = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
    TRY(connect(first, (void *)&name, size));
    wait_at_most(second, SO_SNDTIMEO, 60);
    start = now();
    TRY(connect(second, (void *)&name, size));
    printf("connect: %s\n", lasted(start, 0.06));
    MUST(accept(server, NULL, NULL));
    TRY(connect(second, (void *)&name, size));
}

static void ignore(int signal) { (void)signal; }

/* A signal ends what waits for so long, whatever its handler says; what waits for ever begins anew. */
static void signals_end_it(void)
{
    int ends[2];
    char text[8];
    struct sigaction again = {.sa_handler = ignore, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGALRM, &again, NULL));
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    warm(ends);
    wait_at_most(ends[1], SO_RCVTIMEO, 20000);
    struct itimerval soon = {.it_value = {0, 50000}};
    MUST(setitimer(ITIMER_REAL, &soon, NULL));
    TRY(read(ends[1], text, sizeof text));
    MUST(setitimer(ITIMER_REAL, &soon, NULL));
    TRY(recv(ends[1], text, sizeof text, 0));
    wait_at_most(ends[1], SO_RCVTIMEO, 0);
    if (!fork()) {
        usleep(200000);
        MUST(write(ends[0], "late", 4));
        _exit(0);
    }
    MUST(setitimer(ITIMER_REAL, &soon, NULL));
    SHOW(read(ends[1], text, sizeof text));
    MUST(wait(NULL));
}

static void little_is_not_enough(void)
{
    int ends[2];
    char text[16] = "";
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    warm(ends);
    set(ends[1], SO_RCVLOWAT, 5);
    printf("least: %d\n", get(ends[1], SO_RCVLOWAT));
    MUST(write(ends[0], "abc", 3));
    SHOW(recv(ends[1], text, 2, 0));
    SHOW(recv(ends[1], text, 9, MSG_DONTWAIT));
    if (!fork()) {
        for (int i = 0; i < 5; i++) {
            usleep(5000);
            MUST(write(ends[0], "e", 1));
        }
        _exit(0);
    }
    SHOW(read(ends[1], text, 9));
    MUST(wait(NULL));
    MUST(write(ends[0], "ab", 2));
    wait_at_most(ends[1], SO_RCVTIMEO, 60);
    SHOW(read(ends[1], text, 9));
    TRY(read(ends[1], text, 9));
    wait_at_most(ends[1], SO_RCVTIMEO, 0);
    MUST(write(ends[0], "end", 3));
    MUST(shutdown(ends[0], SHUT_WR));
    SHOW(read(ends[1], text, 9));
    SHOW(read(ends[1], text, 9));
}

/* What a sender may have on its way. */
static void buffers(void)
{
    for (int i = 0; i < 3; i++) {
        int ends[2];
        static char block[300000];
        MUST(socketpair(AF_UNIX, kinds[i], 0, ends));
        warm(ends);
        printf("at first %d, %d\n", get(ends[0], SO_SNDBUF), get(ends[0], SO_RCVBUF));
        set(ends[0], SO_SNDBUF, 0);
        printf("least %d\n", get(ends[0], SO_SNDBUF));
        set(ends[0], SO_SNDBUF, 10000);
        set(ends[0], SO_RCVBUF, 10000);
        printf("set %d, %d; the other's %d\n", get(ends[0], SO_SNDBUF), get(ends[0], SO_RCVBUF), get(ends[1], SO_SNDBUF));
        if (kinds[i] != SOCK_STREAM) {
            SHOW(send(ends[0], block, 19000, MSG_DONTWAIT));
            TRY(send(ends[0], block, 20000 - 31, MSG_DONTWAIT));
            TRY(send(ends[1], block, 212992 - 31, MSG_DONTWAIT));
            continue;
        }
        long sent = send(ends[0], block, sizeof block, MSG_DONTWAIT);
        printf("of 300000 bytes go %s\n", sent < 0 ? failing(sent) : sent > 60000 ? "too many" : "few");
        struct pollfd one = {.fd = ends[0], .events = POLLOUT};
        printf("room: %ld\n", MUST(poll(&one, 1, 0)));
        for (long left = sent; left > 0;)
            left -= MUST(read(ends[1], block, sizeof block));
        printf("room: %ld\n", MUST(poll(&one, 1, 0)));
        set(ends[0], SO_SNDBUF, 200000);
        set(ends[0], SO_SNDBUFFORCE, 300000);
        printf("forced %d\n", get(ends[0], SO_SNDBUF));
    }
}

static void what_is_kept(void)
{
    static const struct { const char *name; int number, value; } options[] = {
        {"REUSEADDR", SO_REUSEADDR, 1}, {"BROADCAST", SO_BROADCAST, 7}, {"KEEPALIVE", SO_KEEPALIVE, 1},
        {"OOBINLINE", SO_OOBINLINE, 1}, {"DONTROUTE", SO_DONTROUTE, 1}, {"PRIORITY", SO_PRIORITY, 3},
        {"NO_CHECK", SO_NO_CHECK, 1}, {"RCVLOWAT", SO_RCVLOWAT, 0}, {"TIMESTAMP", SO_TIMESTAMP, 1},
        {"TIMESTAMPNS", SO_TIMESTAMPNS, 1}, {"PASSCRED", SO_PASSCRED, 1},
    };
    for (int k = 0; k < 3; k++) {
        int one = MUST(socket(AF_UNIX, kinds[k], 0));
        for (unsigned i = 0; i < sizeof options / sizeof *options; i++) {
            int before = get(one, options[i].number);
            set(one, options[i].number, options[i].value);
            printf("%s: %d, then %d\n", options[i].name, before, get(one, options[i].number));
        }
        struct linger linger = {1, 5};
        socklen_t size = sizeof linger;
        MUST(setsockopt(one, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
        linger = (struct linger){0};
        MUST(getsockopt(one, SOL_SOCKET, SO_LINGER, &linger, &size));
        printf("LINGER: %d, %d s\n", linger.l_onoff, linger.l_linger);
        close(one);
    }
}

static void what_is_refused(void)
{
    int ends[2], value = 1;
    struct timeval time = {0, 2000000};
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    TRY(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    TRY(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, 8));
    TRY(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &value, 2));
    TRY(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, (void *)8, 4));
    TRY(setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &value, 3));
    TRY(setsockopt(ends[0], SOL_SOCKET, 999, &value, sizeof value));
    TRY(setsockopt(ends[0], SOL_SOCKET, SO_TYPE, &value, sizeof value));
    TRY(setsockopt(ends[0], 6, 1, &value, sizeof value));
    socklen_t size = sizeof value;
    TRY(getsockopt(ends[0], SOL_SOCKET, 999, &value, &size));
    TRY(getsockopt(ends[0], 6, 1, &value, &size));
    size = -1;
    TRY(getsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &value, &size));
}

/* A datagram's receiver is told when it came; a stream's is not. */
static void stamps(void)
{
    for (int i = 0; i < 3; i++) {
        int ends[2];
        char text[8], control[64];
        MUST(socketpair(AF_UNIX, kinds[i], 0, ends));
        set(ends[1], SO_TIMESTAMP, 1);
        MUST(write(ends[0], "x", 1));
        struct iovec part = {text, sizeof text};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        MUST(recvmsg(ends[1], &message, 0));
        struct cmsghdr *first = CMSG_FIRSTHDR(&message);
        if (!first) {
            printf("nothing\n");
            continue;
        }
        struct timeval *came = (void *)CMSG_DATA(first);
        long age = time(NULL) - came->tv_sec;
        printf("type %d, %zu bytes, %s\n", first->cmsg_type, first->cmsg_len, age >= -1 && age < 60 ? "now" : "at another time");
    }
}

static const struct test tests[] = {
    {"readers_wait_so_long", readers_wait_so_long},
    {"writers_wait_so_long", writers_wait_so_long},
    {"connections_wait_so_long", connections_wait_so_long},
    {"signals_end_it", signals_end_it},
    {"little_is_not_enough", little_is_not_enough},
    {"buffers", buffers},
    {"what_is_kept", what_is_kept},
    {"what_is_refused", what_is_refused},
    {"stamps", stamps},
};
CHECK_MAIN(tests)
