/* Files, folders, links, descriptors and pipes: what they do and every errno on the way. Runs in an empty folder. */
#include "check.h"

#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

static void put(const char *name, const char *text)
{
    int fd = MUST(open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644));
    MUST(write(fd, text, strlen(text)));
    close(fd);
}

static void get(const char *name)
{
    char text[256];
    int fd = open(name, O_RDONLY);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (length < 0)
        printf("%s: %s\n", name, failing(-1));
    else
        printf("%s: \"%.*s\"\n", name, (int)length, text);
    if (fd >= 0)
        close(fd);
}

static void open_flags(void)
{
    mkdir("d", 0755);
    put("f", "text");
    TRY(open("none", O_RDONLY));
    TRY(open("f", O_CREAT | O_EXCL | O_RDWR, 0600));
    TRY(open("new", O_CREAT | O_EXCL | O_RDWR, 0600));
    TRY(open("d", O_RDWR));
    TRY(open("d", O_RDONLY | O_CREAT, 0600));
    TRY(open("f", O_RDONLY | O_DIRECTORY));
    TRY(open("f/x", O_RDONLY));
    TRY(open("f/", O_RDONLY));
    TRY(open("none/", O_RDONLY | O_CREAT, 0600));
    TRY(open("", O_RDONLY));
    TRY(open("d/none/x", O_RDWR | O_CREAT, 0600));
    TRY(open("f", O_RDONLY | O_TRUNC));
    get("f");
    MUST(symlink("f", "l"));
    MUST(symlink("missing", "dangling"));
    TRY(open("l", O_RDONLY | O_NOFOLLOW));
    TRY(open("dangling", O_RDONLY));
    TRY(open("dangling", O_RDWR | O_CREAT | O_EXCL, 0600));
    TRY(open("dangling", O_RDWR | O_CREAT, 0600));
    TRY(access("missing", F_OK));
    int fd = MUST(open("f", O_RDONLY));
    TRY(write(fd, "x", 1));
    fd = MUST(open("f", O_WRONLY));
    char byte;
    TRY(read(fd, &byte, 1));
    fd = MUST(open("f", O_PATH));
    TRY(read(fd, &byte, 1));
    TRY(fchmod(fd, 0600));
    fd = MUST(open("d", O_RDONLY));
    TRY(read(fd, &byte, 1));
    TRY(open("d", O_TMPFILE | O_RDONLY, 0600));
}

static void descriptor_flags(void)
{
    put("f", "0123456789");
    int fd = MUST(open("f", O_RDWR | O_APPEND | O_CLOEXEC));
    SHOW(fcntl(fd, F_GETFD));
    printf("%o\n", fcntl(fd, F_GETFL) & ~0100000);
    SHOW(fcntl(fd, F_SETFL, O_NONBLOCK));
    printf("%o\n", fcntl(fd, F_GETFL) & ~0100000);
    SHOW(fcntl(fd, F_SETFD, 0));
    SHOW(fcntl(fd, F_GETFD));
    SHOW(dup2(fd, 40));
    SHOW(dup2(40, 40));
    SHOW(dup3(fd, 41, O_CLOEXEC));
    SHOW(fcntl(41, F_GETFD));
    SHOW(fcntl(fd, F_DUPFD, 50));
    SHOW(fcntl(fd, F_DUPFD_CLOEXEC, 50));
    TRY(dup2(fd, -1));
    TRY(dup2(99, 5));
    TRY(dup3(fd, fd, 0));
    TRY(close(99));
    SHOW(lseek(fd, 5, SEEK_SET));
    SHOW(lseek(40, 0, SEEK_CUR));
    close(fd);
    SHOW(open("f", O_RDONLY) == fd);
}

static void shared_offset(void)
{
    char text[8] = "";
    put("f", "abcdefgh");
    int fd = MUST(open("f", O_RDWR)), other = MUST(open("f", O_RDONLY)), copy = MUST(dup(fd));
    MUST(read(fd, text, 2));
    MUST(read(copy, text + 2, 2));
    MUST(read(other, text + 4, 2));
    printf("%s\n", text);
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        lseek(fd, 1, SEEK_SET);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    SHOW(lseek(fd, 0, SEEK_CUR));
}

