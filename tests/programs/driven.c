/* Signal-driven input and output: O_ASYNC, F_SETOWN, F_SETSIG. Signals are taken by sigtimedwait, so nothing depends on when they come. */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>

static int ours(void)
{
    return SIGRTMIN + 3;
}

static sigset_t both(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    sigaddset(&set, ours());
    return set;
}

static void block_both(void)
{
    sigset_t set = both();
    MUST(sigprocmask(SIG_BLOCK, &set, NULL));
}

/* The next signal, or that none comes; more of the same are taken, too. */
static void hear(const char *what, int fd, long ms)
{
    sigset_t set = both();
    siginfo_t info, more;
    struct timespec time = {ms / 1000, ms % 1000 * 1000000}, none = {0, 0};
    int signal = sigtimedwait(&set, &info, &time);
    if (signal < 0) {
        printf("%s: nothing\n", what);
        return;
    }
    if (signal == SIGIO)
        printf("%s: SIGIO code %d pid %d\n", what, info.si_code, info.si_pid);
    else
        printf("%s: ours code %d band %lx %s\n", what, info.si_code, (long)info.si_band, info.si_fd == fd ? "our fd" : "another fd");
    while (sigtimedwait(&set, &more, &none) > 0)
        if (more.si_code != info.si_code)
            printf("%s: and code %d\n", what, more.si_code);
}

enum { SOON = 2000, NOT = 30 };

static void drive(int fd, int signal)
{
    MUST(fcntl(fd, F_SETOWN, getpid()));
    MUST(fcntl(fd, F_SETSIG, signal));
    MUST(fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK));
}

static void exchange(int in, int out, const char *bytes, size_t count)
{
    char back[4096];
    MUST(write(out, bytes, count));
    hear("written", in, SOON);
    SHOW(read(in, back, sizeof back));
    hear("read", in, NOT);
    MUST(write(out, bytes, count));
    hear("written again", in, SOON);
    SHOW(read(in, back, sizeof back));
}

static void a_pipe_tells_of_input(void)
{
    int fd[2];
    block_both();
    MUST(pipe(fd));
    drive(fd[0], ours());
    exchange(fd[0], fd[1], "four", 4);
    MUST(fcntl(fd[0], F_SETFL, O_NONBLOCK));
    MUST(write(fd[1], "x", 1));
    hear("switched off", fd[0], NOT);
    MUST(fcntl(fd[0], F_SETFL, O_NONBLOCK | O_ASYNC));
    MUST(close(fd[1]));
    hear("the writer is gone", fd[0], SOON);
}

static void without_a_choice_it_is_sigio(void)
{
    int fd[2];
    block_both();
    MUST(pipe(fd));
    drive(fd[0], 0);
    exchange(fd[0], fd[1], "four", 4);
    SHOW(fcntl(fd[0], F_GETSIG));
    SHOW(fcntl(fd[0], F_SETSIG, SIGIO));
    MUST(write(fd[1], "x", 1));
    hear("chosen", fd[0], SOON);
    SHOW(fcntl(fd[0], F_SETSIG, 65));
    SHOW(fcntl(fd[0], F_SETSIG, -1));
    SHOW(fcntl(fd[0], F_GETSIG));
}

static void a_pipe_tells_of_room(void)
{
    int fd[2];
    static char bytes[65536];
    block_both();
    MUST(pipe(fd));
    drive(fd[1], ours());
    SHOW(write(fd[1], bytes, sizeof bytes));
    SHOW(write(fd[1], bytes, 1));
    SHOW(read(fd[0], bytes, sizeof bytes));
    hear("emptied", fd[1], SOON);
    SHOW(write(fd[1], bytes, 1));
    SHOW(read(fd[0], bytes, 1));
    hear("was not full", fd[1], NOT);
}

static void a_socket_tells_of_input(void)
{
    int fd[2];
    block_both();
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
    drive(fd[0], ours());
    exchange(fd[0], fd[1], "four", 4);
    MUST(close(fd[1]));
    hear("the peer is gone", fd[0], SOON);
}

