/* Where openat2 may go, and what an empty path means. */
#include "check.h"

#include <linux/openat2.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

static char home[64];

static void file(const char *path)
{
    close(MUST(open(path, O_CREAT | O_WRONLY, 0644)));
}

/* A tree with links of all kinds, and a folder beside it that they may lead to. */
static void begin(void)
{
    char path[200];
    strcpy(home, "/tmp/resolve.XXXXXX");
    if (mkdtemp(home) == NULL)
        exit(9);
    MUST(chdir(home));
    MUST(mkdir("top", 0755));
    MUST(mkdir("top/a", 0755));
    MUST(mkdir("top/a/b", 0755));
    MUST(mkdir("beside", 0755));
    file("top/f");
    file("top/a/f");
    file("top/a/b/f");
    file("beside/f");
    MUST(symlink("a/b", "top/down"));
    MUST(symlink("f", "top/to-f"));
    MUST(symlink("../f", "top/a/up"));
    MUST(symlink("../../beside", "top/a/out"));
    MUST(symlink("../../../../f", "top/a/far"));
    MUST(symlink("/f", "top/a/from-root"));
    MUST(symlink("/a", "top/to-a-from-root"));
    MUST(symlink("loop", "top/loop"));
    snprintf(path, sizeof path, "%s/top/f", home);
    MUST(symlink(path, "top/absolute"));
    MUST(symlink("/proc/self/exe", "top/jump"));
    MUST(symlink("none", "top/dangling"));
}

static void end(void)
{
    char command[100];
    MUST(chdir("/"));
    snprintf(command, sizeof command, "%s", home);
    static const char *const files[] = {"top/f",       "top/a/f",          "top/a/b/f",          "beside/f",   "top/down",     "top/to-f",     "top/a/up",
                                        "top/a/out",   "top/a/far",        "top/a/from-root",    "top/loop",   "top/absolute", "top/jump",     "top/dangling",
                                        "top/a/new",   "top/to-a-from-root", "top/new",          "beside/new", "new"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(command, sizeof command, "%s/%s", home, files[i]);
        unlink(command);
    }
    static const char *const folders[] = {"top/a/b", "top/a", "top", "beside", ""};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(command, sizeof command, "%s/%s", home, folders[i]);
        MUST(rmdir(command));
    }
}

/* Opens, and tells what was opened by its place below the tree. */
static int go(int at, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
    struct open_how how = {flags, mode, resolve};
    char link[40], place[300];
    int opened = syscall(SYS_openat2, at, path, &how, sizeof how);
    printf("  %s: ", path);
    if (opened < 0) {
        puts(failing(-1));
        return -1;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", opened);
    ssize_t got = MUST(readlink(link, place, sizeof place - 1));
    place[got] = 0;
    /* A file without a name shows its number. */
    if (strchr(place, '#'))
        strcpy(strchr(place, '#'), "#");
    puts(strncmp(place, home, strlen(home)) == 0 ? place + strlen(home) : "elsewhere");
    close(opened);
    return 0;
}

static const char *const paths[] = {
    "f",         "a/f",         "a/b/../f",    "a/../f",       "..",           "../beside/f", "a/../../beside/f", "a/..",          "a/../..", "down",
    "down/f",    "down/../f",   "to-f",        "to-f/",        "a/up",         "a/out",       "a/out/f",          "a/far",         "a/from-root", "to-a-from-root/f",
    "loop",      "absolute",    "jump",        "dangling",     "none",         "/",           "/f",               "/a/../../f",    "/proc/self/exe", "/..",
    ".",         "a/.",         "",            "a//b/./f",     "f/..",         "a/up/..",     "../top/f",         "a/b/../../../top/f", "/tmp",
};

static void everywhere(const char *what, uint64_t flags, uint64_t resolve)
{
    int top = MUST(open("top", O_PATH | O_DIRECTORY));
    printf("%s\n", what);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        /* Whether /tmp is a volume of its own is not the same everywhere. */
        if ((resolve & RESOLVE_NO_XDEV) && (strcmp(paths[i], "/tmp") == 0 || strcmp(paths[i], "a/far") == 0))
            continue;
        go(top, paths[i], flags, 0, resolve);
    }
    close(top);
}

