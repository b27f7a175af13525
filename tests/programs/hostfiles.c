/* What programs do with files that others use too: maps, locks, names and attributes. Runs in an empty folder of a file
 * system on disk, where every case must print what it prints on Linux. */
#include "check.h"

#include <dirent.h>
#include <setjmp.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>

#define PAGE 4096

static int made(const char *name, const char *text)
{
    int fd = MUST(open(name, O_RDWR | O_CREAT | O_TRUNC, 0644));
    MUST(write(fd, text, strlen(text)));
    return fd;
}

static void show(const char *name)
{
    char text[64] = "";
    int fd = open(name, O_RDONLY);
    ssize_t length = read(fd, text, sizeof text - 1);
    printf("%s: %zd \"%s\"\n", name, length, text);
    close(fd);
}

static char *map(int fd, int rights, int flags, size_t bytes)
{
    char *at = mmap(NULL, bytes, rights, flags, fd, 0);
    printf("map %s\n", failing(at == MAP_FAILED ? -1 : 0));
    return at;
}

static void shared_map(void)
{
    int fd = made("f", "hello world");
    char *at = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, PAGE);
    memcpy(at, "HELLO", 5);
    show("f");
    MUST(pwrite(fd, "W", 1, 6));
    printf("%.11s\n", at);
    TRY(msync(at, PAGE, MS_SYNC));
    TRY(munmap(at, PAGE));
    show("f");
}

static void two_maps(void)
{
    int fd = made("f", "0123456789");
    char *one = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, PAGE);
    int again = MUST(open("f", O_RDONLY));
    char *two = map(again, PROT_READ, MAP_SHARED, PAGE);
    char *copy = map(again, PROT_READ | PROT_WRITE, MAP_PRIVATE, PAGE);
    one[0] = 'a';
    printf("%.10s %.10s %.10s\n", one, two, copy);
    copy[1] = 'b';
    one[2] = 'c';
    printf("%.10s %.10s %.3s\n", one, two, copy + 3);
    show("f");
    printf("write to a reader's map: %s\n",
           failing(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0) == MAP_FAILED ? -1 : 0));
}

static void map_across_fork(void)
{
    int fd = made("f", "");
    MUST(ftruncate(fd, 3 * PAGE));
    volatile int *at = (int *)map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, 3 * PAGE);
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        int own = MUST(open("f", O_RDWR));
        volatile int *mine = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
        at[0] = 1;
        mine[PAGE / 4] = 2;
        _exit(0);
    }
    waitpid(child, NULL, 0);
    int last = 3;
    MUST(pwrite(fd, &last, 4, 2 * PAGE));
    printf("%d %d %d\n", at[0], at[PAGE / 4], at[PAGE / 2]);
}

static sigjmp_buf back;
static void on_bus(int signal, siginfo_t *info, void *context)
{
    (void)context;
    printf("signal %d code %d\n", signal, info->si_code);
    siglongjmp(back, 1);
}

static void map_behind_the_end(void)
{
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    int fd = made("f", "x");
    volatile char *at = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, 4 * PAGE);
    at[100] = 'y';
    if (sigsetjmp(back, 1) == 0)
        at[PAGE] = 1;
    MUST(ftruncate(fd, 3 * PAGE));
    at[2 * PAGE] = 'z';
    printf("%d\n", at[2 * PAGE]);
    MUST(ftruncate(fd, 1));
    if (sigsetjmp(back, 1) == 0)
        printf("%d\n", at[2 * PAGE]);
    char *hole = (char *)at + 2 * PAGE;
    int other = made("g", "text");
    TRY(pread(other, hole, 4, 0));
    TRY(pwrite(other, hole, 4, 0));
    show("f");
}

static void read_where_pages_are_missing(void)
{
    int fd = made("f", "");
    static char block[65536];
    for (int i = 0; i < 65536; i++)
        block[i] = (char)i;
    for (int i = 0; i < 8; i++)
        MUST(write(fd, block, sizeof block));
    char *at = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SHOW(pread(fd, at + 100, 40 * PAGE, 7));
    printf("%d\n", memcmp(at + 100, block + 7, 60000));
    MUST(munmap(at + 8 * PAGE, PAGE));
    SHOW(pread(fd, at + 10, 20 * PAGE, 0));
    SHOW(pread(fd, at + 8 * PAGE, 10, 0));
    SHOW(pwrite(fd, at + 10, 20 * PAGE, 0));
    SHOW(pwrite(fd, at + 8 * PAGE, 10, 0));
    MUST(mprotect(at, PAGE, PROT_READ));
    SHOW(pread(fd, at, 10, 0));
    SHOW(pread(fd, (void *)0x60001000, 10, 0));
    SHOW(pwrite(fd, (void *)0x60001000, 10, 0));
    SHOW(pread(fd, at + PAGE, 0, 0));
    SHOW(pread(fd, at + PAGE, 100, 8 * 65536 - 50));
    SHOW(pread(fd, at + PAGE, 100, 9 * 65536));
    int own = MUST(open("f", O_RDWR));
    char *self = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    SHOW(pread(fd, self, 16 * PAGE, 16 * PAGE));
}