static void seeking(void)
{
    put("f", "0123456789");
    int fd = MUST(open("f", O_RDWR));
    SHOW(lseek(fd, 0, SEEK_END));
    SHOW(lseek(fd, -3, SEEK_END));
    SHOW(lseek(fd, -20, SEEK_CUR));
    SHOW(lseek(fd, 100, SEEK_SET));
    char byte;
    SHOW(read(fd, &byte, 1));
    SHOW(write(fd, "x", 1));
    SHOW(lseek(fd, 0, SEEK_END));
    SHOW(pread(fd, &byte, 1, 50));
    printf("hole %d\n", byte);
    SHOW(lseek(fd, 0, 77));
    int ends[2];
    MUST(pipe(ends));
    SHOW(lseek(ends[0], 0, SEEK_CUR));
    SHOW(pread(ends[0], &byte, 1, 0));
    SHOW(pwrite(fd, "y", 1, -1));
}

static void holes(void)
{
    int fd = MUST(open("f", O_RDWR | O_CREAT, 0600));
    struct stat about;
    MUST(pwrite(fd, "end", 3, 1 << 20));
    MUST(fstat(fd, &about));
    printf("size %ld few blocks %d\n", (long)about.st_size, about.st_blocks < 64);
    SHOW(lseek(fd, 0, SEEK_DATA));
    SHOW(lseek(fd, 0, SEEK_HOLE));
    SHOW(lseek(fd, 1 << 20, SEEK_HOLE));
    SHOW(lseek(fd, 2 << 20, SEEK_DATA));
    SHOW(ftruncate(fd, 100));
    SHOW(ftruncate(fd, 5000));
    SHOW(lseek(fd, 0, SEEK_END));
    char text[10];
    SHOW(pread(fd, text, 10, 4995));
    SHOW(ftruncate(fd, -1));
    SHOW(truncate("none", 1));
    SHOW(truncate(".", 1));
    SHOW(truncate("f", 3));
}

static void renaming(void)
{
    mkdir("d", 0755);
    mkdir("e", 0755);
    put("a", "a");
    put("b", "b");
    put("d/x", "x");
    TRY(rename("a", "b"));
    get("a");
    get("b");
    TRY(rename("none", "c"));
    TRY(rename("b", "d"));
    TRY(rename("d", "b"));
    TRY(rename("d", "e"));
    TRY(rename("e/x", "e/y"));
    TRY(rename("e", "e/inside"));
    mkdir("full", 0755);
    put("full/z", "z");
    TRY(rename("e", "full"));
    TRY(rename("b", "b"));
    link("b", "hard");
    TRY(rename("b", "hard"));
    TRY(access("b", F_OK));
    TRY(rename(".", "w"));
    TRY(rename("e/..", "w"));
    TRY(rename("b", "none/x"));
    TRY(rename("b/", "c"));
    TRY(syscall(SYS_renameat2, AT_FDCWD, "b", AT_FDCWD, "full", 1));
    TRY(syscall(SYS_renameat2, AT_FDCWD, "b", AT_FDCWD, "e", 2));
    get("e");
}

static void linking(void)
{
    struct stat about;
    put("f", "text");
    mkdir("d", 0755);
    TRY(link("f", "g"));
    stat("g", &about);
    printf("links %ld\n", (long)about.st_nlink);
    TRY(link("f", "g"));
    TRY(link("none", "h"));
    TRY(link("d", "h"));
    TRY(unlink("f"));
    get("g");
    TRY(unlink("f"));
    TRY(unlink("d"));
    TRY(rmdir("g"));
    TRY(rmdir("none"));
    put("d/x", "");
    TRY(rmdir("d"));
    TRY(unlink("d/x"));
    TRY(rmdir("d"));
    mkdir("d", 0755);
    stat("d", &about);
    printf("links %ld\n", (long)about.st_nlink);
    mkdir("d/e", 0755);
    stat("d", &about);
    printf("links %ld\n", (long)about.st_nlink);
    TRY(mkdir("d", 0755));
    TRY(mkdir("g", 0755));
    TRY(mkdir("none/x", 0755));
    TRY(rmdir("."));
    TRY(rmdir("d/.."));
}

