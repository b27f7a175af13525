/* Streams and datagrams of the internet families over the loopback: calls, errors, readiness, ends. Ports are given out, so that
 * cases may run side by side; what is printed names no port. */
#include "check.h"
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define LOOPBACK htonl(INADDR_LOOPBACK)

/* No program has memory there; the compiler must not know. */
static void *volatile nowhere = (void *)8;
#define bad ((void *)nowhere)

static struct sockaddr_in at(uint32_t address, int port)
{
    struct sockaddr_in record = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = address};
    return record;
}

static int port_of(int socket)
{
    struct sockaddr_in6 record;
    socklen_t size = sizeof record;
    MUST(getsockname(socket, (void *)&record, &size));
    return ntohs(record.sin6_port);
}

/* A listener at a port that is given out. */
static int listener(int backlog, int *port)
{
    int server = MUST(socket(AF_INET, SOCK_STREAM, 0));
    struct sockaddr_in own = at(LOOPBACK, 0);
    MUST(bind(server, (void *)&own, sizeof own));
    MUST(listen(server, backlog));
    *port = port_of(server);
    return server;
}

static int caller(int port)
{
    int client = MUST(socket(AF_INET, SOCK_STREAM, 0));
    struct sockaddr_in to = at(LOOPBACK, port);
    MUST(connect(client, (void *)&to, sizeof to));
    return client;
}

static void pair(int ends[2])
{
    int port, server = listener(8, &port);
    ends[0] = caller(port);
    ends[1] = MUST(accept(server, NULL, NULL));
    close(server);
}

/* What has happened by now or happens soon: what another thread of a kernel does needs time on some systems. */
static int events(int descriptor)
{
    struct pollfd one = {.fd = descriptor, .events = POLLIN | POLLOUT | POLLRDHUP | POLLPRI};
    MUST(poll(&one, 1, 0));
    return one.revents;
}

static void show_events(const char *what, int descriptor)
{
    int seen = events(descriptor);
    printf("%s:%s%s%s%s%s\n", what, seen & POLLIN ? " in" : "", seen & POLLOUT ? " out" : "", seen & POLLRDHUP ? " rdhup" : "",
           seen & POLLHUP ? " hup" : "", seen & POLLERR ? " err" : "");
}

static void await(int descriptor, short wanted)
{
    struct pollfd one = {.fd = descriptor, .events = wanted};
    if (poll(&one, 1, 5000) != 1)
        printf("nothing happened in five seconds\n");
}

static int option(int socket, int level, int name)
{
    int value = -1;
    socklen_t size = sizeof value;
    MUST(getsockopt(socket, level, name, &value, &size));
    return value;
}

static void bytes_go_both_ways(void)
{
    int ends[2];
    char text[64] = "";
    pair(ends);
    SHOW(write(ends[0], "hello", 5));
    SHOW(read(ends[1], text, sizeof text));
    printf("%s\n", text);
    SHOW(send(ends[1], "world!", 6, MSG_NOSIGNAL));
    SHOW(recv(ends[0], text, 3, 0));
    SHOW(recv(ends[0], text + 3, sizeof text - 3, 0));
    printf("%s\n", text);
    struct iovec parts[3] = {{"ab", 2}, {"", 0}, {"cdef", 4}};
    SHOW(writev(ends[0], parts, 3));
    SHOW(readv(ends[1], &(struct iovec){text, 6}, 1));
    printf("%.6s\n", text);
    SHOW(write(ends[0], "x", 0));
    TRY(recv(ends[1], text, sizeof text, MSG_DONTWAIT));
}

static void peeking_and_waiting_for_all(void)
{
    int ends[2];
    char text[64] = "";
    pair(ends);
    MUST(write(ends[0], "abcdef", 6));
    SHOW(recv(ends[1], text, 4, MSG_PEEK));
    SHOW(recv(ends[1], text, 64, MSG_PEEK));
    SHOW(recv(ends[1], text, 2, 0));
    MUST(write(ends[0], "ghij", 4));
    MUST(shutdown(ends[0], SHUT_WR));
    SHOW(recv(ends[1], text, 20, MSG_WAITALL));
    printf("%.8s\n", text);
    SHOW(recv(ends[1], text, 20, 0));
    SHOW(recv(ends[1], text, 20, MSG_PEEK));
}

static void half_closing(void)
{
    int ends[2];
    char text[16];
    pair(ends);
    show_events("open", ends[0]);
    TRY(shutdown(ends[0], SHUT_WR));
    await(ends[1], POLLRDHUP);
    show_events("whose peer ended", ends[1]);
    show_events("who ended", ends[0]);
    SHOW(read(ends[1], text, sizeof text));
    SHOW(write(ends[1], "still", 5));
    SHOW(read(ends[0], text, sizeof text));
    SHOW(send(ends[0], "x", 1, MSG_NOSIGNAL));
    TRY(shutdown(ends[1], SHUT_WR));
    await(ends[0], POLLHUP);
    show_events("both", ends[0]);
    show_events("both", ends[1]);
    SHOW(read(ends[0], text, sizeof text));
    TRY(shutdown(ends[0], 3));
    int fresh = MUST(socket(AF_INET, SOCK_STREAM, 0));
    TRY(shutdown(fresh, SHUT_RD));
    show_events("fresh", fresh);
}