static void a_listener_tells_of_who_connects(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof name.sun_family;
    int listener, client;
    block_both();
    MUST(listener = socket(AF_UNIX, SOCK_STREAM, 0));
    MUST(bind(listener, (struct sockaddr *)&name, bytes));
    bytes = sizeof name;
    MUST(getsockname(listener, (struct sockaddr *)&name, &bytes));
    MUST(listen(listener, 4));
    drive(listener, ours());
    MUST(client = socket(AF_UNIX, SOCK_STREAM, 0));
    SHOW(connect(client, (struct sockaddr *)&name, bytes));
    hear("connected", listener, SOON);
}

static void a_terminal_tells_of_input(void)
{
    char name[64];
    int master, slave;
    block_both();
    MUST(master = posix_openpt(O_RDWR | O_NOCTTY));
    MUST(grantpt(master));
    MUST(unlockpt(master));
    MUST(ptsname_r(master, name, sizeof name));
    MUST(slave = open(name, O_RDWR | O_NOCTTY));
    drive(slave, ours());
    MUST(write(master, "line\n", 5));
    hear("a line", slave, SOON);
}

static void watches_tell_of_input(void)
{
    char folder[] = "/tmp/driven-XXXXXX", path[64];
    int watches, file;
    block_both();
    if (!mkdtemp(folder))
        MUST(-1);
    snprintf(path, sizeof path, "%s/file", folder);
    MUST(watches = inotify_init());
    MUST(inotify_add_watch(watches, folder, IN_CREATE));
    drive(watches, ours());
    MUST(file = open(path, O_CREAT | O_RDWR, 0600));
    hear("created", watches, SOON);
    MUST(unlink(path));
    MUST(rmdir(folder));
}

static void others_keep_the_flag_without_effect(void)
{
    int counter, on = 1;
    uint64_t one = 1;
    block_both();
    MUST(counter = eventfd(0, 0));
    drive(counter, ours());
    MUST(write(counter, &one, sizeof one));
    hear("an event", counter, NOT);
    SHOW(fcntl(counter, F_GETFL) & O_ASYNC ? 1 : 0);
    MUST(fcntl(counter, F_SETFL, 0));
    SHOW(ioctl(counter, FIOASYNC, &on));
}

static void the_request_does_the_same(void)
{
    int fd[2], on = 1, off = 0;
    block_both();
    MUST(pipe(fd));
    MUST(fcntl(fd[0], F_SETOWN, getpid()));
    SHOW(ioctl(fd[0], FIOASYNC, &on));
    SHOW(fcntl(fd[0], F_GETFL) & O_ASYNC ? 1 : 0);
    MUST(write(fd[1], "x", 1));
    hear("on", fd[0], SOON);
    SHOW(ioctl(fd[0], FIOASYNC, &off));
    MUST(write(fd[1], "x", 1));
    hear("off", fd[0], NOT);
}

static void the_owner_is_a_process_a_group_or_a_thread(void)
{
    int fd[2];
    struct f_owner_ex owner = {9, 9};
    MUST(pipe(fd));
    SHOW(fcntl(fd[0], F_GETOWN));
    SHOW(fcntl(fd[0], F_GETOWN_EX, &owner));
    SHOW(owner.type);
    SHOW(owner.pid);
    SHOW(fcntl(fd[0], F_SETOWN, getpid()));
    SHOW(fcntl(fd[0], F_GETOWN) == getpid());
    SHOW(fcntl(fd[0], F_SETOWN, -getpgrp()));
    SHOW((int)fcntl(fd[0], F_GETOWN_EX, &owner));
    SHOW(owner.type);
    SHOW(owner.pid == getpgrp());
    owner = (struct f_owner_ex){F_OWNER_TID, gettid()};
    SHOW(fcntl(fd[0], F_SETOWN_EX, &owner));
    SHOW(fcntl(fd[0], F_GETOWN) == gettid());
    owner.type = 3;
    SHOW(fcntl(fd[0], F_SETOWN_EX, &owner));
    SHOW(fcntl(fd[0], F_SETOWN, 0x3FFFFFFF));
    SHOW(fcntl(fd[0], F_SETOWN, -0x3FFFFFFF));
    SHOW(fcntl(fd[0], F_SETOWN, (int)0x80000000));
    SHOW(fcntl(fd[0], F_SETOWN_EX, (struct f_owner_ex *)8));
    SHOW(fcntl(fd[0], F_SETOWN, 0));
    SHOW(fcntl(fd[0], F_GETOWN));
}

