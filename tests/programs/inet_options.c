/* What options of sockets of the internet families do, beside what they return: over the loopback, compared with Linux. */
#include "check.h"
#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#define LOOPBACK htonl(INADDR_LOOPBACK)

static void set(int socket, int level, int name, int value)
{
    MUST(setsockopt(socket, level, name, &value, sizeof value));
}

static int get(int socket, int level, int name)
{
    int value = -1;
    socklen_t size = sizeof value;
    MUST(getsockopt(socket, level, name, &value, &size));
    return value;
}

static int port_of(int socket)
{
    struct sockaddr_in6 record;
    socklen_t size = sizeof record;
    MUST(getsockname(socket, (void *)&record, &size));
    return ntohs(record.sin6_port);
}

static struct sockaddr_in at(uint32_t address, int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = address};
}

static int bound(int kind, int port, int shares)
{
    int made = MUST(socket(AF_INET, kind, 0));
    struct sockaddr_in own = at(LOOPBACK, port);
    if (shares)
        set(made, SOL_SOCKET, SO_REUSEPORT, 1);
    MUST(bind(made, (void *)&own, sizeof own));
    return made;
}

/* Both ends of a connection; buffers of so many bytes, if they are not 0. */
static void pair(int ends[2], int buffer)
{
    int server = bound(SOCK_STREAM, 0, 0);
    if (buffer)
        set(server, SOL_SOCKET, SO_RCVBUF, buffer);
    MUST(listen(server, 8));
    ends[0] = MUST(socket(AF_INET, SOCK_STREAM, 0));
    if (buffer)
        set(ends[0], SOL_SOCKET, SO_SNDBUF, buffer);
    struct sockaddr_in to = at(LOOPBACK, port_of(server));
    MUST(connect(ends[0], (void *)&to, sizeof to));
    ends[1] = MUST(accept(server, NULL, NULL));
    close(server);
}

/* Whether something can be read within so many milliseconds. */
static const char *readable(int descriptor, int milliseconds)
{
    struct pollfd one = {.fd = descriptor, .events = POLLIN};
    return MUST(poll(&one, 1, milliseconds)) && one.revents & POLLIN ? "yes" : "no";
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

/* Enough messages each way that whatever a kernel does for connections in use is done. */
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

static void little_is_not_worth_waking(void)
{
    int ends[2];
    char text[16] = "";
    pair(ends, 0);
    warm(ends);
    set(ends[1], SOL_SOCKET, SO_RCVLOWAT, 5);
    MUST(write(ends[0], "abc", 3));
    printf("three bytes: %s\n", readable(ends[1], 50));
    SHOW(recv(ends[1], text, 2, 0));
    SHOW(recv(ends[1], text, 9, MSG_DONTWAIT));
    MUST(write(ends[0], "12", 2));
    printf("two bytes: %s\n", readable(ends[1], 50));
    MUST(write(ends[0], "345", 3));
    printf("five bytes: %s\n", readable(ends[1], 5000));
    struct timeval time = {0, 60000};
    MUST(setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    SHOW(recv(ends[1], text, 9, 0));
    MUST(write(ends[0], "z", 1));
    SHOW(recv(ends[1], text, 9, 0));
    TRY(recv(ends[1], text, 9, 0));
    MUST(write(ends[0], "end", 3));
    MUST(shutdown(ends[0], SHUT_WR));
    printf("three bytes and the end: %s\n", readable(ends[1], 5000));
    SHOW(recv(ends[1], text, 9, 0));
}

static void corks(void)
{
    int ends[2];
    char text[64] = "";
    pair(ends, 0);
    warm(ends);
    set(ends[0], IPPROTO_TCP, TCP_CORK, 1);
    MUST(write(ends[0], "head", 4));
    MUST(write(ends[0], "er", 2));
    printf("corked: %s\n", readable(ends[1], 50));
    set(ends[0], IPPROTO_TCP, TCP_CORK, 0);
    printf("open: %s\n", readable(ends[1], 5000));
    SHOW(read(ends[1], text, sizeof text));
    set(ends[0], IPPROTO_TCP, TCP_CORK, 1);
    MUST(write(ends[0], "body", 4));
    printf("in time: %s\n", readable(ends[1], 5000));
    SHOW(read(ends[1], text, sizeof text));
    MUST(write(ends[0], "quick", 5));
    set(ends[0], IPPROTO_TCP, TCP_NODELAY, 1);
    printf("pushed: %s\n", readable(ends[1], 100));
    SHOW(read(ends[1], text, sizeof text));
    MUST(write(ends[0], "still", 5));
    printf("corked all the same: %s\n", readable(ends[1], 50));
    MUST(write(ends[0], "end", 3));
    close(ends[0]);
    SHOW(recv(ends[1], text, 8, MSG_WAITALL));
    SHOW(read(ends[1], text, sizeof text));
    printf("%.8s\n", text);
}

static void times_count_on_connections_in_use(void)
{
    int ends[2];
    char byte;
    static char many[65536];
    pair(ends, 0);
    warm(ends);
    struct timeval time = {0, 60000};
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    double start = now();
    TRY(read(ends[0], &byte, 1));
    printf("waited: %s\n", now() - start >= 0.06 && now() - start < 5 ? "as long" : "wrong");
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time));
    ssize_t sent;
    start = now();
    while ((sent = write(ends[0], many, sizeof many)) > 0)
        start = now();
    printf("%s after %s\n", strerrorname_np(errno), now() - start < 5 ? "the time" : "too long");
    time = (struct timeval){0};
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    MUST(write(ends[1], "z", 1));
    SHOW(read(ends[0], &byte, 1));
}