static void symbolic_links(void)
{
    char text[64];
    struct stat about;
    put("f", "text");
    TRY(symlink("f", "l"));
    TRY(symlink("x", "l"));
    TRY(symlink("", "empty"));
    SHOW(readlink("l", text, sizeof text));
    SHOW(readlink("l", text, 0));
    TRY(readlink("f", text, sizeof text));
    TRY(readlink("none", text, sizeof text));
    lstat("l", &about);
    printf("link %d size %ld\n", S_ISLNK(about.st_mode), (long)about.st_size);
    symlink("b", "a");
    symlink("a", "b");
    TRY(open("a", O_RDONLY));
    TRY(stat("a", &about));
    TRY(lstat("a", &about));
    symlink("self/x", "self");
    TRY(stat("self", &about));
    char name[16] = "f", next[16];
    for (int i = 0; i < 41; i++) {
        snprintf(next, sizeof next, "chain%d", i);
        MUST(symlink(name, next));
        strcpy(name, next);
    }
    TRY(stat("chain39", &about));
    TRY(stat("chain40", &about));
    mkdir("d", 0755);
    symlink("d", "to_d");
    TRY(rmdir("to_d"));
    TRY(unlink("to_d/"));
    TRY(mkdir("to_d", 0755));
    TRY(stat("to_d/.", &about));
    TRY(stat("l/.", &about));
    TRY(chdir("l"));
    TRY(chdir("to_d"));
}

static void long_names(void)
{
    char name[300], path[5000];
    struct stat about;
    memset(name, 'n', sizeof name);
    name[255] = 0;
    TRY(open(name, O_CREAT | O_WRONLY, 0600) >= 0);
    TRY(stat(name, &about));
    name[255] = 'n';
    name[256] = 0;
    TRY(open(name, O_CREAT | O_WRONLY, 0600));
    TRY(mkdir(name, 0755));
    TRY(symlink("x", name));
    memset(path, '/', sizeof path);
    path[4095] = 0;
    TRY(stat(path, &about));
    path[4095] = '/';
    path[4096] = 0;
    TRY(stat(path, &about));
    for (int i = 0; i < 4094; i += 2)
        memcpy(path + i, "./", 2);
    path[4094] = 0;
    TRY(stat(path, &about));
    TRY(stat("..//..///.././/", &about));
}

static void open_after_unlink(void)
{
    char text[8] = "";
    put("f", "kept");
    int fd = MUST(open("f", O_RDWR));
    struct stat about;
    unlink("f");
    fstat(fd, &about);
    printf("links %ld\n", (long)about.st_nlink);
    MUST(write(fd, "K", 1));
    MUST(pread(fd, text, 4, 0));
    puts(text);
    put("f", "new");
    pread(fd, text, 4, 0);
    puts(text);
    mkdir("d", 0755);
    int folder = MUST(open("d", O_RDONLY | O_DIRECTORY));
    rmdir("d");
    TRY(openat(folder, "x", O_CREAT | O_WRONLY, 0600));
    TRY(mkdirat(folder, "x", 0700));
    mkdir("e", 0755);
    chdir("e");
    rmdir("../e");
    char path[100];
    printf("%s\n", getcwd(path, sizeof path) ? "path" : failing(-1));
    TRY(open("x", O_CREAT | O_WRONLY, 0600));
    TRY(open(".", O_RDONLY) >= 0);
    TRY(chdir(".."));
}

static int by_name(const void *one, const void *other) { return strcmp(*(char *const *)one, *(char *const *)other); }
static void folders(void)
{
    char name[32], *names[700];
    int count = 0;
    mkdir("d", 0755);
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "d/entry-number-%d", i);
        put(name, "");
    }
    DIR *folder = opendir("d");
    for (struct dirent *entry; (entry = readdir(folder));)
        names[count++] = strdup(entry->d_name);
    qsort(names, count, sizeof *names, by_name);
    printf("%d %s %s %s\n", count, names[0], names[1], names[count - 1]);
    rewinddir(folder);
    int removed = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_type == DT_REG)
            removed += unlinkat(dirfd(folder), entry->d_name, 0) == 0;
    printf("removed %d\n", removed);
    closedir(folder);
    TRY(rmdir("d"));
    mkdir("e", 0755);
    symlink("x", "e/l");
    mkfifo("e/p", 0600);
    folder = opendir("e");
    int kinds = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        kinds += entry->d_type;
    printf("kinds %d\n", kinds);
    TRY(opendir("none") ? 0 : -1);
    put("f", "");
    TRY(opendir("f") ? 0 : -1);
    char buffer[16];
    int fd = MUST(open("e", O_RDONLY));
    TRY(syscall(SYS_getdents64, fd, buffer, sizeof buffer));
}

