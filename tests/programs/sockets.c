/* Local sockets: kinds, names, ends and errors, and what goes beside bytes: descriptors and credentials. Runs in an
 * empty folder. */
#include "check.h"

#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#define ROOM 4096

static void pair_of(int kind, int ends[2])
{
    MUST(socketpair(AF_UNIX, kind, 0, ends));
}

/* A pipe's ends are good descriptors to pass: what comes out shows where they lead. */
static int reader_of(const char *text)
{
    int ends[2];
    MUST(pipe(ends));
    MUST(write(ends[1], text, strlen(text)));
    close(ends[1]);
    return ends[0];
}

static void say(int descriptor)
{
    char text[64];
    ssize_t length = read(descriptor, text, sizeof text);
    if (length < 0)
        printf("  %s\n", failing(-1));
    else
        printf("  \"%.*s\"\n", (int)length, text);
}

/* Sends `text` with `count` descriptors. */
static ssize_t pass(int to, const char *text, const int *descriptors, int count)
{
    char control[ROOM] = {0};
    struct iovec part = {(char *)text, strlen(text)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count >= 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){CMSG_LEN(count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(head), descriptors, count * sizeof(int));
    }
    return sendmsg(to, &message, 0);
}

static int got[512], got_count;

/* Receives with so much room for control data, prints what came and notes the descriptors. */
static ssize_t take(int from, size_t bytes, size_t control_bytes, int flags)
{
    char text[ROOM], control[ROOM] = {0};
    struct iovec part = {text, bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    message.msg_control = control_bytes ? control : NULL;
    message.msg_controllen = control_bytes;
    ssize_t length = recvmsg(from, &message, flags);
    got_count = 0;
    if (length < 0) {
        printf("  %s\n", failing(-1));
        return length;
    }
    printf("  %zd bytes \"%.*s\"%s%s%s, %zu of control\n", length, length > 20 ? 20 : (int)length, text,
           message.msg_flags & MSG_TRUNC ? " cut" : "", message.msg_flags & MSG_CTRUNC ? " control cut" : "",
           message.msg_flags & MSG_CMSG_CLOEXEC ? " to be closed" : "", (size_t)message.msg_controllen);
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_type == SCM_RIGHTS) {
            int count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(got + got_count, CMSG_DATA(head), count * sizeof(int));
            got_count += count;
            printf("  %d descriptors, length %zu\n", count, (size_t)head->cmsg_len);
        } else if (head->cmsg_type == SCM_CREDENTIALS) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(head), sizeof who);
            /* Where control was cut, what stands behind the length is nobody's. */
            int is_whole = head->cmsg_len >= CMSG_LEN(sizeof who);
            printf("  from %s, user %s, length %zu\n", who.pid == getpid() ? "me" : who.pid == 0 ? "nobody" : "another",
                   !is_whole ? "cut off" : who.uid == getuid() ? "mine" : who.uid == 65534 ? "unknown" : "another",
                   (size_t)head->cmsg_len);
        }
    }
    return length;
}

static int open_descriptors(void)
{
    int count = 0;
    for (int descriptor = 0; descriptor < 1024; descriptor++)
        count += fcntl(descriptor, F_GETFD) >= 0;
    return count;
}