static void appending(void)
{
    made("f", "start ");
    int one = MUST(open("f", O_WRONLY | O_APPEND)), two = MUST(open("f", O_WRONLY | O_APPEND));
    SHOW(write(one, "one ", 4));
    SHOW(write(two, "two ", 4));
    SHOW(lseek(one, 0, SEEK_CUR));
    SHOW(pwrite(one, "three ", 6, 0));
    int plain = MUST(open("f", O_RDWR));
    struct iovec parts[2] = {{"fo", 2}, {"ur ", 3}};
    SHOW(pwritev2(plain, parts, 2, -1, RWF_APPEND));
    SHOW(lseek(plain, 0, SEEK_CUR));
    SHOW(writev(one, parts, 2));
    MUST(fcntl(plain, F_SETFL, O_APPEND));
    SHOW(write(plain, "five", 4));
    show("f");
}

static void nameless(void)
{
    int fd = MUST(open(".", O_TMPFILE | O_RDWR, 0640));
    struct stat about;
    MUST(write(fd, "text", 4));
    MUST(fstat(fd, &about));
    printf("links %d mode %o size %d\n", (int)about.st_nlink, about.st_mode, (int)about.st_size);
    char path[64];
    sprintf(path, "/proc/self/fd/%d", fd);
    TRY(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
    show("named");
    TRY(open(".", O_TMPFILE | O_RDONLY, 0640));
    TRY(open("named", O_TMPFILE | O_RDWR, 0640));
}

static void unlinked(void)
{
    int fd = made("f", "still here");
    MUST(unlink("f"));
    struct stat about;
    MUST(fstat(fd, &about));
    printf("links %d\n", (int)about.st_nlink);
    char path[64], text[32] = "";
    sprintf(path, "/proc/self/fd/%d", fd);
    int again = TRY(open(path, O_RDONLY));
    SHOW(read(again, text, 31));
    puts(text);
    MUST(mkdir("d", 0700));
    MUST(chdir("d"));
    MUST(rmdir("../d"));
    TRY(getcwd(text, sizeof text));
    TRY(open("x", O_CREAT | O_RDWR, 0600));
    TRY(open(".", O_RDONLY));
    TRY(chdir(".."));
    TRY(access("d", F_OK));
}

static void copies(void)
{
    int from = made("from", "0123456789"), to = MUST(open("to", O_RDWR | O_CREAT, 0644));
    off_t offset = 2;
    SHOW(sendfile(to, from, &offset, 4));
    loff_t in = 0;
    SHOW(copy_file_range(from, &in, to, NULL, 3, 0));
    show("to");
    SHOW(copy_file_range(from, &in, to, NULL, 100, 0));
    show("to");
    int ends[2];
    MUST(pipe(ends));
    loff_t at = 0;
    SHOW(splice(from, &at, ends[1], NULL, 5, 0));
    SHOW(splice(ends[0], NULL, to, NULL, 5, 0));
    show("to");
}

static void holes(void)
{
    int fd = made("f", "x");
    SHOW(fallocate(fd, 0, 0, 3 * PAGE));
    SHOW(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 5 * PAGE));
    SHOW(lseek(fd, 0, SEEK_END));
    SHOW(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE));
    SHOW(ftruncate(fd, 64 * PAGE));
    SHOW(pwrite(fd, "y", 1, 63 * PAGE));
    SHOW(lseek(fd, 3 * PAGE, SEEK_DATA));
    SHOW(lseek(fd, 63 * PAGE, SEEK_HOLE));
    SHOW(lseek(fd, 64 * PAGE, SEEK_DATA));
    SHOW(fsync(fd));
    SHOW(fdatasync(fd));
    SHOW(truncate("f", 5));
    SHOW(ftruncate(fd, -1));
    int reader = MUST(open("f", O_RDONLY));
    SHOW(ftruncate(reader, 1));
    SHOW(fallocate(reader, 0, 0, 1));
}

static void attributes(void)
{
    made("f", "x");
    char value[64] = "";
    TRY(setxattr("f", "user.colour", "blue", 4, 0));
    SHOW(getxattr("f", "user.colour", value, sizeof value));
    puts(value);
    SHOW(getxattr("f", "user.colour", NULL, 0));
    SHOW(getxattr("f", "user.colour", value, 2));
    SHOW(getxattr("f", "user.none", value, 2));
    SHOW(listxattr("f", value, sizeof value));
    puts(value);
    TRY(setxattr("f", "user.colour", "red", 3, XATTR_CREATE));
    TRY(removexattr("f", "user.colour"));
    TRY(removexattr("f", "user.colour"));
    struct statx about;
    MUST(statx(AT_FDCWD, "f", 0, STATX_ALL, &about));
    printf("born %d\n", about.stx_btime.tv_sec != 0);
    struct timespec times[2] = {{1000, 5}, {2000, 7}};
    MUST(symlink("f", "l"));
    TRY(utimensat(AT_FDCWD, "l", times, AT_SYMLINK_NOFOLLOW));
    struct stat link;
    MUST(lstat("l", &link));
    printf("%ld.%ld %ld.%ld\n", link.st_atim.tv_sec, link.st_atim.tv_nsec, link.st_mtim.tv_sec, link.st_mtim.tv_nsec);
    MUST(chmod("f", 04751));
    MUST(lstat("f", &link));
    printf("%o\n", link.st_mode);
    struct statfs room;
    TRY(statfs("f", &room));
    printf("%d\n", room.f_blocks > 0 && room.f_bsize > 0);
}