static void modes(void)
{
    struct stat about;
#define MODE(name) (stat(name, &about), printf("%s %o\n", name, about.st_mode))
    umask(027);
    SHOW(umask(022));
    umask(077);
    put("f", "");
    mkdir("d", 0777);
    mkfifo("p", 0666);
    MODE("f");
    MODE("d");
    MODE("p");
    umask(0);
    close(open("g", O_CREAT | O_WRONLY, 07777));
    MODE("g");
    chmod("f", 04755);
    MODE("f");
    chmod("f", 0);
    MODE("f");
    TRY(chmod("none", 0));
    TRY(fchmod(99, 0));
    TRY(access("f", F_OK));
    TRY(access("f", X_OK));
    TRY(access("f", 99));
    put("script", "#!/bin/sh\n");
    TRY(access("script", X_OK));
    TRY(execl("script", "script", NULL));
    TRY(execl("d", "d", NULL));
    symlink("f", "l");
    chmod("l", 0640);
    MODE("f");
}

static void times(void)
{
    struct stat about;
    struct timespec set[2] = {{1000, 123456789}, {2000, 987654321}};
    put("f", "");
    SHOW(utimensat(AT_FDCWD, "f", set, 0));
    stat("f", &about);
    printf("%ld.%09ld %ld.%09ld\n", about.st_atim.tv_sec, about.st_atim.tv_nsec, about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
    set[0].tv_nsec = UTIME_OMIT;
    set[1].tv_sec = -5;
    SHOW(utimensat(AT_FDCWD, "f", set, 0));
    stat("f", &about);
    printf("%ld %ld\n", about.st_atim.tv_sec, about.st_mtim.tv_sec);
    struct timespec before, wrong[2] = {{0, 1000000000}, {0, 0}};
    clock_gettime(CLOCK_REALTIME_COARSE, &before);
    SHOW(utimensat(AT_FDCWD, "f", NULL, 0));
    stat("f", &about);
    printf("now %d\n", about.st_mtim.tv_sec >= before.tv_sec);
    TRY(utimensat(AT_FDCWD, "f", wrong, 0));
    TRY(utimensat(AT_FDCWD, "none", set, 0));
    set[1].tv_nsec = 5;
    set[1].tv_sec = 77;
    int fd = MUST(open("f", O_RDWR));
    SHOW(futimens(fd, set));
    fstat(fd, &about);
    printf("%ld\n", about.st_mtim.tv_sec);
    write(fd, "x", 1);
    fstat(fd, &about);
    printf("changed by a write %d\n", about.st_mtim.tv_sec > 77);
    symlink("f", "l");
    SHOW(utimensat(AT_FDCWD, "l", set, AT_SYMLINK_NOFOLLOW));
    lstat("l", &about);
    printf("%ld\n", about.st_mtim.tv_sec);
}

static void appending(void)
{
    put("f", "start");
    int fd = MUST(open("f", O_RDWR | O_APPEND)), other = MUST(open("f", O_WRONLY | O_APPEND));
    MUST(lseek(fd, 0, SEEK_SET));
    MUST(write(fd, "-one", 4));
    MUST(write(other, "-two", 4));
    SHOW(lseek(fd, 0, SEEK_CUR));
    SHOW(pwrite(fd, "!", 1, 0));
    get("f");
}

static void stat_fields(void)
{
    struct stat about;
    struct statx more;
    put("f", "12345");
    stat("f", &about);
    printf("%o %ld %ld block %ld regular %d\n", about.st_mode, (long)about.st_size, (long)about.st_nlink, (long)about.st_blksize,
           S_ISREG(about.st_mode));
    SHOW(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS, &more));
    printf("%o %ld mask %d same inode %d\n", more.stx_mode, (long)more.stx_size, (more.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS,
           more.stx_ino == about.st_ino);
    SHOW(statx(AT_FDCWD, "none", 0, STATX_BASIC_STATS, &more));
    SHOW(statx(AT_FDCWD, "", 0, STATX_BASIC_STATS, &more));
    int fd = MUST(open("f", O_RDONLY));
    SHOW(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &more));
    stat("/dev/null", &about);
    printf("%o device %lx\n", about.st_mode & S_IFMT, (long)about.st_rdev);
    stat("/dev/zero", &about);
    printf("%o device %lx\n", about.st_mode & S_IFMT, (long)about.st_rdev);
    int ends[2];
    MUST(pipe(ends));
    fstat(ends[0], &about);
    printf("%o %ld\n", about.st_mode & S_IFMT, (long)about.st_size);
    TRY(fstat(99, &about));
    TRY(stat("f/x", &about));
}