/* One descriptor through each kind of socket; it leads to the same open file, at the same place. */
static void one_descriptor(void)
{
    static const int kinds[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    for (int i = 0; i < 3; i++) {
        int ends[2], file = MUST(open("f", O_RDWR | O_CREAT | O_TRUNC, 0600));
        pair_of(kinds[i], ends);
        MUST(write(file, "0123456789", 10));
        MUST(lseek(file, 4, SEEK_SET));
        SHOW(pass(ends[0], "x", &file, 1));
        close(file);
        take(ends[1], 10, ROOM, 0);
        printf("%s number, at %ld\n", got[0] == file ? "the same" : "another", (long)lseek(got[0], 0, SEEK_CUR));
        say(got[0]);
        printf("closed at exec: %d\n", fcntl(got[0], F_GETFD));
        close(got[0]);
        file = reader_of("again");
        MUST(pass(ends[0], "y", &file, 1));
        close(file);
        take(ends[1], 10, ROOM, MSG_CMSG_CLOEXEC);
        printf("closed at exec: %d\n", fcntl(got[0], F_GETFD));
        say(got[0]);
        close(got[0]);
        close(ends[0]);
        close(ends[1]);
    }
}

static void many_descriptors(void)
{
    int ends[2], list[254];
    pair_of(SOCK_STREAM, ends);
    for (int i = 0; i < 254; i++)
        list[i] = i < 3 ? reader_of("abc") : list[i % 3];
    TRY(pass(ends[0], "x", list, 254));
    SHOW(pass(ends[0], "x", list, 253));
    take(ends[1], 10, ROOM, 0);
    say(got[252]);
    for (int i = 0; i < got_count; i++)
        close(got[i]);
    SHOW(pass(ends[0], "none", list, 0));
    take(ends[1], 10, ROOM, 0);
    int bad[2] = {list[0], 1000};
    TRY(pass(ends[0], "x", bad, 2));
    bad[1] = -1;
    TRY(pass(ends[0], "x", bad, 2));
    int path = MUST(open(".", O_PATH));
    SHOW(pass(ends[0], "path", &path, 1));
    take(ends[1], 10, ROOM, 0);
    TRY(fchdir(got[0]));
    printf("open: %d\n", open_descriptors());
}

/* Too little room for control data: what does not fit is closed. */
static void little_room(void)
{
    int ends[2], list[3];
    for (int i = 0; i < 3; i++)
        list[i] = reader_of("abc");
    pair_of(SOCK_DGRAM, ends);
    static const size_t rooms[] = {0, 1, 15, 16, 19, 20, 23, 24, 27, 28, 32, 100};
    for (int i = 0; i < 12; i++) {
        int before = open_descriptors();
        MUST(pass(ends[0], "three", list, 3));
        printf("room %zu\n", rooms[i]);
        take(ends[1], i % 2 ? 10 : 2, rooms[i], 0);
        printf("  %d more open\n", open_descriptors() - before);
        for (int j = 0; j < got_count; j++)
            close(got[j]);
    }
    struct rlimit limit = {open_descriptors() + 2, 1024};
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    MUST(pass(ends[0], "limit", list, 3));
    take(ends[1], 10, ROOM, 0);
    MUST(pass(ends[0], "limit", list, 3));
    take(ends[1], 10, ROOM, 0);
    char text[10];
    MUST(pass(ends[0], "read", list, 3));
    SHOW(read(ends[1], text, 10));
    MUST(pass(ends[0], "recv", list, 3));
    SHOW(recv(ends[1], text, 10, 0));
}

/* A stream's bytes are joined, but not over descriptors. */
static void in_a_stream(void)
{
    int ends[2], one = reader_of("one"), two = reader_of("two");
    pair_of(SOCK_STREAM, ends);
    MUST(write(ends[0], "ab", 2));
    MUST(pass(ends[0], "cd", &one, 1));
    MUST(write(ends[0], "ef", 2));
    MUST(pass(ends[0], "gh", &two, 1));
    take(ends[1], 100, ROOM, MSG_PEEK);
    say(got[0]);
    take(ends[1], 3, ROOM, 0);
    take(ends[1], 100, ROOM, 0);
    say(got[0]);
    MUST(pass(ends[0], "kl", &two, 1));
    MUST(write(ends[0], "mn", 2));
    take(ends[1], 1, ROOM, 0);
    take(ends[1], 100, ROOM, 0);
    SHOW(pass(ends[0], "", &two, 1));
    TRY(recv(ends[1], &one, 1, MSG_DONTWAIT));
    MUST(write(ends[0], "four", 4));
    MUST(pass(ends[0], "more", &two, 1));
    char text[8];
    SHOW(recv(ends[1], text, 8, MSG_WAITALL));
    printf("%.8s\n", text);
    MUST(write(ends[0], "ends", 4));
    close(ends[0]);
    SHOW(recv(ends[1], text, 8, MSG_WAITALL));
    SHOW(recv(ends[1], text, 8, 0));
}

/* Nobody receives them: all is closed, as the pipes see. */
static void undelivered(void)
{
    signal(SIGPIPE, SIG_IGN);
    static const int kinds[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    for (int i = 0; i < 3; i++) {
        int ends[2], pipes[2];
        MUST(pipe(pipes));
        pair_of(kinds[i], ends);
        for (int times = 0; times < 3; times++)
            MUST(pass(ends[0], "x", &pipes[1], 1));
        close(pipes[1]);
        struct pollfd one = {pipes[0], POLLIN, 0};
        SHOW(poll(&one, 1, 0));
        close(ends[1]);
        SHOW(poll(&one, 1, 0));
        printf("hung up: %d\n", !!(one.revents & POLLHUP));
        TRY(pass(ends[0], "x", &pipes[0], 1));
        close(ends[0]);
        close(pipes[0]);
    }
}

/* A socket whose own inbox holds it, rings of two and three, and a ring that somebody can still reach. */
static void rings(void)
{
    int pipes[2], a[2], b[2], c[2], last[2];
    MUST(pipe(pipes));
    struct pollfd one = {pipes[0], POLLIN, 0};
    pair_of(SOCK_DGRAM, a);
    int list[2] = {a[1], pipes[1]};
    MUST(pass(a[0], "self", list, 2));
    close(a[0]);
    close(a[1]);
    pair_of(SOCK_STREAM, a);
    pair_of(SOCK_SEQPACKET, b);
    pair_of(SOCK_DGRAM, c);
    list[0] = b[1];
    MUST(pass(a[0], "b in a", list, 2));
    list[0] = c[1];
    MUST(pass(b[0], "c in b", list, 2));
    list[0] = a[1];
    MUST(pass(c[0], "a in c", list, 2));
    close(pipes[1]);
    close(b[0]), close(b[1]), close(c[0]), close(c[1]), close(a[0]);
    pair_of(SOCK_STREAM, last);
    close(last[0]), close(last[1]);
    printf("reachable: %d\n", poll(&one, 1, 0));
    take(a[1], 10, ROOM, 0);
    close(got[1]);
    int b_end = got[0];
    take(b_end, 10, ROOM, 0);
    close(got[1]);
    int c_end = got[0];
    printf("open in the ring's end: %d\n", poll(&one, 1, 0));
    close(a[1]), close(b_end);
    pair_of(SOCK_STREAM, last);
    close(last[0]), close(last[1]);
    printf("one still holds it: %d\n", poll(&one, 1, 0));
    close(c_end);
    pair_of(SOCK_STREAM, last);
    close(last[0]), close(last[1]);
    /* Linux may take its time. */
    printf("garbage is gone: %d\n", poll(&one, 1, 10000));
    printf("hung up: %d\n", !!(one.revents & POLLHUP));
}

/* Each socket in the inbox of the next. */
static void long_chain(void)
{
    int pipes[2], inner = -1;
    /* As many as an ordinary user may have in flight. */
    struct rlimit many = {4096, 4096};
    MUST(setrlimit(RLIMIT_NOFILE, &many));
    MUST(pipe(pipes));
    for (int depth = 0; depth < 2000; depth++) {
        int ends[2];
        pair_of(SOCK_DGRAM, ends);
        int list[2] = {inner < 0 ? pipes[1] : inner, inner};
        MUST(pass(ends[0], "x", list, 1));
        if (inner >= 0)
            close(inner);
        close(ends[0]);
        inner = ends[1];
    }
    close(pipes[1]);
    struct pollfd one = {pipes[0], POLLIN, 0};
    SHOW(poll(&one, 1, 0));
    close(inner);
    int last[2];
    pair_of(SOCK_STREAM, last);
    close(last[0]), close(last[1]);
    SHOW(poll(&one, 1, 10000));
}

static void to_a_child(void)
{
    int ends[2];
    pair_of(SOCK_STREAM, ends);
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        close(ends[0]);
        char text[4], control[CMSG_SPACE(sizeof(int))];
        struct iovec part = {text, sizeof text};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        MUST(recvmsg(ends[1], &message, 0));
        int out;
        memcpy(&out, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof out);
        MUST(write(out, "from the child", 14));
        _exit(0);
    }
    int pipes[2];
    MUST(pipe(pipes));
    MUST(pass(ends[0], "x", &pipes[1], 1));
    close(pipes[1]);
    MUST(waitpid(child, NULL, 0));
    say(pipes[0]);
    say(pipes[0]);
}

static ssize_t tell(int to, struct ucred who, size_t length)
{
    char control[CMSG_SPACE(64)] = {0};
    struct iovec part = {"id", 2};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(length)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){CMSG_LEN(length), SOL_SOCKET, SCM_CREDENTIALS};
    memcpy(CMSG_DATA(head), &who, sizeof who);
    return sendmsg(to, &message, 0);
}