static void shutting_down_reads(void)
{
    int ends[2];
    char text[16];
    pair(ends);
    MUST(write(ends[1], "left", 4));
    await(ends[0], POLLIN);
    TRY(shutdown(ends[0], SHUT_RD));
    show_events("no reads", ends[0]);
    SHOW(read(ends[0], text, sizeof text));
    SHOW(read(ends[0], text, sizeof text));
    SHOW(write(ends[1], "more", 4));
    SHOW(write(ends[0], "back", 4));
    SHOW(read(ends[1], text, sizeof text));
}

static void the_other_side_goes(void)
{
    int ends[2];
    char text[16];
    pair(ends);
    MUST(write(ends[1], "bye", 3));
    close(ends[1]);
    await(ends[0], POLLRDHUP);
    show_events("gone", ends[0]);
    SHOW(read(ends[0], text, sizeof text));
    SHOW(read(ends[0], text, sizeof text));
    SHOW(send(ends[0], "x", 1, MSG_NOSIGNAL));
    await(ends[0], POLLERR);
    show_events("after the first write", ends[0]);
    SHOW(send(ends[0], "x", 1, MSG_NOSIGNAL));
    SHOW(send(ends[0], "x", 1, MSG_NOSIGNAL));
    SHOW(read(ends[0], text, sizeof text));
    printf("error %d\n", option(ends[0], SOL_SOCKET, SO_ERROR));
}

static void going_with_unread_bytes_resets(void)
{
    int ends[2];
    char text[16];
    pair(ends);
    MUST(write(ends[0], "unread", 6));
    await(ends[1], POLLIN);
    close(ends[1]);
    await(ends[0], POLLERR);
    show_events("reset", ends[0]);
    SHOW(read(ends[0], text, sizeof text));
    show_events("after the error", ends[0]);
    SHOW(read(ends[0], text, sizeof text));
    SHOW(send(ends[0], "x", 1, MSG_NOSIGNAL));
}

static void lingering_for_no_time_resets(void)
{
    int ends[2];
    pair(ends);
    struct linger none = {1, 0};
    TRY(setsockopt(ends[1], SOL_SOCKET, SO_LINGER, &none, sizeof none));
    close(ends[1]);
    await(ends[0], POLLERR);
    show_events("reset", ends[0]);
    printf("error %s\n", strerrorname_np(option(ends[0], SOL_SOCKET, SO_ERROR)));
    printf("error %d\n", option(ends[0], SOL_SOCKET, SO_ERROR));
}

static volatile sig_atomic_t pipes;

static void count_pipe(int signal)
{
    (void)signal;
    pipes++;
}

static void broken_streams_raise_sigpipe(void)
{
    int ends[2];
    pair(ends);
    signal(SIGPIPE, count_pipe);
    MUST(shutdown(ends[0], SHUT_WR));
    TRY(write(ends[0], "x", 1));
    TRY(send(ends[0], "x", 1, 0));
    TRY(send(ends[0], "x", 1, MSG_NOSIGNAL));
    printf("signals %d\n", (int)pipes);
}

static void connecting_to_nobody(void)
{
    int port, server = listener(1, &port);
    close(server);
    int client = MUST(socket(AF_INET, SOCK_STREAM, 0));
    struct sockaddr_in to = at(LOOPBACK, port);
    TRY(connect(client, (void *)&to, sizeof to));
    show_events("refused", client);
    printf("error %d\n", option(client, SOL_SOCKET, SO_ERROR));
    TRY(connect(client, (void *)&to, sizeof to));
    TRY(send(client, "x", 1, MSG_NOSIGNAL));
    char text[4];
    TRY(recv(client, text, 4, 0));
    struct sockaddr_in peer;
    socklen_t size = sizeof peer;
    TRY(getpeername(client, (void *)&peer, &size));
}

static void connecting_without_waiting(void)
{
    int port, server = listener(4, &port);
    int client = MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    struct sockaddr_in to = at(LOOPBACK, port);
    TRY(connect(client, (void *)&to, sizeof to));
    await(client, POLLOUT);
    show_events("connected", client);
    printf("error %d\n", option(client, SOL_SOCKET, SO_ERROR));
    TRY(connect(client, (void *)&to, sizeof to));
    TRY(connect(client, (void *)&to, sizeof to));
    int refused = MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    close(server);
    TRY(connect(refused, (void *)&to, sizeof to));
    await(refused, POLLOUT);
    show_events("refused", refused);
    printf("error %s\n", strerrorname_np(option(refused, SOL_SOCKET, SO_ERROR)));
    show_events("after the error", refused);
}