static void pipes(void)
{
    int ends[2];
    char text[100] = "";
    MUST(pipe(ends));
    MUST(write(ends[1], "hello world", 11));
    SHOW(read(ends[0], text, 5));
    SHOW(read(ends[0], text, 100));
    SHOW(write(ends[1], "", 0));
    SHOW(read(ends[0], text, 0));
    TRY(write(ends[0], "x", 1));
    TRY(read(ends[1], text, 1));
    write(ends[1], "last", 4);
    close(ends[1]);
    SHOW(read(ends[0], text, 100));
    SHOW(read(ends[0], text, 100));
    MUST(pipe2(ends, O_NONBLOCK));
    TRY(read(ends[0], text, 1));
    static char many[100000];
    SHOW(write(ends[1], many, sizeof many));
    TRY(write(ends[1], "x", 1));
    SHOW(read(ends[0], many, 4095));
    TRY(write(ends[1], many, 4096));
    SHOW(read(ends[0], many, 1));
    SHOW(write(ends[1], many, 4096));
    SHOW(fcntl(ends[0], F_GETPIPE_SZ));
    close(ends[0]);
    signal(SIGPIPE, SIG_IGN);
    TRY(write(ends[1], "x", 1));
}

/* Writes of up to PIPE_BUF bytes from several processes are never torn. */
static void whole_writes(void)
{
    int ends[2], torn = 0, records = 0;
    MUST(pipe(ends));
    for (int i = 0; i < 4; i++)
        if (MUST(fork()) == 0) {
            char record[512];
            memset(record, 'a' + i, sizeof record);
            for (int n = 0; n < 200; n++)
                write(ends[1], record, sizeof record);
            _exit(0);
        }
    close(ends[1]);
    char record[512];
    for (size_t have = 0;;) {
        ssize_t got = read(ends[0], record + have, sizeof record - have);
        if (got <= 0)
            break;
        have += got;
        if (have == sizeof record) {
            records++;
            for (size_t i = 1; i < sizeof record; i++)
                if (record[i] != record[0]) {
                    torn++;
                    break;
                }
            have = 0;
        }
    }
    printf("records %d torn %d\n", records, torn);
}

static void say_poll(const char *what, int fd)
{
    struct pollfd one = {fd, POLLIN | POLLOUT | POLLPRI, 0};
    int count = poll(&one, 1, 0);
    printf("%s: %d %x\n", what, count, one.revents);
}
static void polling(void)
{
    int ends[2];
    static char many[65536];
    MUST(pipe(ends));
    say_poll("empty, read end", ends[0]);
    say_poll("empty, write end", ends[1]);
    write(ends[1], many, 1);
    say_poll("one byte, read end", ends[0]);
    write(ends[1], many, 65535);
    say_poll("full, write end", ends[1]);
    close(ends[1]);
    say_poll("full, no writer", ends[0]);
    read(ends[0], many, 65536);
    say_poll("empty, no writer", ends[0]);
    close(ends[0]);
    MUST(pipe(ends));
    close(ends[0]);
    say_poll("no reader", ends[1]);
    put("f", "x");
    say_poll("file", MUST(open("f", O_RDWR)));
    say_poll("null", MUST(open("/dev/null", O_RDWR)));
    say_poll("zero", MUST(open("/dev/zero", O_RDWR)));
    say_poll("folder", MUST(open(".", O_RDONLY)));
    say_poll("closed", 99);
    say_poll("minus one", -1);
    SHOW(poll(NULL, 0, 10));
    MUST(pipe(ends));
    struct pollfd one = {ends[0], POLLIN, 0};
    SHOW(poll(&one, 1, 20));
    pid_t child = MUST(fork());
    if (child == 0) {
        sleep_ms(20);
        write(ends[1], "x", 1);
        _exit(0);
    }
    SHOW(poll(&one, 1, 5000));
    printf("%x\n", one.revents);
    fd_set in;
    FD_ZERO(&in);
    FD_SET(ends[0], &in);
    struct timeval none = {0, 0};
    SHOW(select(ends[0] + 1, &in, NULL, NULL, &none));
    FD_ZERO(&in);
    /* Below 64: what lies behind the process's table, whose size is its own history, is not looked at. */
    FD_SET(50, &in);
    TRY(select(51, &in, NULL, NULL, &none));
    waitpid(child, NULL, 0);
}