static void credentials(void)
{
    int ends[2], on = 1, off = 0;
    pair_of(SOCK_STREAM, ends);
    MUST(write(ends[0], "before", 6));
    SHOW(setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    take(ends[1], 3, ROOM, 0);
    MUST(write(ends[0], "after", 5));
    take(ends[1], 100, ROOM, 0);
    take(ends[1], 100, ROOM, MSG_DONTWAIT);
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        MUST(write(ends[0], "child", 5));
        _exit(0);
    }
    MUST(waitpid(child, NULL, 0));
    MUST(write(ends[0], "parent", 6));
    take(ends[1], 100, ROOM, 0);
    take(ends[1], 100, ROOM, 0);
    if (fork() == 0) {
        MUST(write(ends[0], "child", 5));
        _exit(0);
    }
    MUST(wait(NULL));
    MUST(write(ends[0], "parent", 6));
    take(ends[1], 7, ROOM, MSG_WAITALL);
    take(ends[1], 6, ROOM, MSG_WAITALL);
    struct ucred who = {getpid(), getuid(), getgid()};
    SHOW(tell(ends[0], who, sizeof who));
    take(ends[1], 100, 20, 0);
    TRY(tell(ends[0], who, sizeof who - 1));
    TRY(tell(ends[0], who, sizeof who + 4));
    int file = reader_of("both");
    MUST(pass(ends[0], "both", &file, 1));
    take(ends[1], 100, ROOM, 0);
    say(got[0]);
    SHOW(setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &off, sizeof off));
    TRY(setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &off, 2));
    SHOW(tell(ends[0], who, sizeof who));
    take(ends[1], 100, ROOM, 0);
    socklen_t size = sizeof on;
    SHOW(getsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, &size));
    printf("%d of %d bytes\n", on, size);
    size = sizeof who;
    SHOW(getsockopt(ends[0], SOL_SOCKET, SO_PEERCRED, &who, &size));
    printf("%d %d %d\n", who.pid == getpid(), who.uid == getuid(), who.gid == getgid());
    close(ends[1]);
    MUST(getsockopt(ends[0], SOL_SOCKET, SO_PEERCRED, &who, &size));
    printf("%d %d\n", who.pid == getpid(), who.uid == getuid());
    int alone = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
    MUST(getsockopt(alone, SOL_SOCKET, SO_PEERCRED, &who, &size));
    printf("%d %d %d\n", who.pid, (int)who.uid, (int)who.gid);
}

