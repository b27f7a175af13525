/* What inotify tells: every change of files and names, in order, once; and the calls' errors. */
#include "check.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>

static char folder[] = "/tmp/inotify-XXXXXX";

/* Each case has a folder of its own, in memory where the machine is hosted. */
static void leave_folder(void)
{
    chdir("/");
    rmdir(folder);
}

__attribute__((constructor)) static void enter_folder(void)
{
    mkdtemp(folder);
    chdir(folder);
    atexit(leave_folder);
}

static int watcher;
static uint32_t cookies[8];
static int cookie_count;

/* Cookies by the order in which they came. */
static int cookie_number(uint32_t cookie)
{
    if (cookie == 0)
        return 0;
    for (int i = 0; i < cookie_count; i++)
        if (cookies[i] == cookie)
            return i + 1;
    cookies[cookie_count++ % 8] = cookie;
    return cookie_count;
}

static const char *const bits[32] = {
    "ACCESS", "MODIFY", "ATTRIB", "CLOSE_WRITE", "CLOSE_NOWRITE", "OPEN", "MOVED_FROM", "MOVED_TO", "CREATE", "DELETE", "DELETE_SELF",
    "MOVE_SELF", [13] = "UNMOUNT", "OVERFLOW", "IGNORED", [30] = "ISDIR"};

static void show_event(const struct inotify_event *event)
{
    printf("  %d", event->wd);
    for (int bit = 0; bit < 32; bit++)
        if (event->mask & 1u << bit)
            printf(" %s", bits[bit] ? bits[bit] : "?");
    if (event->cookie)
        printf(" cookie %d", cookie_number(event->cookie));
    if (event->len)
        printf(" '%s' in %u", event->name, event->len);
    printf("\n");
}

/* Shows all that has happened since. */
static void show_at(const char *what, int line)
{
    char buffer[4096] __attribute__((aligned(8)));
    ssize_t got;
    (void)line;
    printf("%s:\n", what);
    while ((got = read(watcher, buffer, sizeof buffer)) > 0)
        for (char *at = buffer; at < buffer + got; at += sizeof(struct inotify_event) + ((struct inotify_event *)at)->len)
            show_event((struct inotify_event *)at);
}
#define SEE(call) (MUST(call), show_at(#call, __LINE__))
#define ALL (IN_ALL_EVENTS)

static void put(const char *name, const char *text)
{
    int file = MUST(open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644));
    MUST(write(file, text, strlen(text)));
    MUST(close(file));
}