static void copying(void)
{
    put("from", "0123456789abcdef");
    int from = MUST(open("from", O_RDONLY)), to = MUST(open("to", O_RDWR | O_CREAT | O_TRUNC, 0600)), ends[2];
    off_t at = 3;
    SHOW(sendfile(to, from, &at, 5));
    printf("offset %ld\n", (long)at);
    SHOW(lseek(from, 0, SEEK_CUR));
    SHOW(sendfile(to, from, NULL, 100));
    SHOW(sendfile(to, from, NULL, 100));
    get("to");
    MUST(pipe(ends));
    at = 0;
    SHOW(sendfile(ends[1], from, &at, 4));
    TRY(sendfile(from, to, NULL, 1));
    TRY(sendfile(to, ends[0], NULL, 1));
    loff_t in = 2, out = 0;
    int other = MUST(open("other", O_RDWR | O_CREAT, 0600));
    SHOW(copy_file_range(from, &in, other, &out, 6, 0));
    printf("%ld %ld\n", (long)in, (long)out);
    get("other");
    TRY(copy_file_range(from, &in, other, &out, 1, 5));
    in = 100;
    SHOW(copy_file_range(from, &in, other, &out, 6, 0));
    TRY(copy_file_range(ends[0], NULL, other, NULL, 1, 0));
    TRY(copy_file_range(other, NULL, from, NULL, 1, 0));
}

static void vectors(void)
{
    char one[4] = "", two[8] = "";
    put("f", "abcdefghij");
    int fd = MUST(open("f", O_RDWR));
    struct iovec parts[2] = {{one, 3}, {two, 7}};
    SHOW(readv(fd, parts, 2));
    printf("%s %s\n", one, two);
    SHOW(writev(fd, parts, 2));
    get("f");
    volatile int fewer = -1, more = 2000;
    TRY(readv(fd, parts, fewer));
    TRY(writev(fd, parts, more));
}

static void named_pipe(void)
{
    char text[8] = "";
    MUST(mkfifo("p", 0600));
    TRY(mkfifo("p", 0600));
    TRY(open("p", O_WRONLY | O_NONBLOCK));
    int reader = MUST(open("p", O_RDONLY | O_NONBLOCK));
    SHOW(read(reader, text, 1));
    int writer = MUST(open("p", O_WRONLY));
    TRY(read(reader, text, 1));
    SHOW(write(writer, "fifo", 4));
    SHOW(read(reader, text, 8));
    puts(text);
    close(reader);
    close(writer);
    pid_t child = MUST(fork());
    if (child == 0) {
        writer = MUST(open("p", O_WRONLY));
        write(writer, "child", 5);
        _exit(0);
    }
    reader = MUST(open("p", O_RDONLY));
    SHOW(read(reader, text, 5));
    SHOW(read(reader, text, 5));
    waitpid(child, NULL, 0);
}