static void bad_control(void)
{
    int ends[2];
    pair_of(SOCK_STREAM, ends);
    char control[64] = {0};
    struct iovec part = {"x", 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control};
    struct cmsghdr *head = (struct cmsghdr *)control;
    for (size_t room = 8; room <= 24; room += 8)
        for (size_t length = 0; length <= 32; length += 8) {
            *head = (struct cmsghdr){length, SOL_SOCKET, SCM_RIGHTS};
            message.msg_controllen = room;
            printf("room %zu, length %zu: ", room, length);
            SHOW(sendmsg(ends[0], &message, 0));
        }
    message.msg_controllen = 20;
    *head = (struct cmsghdr){20, SOL_SOCKET, 77};
    SHOW(sendmsg(ends[0], &message, 0));
    *head = (struct cmsghdr){20, 41, 1};
    SHOW(sendmsg(ends[0], &message, 0));
    message.msg_control = (void *)8;
    SHOW(sendmsg(ends[0], &message, 0));
    message.msg_control = NULL;
    SHOW(sendmsg(ends[0], &message, 0));
    message.msg_controllen = 0;
    SHOW(sendmsg(ends[0], &message, 0));
    message.msg_control = control;
    message.msg_controllen = 1UL << 40;
    SHOW(sendmsg(ends[0], &message, 0));
}