static ssize_t fits(int buffer)
{
    static char many[16384];
    int ends[2];
    ssize_t all = 0, sent;
    pair(ends, buffer);
    while ((sent = send(ends[0], many, sizeof many, MSG_DONTWAIT)) > 0)
        all += sent;
    struct pollfd one = {.fd = ends[0], .events = POLLOUT};
    printf("full: %s\n", poll(&one, 1, 0) ? "no" : "yes");
    ssize_t came = 0, part;
    while ((part = recv(ends[1], many, sizeof many, MSG_DONTWAIT)) > 0 || came < all / 2)
        came += part > 0 ? part : 0;
    printf("room again: %s\n", poll(&one, 1, 5000) == 1 ? "yes" : "no");
    close(ends[0]);
    close(ends[1]);
    return all;
}

static void buffers_hold_what_they_are_set_to(void)
{
    printf("small: %s\n", fits(4096) < 70000 ? "little" : "much");
    printf("usual: %s\n", fits(0) > 150000 ? "much" : "little");
    int small = bound(SOCK_DGRAM, 0, 0), sender = MUST(socket(AF_INET, SOCK_DGRAM, 0)), came = 0;
    set(small, SOL_SOCKET, SO_RCVBUF, 4096);
    struct sockaddr_in to = at(LOOPBACK, port_of(small));
    char bytes[1000] = "";
    for (int i = 0; i < 100; i++)
        MUST(sendto(sender, bytes, sizeof bytes, 0, (void *)&to, sizeof to));
    while (recv(small, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        came++;
    printf("datagrams: %s\n", came > 0 && came < 20 ? "some" : "wrong");
}

static void those_who_share_a_port_share_the_callers(void)
{
    int servers[2], port, heard[2] = {0};
    servers[0] = bound(SOCK_STREAM, 0, 1);
    port = port_of(servers[0]);
    servers[1] = bound(SOCK_STREAM, port, 1);
    MUST(listen(servers[0], 128));
    MUST(listen(servers[1], 128));
    struct sockaddr_in to = at(LOOPBACK, port);
    for (int i = 0; i < 64; i++) {
        int client = MUST(socket(AF_INET, SOCK_STREAM, 0));
        MUST(connect(client, (void *)&to, sizeof to));
    }
    struct pollfd both[2] = {{.fd = servers[0], .events = POLLIN}, {.fd = servers[1], .events = POLLIN}};
    while (heard[0] + heard[1] < 64 && poll(both, 2, 5000) > 0)
        for (int i = 0; i < 2; i++)
            if (both[i].revents) {
                MUST(accept(servers[i], NULL, NULL));
                heard[i]++;
            }
    printf("streams: %d heard, %s\n", heard[0] + heard[1], heard[0] > 5 && heard[1] > 5 ? "by both" : "by one");
    int receivers[2];
    receivers[0] = bound(SOCK_DGRAM, 0, 1);
    port = port_of(receivers[0]);
    receivers[1] = bound(SOCK_DGRAM, port, 1);
    to = at(LOOPBACK, port);
    for (int i = 0; i < 64; i++) {
        int sender = MUST(socket(AF_INET, SOCK_DGRAM, 0));
        MUST(sendto(sender, "x", 1, 0, (void *)&to, sizeof to));
        close(sender);
    }
    heard[0] = heard[1] = 0;
    for (int i = 0; i < 2; i++) {
        char byte;
        while (recv(receivers[i], &byte, 1, MSG_DONTWAIT) == 1)
            heard[i]++;
    }
    printf("datagrams: %d heard, %s\n", heard[0] + heard[1], heard[0] > 5 && heard[1] > 5 ? "by both" : "by one");
}

/* Receives a datagram and shows the numbers that come beside it. */
static void show_beside(int socket, int flags)
{
    char text[64] = "", control[512];
    struct sockaddr_in6 from = {0};
    struct iovec part = {text, sizeof text - 1};
    struct msghdr message = {&from, sizeof from, &part, 1, control, sizeof control, 0};
    ssize_t came = recvmsg(socket, &message, flags);
    if (came < 0) {
        printf("nothing: %s\n", strerrorname_np(errno));
        return;
    }
    printf("%zd bytes %s%s:", came, text, message.msg_flags & MSG_ERRQUEUE ? ", an error" : "");
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
        if (one->cmsg_level == SOL_SOCKET) {
            struct timespec wall;
            clock_gettime(CLOCK_REALTIME, &wall);
            struct timespec *stamp = (void *)CMSG_DATA(one);
            double ago = wall.tv_sec - stamp->tv_sec;
            printf(" stamp %d %s", one->cmsg_type, ago >= 0 && ago < 10 ? "of now" : "of another time");
        } else if (one->cmsg_type == (one->cmsg_level == SOL_IP ? IP_RECVERR : IPV6_RECVERR)) {
            struct sock_extended_err *error = (void *)CMSG_DATA(one);
            struct sockaddr_in *who = (void *)SO_EE_OFFENDER(error);
            printf(" %s origin %d type %d code %d by %s", strerrorname_np(error->ee_errno), error->ee_origin, error->ee_type,
                   error->ee_code, who->sin_family == AF_INET ? inet_ntoa(who->sin_addr) : "one of 6");
        } else if (one->cmsg_len == CMSG_LEN(1)) {
            printf(" level %d type %d is %d", one->cmsg_level, one->cmsg_type, *CMSG_DATA(one));
        } else {
            printf(" level %d type %d is %d", one->cmsg_level, one->cmsg_type, *(int *)CMSG_DATA(one));
        }
    }
    printf("\n");
}

/* Sends with one number beside the bytes. */
static void send_with(int socket, struct sockaddr *to, socklen_t size, int level, int kind, int value)
{
    char control[CMSG_SPACE(sizeof(int))] = "";
    struct iovec part = {"once", 4};
    struct msghdr message = {to, size, &part, 1, control, sizeof control, 0};
    struct cmsghdr *one = CMSG_FIRSTHDR(&message);
    *one = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = level, .cmsg_type = kind};
    memcpy(CMSG_DATA(one), &value, sizeof value);
    TRY(sendmsg(socket, &message, 0));
}