static void begin(void)
{
    MUST(watcher = inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
}

static int watch(const char *name, uint32_t mask)
{
    return (int)SHOW(inotify_add_watch(watcher, name, mask));
}

static void use_of_a_file(const char *name)
{
    char byte[16];
    struct iovec two[2] = {{byte, 2}, {byte + 2, 2}};
    int file, other;
    SEE(file = open(name, O_RDWR));
    SEE(read(file, byte, 4));
    SEE(read(file, byte, 4));
    SEE(write(file, "more", 4));
    SEE(write(file, "more", 4));
    SEE(pread(file, byte, 4, 0));
    SEE(pwrite(file, "more", 4, 0));
    SEE(lseek(file, 0, SEEK_SET));
    SEE(readv(file, two, 2));
    SEE(writev(file, two, 2));
    SEE(read(file, byte, 0));
    SEE(write(file, byte, 0));
    SEE(lseek(file, 0, SEEK_END));
    SEE(read(file, byte, 1));
    SEE(ftruncate(file, 3));
    SEE(fallocate(file, 0, 0, 100));
    SEE(fchmod(file, 0600));
    SEE(fsync(file));
    SEE(other = dup(file));
    SEE(close(other));
    SEE(close(file));
    SEE(file = open(name, O_RDONLY));
    SEE(close(file));
    SEE(file = open(name, O_PATH));
    SEE(close(file));
    SEE(truncate(name, 50));
    SEE(chmod(name, 0644));
    struct timespec both[2] = {{1, 0}, {2, 0}}, first[2] = {{3, 0}, {0, UTIME_OMIT}}, second[2] = {{0, UTIME_OMIT}, {4, 0}};
    SEE(utimensat(AT_FDCWD, name, both, 0));
    SEE(utimensat(AT_FDCWD, name, first, 0));
    SEE(utimensat(AT_FDCWD, name, second, 0));
    struct stat found;
    SEE(stat(name, &found));
    SEE(access(name, R_OK));
}

/* More reads and writes than machine code needs to be made, before and after the file is watched. */
static void hot_files(void)
{
    char byte[8];
    put("hot", "0123456789");
    int file = MUST(open("hot", O_RDWR));
    for (int i = 0; i < 30; i++) {
        MUST(pread(file, byte, 4, 0));
        MUST(pwrite(file, "x", 1, 3));
        MUST(lseek(file, 0, SEEK_SET));
        MUST(read(file, byte, 4));
        MUST(write(file, byte, 2));
    }
    begin();
    int number = watch("hot", ALL);
    for (int i = 0; i < 3; i++) {
        SEE(pread(file, byte, 4, 0));
        SEE(pwrite(file, "x", 1, 3));
        SEE(lseek(file, 0, SEEK_SET));
        SEE(read(file, byte, 4));
        SEE(write(file, byte, 2));
    }
    SEE(inotify_rm_watch(watcher, number));
    for (int i = 0; i < 30; i++)
        MUST(pread(file, byte, 4, 0));
    watch(".", IN_ACCESS | IN_MODIFY);
    for (int i = 0; i < 3; i++) {
        SEE(pread(file, byte, 4, 0));
        SEE(lseek(file, 0, SEEK_SET));
        SEE(write(file, byte, 2));
    }
    close(file);
    unlink("hot");
}

static void a_file_and_its_directory(void)
{
    begin();
    MUST(mkdir("d", 0755));
    put("d/f", "some bytes");
    watch("d/f", ALL);
    use_of_a_file("d/f");
    watch("d", ALL);
    use_of_a_file("d/f");
    SEE(unlink("d/f"));
    SEE(rmdir("d"));
}

static void names_in_a_directory(void)
{
    int file;
    begin();
    MUST(mkdir("n", 0755));
    MUST(mkdir("n/sub", 0755));
    watch("n", ALL);
    watch("n/sub", ALL);
    SEE(file = open("n/new", O_CREAT | O_EXCL | O_WRONLY, 0600));
    SEE(close(file));
    SEE(mkdir("n/made", 0700));
    SEE(symlink("nowhere", "n/soft"));
    SEE(mknod("n/fifo", S_IFIFO | 0600, 0));
    SEE(link("n/new", "n/hard"));
    SEE(rename("n/hard", "n/harder"));
    SEE(rename("n/harder", "n/sub/hardest"));
    SEE(rename("n/made", "n/sub/moved"));
    SEE(renameat2(AT_FDCWD, "n/soft", AT_FDCWD, "n/sub/hardest", RENAME_EXCHANGE));
    SEE(rename("n/new", "n/a name of twenty five chars"));
    put("n/target", "x");
    show_at("put", 0);
    SEE(rename("n/a name of twenty five chars", "n/target"));
    SEE(unlink("n/target"));
    SEE(unlink("n/sub/hardest"));
    SEE(unlink("n/soft"));
    SEE(unlink("n/fifo"));
    SEE(rmdir("n/sub/moved"));
    SEE(rmdir("n/sub"));
    SEE(rmdir("n"));
}

static void what_happens_to_the_node_itself(void)
{
    begin();
    put("self", "x");
    put("other", "x");
    watch("self", ALL);
    watch("other", ALL);
    SEE(rename("self", "moved"));
    SEE(link("moved", "second"));
    SEE(unlink("moved"));
    SEE(rename("other", "second"));
    int file = MUST(open("second", O_RDONLY));
    show_at("open", 0);
    SEE(unlink("second"));
    SEE(close(file));
    MUST(mkdir("dir", 0700));
    watch("dir", ALL);
    SEE(rename("dir", "dir2"));
    SEE(chmod("dir2", 0755));
    SEE(rmdir("dir2"));
}

static void masks_and_numbers(void)
{
    begin();
    put("m", "x");
    MUST(symlink("m", "to-m"));
    int first = watch("m", IN_OPEN);
    watch("m", IN_ATTRIB);
    SEE(chmod("m", 0600));
    watch("m", IN_OPEN | IN_MASK_ADD);
    put("m", "y");
    show_at("put", 0);
    watch("m", IN_OPEN | 0x10000000);
    watch("m", IN_OPEN | IN_MASK_ADD | 0x10000000);
    watch("to-m", IN_OPEN);
    int link = watch("to-m", IN_OPEN | IN_ATTRIB | IN_DONT_FOLLOW);
    watch("m", IN_OPEN | IN_ONLYDIR);
    watch(".", IN_OPEN | IN_ONLYDIR);
    watch("m", 0);
    watch("m", 0x00800000);
    watch("none", IN_OPEN);
    watch("m/none", IN_OPEN);
    watch("", IN_OPEN);
    SHOW(inotify_add_watch(watcher, (char *)8, IN_OPEN));
    SHOW(inotify_add_watch(0, "m", IN_OPEN));
    SHOW(inotify_add_watch(99, "m", IN_OPEN));
    SHOW(inotify_rm_watch(watcher, 77));
    SHOW(inotify_rm_watch(watcher, -1));
    SHOW(inotify_rm_watch(0, first));
    SHOW(inotify_rm_watch(99, first));
    SEE(inotify_rm_watch(watcher, link));
    SEE(inotify_rm_watch(watcher, first));
    SHOW(inotify_rm_watch(watcher, first));
    watch("m", IN_OPEN);
    watch("m", IN_ONESHOT | IN_OPEN);
    put("m", "y");
    show_at("put", 0);
    put("m", "y");
    show_at("put", 0);
    SHOW(inotify_init1(1));
    unlink("m"), unlink("to-m");
}

static void unlinked_children(void)
{
    for (int round = 0; round < 2; round++) {
        begin();
        put("u", "x");
        watch(".", IN_OPEN | IN_MODIFY | IN_CLOSE | IN_ACCESS | (round ? IN_EXCL_UNLINK : 0));
        int file;
        SEE(file = open("u", O_RDWR));
        SEE(unlink("u"));
        SEE(write(file, "x", 1));
        SEE(close(file));
        close(watcher);
    }
}

static void reading_the_queue(void)
{
    char small[40] __attribute__((aligned(8)));
    int waiting, file;
    begin();
    struct pollfd one = {watcher, POLLIN, 0};
    put("a file", "x");
    watch(".", IN_OPEN | IN_CLOSE);
    SHOW(read(watcher, small, sizeof small));
    SHOW(poll(&one, 1, 0));
    MUST(file = open("a file", O_RDONLY));
    SHOW(poll(&one, 1, 0));
    SHOW(ioctl(watcher, FIONREAD, &waiting));
    printf("%d wait\n", waiting);
    SHOW(read(watcher, small, 0));
    SHOW(read(watcher, small, 15));
    SHOW(read(watcher, small, 16));
    MUST(close(file));
    SHOW(ioctl(watcher, FIONREAD, &waiting));
    printf("%d wait\n", waiting);
    SHOW(read(watcher, small, 32));
    SHOW(read(watcher, small, sizeof small));
    SHOW(read(watcher, small, sizeof small));
    SHOW(write(watcher, small, 1));
    SHOW(lseek(watcher, 0, SEEK_SET));
    int set = MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, watcher, &event));
    SHOW(epoll_wait(set, &event, 1, 0));
    MUST(file = open("a file", O_RDONLY));
    SHOW(epoll_wait(set, &event, 1, 0));
    SHOW(epoll_wait(set, &event, 1, 0));
    MUST(close(file));
    SHOW(epoll_wait(set, &event, 1, 0));
    unlink("a file");
}