static void renames(void)
{
    made("a", "A");
    made("b", "B");
    MUST(mkdir("d", 0755));
    MUST(mkdir("d/e", 0755));
    TRY(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE));
    TRY(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE));
    show("a");
    TRY(rename("d", "d/e/f"));
    TRY(rename("a", "d"));
    TRY(rename("d", "a"));
    TRY(rename("d/e", "moved"));
    TRY(rename("b", "moved/b"));
    MUST(chdir("moved"));
    TRY(rename("../moved", "../again"));
    char path[256];
    MUST(getcwd(path, sizeof path));
    puts(strrchr(path, '/'));
    show("b");
    TRY(rename("none", "x"));
}

static void many_names(void)
{
    MUST(mkdir("d", 0755));
    char name[64];
    for (int i = 0; i < 3000; i++) {
        sprintf(name, "d/a-name-that-is-not-short-%d", i);
        close(MUST(open(name, O_CREAT | O_WRONLY, 0600)));
    }
    DIR *folder = opendir("d");
    long middle = 0;
    int count = 0;
    struct dirent *entry;
    while ((entry = readdir(folder))) {
        count++;
        if (count == 1500)
            middle = telldir(folder);
    }
    printf("%d\n", count);
    seekdir(folder, middle);
    for (count = 0; readdir(folder);)
        count++;
    printf("behind the middle %d\n", count);
    rewinddir(folder);
    for (count = 0; (entry = readdir(folder));)
        count += unlinkat(dirfd(folder), entry->d_name, 0) == 0;
    printf("removed while listing %d\n", count);
    closedir(folder);
    TRY(rmdir("d"));
}

static void flock_and_open_file_locks(void)
{
    int one = made("f", "0123456789"), two = MUST(open("f", O_RDWR));
    TRY(flock(one, LOCK_EX));
    TRY(flock(two, LOCK_SH | LOCK_NB));
    TRY(flock(one, LOCK_SH));
    TRY(flock(two, LOCK_SH | LOCK_NB));
    TRY(flock(one, LOCK_UN));
    TRY(flock(two, LOCK_EX | LOCK_NB));
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2, .l_len = 3};
    TRY(fcntl(one, F_OFD_SETLK, &range));
    TRY(fcntl(two, F_OFD_SETLK, &range));
    struct flock asked = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    TRY(fcntl(two, F_OFD_GETLK, &asked));
    printf("%d %d %d\n", asked.l_type == F_WRLCK, (int)asked.l_start, (int)asked.l_len);
    TRY(fcntl(two, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 4, .l_len = 1}));
    TRY(fcntl(two, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 6, .l_len = 1}));
    close(one);
    TRY(fcntl(two, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 4, .l_len = 1}));
}

static void record_locks(void)
{
    int fd = made("f", "0123456789");
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2, .l_len = 6};
    TRY(fcntl(fd, F_SETLK, &range));
    range = (struct flock){.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 4, .l_len = 2};
    TRY(fcntl(fd, F_SETLK, &range));
    int ends[2];
    MUST(pipe(ends));
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        int own = MUST(open("f", O_RDWR));
        for (int at = 0; at < 10; at++) {
            struct flock one = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
            printf("%d %s\n", at, failing(fcntl(own, F_SETLK, &one)));
        }
        fflush(stdout);
        MUST(write(ends[1], "x", 1));
        struct flock wait = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2, .l_len = 1};
        printf("waited %s\n", failing(fcntl(own, F_SETLKW, &wait)));
        fflush(stdout);
        _exit(0);
    }
    char byte;
    MUST(read(ends[0], &byte, 1));
    await_state(child, 'S');
    close(MUST(open("f", O_RDONLY)));
    waitpid(child, NULL, 0);
}

static void too_many_open(void)
{
    struct rlimit limit = {4096, 4096};
    setrlimit(RLIMIT_NOFILE, &limit);
    char name[32];
    int opened = 0;
    for (int i = 0; i < 900; i++) {
        sprintf(name, "f%d", i);
        opened += open(name, O_CREAT | O_RDWR, 0600) >= 0;
    }
    printf("%d\n", opened);
    for (int i = 0; i < 900; i++) {
        sprintf(name, "f%d", i);
        opened -= unlink(name) == 0;
    }
    printf("%d\n", opened);
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(shared_map), T(two_maps), T(map_across_fork), T(map_behind_the_end), T(read_where_pages_are_missing), T(appending),
    T(nameless), T(unlinked), T(copies), T(holes), T(attributes), T(renames), T(many_names),
    T(flock_and_open_file_locks), T(record_locks), T(too_many_open),
};
CHECK_MAIN(tests)