/* Room for control data that cannot be written stays empty; the message is received. */
static void unwritable_control(void)
{
    int ends[2], on = 1;
    pair_of(SOCK_DGRAM, ends);
    MUST(setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(munmap(pages + 4096, 4096));
    void *rooms[] = {(void *)8, (void *)0x7ffffffffffffff8, pages + 4096 - 16, (void *)-16};
    int file = reader_of("lost");
    for (int i = 0; i < 4; i++)
        for (int passes = 0; passes < 2; passes++) {
            char text[16];
            struct iovec part = {text, sizeof text};
            struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
            message.msg_control = rooms[i];
            message.msg_controllen = 100;
            MUST(pass(ends[0], "hello", &file, passes));
            SHOW(recvmsg(ends[1], &message, MSG_DONTWAIT));
            printf("flags %x, %zu of control\n", message.msg_flags, (size_t)message.msg_controllen);
        }
    printf("%d descriptors open\n", open_descriptors());
}

static struct sockaddr_un address(const char *name, socklen_t *size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    memcpy(address.sun_path, name, length);
    if (name[0] == '@')
        address.sun_path[0] = 0;
    *size = offsetof(struct sockaddr_un, sun_path) + length + (name[0] != '@');
    return address;
}

static int name_it(int descriptor, const char *name)
{
    socklen_t size;
    struct sockaddr_un place = address(name, &size);
    return bind(descriptor, (struct sockaddr *)&place, size);
}

static int reach(int descriptor, const char *name)
{
    socklen_t size;
    struct sockaddr_un place = address(name, &size);
    return connect(descriptor, (struct sockaddr *)&place, size);
}

static void show(const char *what, int result, struct sockaddr_un *place, socklen_t size)
{
    if (result < 0) {
        printf("%s: %s\n", what, failing(-1));
        return;
    }
    int length = (int)size - (int)offsetof(struct sockaddr_un, sun_path);
    printf("%s: %d bytes", what, (int)size);
    if (length > 0)
        printf(", \"%s%.*s\"", place->sun_path[0] ? "" : "@", length - !place->sun_path[0], place->sun_path + !place->sun_path[0]);
    printf("\n");
}

static void whose(int descriptor)
{
    struct sockaddr_un place;
    socklen_t size = sizeof place;
    int result = getsockname(descriptor, (struct sockaddr *)&place, &size);
    show("  own", result, &place, size);
    size = sizeof place;
    result = getpeername(descriptor, (struct sockaddr *)&place, &size);
    show("  peer", result, &place, size);
}

static void connections(void)
{
    static const char *names[] = {"door", "@synthesis-test-door"};
    for (int i = 0; i < 2; i++) {
        int door = MUST(socket(AF_UNIX, SOCK_STREAM, 0)), on = 1;
        int visitor = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
        TRY(listen(door, 1));
        TRY(reach(visitor, names[i]));
        MUST(name_it(door, names[i]));
        TRY(name_it(door, "other"));
        TRY(reach(visitor, names[i]));
        MUST(listen(door, 1));
        MUST(setsockopt(door, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
        SHOW(reach(visitor, names[i]));
        TRY(reach(visitor, names[i]));
        int second = MUST(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)), third = MUST(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
        MUST(name_it(second, i ? "@synthesis-test-second" : "second"));
        SHOW(reach(second, names[i]));
        TRY(reach(third, names[i]));
        struct sockaddr_un place;
        socklen_t size = sizeof place;
        int server = MUST(accept(door, (struct sockaddr *)&place, &size));
        show("accepted", server, &place, size);
        whose(server);
        whose(visitor);
        int file = reader_of("through the door");
        MUST(pass(visitor, "x", &file, 1));
        take(server, 10, ROOM, 0);
        say(got[0]);
        size = sizeof place;
        int other = MUST(accept4(door, (struct sockaddr *)&place, &size, SOCK_CLOEXEC));
        show("accepted", other, &place, size);
        whose(second);
        MUST(write(second, "named", 5));
        char text[16];
        size = sizeof place;
        SHOW(recvfrom(other, text, sizeof text, 0, (struct sockaddr *)&place, &size));
        show("from", 0, &place, size);
        SHOW(reach(third, names[i]));
        SHOW(write(third, "waiting", 7));
        close(door);
        SHOW(read(third, text, sizeof text));
        SHOW(read(third, text, sizeof text));
        close(visitor), close(server), close(second), close(other), close(third);
        int dead = MUST(socket(AF_UNIX, SOCK_STREAM, 0)), wrong = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
        TRY(reach(dead, names[i]));
        if (i == 0)
            TRY(name_it(dead, "door"));
        TRY(reach(wrong, "none"));
    }
}

/* A listener, and whether whoever goes to `name` comes to it. */
static int listener(const char *name)
{
    int door = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
    MUST(name_it(door, name));
    MUST(listen(door, 8));
    return door;
}

static void leads_to(const char *name, int door)
{
    int visitor = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
    printf("to %s: %s", name, failing(reach(visitor, name)));
    MUST(fcntl(door, F_SETFL, O_NONBLOCK));
    int server = accept(door, NULL, NULL);
    printf(", %s\n", failing(server));
    char byte = 0;
    if (server >= 0 && write(visitor, "x", 1) == 1 && read(server, &byte, 1) == 1)
        printf("  carries %c\n", byte);
    close(visitor), close(server);
}

/* A name is found by what it stands for, however it is reached and whatever it is called meanwhile. */
static void names_in_folders(void)
{
    int old = listener("door");
    struct stat about;
    MUST(stat("door", &about));
    printf("mode %o links %d\n", about.st_mode, (int)about.st_nlink);
    leads_to("door", old);
    leads_to("./door", old);
    MUST(mkdir("d", 0777));
    MUST(symlink("../door", "d/link"));
    leads_to("d/link", old);
    MUST(link("door", "d/hard"));
    leads_to("d/hard", old);
    MUST(rename("door", "d/moved"));
    leads_to("door", old);
    leads_to("d/moved", old);
    int other = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
    TRY(name_it(other, "d/moved"));
    TRY(name_it(other, "d/link"));
    TRY(name_it(other, "none/door"));
    MUST(unlink("d/moved"));
    leads_to("d/moved", old);
    int young = listener("d/moved");
    leads_to("d/moved", young);
    leads_to("d/hard", old);
    close(old);
    leads_to("d/hard", young);
    leads_to("d/moved", young);
    TRY(open("d/moved", O_RDWR));
    MUST(mknod("bare", S_IFSOCK | 0777, 0));
    leads_to("bare", young);
    MUST(close(MUST(open("file", O_CREAT | O_RDWR, 0666))));
    leads_to("file", young);
    leads_to("d", young);
}

/* Other processes come in by name, and find nobody when the owner has died. */
static void names_of_others(void)
{
    int ends[2];
    MUST(pipe(ends));
    fflush(stdout);
    pid_t owner = MUST(fork());
    if (owner == 0) {
        int door = listener("door");
        MUST(write(ends[1], "x", 1));
        for (;;) {
            int server = accept(door, NULL, NULL);
            char text[8];
            ssize_t length = read(server, text, sizeof text);
            MUST(write(server, text, length));
            close(server);
        }
    }
    char text[8];
    MUST(read(ends[0], text, 1));
    for (int i = 0; i < 3; i++) {
        int visitor = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
        SHOW(reach(visitor, "door"));
        SHOW(write(visitor, "echo", 4));
        SHOW(read(visitor, text, sizeof text));
        close(visitor);
    }
    kill(owner, SIGKILL);
    MUST(waitpid(owner, NULL, 0));
    int visitor = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
    TRY(reach(visitor, "door"));
    TRY(name_it(visitor, "door"));
    MUST(unlink("door"));
    TRY(reach(visitor, "door"));
    TRY(name_it(visitor, "door"));
}

static void as_nobody(void)
{
    MUST(setuid(65534));
    int visitor = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
    TRY(reach(visitor, "shut"));
    TRY(reach(visitor, "readable"));
    TRY(reach(visitor, "open"));
}

/* Who may write to the name may connect. */
static void names_with_rights(void)
{
    umask(022);
    int door = listener("shut");
    struct stat about;
    MUST(stat("shut", &about));
    printf("mode %o\n", about.st_mode);
    int other = listener("open");
    MUST(chmod("open", 0722));
    int third = listener("readable");
    MUST(chmod(".", 0777));
    in_child("nobody", as_nobody);
    close(door), close(other), close(third);
    int one = MUST(socket(AF_UNIX, SOCK_DGRAM, 0)), two = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
    MUST(name_it(one, "letters"));
    SHOW(reach(two, "letters"));
    SHOW(write(two, "by name", 7));
    char text[16];
    SHOW(read(one, text, sizeof text));
    TRY(reach(two, "open"));
    close(one);
    TRY(write(two, "again", 5));
    TRY(reach(two, "letters"));
}

/* An end that closes with bytes unread resets the other. */
static void resets(void)
{
    static const int kinds[] = {SOCK_STREAM, SOCK_SEQPACKET};
    for (int i = 0; i < 2; i++) {
        int ends[2], error;
        char text[8];
        socklen_t size = sizeof error;
        pair_of(kinds[i], ends);
        MUST(write(ends[0], "unread", 6));
        MUST(write(ends[1], "unread", 6));
        close(ends[1]);
        struct pollfd one = {ends[0], POLLIN | POLLOUT, 0};
        SHOW(poll(&one, 1, 0));
        printf("%x\n", one.revents);
        SHOW(read(ends[0], text, 8));
        SHOW(read(ends[0], text, 8));
        SHOW(read(ends[0], text, 8));
        signal(SIGPIPE, SIG_IGN);
        SHOW(write(ends[0], "x", 1));
        pair_of(kinds[i], ends);
        MUST(write(ends[0], "unread", 6));
        close(ends[1]);
        SHOW(getsockopt(ends[0], SOL_SOCKET, SO_ERROR, &error, &size));
        printf("%s\n", strerrorname_np(error));
        SHOW(read(ends[0], text, 8));
    }
}

static void datagrams(void)
{
    int one = MUST(socket(AF_UNIX, SOCK_DGRAM, 0)), two = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
    int three = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
    char text[16];
    socklen_t size;
    struct sockaddr_un place = address("one", &size), from;
    MUST(name_it(one, "one"));
    MUST(name_it(two, "@synthesis-test-two"));
    SHOW(sendto(two, "hello", 5, 0, (struct sockaddr *)&place, size));
    SHOW(sendto(three, "nameless", 8, 0, (struct sockaddr *)&place, size));
    TRY(send(two, "x", 1, 0));
    size = sizeof from;
    SHOW(recvfrom(one, text, 3, MSG_TRUNC, (struct sockaddr *)&from, &size));
    show("from", 0, &from, size);
    size = sizeof from;
    SHOW(recvfrom(one, text, 16, 0, (struct sockaddr *)&from, &size));
    show("from", 0, &from, size);
    SHOW(reach(one, "@synthesis-test-two"));
    place = address("one", &size);
    SHOW(sendto(two, "peer", 4, 0, (struct sockaddr *)&place, size));
    SHOW(sendto(three, "stranger", 8, 0, (struct sockaddr *)&place, size));
    SHOW(reach(three, "one"));
    place.sun_family = AF_UNSPEC;
    SHOW(connect(one, (struct sockaddr *)&place, sizeof(sa_family_t)));
    SHOW(reach(three, "one"));
    SHOW(write(three, "again", 5));
    SHOW(recv(one, text, 16, MSG_DONTWAIT));
    SHOW(recv(one, text, 16, MSG_DONTWAIT));
    close(one);
    SHOW(write(three, "x", 1));
    SHOW(write(three, "x", 1));
    struct sockaddr_un nameless = {.sun_family = AF_UNIX};
    int itself = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
    SHOW(bind(itself, (struct sockaddr *)&nameless, sizeof(sa_family_t)));
    size = sizeof from;
    MUST(getsockname(itself, (struct sockaddr *)&from, &size));
    from.sun_path[6] = 0;
    printf("%d bytes, %d, %d\n", size, from.sun_path[0], (int)strspn(from.sun_path + 1, "0123456789abcdef"));
}

static void several_messages(void)
{
    int ends[2];
    pair_of(SOCK_DGRAM, ends);
    char text[4][8] = {{0}};
    struct iovec parts[4];
    struct mmsghdr messages[4] = {0};
    for (int i = 0; i < 4; i++) {
        parts[i] = (struct iovec){text[i], i + 1};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
        memset(text[i], 'a' + i, 8);
    }
    SHOW(sendmmsg(ends[0], messages, 3, 0));
    printf("%u %u %u\n", messages[0].msg_len, messages[1].msg_len, messages[2].msg_len);
    for (int i = 0; i < 4; i++)
        parts[i].iov_len = 2;
    SHOW(recvmmsg(ends[1], messages, 4, MSG_DONTWAIT, NULL));
    for (int i = 0; i < 3; i++)
        printf("%u bytes %.2s, flags %x\n", messages[i].msg_len, text[i], messages[i].msg_hdr.msg_flags);
    SHOW(recvmmsg(ends[1], messages, 4, MSG_DONTWAIT, NULL));
    MUST(write(ends[0], "w", 1));
    SHOW(recvmmsg(ends[1], messages, 4, MSG_WAITFORONE, NULL));
    TRY(sendmmsg(ends[0], (void *)8, 3, 0));
}

static void kinds_and_errors(void)
{
    TRY(socket(AF_UNIX, 99, 0));
    TRY(socket(AF_UNIX, SOCK_RDM, 0));
    TRY(socket(AF_UNIX, SOCK_STREAM, 7));
    TRY(socket(999, SOCK_STREAM, 0));
    int stream = MUST(socket(AF_UNIX, SOCK_STREAM, 0)), file = MUST(open("f", O_RDWR | O_CREAT, 0600));
    char byte;
    signal(SIGPIPE, SIG_IGN);
    TRY(send(file, "x", 1, 0));
    TRY(send(stream, "x", 1, 0));
    TRY(recv(stream, &byte, 1, 0));
    TRY(shutdown(stream, 2));
    TRY(accept(stream, NULL, NULL));
    TRY(name_it(stream, "none/door"));
    TRY(name_it(stream, "f"));
    TRY(reach(stream, "f"));
    TRY(bind(stream, (struct sockaddr *)&(struct sockaddr){.sa_family = AF_INET}, 16));
    TRY(bind(stream, (struct sockaddr *)8, 16));
    int ends[2];
    pair_of(SOCK_STREAM, ends);
    SHOW(shutdown(ends[0], SHUT_WR));
    SHOW(read(ends[1], &byte, 1));
    SHOW(write(ends[1], "x", 1));
    SHOW(read(ends[0], &byte, 1));
    TRY(write(ends[0], "x", 1));
    TRY(shutdown(ends[0], 3));
    SHOW(shutdown(ends[0], SHUT_RD));
    TRY(send(ends[1], "x", 1, 0));
    struct stat about;
    MUST(fstat(ends[0], &about));
    printf("a socket: %d\n", S_ISSOCK(about.st_mode));
    TRY(lseek(ends[0], 0, SEEK_SET));
    pair_of(SOCK_DGRAM, ends);
    int waiting = -1;
    MUST(write(ends[0], "12345", 5));
    SHOW(ioctl(ends[1], FIONREAD, &waiting));
    printf("%d\n", waiting);
}

/* readv takes one message however many buffers it has, and writev sends one. */
static void several_buffers(void)
{
    static const int kinds[] = {SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};
    static char large[3][4000];
    for (int i = 0; i < 3; i++) {
        char a[4] = "", b[4] = "", text[64];
        struct iovec into[2] = {{a, 4}, {b, 4}};
        struct iovec from[3] = {{"ab", 2}, {"", 0}, {"cde", 3}};
        int ends[2];
        pair_of(kinds[i], ends);
        SHOW(writev(ends[0], from, 3));
        SHOW(write(ends[0], "123456789", 9));
        SHOW(write(ends[0], "x", 1));
        for (int j = 0; j < 3; j++) {
            memset(a, 0, 4);
            memset(b, 0, 4);
            SHOW(recv(ends[1], text, 64, MSG_PEEK | MSG_DONTWAIT));
            SHOW(fcntl(ends[1], F_SETFL, O_NONBLOCK));
            SHOW(readv(ends[1], into, 2));
            printf("%.4s,%.4s\n", a, b);
        }
        for (int part = 0; part < 3; part++) {
            memset(large[part], part + 1, 4000);
            from[part] = (struct iovec){large[part], 4000};
        }
        SHOW(writev(ends[0], from, 3));
        from[0].iov_base = (void *)8;
        SHOW(writev(ends[0], from, 3));
        memset(large, 0, sizeof large);
        SHOW(recv(ends[1], large, sizeof large, 0));
        printf("%d %d %d\n", large[0][3999], large[1][0], large[2][3999]);
        MUST(write(ends[0], "again", 5));
        into[1].iov_base = (void *)8;
        if (i < 2)
            SHOW(readv(ends[1], into, 2));
        MUST(close(ends[1]));
        signal(SIGPIPE, SIG_IGN);
        SHOW(writev(ends[0], from, 3));
        MUST(close(ends[0]));
    }
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(one_descriptor), T(many_descriptors), T(little_room), T(in_a_stream), T(undelivered), T(rings), T(long_chain),
    T(to_a_child), T(credentials), T(bad_control), T(unwritable_control), T(connections), T(names_in_folders),
    T(names_of_others), T(names_with_rights), T(resets), T(datagrams), T(several_messages), T(several_buffers),
    T(kinds_and_errors),
};
CHECK_MAIN(tests)