static void anonymous_files_have_no_position(void)
{
    sigset_t none;
    sigemptyset(&none);
    SHOW(lseek(MUST(eventfd(0, 0)), 5, SEEK_SET));
    SHOW(lseek(MUST(epoll_create1(0)), 5, SEEK_SET));
    SHOW(lseek(MUST(timerfd_create(CLOCK_MONOTONIC, 0)), 5, SEEK_SET));
    SHOW(lseek(MUST(signalfd(-1, &none, 0)), 5, SEEK_SET));
}

static void truncation(void)
{
    begin();
    put("t", "12345");
    watch("t", IN_MODIFY | IN_CLOSE);
    put("t", "1");
    show_at("put", 0);
    SEE(truncate("t", 0));
    unlink("t");
}

static void a_reader_sleeps(void)
{
    char buffer[64] __attribute__((aligned(8)));
    begin();
    MUST(fcntl(watcher, F_SETFL, 0));
    put("late", "x");
    watch("late", IN_ATTRIB);
    fflush(stdout);
    pid_t parent = getpid(), child = MUST(fork());
    if (child == 0) {
        await_state(parent, 'S');
        chmod("late", 0600);
        _exit(0);
    }
    SHOW(read(watcher, buffer, sizeof buffer));
    show_event((struct inotify_event *)buffer);
    waitpid(child, NULL, 0);
    unlink("late");
}

static void the_queue_overflows(void)
{
    char buffer[65536] __attribute__((aligned(8)));
    int events = 0, overflows = 0;
    ssize_t got;
    begin();
    put("o1", "x");
    put("o2", "x");
    int first = watch("o1", IN_ATTRIB), second = watch("o2", IN_ATTRIB);
    for (int i = 0; i < 9000; i++)
        chmod("o1", 0600), chmod("o2", 0600);
    while ((got = read(watcher, buffer, sizeof buffer)) > 0)
        for (char *at = buffer; at < buffer + got; at += sizeof(struct inotify_event)) {
            struct inotify_event *event = (struct inotify_event *)at;
            events += event->wd == first || event->wd == second;
            if (event->mask & IN_Q_OVERFLOW)
                overflows++, show_event(event);
        }
    printf("%d events, %d overflows\n", events, overflows);
    SEE(chmod("o1", 0644));
    unlink("o1"), unlink("o2");
}

