/* A server and a client for the other side of a wire: what a machine's programs say to its host. */
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static unsigned char byte_at(size_t place)
{
    return place * 2654435761u >> 13 ^ place;
}

static struct sockaddr_in at(const char *address, const char *port)
{
    struct sockaddr_in record = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    inet_pton(AF_INET, address, &record.sin_addr);
    return record;
}

/* What has come and did not find room to go back yet. */
struct held {
    unsigned char bytes[65536];
    size_t count;
};

static struct held *held[4096];

/* Sends back what comes, until nothing comes any more. True at the end of the connection. */
static int echo_some(int connection, long *total)
{
    struct held *own = held[connection];
    for (;;) {
        while (own->count > 0) {
            ssize_t sent = send(connection, own->bytes, own->count, MSG_NOSIGNAL);
            if (sent < 0)
                return errno != EAGAIN;
            own->count -= sent;
            memmove(own->bytes, own->bytes + sent, own->count);
        }
        ssize_t came = recv(connection, own->bytes, sizeof own->bytes, 0);
        if (came <= 0)
            return came == 0 || errno != EAGAIN;
        own->count = came;
        *total += came;
    }
}

/* Serves so many connections that say something. */
static int echo(const char *port, int count)
{
    int server = MUST(socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0)), on = 1, open = 0, most = 0;
    struct sockaddr_in6 own = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(port))};
    MUST(setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
    MUST(bind(server, (void *)&own, sizeof own));
    MUST(listen(server, 1024));
    puts("listening");
    int many = MUST(epoll_create1(0));
    struct epoll_event wanted = {.events = EPOLLIN | EPOLLET, .data.fd = server}, seen[64];
    MUST(epoll_ctl(many, EPOLL_CTL_ADD, server, &wanted));
    long total = 0;
    for (int done = 0; done < count;) {
        int happened = MUST(epoll_wait(many, seen, 64, -1));
        for (int i = 0; i < happened; i++) {
            int descriptor = seen[i].data.fd;
            if (descriptor == server) {
                int connection;
                while ((connection = accept4(server, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    wanted = (struct epoll_event){.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = connection};
                    held[connection] = calloc(1, sizeof(struct held));
                    MUST(epoll_ctl(many, EPOLL_CTL_ADD, connection, &wanted));
                    open++;
                    most = open > most ? open : most;
                }
                continue;
            }
            if (echo_some(descriptor, &total)) {
                close(descriptor);
                free(held[descriptor]);
                open--;
                done++;
            }
        }
    }
    printf("served %d, %d at once\n", count, most);
    return 0;
}

static int datagrams(const char *port, int count)
{
    int server = MUST(socket(AF_INET, SOCK_DGRAM, 0));
    struct sockaddr_in own = at("0.0.0.0", port), from;
    MUST(bind(server, (void *)&own, sizeof own));
    puts("listening");
    char bytes[2048];
    for (int i = 0; i < count; i++) {
        socklen_t size = sizeof from;
        ssize_t came = MUST(recvfrom(server, bytes, sizeof bytes, 0, (void *)&from, &size));
        MUST(sendto(server, bytes, came, 0, (void *)&from, size));
    }
    printf("answered %d\n", count);
    return 0;
}

static int fetch(const char *address, const char *port)
{
    int client = MUST(socket(AF_INET, SOCK_STREAM, 0));
    struct sockaddr_in to = at(address, port);
    MUST(connect(client, (void *)&to, sizeof to));
    unsigned char bytes[50000];
    size_t done = 0;
    ssize_t came;
    while ((came = MUST(read(client, bytes, sizeof bytes))) > 0) {
        for (ssize_t i = 0; i < came; i++)
            if (bytes[i] != byte_at(done + i)) {
                printf("a wrong byte at %zu\n", done + i);
                return 1;
            }
        done += came;
    }
    printf("fetched %zu\n", done);
    return 0;
}

static int put(const char *address, const char *port, size_t count)
{
    int client = MUST(socket(AF_INET, SOCK_STREAM, 0));
    struct sockaddr_in to = at(address, port);
    MUST(connect(client, (void *)&to, sizeof to));
    unsigned char bytes[50000];
    for (size_t done = 0; done < count;) {
        size_t part = count - done < sizeof bytes ? count - done : sizeof bytes;
        for (size_t i = 0; i < part; i++)
            bytes[i] = byte_at(done + i);
        done += MUST(write(client, bytes, part));
    }
    MUST(shutdown(client, SHUT_WR));
    char answer[16] = "";
    MUST(read(client, answer, sizeof answer - 1));
    printf("put %zu: %s\n", count, answer);
    return 0;
}

/* Options that nobody here does: who sets them is told so, and who switches them off is not. */
static int options(void)
{
    int tcp = MUST(socket(AF_INET, SOCK_STREAM, 0)), on = 1, off = 0;
#define OPTION(level, name) \
    printf(#name ": %s", setsockopt(tcp, level, name, &on, sizeof on) ? strerrorname_np(errno) : "taken"); \
    printf(", off: %s\n", setsockopt(tcp, level, name, &off, sizeof off) ? strerrorname_np(errno) : "taken")
    OPTION(SOL_SOCKET, SO_DEBUG);
    OPTION(SOL_SOCKET, SO_MARK);
    OPTION(SOL_SOCKET, SO_INCOMING_CPU);
    OPTION(IPPROTO_TCP, TCP_DEFER_ACCEPT);
    OPTION(IPPROTO_TCP, TCP_WINDOW_CLAMP);
    OPTION(IPPROTO_TCP, TCP_FASTOPEN);
    OPTION(IPPROTO_TCP, TCP_MAXSEG);
    OPTION(IPPROTO_TCP, TCP_NOTSENT_LOWAT);
    OPTION(IPPROTO_IP, IP_RECVERR);
    OPTION(IPPROTO_IP, IP_MULTICAST_LOOP);
    return 0;
}

/* A client whose frames say what its options say. */
static int marked(const char *address, const char *port)
{
    int client = MUST(socket(AF_INET, SOCK_STREAM, 0)), hops = 33, service = 0x48, cork = 1;
    struct sockaddr_in to = at(address, port);
    char answer[16] = "";
    MUST(setsockopt(client, IPPROTO_IP, IP_TTL, &hops, sizeof hops));
    MUST(setsockopt(client, IPPROTO_IP, IP_TOS, &service, sizeof service));
    MUST(setsockopt(client, IPPROTO_TCP, TCP_CORK, &cork, sizeof cork));
    MUST(connect(client, (void *)&to, sizeof to));
    for (int i = 0; i < 10; i++)
        MUST(write(client, "ten bytes.", 10));
    MUST(setsockopt(client, SOL_SOCKET, SO_LINGER, &(struct linger){1, 30}, sizeof(struct linger)));
    MUST(shutdown(client, SHUT_WR));
    MUST(read(client, answer, sizeof answer - 1));
    MUST(close(client));
    printf("marked: %s\n", answer);
    return 0;
}

int main(int count, char **words)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count == 4 && !strcmp(words[1], "echo"))
        return echo(words[2], atoi(words[3]));
    if (count == 4 && !strcmp(words[1], "datagrams"))
        return datagrams(words[2], atoi(words[3]));
    if (count == 4 && !strcmp(words[1], "fetch"))
        return fetch(words[2], words[3]);
    if (count == 5 && !strcmp(words[1], "put"))
        return put(words[2], words[3], atol(words[4]));
    if (count == 2 && !strcmp(words[1], "options"))
        return options();
    if (count == 4 && !strcmp(words[1], "marked"))
        return marked(words[2], words[3]);
    if (count == 4 && !strcmp(words[1], "refused")) {
        int client = MUST(socket(AF_INET, SOCK_STREAM, 0));
        struct sockaddr_in to = at(words[2], words[3]);
        TRY(connect(client, (void *)&to, sizeof to));
        return 0;
    }
    fprintf(stderr, "usage: served echo PORT COUNT | datagrams PORT COUNT | fetch|refused|marked ADDRESS PORT | options | put ADDRESS PORT BYTES\n");
    return 2;
}