static void close_on_exec(void)
{
    put("f", "x");
    int keep = MUST(open("f", O_RDONLY)), drop = MUST(open("f", O_RDONLY | O_CLOEXEC));
    MUST(dup2(keep, 300));
    MUST(dup3(drop, 301, O_CLOEXEC));
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        execl("/proc/self/exe", "files", "what_is_open", NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
}
static void what_is_open(void) { printf("300 %s 301 %s\n", failing(fcntl(300, F_GETFD)), failing(fcntl(301, F_GETFD))); }

static void special_files(void)
{
    char text[16];
    memset(text, 'x', sizeof text);
    int null = MUST(open("/dev/null", O_RDWR)), zero = MUST(open("/dev/zero", O_RDWR)), full = open("/dev/full", O_RDWR);
    SHOW(read(null, text, 16));
    SHOW(write(null, text, 16));
    SHOW(read(zero, text, 16));
    printf("%d\n", text[15]);
    SHOW(write(zero, text, 16));
    TRY(write(full, text, 16));
    SHOW(lseek(null, 5, SEEK_SET));
    TRY(ftruncate(null, 5));
    int random = MUST(open("/dev/urandom", O_RDONLY));
    SHOW(read(random, text, 16));
    TRY(isatty(null) ? 0 : -1);
    TRY(open("/dev/tty-that-is-not", O_RDONLY));
    TRY(open("/dev/null/x", O_RDONLY));
    TRY(mkdir("/dev/null", 0700));
}

static void locks(void)
{
    put("f", "x");
    int fd = MUST(open("f", O_RDWR));
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    SHOW(fcntl(fd, F_SETLK, &lock));
    SHOW(fcntl(fd, F_GETLK, &lock));
    printf("%d\n", lock.l_type == F_UNLCK);
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        struct flock other = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        TRY(fcntl(fd, F_SETLK, &other));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

/* On a memory-resident file system a fill is bounded by memory; here only that a large file is right. */
static void large_file(void)
{
    static char block[65536];
    int fd = MUST(open("large", O_RDWR | O_CREAT, 0600));
    for (int i = 0; i < 160; i++) {
        memset(block, i, sizeof block);
        MUST(write(fd, block, sizeof block));
    }
    long wrong = 0;
    for (int i = 159; i >= 0; i--) {
        MUST(pread(fd, block, sizeof block, (off_t)i * 65536));
        for (int n = 0; n < 65536; n++)
            wrong += block[n] != (char)i;
    }
    printf("wrong %ld\n", wrong);
    SHOW(lseek(fd, 0, SEEK_END));
    struct rlimit limit = {1 << 20, 1 << 20};
    signal(SIGXFSZ, SIG_IGN);
    MUST(setrlimit(RLIMIT_FSIZE, &limit));
    TRY(pwrite(fd, "x", 1, 2 << 20));
    TRY(ftruncate(fd, 2 << 20));
}

/* As often as it takes for a file to be worth routines of its own; then all that these do not know. */
static void positioned(void)
{
    char text[8], wide[5000] = "", *volatile wild = (char *)8;
    int fd = MUST(open("f", O_RDWR | O_CREAT | O_TRUNC, 0600));
    long sum = 0;
    for (int i = 0; i < 3000; i++)
        MUST(pwrite(fd, &i, sizeof i, (i * 37 % 3000) * 4));
    for (int i = 0, value; i < 3000; i++) {
        MUST(pread(fd, &value, sizeof value, (i * 41 % 3000) * 4));
        sum += (long)value * i;
    }
    printf("sum %ld, position %ld\n", sum, (long)MUST(lseek(fd, 0, SEEK_CUR)));
    SHOW(pread(fd, wide, sizeof wide, 4000));
    SHOW(pread(fd, text, 8, 12000 - 3));
    SHOW(pread(fd, text, 8, 12000));
    SHOW(pread(fd, text, 0, 4));
    TRY(pread(fd, text, 8, -1));
    TRY(pread(fd, text, 8, INT64_MIN));
    SHOW(pread(fd, text, 8, INT64_MAX));
    TRY(pread(fd, wild, 8, 0));
    TRY(pwrite(fd, wild, 8, 0));
    TRY(pwrite(fd, "x", 1, -1));
    SHOW(pwrite(fd, "x", 1, 20000));
    SHOW(lseek(fd, 0, SEEK_END));
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        int done = MUST(pwrite(fd, "child", 5, 4094)) + MUST(pread(fd, text, 5, 4094));
        close(fd);
        _exit(done);
    }
    int status;
    MUST(waitpid(child, &status, 0));
    MUST(pread(fd, text, 5, 4094));
    printf("child %d wrote %.5s\n", WEXITSTATUS(status), text);
    int other = MUST(open("f", O_RDONLY));
    for (int i = 0; i < 20; i++)
        MUST(pread(other, text, 1, i));
    errno = 0;
    TRY(pwrite(other, "x", 1, 0));
    MUST(ftruncate(fd, 10));
    SHOW(pread(other, text, 8, 6));
    SHOW(pread(other, text, 8, 10));
    MUST(ftruncate(fd, 100));
    SHOW(pread(other, text, 1, 50));
    printf("byte %d\n", text[0]);
    MUST(fcntl(fd, F_SETFL, O_APPEND));
    SHOW(pwrite(fd, "end", 3, 0));
    SHOW(lseek(fd, 0, SEEK_END));
    MUST(fcntl(fd, F_SETFL, 0));
    SHOW(pwrite(fd, "start", 5, 0));
    MUST(pread(other, text, 5, 0));
    printf("%.5s\n", text);
    struct rlimit limit = {50, 50};
    signal(SIGXFSZ, SIG_IGN);
    MUST(setrlimit(RLIMIT_FSIZE, &limit));
    SHOW(pwrite(fd, "0123456789", 10, 45));
    TRY(pwrite(fd, "0123456789", 10, 60));
    SHOW(close(fd));
    TRY(pread(fd, text, 1, 0));
}

static void peek_at(int fd)
{
    char text[16];
    ssize_t length = read(fd, text, sizeof text);
    printf("  %zd bytes %.*s\n", length, length < 0 ? 0 : (int)length, text);
}

static void copying_pipes(void)
{
    int from[2], to[2], file = MUST(open("f", O_RDWR | O_CREAT, 0600));
    signal(SIGPIPE, SIG_IGN);
    MUST(pipe(from));
    MUST(pipe(to));
    TRY(tee(from[0], to[1], 10, SPLICE_F_NONBLOCK));
    TRY(tee(from[0], to[1], 0, 0));
    TRY(tee(from[0], to[1], 10, 64));
    TRY(tee(from[0], from[1], 10, 0));
    TRY(tee(from[1], to[1], 10, 0));
    TRY(tee(from[0], to[0], 10, 0));
    TRY(tee(file, to[1], 10, 0));
    TRY(tee(from[0], file, 10, 0));
    TRY(tee(99, to[1], 10, 0));
    MUST(write(from[1], "0123456789", 10));
    SHOW(tee(from[0], to[1], 4, 0));
    SHOW(tee(from[0], to[1], 100, 0));
    peek_at(from[0]);
    peek_at(to[0]);
    MUST(write(from[1], "again", 5));
    char byte;
    MUST(read(from[0], &byte, 1));
    SHOW(tee(from[0], to[1], 100, 0));
    SHOW(splice(from[0], NULL, to[1], NULL, 100, 0));
    peek_at(to[0]);
    char much[4096];
    memset(much, 'x', sizeof much);
    for (int times = 0; times < 16; times++)
        MUST(write(to[1], much, sizeof much));
    MUST(write(from[1], "more", 4));
    TRY(tee(from[0], to[1], 4, SPLICE_F_NONBLOCK));
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        for (int times = 0; times < 16; times++)
            MUST(read(to[0], much, sizeof much));
        _exit(0);
    }
    SHOW(tee(from[0], to[1], 4, 0));
    MUST(waitpid(child, NULL, 0));
    peek_at(to[0]);
    MUST(read(from[0], much, 4));
    child = MUST(fork());
    if (child == 0) {
        MUST(write(from[1], "late", 4));
        _exit(0);
    }
    SHOW(tee(from[0], to[1], 100, 0));
    MUST(waitpid(child, NULL, 0));
    peek_at(to[0]);
    close(to[0]);
    TRY(tee(from[0], to[1], 4, 0));
    peek_at(from[0]);
    close(from[1]);
    MUST(pipe(to));
    SHOW(tee(from[0], to[1], 4, 0));
}