static void several_watchers(void)
{
    int second, first;
    begin();
    first = watcher;
    put("both", "x");
    watch("both", IN_ATTRIB);
    begin();
    second = watcher;
    watch(".", IN_ATTRIB);
    watch("both", IN_ATTRIB | IN_ONESHOT);
    MUST(chmod("both", 0600));
    MUST(chmod("both", 0644));
    watcher = first, show_at("first", 0);
    watcher = second, show_at("second", 0);
    close(first);
    SEE(unlink("both"));
}

static void copies_and_others(void)
{
    char byte;
    int from, to, ends[2], end;
    char drained[1024];
    begin();
    put("from", "0123456789");
    put("to", "");
    MUST(mkfifo("pipe", 0600));
    watch(".", ALL);
    SEE(from = open("from", O_RDONLY));
    SEE(to = open("to", O_RDWR));
    SEE(sendfile(to, from, NULL, 5));
    SEE(copy_file_range(from, NULL, to, NULL, 5, 0));
    MUST(pipe(ends));
    SEE(pwrite(to, "x", 1, 0));
    SEE(end = open("pipe", O_RDWR));
    /* Newer kernels do not say who reads and writes special files in a directory. */
    MUST(write(end, "xy", 2));
    MUST(read(end, &byte, 1));
    SEE((read(watcher, drained, sizeof drained), close(end)));
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int listening = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
    SEE(bind(listening, (struct sockaddr *)&name, sizeof name));
    SEE(unlink("socket"));
    close(from), close(to);
    show_at("close", 0);
    int here;
    char entries[1024];
    SEE(here = open(".", O_RDONLY | O_DIRECTORY));
    SEE(syscall(SYS_getdents64, here, entries, sizeof entries));
    SEE(close(here));
    unlink("from"), unlink("to"), unlink("pipe");
}

static void hot_streams(void)
{
    char byte;
    MUST(mkfifo("hot-pipe", 0600));
    int end = MUST(open("hot-pipe", O_RDWR)), null;
    for (int i = 0; i < 30; i++) {
        MUST(write(end, "x", 1));
        MUST(read(end, &byte, 1));
        MUST(null = open("/dev/null", O_RDWR));
        MUST(write(null, "x", 1));
        MUST(close(null));
    }
    MUST(null = open("/dev/null", O_RDWR));
    begin();
    watch("hot-pipe", ALL);
    watch("/dev/null", ALL);
    SEE(write(end, "x", 1));
    SEE(read(end, &byte, 1));
    SEE(write(null, "x", 1));
    SEE(read(null, &byte, 1));
    SEE(close(null));
    SEE(null = open("/dev/null", O_RDWR));
    SEE(write(null, "x", 1));
    SEE(close(null));
    unlink("hot-pipe");
}

static void a_volume_goes(void)
{
    begin();
    MUST(mkdir("volume", 0700));
    if (mount("none", "volume", "tmpfs", 0, "") == -1) {
        rmdir("volume");
        printf("no volume\n");
        return;
    }
    put("volume/f", "x");
    watch("volume/f", ALL);
    watch("volume", IN_CREATE);
    SHOW(umount("volume"));
    /* Which of the two comes first is not said. */
    char buffer[256] __attribute__((aligned(8)));
    int counts[3][2] = {{0}};
    ssize_t got = read(watcher, buffer, sizeof buffer);
    for (char *at = buffer; at < buffer + got; at += sizeof(struct inotify_event)) {
        struct inotify_event *event = (struct inotify_event *)at;
        counts[event->wd][0] += !!(event->mask & IN_UNMOUNT);
        counts[event->wd][1] += !!(event->mask & IN_IGNORED);
    }
    printf("%d %d, %d %d\n", counts[1][0], counts[1][1], counts[2][0], counts[2][1]);
    rmdir("volume");
}

static const struct test tests[] = {
    {"inotify/a_file_and_its_directory", a_file_and_its_directory},
    {"inotify/hot_files", hot_files},
    {"inotify/hot_streams", hot_streams},
    {"inotify/names_in_a_directory", names_in_a_directory},
    {"inotify/what_happens_to_the_node_itself", what_happens_to_the_node_itself},
    {"inotify/masks_and_numbers", masks_and_numbers},
    {"inotify/unlinked_children", unlinked_children},
    {"inotify/reading_the_queue", reading_the_queue},
    {"inotify/anonymous_files_have_no_position", anonymous_files_have_no_position},
    {"inotify/truncation", truncation},
    {"inotify/a_reader_sleeps", a_reader_sleeps},
    {"inotify/the_queue_overflows", the_queue_overflows},
    {"inotify/several_watchers", several_watchers},
    {"inotify/copies_and_others", copies_and_others},
    {"inotify/a_volume_goes", a_volume_goes},
};
CHECK_MAIN(tests)