static void headers_come_as_they_were_sent(void)
{
    int receiver = bound(SOCK_DGRAM, 0, 0), sender = MUST(socket(AF_INET, SOCK_DGRAM, 0));
    struct sockaddr_in to = at(LOOPBACK, port_of(receiver));
    set(receiver, SOL_IP, IP_RECVTTL, 1);
    set(receiver, SOL_IP, IP_RECVTOS, 1);
    MUST(sendto(sender, "plain", 5, 0, (void *)&to, sizeof to));
    show_beside(receiver, 0);
    set(sender, SOL_IP, IP_TTL, 7);
    set(sender, SOL_IP, IP_TOS, 0x2c);
    MUST(sendto(sender, "set", 3, 0, (void *)&to, sizeof to));
    show_beside(receiver, 0);
    send_with(sender, (void *)&to, sizeof to, SOL_IP, IP_TTL, 9);
    show_beside(receiver, 0);
    send_with(sender, (void *)&to, sizeof to, SOL_IP, IP_TOS, 0x10);
    show_beside(receiver, 0);
    send_with(sender, (void *)&to, sizeof to, SOL_IP, IP_TTL, 0);
    send_with(sender, (void *)&to, sizeof to, SOL_IP, 99, 1);
    MUST(sendto(sender, "again", 5, 0, (void *)&to, sizeof to));
    show_beside(receiver, 0);
    int six = MUST(socket(AF_INET6, SOCK_DGRAM, 0)), caller = MUST(socket(AF_INET6, SOCK_DGRAM, 0));
    struct sockaddr_in6 own = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    MUST(bind(six, (void *)&own, sizeof own));
    own.sin6_port = htons(port_of(six));
    set(six, SOL_IPV6, IPV6_RECVHOPLIMIT, 1);
    set(six, SOL_IPV6, IPV6_RECVTCLASS, 1);
    set(caller, SOL_IPV6, IPV6_UNICAST_HOPS, 5);
    set(caller, SOL_IPV6, IPV6_TCLASS, 0x44);
    MUST(sendto(caller, "six", 3, 0, (void *)&own, sizeof own));
    show_beside(six, 0);
    send_with(caller, (void *)&own, sizeof own, SOL_IPV6, IPV6_HOPLIMIT, 3);
    show_beside(six, 0);
}