static volatile int too_large;
static void count_too_large(int number) { (void)number, too_large++; }

/* Copies inside the kernel to where the limit of size ends them: what arrives, and whether the signal comes. */
static void limited_copies(void)
{
    static char said[8192], zeros[15000];
    int used = 0;
    int from = MUST(open("source", O_RDWR | O_CREAT | O_TRUNC, 0600)), to = MUST(open("target", O_RDWR | O_CREAT | O_TRUNC, 0600));
    struct rlimit limit = {10000, RLIM_INFINITY};
    MUST(write(from, zeros, sizeof zeros));
    signal(SIGXFSZ, count_too_large);
    MUST(setrlimit(RLIMIT_FSIZE, &limit));
    for (int place = 9000; place <= 11000; place += 1000)
        for (int start = 0; start <= 15000; start += 7500)
            for (int bytes = 0; bytes <= 5000; bytes += 2500)
                for (int way = 0; way < 2; way++) {
                    MUST(lseek(to, place, SEEK_SET)), MUST(lseek(from, start, SEEK_SET));
                    too_large = 0;
                    long done = way ? sendfile(to, from, NULL, bytes) : copy_file_range(from, NULL, to, NULL, bytes, 0);
                    used += sprintf(said + used, "%d to %d from %d way %d: %s %ld, %d\n", bytes, place, start, way, failing(done), done, too_large);
                }
    for (int place = 9000; place <= 10000; place += 500) {
        struct iovec parts[3] = {{zeros, 500}, {zeros, 500}, {zeros, 300}};
        MUST(lseek(to, place, SEEK_SET));
        too_large = 0;
        long done = writev(to, parts, 3);
        used += sprintf(said + used, "parts at %d: %s %ld, %d\n", place, failing(done), done, too_large);
    }
    limit.rlim_cur = RLIM_INFINITY;
    MUST(setrlimit(RLIMIT_FSIZE, &limit));
    fputs(said, stdout);
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(open_flags), T(descriptor_flags), T(shared_offset), T(seeking), T(holes), T(renaming), T(linking), T(symbolic_links),
    T(long_names), T(open_after_unlink), T(folders), T(modes), T(times), T(appending), T(stat_fields), T(pipes),
    T(whole_writes), T(polling), T(copying), T(vectors), T(named_pipe), T(close_on_exec), T(what_is_open), T(special_files),
    T(locks), T(large_file), T(positioned), T(copying_pipes), T(limited_copies),
};
CHECK_MAIN(tests)