static void limits(void)
{
    begin();
    everywhere("no limit", O_RDONLY, 0);
    everywhere("no links", O_RDONLY, RESOLVE_NO_SYMLINKS);
    everywhere("no links, the last one itself", O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
    everywhere("no jumps", O_RDONLY, RESOLVE_NO_MAGICLINKS);
    everywhere("beneath", O_RDONLY, RESOLVE_BENEATH);
    everywhere("in root", O_RDONLY, RESOLVE_IN_ROOT);
    everywhere("one volume", O_RDONLY, RESOLVE_NO_XDEV);
    everywhere("beneath without links", O_RDONLY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    everywhere("in root on one volume", O_PATH, RESOLVE_IN_ROOT | RESOLVE_NO_XDEV);
    end();
}

static void volumes(void)
{
    begin();
    static const char *const crossing[] = {"/",    "/proc", "/proc/self/status", "proc", "proc/self", "proc/self/status", "proc/self/exe", "proc/self/root",
                                           "proc/self/cwd", "proc/..", "sys", "/proc/self/fd"};
    int root = MUST(open("/", O_PATH | O_DIRECTORY)), proc = MUST(open("/proc", O_PATH | O_DIRECTORY));
    for (size_t i = 0; i < sizeof crossing / sizeof *crossing; i++)
        go(root, crossing[i], O_PATH, 0, RESOLVE_NO_XDEV);
    puts("from /proc");
    static const char *const inside[] = {"self/status", "self", "..", "self/../..", "self/exe", "self/cwd", "self/fd", "/", "/proc"};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        go(proc, inside[i], O_PATH, 0, RESOLVE_NO_XDEV);
    puts("without jumps");
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        go(proc, inside[i], O_PATH, 0, RESOLVE_NO_MAGICLINKS);
    puts("the jump itself");
    go(proc, "self/exe", O_PATH | O_NOFOLLOW, 0, RESOLVE_NO_MAGICLINKS);
    go(proc, "self/exe", O_PATH | O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS);
    puts("beneath, in root");
    go(proc, "self/exe", O_PATH, 0, RESOLVE_BENEATH);
    go(proc, "self/exe", O_PATH, 0, RESOLVE_IN_ROOT);
    go(proc, "self/status", O_PATH, 0, RESOLVE_BENEATH);
    go(proc, "/self/status", O_PATH, 0, RESOLVE_IN_ROOT);
    end();
}

static void creating(void)
{
    begin();
    int top = MUST(open("top", O_PATH | O_DIRECTORY));
    /* Those without a root of their own must not leave files at the root of a host. */
    static const uint64_t each[] = {0, RESOLVE_NO_SYMLINKS, RESOLVE_NO_XDEV, RESOLVE_NO_MAGICLINKS, RESOLVE_BENEATH, RESOLVE_IN_ROOT};
    static const char *const new[] = {"new", "../new", "a/out/new", "to-f", "/new", "to-a-from-root/new", "a/far"};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        printf("resolve %lx\n", (long)each[i]);
        for (size_t j = 0; j < (i < 4 ? 4 : sizeof new / sizeof *new); j++) {
            go(top, new[j], O_CREAT | O_RDWR, 0644, each[i]);
            unlinkat(top, "new", 0);
            unlink("new");
            unlink("beside/new");
            unlink("top/a/new");
        }
        printf("  without a name");
        go(top, "a/out", O_TMPFILE | O_RDWR, 0600, each[i]);
    }
    unlink("f");
    end();
}

static void bad(void)
{
    begin();
    int top = MUST(open("top", O_PATH | O_DIRECTORY));
    struct open_how how = {0};
    struct {
        struct open_how how;
        uint64_t more[3];
    } future = {0};
    char page[8192] = {0};
    go(top, "f", O_RDONLY, 0, RESOLVE_BENEATH | RESOLVE_IN_ROOT);
    go(top, "f", O_RDONLY, 0, 0x40);
    go(top, "f", O_RDONLY, 0, 1ul << 40);
    go(top, "f", 1ul << 40, 0, 0);
    go(top, "f", 1 << 30, 0, 0);
    go(top, "f", O_RDONLY, 0644, 0);
    go(top, "f", O_RDONLY | O_CREAT, 010644, 0);
    go(top, "f", O_PATH | O_RDWR, 0, 0);
    go(top, "f", O_PATH | O_CLOEXEC | O_NOFOLLOW, 0, 0);
    go(top, "f", O_RDWR | O_TRUNC, 0, RESOLVE_CACHED);
    go(top, "new", O_RDWR | O_CREAT, 0644, RESOLVE_CACHED);
    go(top, "a", O_RDWR | O_TMPFILE, 0644, RESOLVE_CACHED);
    go(99, "f", O_RDONLY, 0, 0);
    go(99, "/", O_RDONLY, 0, 0);
    go(99, "/", O_RDONLY, 0, RESOLVE_IN_ROOT);
    go(99, "/", O_RDONLY, 0, RESOLVE_BENEATH);
    TRY(syscall(SYS_openat2, top, "f", &how, 0));
    TRY(syscall(SYS_openat2, top, "f", &how, 23));
    TRY(syscall(SYS_openat2, top, "f", &future, sizeof future));
    future.more[2] = 1;
    TRY(syscall(SYS_openat2, top, "f", &future, sizeof future));
    TRY(syscall(SYS_openat2, top, "f", page, 4096));
    TRY(syscall(SYS_openat2, top, "f", page, 4097));
    TRY(syscall(SYS_openat2, top, "f", NULL, 24));
    end();
}

static void mode_of(const char *what, int at)
{
    struct stat s;
    MUST(fstatat(at, "", &s, AT_EMPTY_PATH));
    printf("%s: %o\n", what, s.st_mode & 07777);
}

/* chmod of what a descriptor stands for. The call with flags needs Linux 6.6. */
static void empty_path(void)
{
    enum { FCHMODAT2 = 452 };
    begin();
    int plain = MUST(open("top/f", O_RDONLY)), folder = MUST(open("top", O_DIRECTORY)), place = MUST(open("top/f", O_PATH)),
        link = MUST(open("top/to-f", O_PATH | O_NOFOLLOW)), ends[2], memory = MUST(memfd_create("x", 0)), null = MUST(open("/dev/null", O_RDWR)), sockets[2];
    MUST(pipe(ends));
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    TRY(syscall(SYS_fchmodat, plain, "", 0600));
    TRY(syscall(SYS_fchmodat, AT_FDCWD, "", 0600));
    TRY(syscall(SYS_chmod, "", 0600));
    TRY(syscall(FCHMODAT2, plain, "", 0601, 0));
    TRY(syscall(FCHMODAT2, plain, "", 0602, AT_EMPTY_PATH));
    mode_of("plain", plain);
    TRY(syscall(FCHMODAT2, folder, "", 0703, AT_EMPTY_PATH));
    mode_of("folder", folder);
    TRY(syscall(FCHMODAT2, place, "", 0604, AT_EMPTY_PATH));
    mode_of("place", place);
    TRY(syscall(FCHMODAT2, place, "", 0605, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
    TRY(syscall(FCHMODAT2, link, "", 0606, AT_EMPTY_PATH));
    TRY(syscall(FCHMODAT2, memory, "", 0607, AT_EMPTY_PATH));
    mode_of("memory", memory);
    mode_of("pipe", ends[0]);
    TRY(syscall(FCHMODAT2, ends[0], "", 0610, AT_EMPTY_PATH));
    mode_of("pipe", ends[0]);
    mode_of("pipe's other end", ends[1]);
    TRY(fchmod(ends[1], 0611));
    mode_of("pipe", ends[0]);
    mode_of("socket", sockets[0]);
    TRY(fchmod(sockets[0], 0612));
    mode_of("socket", sockets[0]);
    mode_of("other socket", sockets[1]);
    TRY(syscall(FCHMODAT2, AT_FDCWD, "", 0700, AT_EMPTY_PATH));
    mode_of("here", AT_FDCWD);
    TRY(syscall(FCHMODAT2, AT_FDCWD, "top/to-f", 0640, AT_SYMLINK_NOFOLLOW));
    TRY(syscall(FCHMODAT2, AT_FDCWD, "top/to-f", 0641, 0));
    mode_of("plain", plain);
    TRY(syscall(FCHMODAT2, AT_FDCWD, "top/f", 0642, AT_EMPTY_PATH));
    TRY(syscall(FCHMODAT2, AT_FDCWD, "top/f", 0642, AT_EACCESS));
    TRY(syscall(FCHMODAT2, 99, "", 0642, AT_EMPTY_PATH));
    TRY(syscall(FCHMODAT2, plain, "x", 0642, 0));
    TRY(fchmod(place, 0642));
    TRY(fchownat(place, "", -1, -1, AT_EMPTY_PATH));
    TRY(fchownat(ends[0], "", -1, -1, AT_EMPTY_PATH));
    TRY(fchownat(plain, "", -1, -1, 0));
    TRY(faccessat(plain, "", R_OK, 0));
    TRY(syscall(439, plain, "", R_OK, AT_EMPTY_PATH));
    TRY(syscall(439, ends[0], "", R_OK, AT_EMPTY_PATH));
    TRY(utimensat(plain, "", NULL, 0));
    TRY(utimensat(plain, "", NULL, AT_EMPTY_PATH));
    close(null);
    end();
}

/* Whoever never waits cannot be watched. */
static void never_waited_for(void)
{
    static const char *const names[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random", "/proc/self/status", "/tmp", "/proc/self/exe"};
    int poll = MUST(epoll_create1(0)), ends[2];
    struct epoll_event event = {.events = EPOLLIN};
    MUST(pipe(ends));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int file = MUST(open(names[i], O_RDONLY));
        printf("%s: ", names[i]);
        TRY(epoll_ctl(poll, EPOLL_CTL_ADD, file, &event));
        TRY(epoll_ctl(poll, EPOLL_CTL_DEL, file, &event));
        TRY(epoll_ctl(ends[0], EPOLL_CTL_ADD, file, &event));
    }
}

#define T(name) {#name, name}
static const struct test tests[] = {T(limits), T(volumes), T(creating), T(bad), T(empty_path), T(never_waited_for)};
CHECK_MAIN(tests)