static void streams_keep_the_bits_of_congestion(void)
{
    int tcp = MUST(socket(AF_INET, SOCK_STREAM, 0));
    set(tcp, SOL_IP, IP_TOS, 0x13);
    printf("%#x\n", get(tcp, SOL_IP, IP_TOS));
}

static void stamps(void)
{
    int receiver = bound(SOCK_DGRAM, 0, 0), sender = MUST(socket(AF_INET, SOCK_DGRAM, 0));
    struct sockaddr_in to = at(LOOPBACK, port_of(receiver));
    set(receiver, SOL_SOCKET, SO_TIMESTAMP, 1);
    MUST(sendto(sender, "a", 1, 0, (void *)&to, sizeof to));
    show_beside(receiver, 0);
    set(receiver, SOL_SOCKET, SO_TIMESTAMPNS, 1);
    MUST(sendto(sender, "b", 1, 0, (void *)&to, sizeof to));
    show_beside(receiver, 0);
    printf("%d %d\n", get(receiver, SOL_SOCKET, SO_TIMESTAMP), get(receiver, SOL_SOCKET, SO_TIMESTAMPNS));
    set(receiver, SOL_SOCKET, SO_TIMESTAMPNS, 0);
    MUST(sendto(sender, "c", 1, 0, (void *)&to, sizeof to));
    show_beside(receiver, 0);
}

static void errors_wait_in_their_queue(void)
{
    int gone = bound(SOCK_DGRAM, 0, 0), sender = bound(SOCK_DGRAM, 0, 0);
    struct sockaddr_in to = at(LOOPBACK, port_of(gone));
    close(gone);
    show_beside(sender, MSG_ERRQUEUE);
    MUST(sendto(sender, "quiet", 5, 0, (void *)&to, sizeof to));
    TRY(send(sender, "x", 1, 0));
    set(sender, SOL_IP, IP_RECVERR, 1);
    MUST(sendto(sender, "hello", 5, 0, (void *)&to, sizeof to));
    struct pollfd one = {.fd = sender, .events = POLLIN};
    MUST(poll(&one, 1, 5000));
    printf("%s\n", one.revents & POLLERR ? "an error" : "none");
    printf("%s\n", strerrorname_np(get(sender, SOL_SOCKET, SO_ERROR)));
    show_beside(sender, MSG_ERRQUEUE);
    show_beside(sender, MSG_ERRQUEUE);
    int six = MUST(socket(AF_INET6, SOCK_DGRAM, 0)), nobody = MUST(socket(AF_INET6, SOCK_DGRAM, 0));
    struct sockaddr_in6 own = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    MUST(bind(nobody, (void *)&own, sizeof own));
    own.sin6_port = htons(port_of(nobody));
    close(nobody);
    set(six, SOL_IPV6, IPV6_RECVERR, 1);
    MUST(sendto(six, "to six", 6, 0, (void *)&own, sizeof own));
    show_beside(six, MSG_ERRQUEUE);
}