static void accepting(void)
{
    int port, server = listener(8, &port);
    TRY(fcntl(server, F_SETFL, O_NONBLOCK));
    TRY(accept(server, NULL, NULL));
    show_events("listening", server);
    int client = caller(port);
    await(server, POLLIN);
    show_events("somebody waits", server);
    struct sockaddr_in peer;
    socklen_t size = sizeof peer;
    int connection = MUST(accept4(server, (void *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    printf("%u %s %d\n", size, inet_ntoa(peer.sin_addr), ntohs(peer.sin_port) == port_of(client));
    printf("nonblocking %d, closed on exec %d\n", !!(fcntl(connection, F_GETFL) & O_NONBLOCK), fcntl(connection, F_GETFD));
    TRY(accept4(server, NULL, NULL, 1));
    TRY(accept(connection, NULL, NULL));
    char text[4];
    TRY(read(connection, text, 4));
    TRY(read(server, text, 4));
    TRY(send(server, "x", 1, MSG_NOSIGNAL));
    size = 6;
    TRY(getpeername(connection, (void *)&peer, &size));
    printf("%u\n", size);
    TRY(getpeername(server, (void *)&peer, &size));
    printf("listens %d, client %d\n", option(server, SOL_SOCKET, SO_ACCEPTCONN), option(client, SOL_SOCKET, SO_ACCEPTCONN));
    TRY(listen(client, 1));
    TRY(listen(server, 2));
    struct sockaddr_in to = at(LOOPBACK, port);
    TRY(connect(server, (void *)&to, sizeof to));
}

static void a_listener_that_goes(void)
{
    int port, server = listener(8, &port);
    int client = caller(port);
    close(server);
    await(client, POLLERR);
    show_events("reset", client);
    char text[4];
    TRY(read(client, text, 4));
}

static void binding(void)
{
    int port, server = listener(1, &port);
    struct sockaddr_in own = at(LOOPBACK, port), wide = at(INADDR_ANY, port), far = at(htonl(0xC0000201), 0);
    int other = MUST(socket(AF_INET, SOCK_STREAM, 0)), on = 1;
    TRY(bind(other, (void *)&own, sizeof own));
    TRY(bind(other, (void *)&wide, sizeof wide));
    TRY(bind(other, (void *)&far, sizeof far));
    TRY(bind(other, (void *)&own, 8));
    TRY(bind(server, (void *)&own, sizeof own));
    MUST(setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
    TRY(bind(other, (void *)&own, sizeof own));
    own.sin_family = AF_INET6;
    TRY(bind(other, (void *)&own, sizeof own));
    own.sin_family = AF_UNSPEC;
    own.sin_addr.s_addr = 0;
    own.sin_port = 0;
    TRY(bind(other, (void *)&own, sizeof own));
    int one = MUST(socket(AF_INET, SOCK_STREAM, 0)), two = MUST(socket(AF_INET, SOCK_STREAM, 0));
    for (int i = 0; i < 2; i++)
        MUST(setsockopt(i ? one : two, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
    own = at(LOOPBACK, 0);
    TRY(bind(one, (void *)&own, sizeof own));
    own.sin_port = htons(port_of(one));
    TRY(bind(two, (void *)&own, sizeof own));
    TRY(listen(one, 1));
    TRY(listen(two, 1));
    int three = MUST(socket(AF_INET, SOCK_STREAM, 0)), four = MUST(socket(AF_INET, SOCK_STREAM, 0));
    for (int i = 0; i < 2; i++)
        MUST(setsockopt(i ? three : four, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on));
    own = at(LOOPBACK, 0);
    MUST(bind(three, (void *)&own, sizeof own));
    own.sin_port = htons(port_of(three));
    TRY(bind(four, (void *)&own, sizeof own));
    TRY(listen(three, 1));
    TRY(listen(four, 1));
    int unbound = MUST(socket(AF_INET, SOCK_STREAM, 0));
    printf("port %d\n", port_of(unbound));
    TRY(listen(unbound, 1));
    printf("port given out %d\n", port_of(unbound) > 1023);
}

static void sockets_that_are_not_made(void)
{
    TRY(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
    TRY(socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP));
    TRY(socket(AF_INET, SOCK_SEQPACKET, 0));
    TRY(socket(AF_INET, SOCK_RDM, 0));
    TRY(socket(AF_INET, 11, 0));
    TRY(socket(77, SOCK_STREAM, 0));
    int ends[2];
    TRY(socketpair(AF_INET, SOCK_STREAM, 0, ends));
    int tcp = MUST(socket(AF_INET, SOCK_STREAM, 0)), udp = MUST(socket(AF_INET6, SOCK_DGRAM, 0));
    printf("%d %d %d\n", option(tcp, SOL_SOCKET, SO_TYPE), option(tcp, SOL_SOCKET, SO_DOMAIN), option(tcp, SOL_SOCKET, SO_PROTOCOL));
    printf("%d %d %d\n", option(udp, SOL_SOCKET, SO_TYPE), option(udp, SOL_SOCKET, SO_DOMAIN), option(udp, SOL_SOCKET, SO_PROTOCOL));
    struct sockaddr record = {.sa_family = AF_UNIX};
    TRY(connect(tcp, &record, sizeof record));
    TRY(connect(tcp, &record, 1));
}

/* Sets an option and shows what it is then. */
static void set_and_show(const char *name, int socket, int level, int number, int value)
{
    int result = setsockopt(socket, level, number, &value, sizeof value);
    printf("%s %d: %s", name, value, failing(result));
    int now = -1;
    socklen_t size = sizeof now;
    if (getsockopt(socket, level, number, &now, &size) == 0)
        printf(", now %d (%u bytes)", now, size);
    printf("\n");
}

#define OPTION(socket, level, name, value) set_and_show(#name, socket, level, name, value)

static void options_of_streams(void)
{
    int tcp = MUST(socket(AF_INET, SOCK_STREAM, 0));
    OPTION(tcp, SOL_SOCKET, SO_REUSEADDR, 7);
    OPTION(tcp, SOL_SOCKET, SO_REUSEPORT, 1);
    OPTION(tcp, SOL_SOCKET, SO_KEEPALIVE, 1);
    OPTION(tcp, SOL_SOCKET, SO_BROADCAST, 1);
    OPTION(tcp, SOL_SOCKET, SO_OOBINLINE, 1);
    OPTION(tcp, SOL_SOCKET, SO_RCVBUF, 10000);
    OPTION(tcp, SOL_SOCKET, SO_RCVBUF, 1);
    OPTION(tcp, SOL_SOCKET, SO_SNDBUF, 10000);
    OPTION(tcp, SOL_SOCKET, SO_SNDBUF, 1);
    OPTION(tcp, SOL_SOCKET, SO_RCVLOWAT, 0);
    OPTION(tcp, SOL_SOCKET, SO_RCVLOWAT, 5);
    OPTION(tcp, SOL_SOCKET, SO_PRIORITY, 3);
    OPTION(tcp, IPPROTO_TCP, TCP_NODELAY, 5);
    OPTION(tcp, IPPROTO_TCP, TCP_CORK, 1);
    OPTION(tcp, IPPROTO_TCP, TCP_KEEPIDLE, 30);
    OPTION(tcp, IPPROTO_TCP, TCP_KEEPIDLE, 0);
    OPTION(tcp, IPPROTO_TCP, TCP_KEEPINTVL, 31);
    OPTION(tcp, IPPROTO_TCP, TCP_KEEPCNT, 4);
    OPTION(tcp, IPPROTO_TCP, TCP_KEEPCNT, 128);
    OPTION(tcp, IPPROTO_TCP, TCP_SYNCNT, 3);
    OPTION(tcp, IPPROTO_TCP, TCP_USER_TIMEOUT, 1234);
    OPTION(tcp, IPPROTO_TCP, TCP_USER_TIMEOUT, -1);
    OPTION(tcp, IPPROTO_TCP, 999, 1);
    OPTION(tcp, IPPROTO_IP, IP_TTL, 9);
    OPTION(tcp, IPPROTO_IP, IP_TTL, 0);
    OPTION(tcp, IPPROTO_IP, IP_TTL, 256);
    OPTION(tcp, IPPROTO_IP, IP_TTL, -1);
    OPTION(tcp, IPPROTO_IP, IP_TOS, 16);
    OPTION(tcp, 999, 1, 1);
    OPTION(tcp, SOL_SOCKET, 999, 1);
    int value = 1;
    TRY(setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &value, 3));
    TRY(setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &value, 3));
    TRY(setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, bad, 4));
    struct linger linger = {1, 9};
    socklen_t size = sizeof linger;
    TRY(setsockopt(tcp, SOL_SOCKET, SO_LINGER, &linger, 4));
    TRY(setsockopt(tcp, SOL_SOCKET, SO_LINGER, &linger, size));
    linger = (struct linger){0, 0};
    TRY(getsockopt(tcp, SOL_SOCKET, SO_LINGER, &linger, &size));
    printf("linger %d %d, %u bytes\n", linger.l_onoff, linger.l_linger, size);
    struct timeval time = {2, 500000};
    size = sizeof time;
    TRY(setsockopt(tcp, SOL_SOCKET, SO_RCVTIMEO, &time, size));
    TRY(setsockopt(tcp, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){0, 1000000}, size));
    TRY(getsockopt(tcp, SOL_SOCKET, SO_RCVTIMEO, &time, &size));
    printf("%ld.%06ld\n", (long)time.tv_sec, (long)time.tv_usec);
    TRY(setsockopt(tcp, SOL_SOCKET, SO_BINDTODEVICE, "nosuch", 7));
    int six = MUST(socket(AF_INET6, SOCK_STREAM, 0));
    OPTION(six, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    OPTION(six, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 5);
    OPTION(six, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 256);
    OPTION(tcp, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    int udp = MUST(socket(AF_INET, SOCK_DGRAM, 0));
    OPTION(udp, IPPROTO_TCP, TCP_NODELAY, 1);
    OPTION(udp, SOL_SOCKET, SO_BROADCAST, 1);
    OPTION(udp, IPPROTO_IP, IP_MULTICAST_TTL, 4);
}

static void options_are_inherited(void)
{
    int port, server = listener(4, &port), on = 1, idle = 77;
    MUST(setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    MUST(setsockopt(server, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle));
    MUST(setsockopt(server, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
    int client = caller(port), connection = MUST(accept(server, NULL, NULL));
    printf("%d %d %d, client %d\n", option(connection, IPPROTO_TCP, TCP_NODELAY), option(connection, IPPROTO_TCP, TCP_KEEPIDLE),
           option(connection, SOL_SOCKET, SO_KEEPALIVE), option(client, IPPROTO_TCP, TCP_NODELAY));
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    TRY(getsockopt(client, IPPROTO_TCP, TCP_INFO, &info, &size));
    printf("state %d\n", info.tcpi_state);
}

static void times_run_out(void)
{
    int ends[2];
    char text[4];
    pair(ends);
    struct timeval time = {0, 50000};
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    TRY(read(ends[0], text, 4));
    clock_gettime(CLOCK_MONOTONIC, &end);
    double waited = end.tv_sec - start.tv_sec + (end.tv_nsec - start.tv_nsec) / 1e9;
    printf("waited: %s\n", waited >= 0.05 && waited < 5 ? "enough" : "wrong");
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time));
    char *many = calloc(1, 65536);
    ssize_t sent;
    while ((sent = write(ends[0], many, 65536)) > 0)
        ;
    printf("%s\n", sent == -1 ? strerrorname_np(errno) : "sent");
    int port, server = listener(1, &port);
    MUST(setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    TRY(accept(server, NULL, NULL));
    int udp = MUST(socket(AF_INET, SOCK_DGRAM, 0));
    MUST(setsockopt(udp, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    TRY(recv(udp, text, 4, 0));
}

static void edges(void)
{
    int ends[2], many = MUST(epoll_create1(0));
    char text[16];
    pair(ends);
    struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = ends[0]}, seen;
    MUST(epoll_ctl(many, EPOLL_CTL_ADD, ends[0], &wanted));
    SHOW(epoll_wait(many, &seen, 1, 0));
    printf("%x\n", seen.events);
    SHOW(epoll_wait(many, &seen, 1, 0));
    MUST(write(ends[1], "a", 1));
    SHOW(epoll_wait(many, &seen, 1, 2000));
    printf("%x\n", seen.events);
    SHOW(epoll_wait(many, &seen, 1, 0));
    MUST(write(ends[1], "b", 1));
    SHOW(epoll_wait(many, &seen, 1, 2000));
    MUST(read(ends[0], text, 16));
    SHOW(epoll_wait(many, &seen, 1, 0));
    MUST(shutdown(ends[1], SHUT_WR));
    SHOW(epoll_wait(many, &seen, 1, 2000));
    printf("%x\n", seen.events);
    int port, server = listener(4, &port);
    wanted = (struct epoll_event){.events = EPOLLIN | EPOLLET, .data.fd = server};
    MUST(epoll_ctl(many, EPOLL_CTL_ADD, server, &wanted));
    SHOW(epoll_wait(many, &seen, 1, 0));
    int client = caller(port);
    SHOW(epoll_wait(many, &seen, 1, 2000));
    close(client);
}

/* A pseudo-random byte for each place, so that each is looked at. */
static unsigned char byte_at(size_t place)
{
    return place * 2654435761u >> 13 ^ place;
}

struct transfer {
    int descriptor;
    size_t bytes;
    unsigned seed;
};

static void *send_all(void *argument)
{
    struct transfer *transfer = argument;
    unsigned char piece[30000];
    for (size_t done = 0; done < transfer->bytes;) {
        size_t part = 1 + rand_r(&transfer->seed) % sizeof piece;
        if (part > transfer->bytes - done)
            part = transfer->bytes - done;
        for (size_t i = 0; i < part; i++)
            piece[i] = byte_at(done + i);
        ssize_t sent = rand_r(&transfer->seed) & 1 ? write(transfer->descriptor, piece, part)
                                                   : send(transfer->descriptor, piece, part, MSG_NOSIGNAL);
        if (sent <= 0)
            return "sending failed";
        done += sent;
    }
    shutdown(transfer->descriptor, SHUT_WR);
    return NULL;
}

static const char *receive_all(int descriptor, size_t bytes, unsigned seed)
{
    unsigned char piece[30000];
    size_t done = 0;
    for (;;) {
        size_t room = 1 + rand_r(&seed) % sizeof piece;
        ssize_t came = rand_r(&seed) & 1 ? read(descriptor, piece, room) : recv(descriptor, piece, room, 0);
        if (came < 0)
            return "receiving failed";
        if (came == 0)
            return done == bytes ? "all came" : "too few came";
        for (ssize_t i = 0; i < came; i++)
            if (piece[i] != byte_at(done + i))
                return "a wrong byte came";
        done += came;
    }
}

static void megabytes_both_ways(void)
{
    int ends[2];
    pair(ends);
    struct transfer transfers[2] = {{ends[0], 3000000, 1}, {ends[1], 2000000, 2}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, send_all, &transfers[i]);
    int child = MUST(fork());
    if (child == 0) {
        /* The child has both ends, too, and does nothing with them. */
        _exit(0);
    }
    MUST(waitpid(child, NULL, 0));
    pthread_t none;
    (void)none;
    const char *first = receive_all(ends[0], 2000000, 3);
    const char *second = receive_all(ends[1], 3000000, 4);
    void *failed[2];
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], &failed[i]);
    printf("%s, %s, %s %s\n", first, second, failed[0] ? (char *)failed[0] : "sent", failed[1] ? (char *)failed[1] : "sent");
}

static void a_server_and_many_clients(void)
{
    enum { CLIENTS = 40, ROUNDS = 30 };
    int port, server = listener(CLIENTS, &port);
    fflush(stdout);
    int child = MUST(fork());
    if (child == 0) {
        int right = 0;
        for (int i = 0; i < CLIENTS; i++) {
            int client = caller(port);
            for (int round = 0; round < ROUNDS; round++) {
                uint32_t word = i * 1000 + round, back = 0;
                if (write(client, &word, 4) == 4 && recv(client, &back, 4, MSG_WAITALL) == 4 && back == word + 1)
                    right++;
            }
            close(client);
        }
        _exit(right == CLIENTS * ROUNDS ? 0 : 1);
    }
    for (int i = 0; i < CLIENTS; i++) {
        int connection = MUST(accept(server, NULL, NULL));
        uint32_t word;
        while (recv(connection, &word, 4, MSG_WAITALL) == 4) {
            word++;
            MUST(write(connection, &word, 4));
        }
        close(connection);
    }
    int status;
    MUST(waitpid(child, &status, 0));
    printf("status %d\n", WEXITSTATUS(status));
}

static void hundreds_open_at_once(void)
{
    enum { COUNT = 300 };
    int port, server = listener(COUNT, &port), clients[COUNT], connections[COUNT], right = 0;
    for (int i = 0; i < COUNT; i++)
        clients[i] = caller(port);
    for (int i = 0; i < COUNT; i++)
        connections[i] = MUST(accept(server, NULL, NULL));
    for (int i = 0; i < COUNT; i++)
        MUST(write(clients[i], &i, sizeof i));
    for (int i = 0; i < COUNT; i++) {
        int number = -1;
        right += read(connections[i], &number, sizeof number) == sizeof number && number == i;
    }
    printf("%d right\n", right);
}

static void datagrams(void)
{
    int one = MUST(socket(AF_INET, SOCK_DGRAM, 0)), two = MUST(socket(AF_INET, SOCK_DGRAM, 0));
    struct sockaddr_in own = at(LOOPBACK, 0), from;
    socklen_t size = sizeof from;
    char text[64] = "";
    show_events("fresh", one);
    MUST(bind(one, (void *)&own, sizeof own));
    own.sin_port = htons(port_of(one));
    SHOW(sendto(two, "hello", 5, 0, (void *)&own, sizeof own));
    await(one, POLLIN);
    SHOW(recvfrom(one, text, 64, 0, (void *)&from, &size));
    printf("%s from %s, port right %d, %u bytes\n", text, inet_ntoa(from.sin_addr), ntohs(from.sin_port) == port_of(two), size);
    SHOW(sendto(two, "", 0, 0, (void *)&own, sizeof own));
    await(one, POLLIN);
    SHOW(recv(one, text, 64, 0));
    MUST(sendto(two, "long one", 8, 0, (void *)&own, sizeof own));
    await(one, POLLIN);
    SHOW(recv(one, text, 3, MSG_PEEK));
    SHOW(recv(one, text, 3, MSG_PEEK | MSG_TRUNC));
    int waits = 0;
    MUST(ioctl(one, FIONREAD, &waits));
    printf("waits %d\n", waits);
    struct iovec part = {text, 4};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    SHOW(recvmsg(one, &message, 0));
    printf("cut %d\n", !!(message.msg_flags & MSG_TRUNC));
    TRY(recv(one, text, 64, MSG_DONTWAIT));
    TRY(send(two, "x", 1, 0));
    TRY(listen(one, 1));
    TRY(accept(one, NULL, NULL));
    char *large = calloc(1, 70000);
    SHOW(sendto(two, large, 65507, 0, (void *)&own, sizeof own));
    await(one, POLLIN);
    SHOW(recv(one, large, 70000, 0));
    TRY(sendto(two, large, 65508, 0, (void *)&own, sizeof own));
    struct sockaddr_in nobody = at(LOOPBACK, 0);
    TRY(sendto(two, "x", 1, 0, (void *)&nobody, sizeof nobody));
    TRY(sendto(two, "x", 1, 0, (void *)&own, 8));
    struct sockaddr_in all = at(INADDR_BROADCAST, 9);
    TRY(connect(two, (void *)&all, sizeof all));
}

static void connected_datagrams(void)
{
    int one = MUST(socket(AF_INET, SOCK_DGRAM, 0)), two = MUST(socket(AF_INET, SOCK_DGRAM, 0)), three = MUST(socket(AF_INET, SOCK_DGRAM, 0));
    struct sockaddr_in own = at(LOOPBACK, 0), peer;
    socklen_t size = sizeof peer;
    char text[64] = "";
    MUST(bind(one, (void *)&own, sizeof own));
    own.sin_port = htons(port_of(one));
    TRY(getpeername(two, (void *)&peer, &size));
    TRY(connect(two, (void *)&own, sizeof own));
    TRY(getpeername(two, (void *)&peer, &size));
    printf("%d\n", peer.sin_port == own.sin_port);
    SHOW(send(two, "to one", 6, 0));
    await(one, POLLIN);
    SHOW(recv(one, text, 64, 0));
    struct sockaddr_in back = at(LOOPBACK, port_of(two));
    SHOW(sendto(three, "stranger", 8, 0, (void *)&back, sizeof back));
    SHOW(sendto(one, "friend", 6, 0, (void *)&back, sizeof back));
    await(two, POLLIN);
    SHOW(recv(two, text, 64, 0));
    printf("%s\n", text);
    TRY(recv(two, text, 64, MSG_DONTWAIT));
    close(one);
    SHOW(send(two, "to nobody", 9, 0));
    await(two, POLLERR);
    show_events("refused", two);
    TRY(send(two, "again", 5, 0));
    SHOW(send(two, "again", 5, 0));
    await(two, POLLERR);
    TRY(recv(two, text, 64, 0));
    TRY(shutdown(three, SHUT_WR));
    TRY(shutdown(two, SHUT_WR));
    TRY(send(two, "x", 1, MSG_NOSIGNAL));
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    TRY(connect(two, &none, sizeof none));
    TRY(getpeername(two, (void *)&peer, &size));
}

static void many_messages_at_once(void)
{
    int one = MUST(socket(AF_INET, SOCK_DGRAM, 0)), two = MUST(socket(AF_INET, SOCK_DGRAM, 0));
    struct sockaddr_in own = at(LOOPBACK, 0);
    MUST(bind(one, (void *)&own, sizeof own));
    own.sin_port = htons(port_of(one));
    MUST(connect(two, (void *)&own, sizeof own));
    struct iovec out[3] = {{"a", 1}, {"bb", 2}, {"ccc", 3}};
    struct mmsghdr messages[3] = {0};
    for (int i = 0; i < 3; i++)
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &out[i], .msg_iovlen = 1};
    SHOW(sendmmsg(two, messages, 3, 0));
    char rooms[4][8] = {0};
    struct iovec in[4];
    struct mmsghdr received[4] = {0};
    for (int i = 0; i < 4; i++) {
        in[i] = (struct iovec){rooms[i], 8};
        received[i].msg_hdr = (struct msghdr){.msg_iov = &in[i], .msg_iovlen = 1};
    }
    await(one, POLLIN);
    SHOW(recvmmsg(one, received, 4, MSG_DONTWAIT, NULL));
    printf("%s %s %s\n", rooms[0], rooms[1], rooms[2]);
}

static void both_families(void)
{
    int six = MUST(socket(AF_INET6, SOCK_STREAM, 0)), off = 0;
    MUST(setsockopt(six, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off));
    struct sockaddr_in6 own = {.sin6_family = AF_INET6};
    MUST(bind(six, (void *)&own, sizeof own));
    MUST(listen(six, 4));
    int port = port_of(six);
    int four = caller(port);
    struct sockaddr_in6 peer;
    socklen_t size = sizeof peer;
    char text[64];
    int connection = MUST(accept(six, (void *)&peer, &size));
    printf("%s\n", inet_ntop(AF_INET6, &peer.sin6_addr, text, sizeof text));
    size = sizeof peer;
    MUST(getsockname(connection, (void *)&peer, &size));
    printf("%s\n", inet_ntop(AF_INET6, &peer.sin6_addr, text, sizeof text));
    SHOW(write(four, "4", 1));
    SHOW(read(connection, text, 4));
    int other = MUST(socket(AF_INET6, SOCK_STREAM, 0));
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons(port)};
    TRY(connect(other, (void *)&to, sizeof to));
    size = sizeof peer;
    MUST(accept(six, (void *)&peer, &size));
    printf("%s\n", inet_ntop(AF_INET6, &peer.sin6_addr, text, sizeof text));
    struct sockaddr_in clash = at(INADDR_ANY, port);
    int third = MUST(socket(AF_INET, SOCK_STREAM, 0));
    TRY(bind(third, (void *)&clash, sizeof clash));
    TRY(connect(third, (void *)&to, sizeof to));
    TRY(connect(other, (void *)&clash, sizeof clash));
}

static void echoes(void)
{
    int ping = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
    if (ping < 0) {
        printf("%s\n", strerrorname_np(errno));
        return;
    }
    struct icmphdr echo = {.type = ICMP_ECHO, .un.echo = {htons(0x1234), htons(7)}};
    uint16_t words[4];
    memcpy(words, &echo, 8);
    uint32_t sum = words[0] + words[1] + words[2] + words[3];
    echo.checksum = ~((sum & 0xFFFF) + (sum >> 16));
    struct sockaddr_in to = at(LOOPBACK, 0);
    SHOW(sendto(ping, &echo, sizeof echo, 0, (void *)&to, sizeof to));
    unsigned char packet[128];
    for (int i = 0; i < 3; i++) {
        await(ping, POLLIN);
        ssize_t came = recv(ping, packet, sizeof packet, 0);
        struct icmphdr *answer = (void *)(packet + 20);
        if (came == 28 && answer->type == ICMP_ECHOREPLY && answer->un.echo.id == echo.un.echo.id) {
            printf("answered, %zd bytes, sequence %d\n", came, ntohs(answer->un.echo.sequence));
            return;
        }
    }
    printf("no answer\n");
}

static void interfaces(void)
{
    struct ifaddrs *all, *one;
    TRY(getifaddrs(&all));
    for (one = all; one; one = one->ifa_next) {
        char text[64];
        if (strcmp(one->ifa_name, "lo") || !one->ifa_addr)
            continue;
        if (one->ifa_addr->sa_family == AF_INET)
            printf("lo %s\n", inet_ntop(AF_INET, &((struct sockaddr_in *)one->ifa_addr)->sin_addr, text, sizeof text));
        if (one->ifa_addr->sa_family == AF_INET6)
            printf("lo %s\n", inet_ntop(AF_INET6, &((struct sockaddr_in6 *)one->ifa_addr)->sin6_addr, text, sizeof text));
    }
    printf("index %u\n", if_nametoindex("lo"));
    char name[IF_NAMESIZE];
    printf("name %s\n", if_indextoname(1, name));
    int udp = MUST(socket(AF_INET, SOCK_DGRAM, 0));
    struct ifreq request = {.ifr_name = "lo"};
    TRY(ioctl(udp, SIOCGIFADDR, &request));
    printf("%s\n", inet_ntoa(((struct sockaddr_in *)&request.ifr_addr)->sin_addr));
    TRY(ioctl(udp, SIOCGIFNETMASK, &request));
    printf("%s\n", inet_ntoa(((struct sockaddr_in *)&request.ifr_addr)->sin_addr));
    TRY(ioctl(udp, SIOCGIFMTU, &request));
    printf("mtu %d\n", request.ifr_mtu);
    TRY(ioctl(udp, SIOCGIFFLAGS, &request));
    printf("up %d loopback %d\n", !!(request.ifr_flags & IFF_UP), !!(request.ifr_flags & IFF_LOOPBACK));
    strcpy(request.ifr_name, "nosuch");
    TRY(ioctl(udp, SIOCGIFADDR, &request));
}

static void names(void)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_ADDRCONFIG}, *found;
    printf("%d\n", getaddrinfo("127.0.0.1", "80", &hints, &found));
    printf("%s\n", inet_ntoa(((struct sockaddr_in *)found->ai_addr)->sin_addr));
    printf("%d\n", getaddrinfo("::1", "80", &hints, &found));
    printf("%d\n", getaddrinfo("not a number", NULL, &hints, &found));
}

static void bad_memory(void)
{
    int ends[2];
    char text[16];
    pair(ends);
    TRY(write(ends[0], bad, 4));
    TRY(send(ends[0], bad, 4, 0));
    MUST(write(ends[0], "kept", 4));
    await(ends[1], POLLIN);
    TRY(read(ends[1], bad, 4));
    TRY(recv(ends[1], bad, 4, 0));
    SHOW(read(ends[1], text, 16));
    printf("%.4s\n", text);
    socklen_t size = 16;
    TRY(getsockname(ends[0], bad, &size));
    TRY(connect(ends[0], bad, 16));
    TRY(bind(ends[0], bad, 16));
}

static void files_go_by_sendfile(void)
{
    int ends[2], file = MUST(open("/tmp", O_TMPFILE | O_RDWR, 0600));
    char text[64] = "";
    pair(ends);
    MUST(write(file, "from a file", 11));
    off_t from = 5;
    SHOW(sendfile(ends[0], file, &from, 100));
    MUST(shutdown(ends[0], SHUT_WR));
    SHOW(recv(ends[1], text, 64, MSG_WAITALL));
    printf("%s\n", text);
}

static const struct test tests[] = {
    {"bytes_go_both_ways", bytes_go_both_ways},
    {"peeking_and_waiting_for_all", peeking_and_waiting_for_all},
    {"half_closing", half_closing},
    {"shutting_down_reads", shutting_down_reads},
    {"the_other_side_goes", the_other_side_goes},
    {"going_with_unread_bytes_resets", going_with_unread_bytes_resets},
    {"lingering_for_no_time_resets", lingering_for_no_time_resets},
    {"broken_streams_raise_sigpipe", broken_streams_raise_sigpipe},
    {"connecting_to_nobody", connecting_to_nobody},
    {"connecting_without_waiting", connecting_without_waiting},
    {"accepting", accepting},
    {"a_listener_that_goes", a_listener_that_goes},
    {"binding", binding},
    {"sockets_that_are_not_made", sockets_that_are_not_made},
    {"options_of_streams", options_of_streams},
    {"options_are_inherited", options_are_inherited},
    {"times_run_out", times_run_out},
    {"edges", edges},
    {"megabytes_both_ways", megabytes_both_ways},
    {"a_server_and_many_clients", a_server_and_many_clients},
    {"hundreds_open_at_once", hundreds_open_at_once},
    {"datagrams", datagrams},
    {"connected_datagrams", connected_datagrams},
    {"many_messages_at_once", many_messages_at_once},
    {"both_families", both_families},
    {"echoes", echoes},
    {"interfaces", interfaces},
    {"names", names},
    {"bad_memory", bad_memory},
    {"files_go_by_sendfile", files_go_by_sendfile},
};
CHECK_MAIN(tests)