static int shared[2];

static void *another_thread(void *out)
{
    sigset_t set = both();
    sigset_t pending;
    (void)out;
    struct f_owner_ex owner = {F_OWNER_TID, gettid()};
    MUST(fcntl(shared[0], F_SETOWN_EX, &owner));
    MUST(write(shared[1], "x", 1));
    struct timespec time = {2, 0};
    printf("the thread: %d\n", sigtimedwait(&set, NULL, &time) == ours());
    sigpending(&pending);
    printf("and no more: %d\n", sigismember(&pending, ours()));
    return NULL;
}

static void one_thread_is_told(void)
{
    pthread_t thread;
    block_both();
    MUST(pipe(shared));
    drive(shared[0], ours());
    pthread_create(&thread, NULL, another_thread, NULL);
    pthread_join(thread, NULL);
    hear("the others", shared[0], NOT);
}

static void child_hears(void)
{
    MUST(fcntl(shared[0], F_SETOWN, getpid()));
    MUST(write(shared[1], "x", 1));
    hear("the child", shared[0], SOON);
}

static void who_owns_it_is_told(void)
{
    block_both();
    MUST(pipe(shared));
    drive(shared[0], ours());
    in_child("child", child_hears);
    MUST(write(shared[1], "x", 1));
    hear("the parent, when the owner is gone", shared[0], NOT);
    MUST(fcntl(shared[0], F_SETOWN, 0));
    MUST(write(shared[1], "x", 1));
    hear("nobody", shared[0], NOT);
}

static void a_full_queue_leaves_sigio(void)
{
    int fd[2];
    char byte;
    struct rlimit none = {0, 0};
    block_both();
    MUST(pipe(fd));
    drive(fd[0], ours());
    MUST(setrlimit(RLIMIT_SIGPENDING, &none));
    MUST(write(fd[1], "x", 1));
    hear("no room", fd[0], SOON);
    SHOW(read(fd[0], &byte, 1));
}

static void many_files_each_tell(void)
{
    enum { MANY = 100 };
    static int fd[MANY][2];
    sigset_t set = both();
    int told[MANY] = {0}, missing = 0;
    block_both();
    for (int i = 0; i < MANY; i++) {
        MUST(pipe(fd[i]));
        drive(fd[i][0], ours());
    }
    for (int i = 0; i < MANY; i++)
        MUST(write(fd[i][1], "x", 1));
    for (int i = 0; i < MANY; i++) {
        siginfo_t info;
        struct timespec time = {2, 0};
        if (sigtimedwait(&set, &info, &time) < 0)
            break;
        for (int j = 0; j < MANY; j++)
            told[j] += fd[j][0] == info.si_fd;
    }
    for (int i = 0; i < MANY; i++)
        missing += told[i] != 1;
    SHOW(missing);
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(a_pipe_tells_of_input),
    T(without_a_choice_it_is_sigio),
    T(a_pipe_tells_of_room),
    T(a_socket_tells_of_input),
    T(a_listener_tells_of_who_connects),
    T(a_terminal_tells_of_input),
    T(watches_tell_of_input),
    T(others_keep_the_flag_without_effect),
    T(the_request_does_the_same),
    T(the_owner_is_a_process_a_group_or_a_thread),
    T(one_thread_is_told),
    T(who_owns_it_is_told),
    T(a_full_queue_leaves_sigio),
    T(many_files_each_tell),
};
CHECK_MAIN(tests)