static void binding(void)
{
    int tcp = MUST(socket(AF_INET, SOCK_STREAM, 0));
    struct sockaddr_in strange = at(inet_addr("192.0.2.77"), 0), own = at(LOOPBACK, 0);
    TRY(bind(tcp, (void *)&strange, sizeof strange));
    set(tcp, SOL_IP, IP_FREEBIND, 1);
    TRY(bind(tcp, (void *)&strange, sizeof strange));
    int server = bound(SOCK_STREAM, 0, 0);
    MUST(listen(server, 4));
    struct sockaddr_in to = at(LOOPBACK, port_of(server));
    for (int kind = SOCK_STREAM; kind <= SOCK_DGRAM; kind++) {
        int late = MUST(socket(AF_INET, kind, 0));
        set(late, SOL_IP, IP_BIND_ADDRESS_NO_PORT, 1);
        MUST(bind(late, (void *)&own, sizeof own));
        printf("bound: %s port\n", port_of(late) ? "a" : "no");
        MUST(connect(late, (void *)&to, sizeof to));
        printf("connected: %s port\n", port_of(late) ? "a" : "no");
    }
    int near = MUST(socket(AF_INET, SOCK_DGRAM, 0));
    set(near, SOL_SOCKET, SO_DONTROUTE, 1);
    TRY(connect(near, (void *)&to, sizeof to));
    int loop = bound(SOCK_DGRAM, 0, 0), sender = MUST(socket(AF_INET, SOCK_DGRAM, 0));
    TRY(setsockopt(loop, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
    to = at(LOOPBACK, port_of(loop));
    MUST(sendto(sender, "x", 1, 0, (void *)&to, sizeof to));
    printf("by lo: %s\n", readable(loop, 5000));
}

static void six_alone(void)
{
    for (int alone = 0; alone < 2; alone++) {
        int server = MUST(socket(AF_INET6, SOCK_STREAM, 0)), client = MUST(socket(AF_INET, SOCK_STREAM, 0));
        struct sockaddr_in6 own = {.sin6_family = AF_INET6};
        set(server, SOL_IPV6, IPV6_V6ONLY, alone);
        MUST(bind(server, (void *)&own, sizeof own));
        MUST(listen(server, 1));
        struct sockaddr_in to = at(LOOPBACK, port_of(server));
        TRY(connect(client, (void *)&to, sizeof to));
    }
}

static void closing_waits_for_nobody_here(void)
{
    int ends[2];
    char text[8] = "";
    pair(ends, 0);
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &(struct linger){1, 20}, sizeof(struct linger)));
    MUST(write(ends[0], "last", 4));
    double start = now();
    TRY(close(ends[0]));
    printf("%s\n", now() - start < 5 ? "at once" : "late");
    SHOW(read(ends[1], text, sizeof text));
    SHOW(read(ends[1], text, sizeof text));
}

static void what_was_set_is_there(void)
{
    int tcp = MUST(socket(AF_INET, SOCK_STREAM, 0)), udp = MUST(socket(AF_INET, SOCK_DGRAM, 0));
    printf("quick acknowledgements %d", get(tcp, IPPROTO_TCP, TCP_QUICKACK));
    set(tcp, IPPROTO_TCP, TCP_QUICKACK, 0);
    printf(" %d", get(tcp, IPPROTO_TCP, TCP_QUICKACK));
    set(tcp, IPPROTO_TCP, TCP_QUICKACK, 1);
    printf(" %d\n", get(tcp, IPPROTO_TCP, TCP_QUICKACK));
    int names[] = {IP_MTU_DISCOVER, IP_RECVERR, IP_FREEBIND, IP_BIND_ADDRESS_NO_PORT, IP_RECVTOS, IP_RECVTTL};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int before = get(udp, SOL_IP, names[i]);
        set(udp, SOL_IP, names[i], 0);
        int off = get(udp, SOL_IP, names[i]);
        set(udp, SOL_IP, names[i], 1);
        printf("option %d: %d %d %d\n", names[i], before, off, get(udp, SOL_IP, names[i]));
    }
    int sums[] = {SO_NO_CHECK, SO_DONTROUTE, SO_PRIORITY};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        set(udp, SOL_SOCKET, sums[i], 1);
        printf("option %d: %d\n", sums[i], get(udp, SOL_SOCKET, sums[i]));
    }
}

static const struct test tests[] = {
    {"little_is_not_worth_waking", little_is_not_worth_waking},
    {"corks", corks},
    {"times_count_on_connections_in_use", times_count_on_connections_in_use},
    {"buffers_hold_what_they_are_set_to", buffers_hold_what_they_are_set_to},
    {"those_who_share_a_port_share_the_callers", those_who_share_a_port_share_the_callers},
    {"headers_come_as_they_were_sent", headers_come_as_they_were_sent},
    {"streams_keep_the_bits_of_congestion", streams_keep_the_bits_of_congestion},
    {"stamps", stamps},
    {"errors_wait_in_their_queue", errors_wait_in_their_queue},
    {"binding", binding},
    {"six_alone", six_alone},
    {"closing_waits_for_nobody_here", closing_waits_for_nobody_here},
    {"what_was_set_is_there", what_was_set_is_there},
};
CHECK_MAIN(tests)
