/* Seals of memory files: what may never be done again. `executable` needs a host with Linux 6.3, `shown` one with 6.7. */
#include "check.h"

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

enum { NOEXEC_SEAL = 8, EXEC = 16, SEAL_EXEC = 0x20 };

static char data[16384];

static int made(unsigned int flags)
{
    int file = MUST(memfd_create("thing", flags));
    MUST(write(file, "0123456789", 10));
    return file;
}

static void content(int file)
{
    char text[64];
    struct stat s;
    MUST(fstat(file, &s));
    ssize_t got = pread(file, text, sizeof text, 0);
    printf("%ld bytes: %.*s\n", (long)s.st_size, (int)(got > 20 ? 20 : got), text);
}

static void flags(void)
{
    struct stat s;
    for (unsigned int flags = 0; flags < 4; flags++) {
        int file = MUST(memfd_create("thing", flags));
        MUST(fstat(file, &s));
        printf("flags %u: mode %o, seals %d, close on exec %d, open %x\n", flags, s.st_mode, fcntl(file, F_GET_SEALS), fcntl(file, F_GETFD),
               fcntl(file, F_GETFL));
        TRY(fcntl(file, F_ADD_SEALS, F_SEAL_GROW));
        SHOW(fcntl(file, F_GET_SEALS));
        close(file);
    }
    TRY(memfd_create("thing", 0x80));
    TRY(memfd_create("thing", 0x10000000));
    TRY(memfd_create(NULL, 0));
    static char name[300];
    memset(name, 'n', 249);
    TRY(memfd_create(name, 0));
    name[249] = 'n';
    TRY(memfd_create(name, 0));
    int ends[2];
    MUST(pipe(ends));
    TRY(fcntl(ends[0], F_GET_SEALS));
    TRY(fcntl(ends[1], F_ADD_SEALS, F_SEAL_GROW));
    TRY(fcntl(ends[0], F_ADD_SEALS, F_SEAL_GROW));
    TRY(fcntl(99, F_GET_SEALS));
    int null = MUST(open("/dev/null", O_RDWR));
    TRY(fcntl(null, F_GET_SEALS));
}

static void named(void)
{
    char path[32], text[64], line[256];
    int file = made(MFD_ALLOW_SEALING);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    ssize_t got = MUST(readlink(path, text, sizeof text));
    printf("%.*s\n", (int)got, text);
    mmap((void *)0x10000000, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (strncmp(line, "10000000", 8) == 0)
            printf("%s", strrchr(line, ' '));
    fclose(maps);
    TRY(linkat(AT_FDCWD, path, AT_FDCWD, "/tmp/should-not-be", AT_SYMLINK_FOLLOW));
}

/* A file in a folder without a name there may get one, but not if it was said that it shall not, and only its first. */
static void unnamed(void)
{
    char path[32];
    int file = MUST(open(".", O_TMPFILE | O_RDWR, 0600)), closed = MUST(open(".", O_TMPFILE | O_RDWR | O_EXCL, 0600));
    snprintf(path, sizeof path, "/proc/self/fd/%d", closed);
    TRY(linkat(AT_FDCWD, path, AT_FDCWD, "closed", AT_SYMLINK_FOLLOW));
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    TRY(linkat(AT_FDCWD, path, AT_FDCWD, "first", AT_SYMLINK_FOLLOW));
    TRY(linkat(AT_FDCWD, path, AT_FDCWD, "second", AT_SYMLINK_FOLLOW));
    TRY(unlink("first"));
    TRY(unlink("second"));
    TRY(linkat(AT_FDCWD, path, AT_FDCWD, "third", AT_SYMLINK_FOLLOW));
}

/* All that a seal may forbid, with one of them. */
static void under(int seal)
{
    int file = made(MFD_ALLOW_SEALING), ends[2], other = made(0);
    char path[32];
    MUST(pipe(ends));
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    printf("\nseal %x\n", seal);
    TRY(fcntl(file, F_ADD_SEALS, seal));
    printf("seals %x\n", fcntl(file, F_GET_SEALS));
    SHOW(pwrite(file, "ab", 2, 3));
    SHOW(pwrite(file, "cd", 2, 9));
    SHOW(pwrite(file, "ef", 2, 40));
    SHOW(pwrite(file, "", 0, 40));
    SHOW(ftruncate(file, 10));
    SHOW(lseek(file, 0, SEEK_SET));
    SHOW(write(file, "ghi", 3));
    struct iovec parts[2] = {{"jk", 2}, {"lm", 2}};
    SHOW(writev(file, parts, 2));
    content(file);
    SHOW(lseek(file, 5, SEEK_SET));
    SHOW(sendfile(file, other, (off_t[]){0}, 2));
    SHOW(copy_file_range(other, (off_t[]){0}, file, (off_t[]){1}, 3, 0));
    MUST(write(ends[1], "pipe", 4));
    SHOW(splice(ends[0], NULL, file, (off_t[]){2}, 4, 0));
    content(file);
    SHOW(fallocate(file, FALLOC_FL_KEEP_SIZE, 0, 4096));
    SHOW(fallocate(file, 0, 0, 5));
    SHOW(fallocate(file, 0, 0, 50));
    SHOW(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2));
    SHOW(ftruncate(file, 100));
    SHOW(ftruncate(file, 8));
    content(file);
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    printf("shared map: %s\n", map == MAP_FAILED ? failing(-1) : "ok");
    if (map != MAP_FAILED) {
        map[0] = 'M';
        munmap(map, 4096);
    }
    map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    printf("private map: %s\n", map == MAP_FAILED ? failing(-1) : "ok");
    map[0] = 'P';
    munmap(map, 4096);
    int reader = MUST(open(path, O_RDONLY)), writer = TRY(open(path, O_RDWR));
    TRY(fcntl(reader, F_ADD_SEALS, F_SEAL_GROW));
    SHOW(pwrite(writer, "no", 2, 0));
    TRY(open(path, O_RDWR | O_TRUNC));
    content(reader);
    TRY(fchmod(file, 0600));
    TRY(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK));
    TRY(fcntl(file, F_ADD_SEALS, 0x4000));
    TRY(fcntl(file, F_ADD_SEALS, 0));
    printf("seals %x\n", fcntl(file, F_GET_SEALS));
    for (int fd = 3; fd < 20; fd++)
        close(fd);
}

static void seals(void)
{
    static const int each[] = {0,
                               F_SEAL_SEAL,
                               F_SEAL_SHRINK,
                               F_SEAL_GROW,
                               F_SEAL_WRITE,
                               F_SEAL_FUTURE_WRITE,
                               F_SEAL_SHRINK | F_SEAL_GROW,
                               F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        under(each[i]);
}

/* A write over several pages stops where the file may not grow. */
static void pages(void)
{
    int file = made(MFD_ALLOW_SEALING);
    MUST(ftruncate(file, 8192));
    MUST(fcntl(file, F_ADD_SEALS, F_SEAL_GROW));
    SHOW(pwrite(file, data, 8192, 0));
    SHOW(pwrite(file, data, 12288, 0));
    SHOW(pwrite(file, data, 12288, 4000));
    SHOW(pwrite(file, data, 100, 8150));
    SHOW(pwrite(file, data, 8192, 8192));
    content(file);
}

/* Writes that were done often, and so by a routine, end with the seal: of every descriptor, wherever it is. */
static int writes(int file)
{
    int done = 0;
    for (int i = 0; i < 40; i++) {
        lseek(file, i % 5, SEEK_SET);
        done += write(file, "x", 1) == 1;
        done += pwrite(file, "yz", 2, i % 5) == 2;
    }
    return done;
}

static int carried(int connection, int file)
{
    char byte = 0, control[CMSG_SPACE(sizeof file)];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (file < 0) {
        MUST(recvmsg(connection, &message, 0));
        memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
        return file;
    }
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof file), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &file, sizeof file);
    return MUST(sendmsg(connection, &message, 0));
}

static void withdrawn(int seal)
{
    int file = made(MFD_ALLOW_SEALING), other = MUST(dup(file)), ends[2], ready[2], sealed[2], status;
    char path[32], byte;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    int again = MUST(open(path, O_RDWR)), flying = MUST(open(path, O_RDWR));
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    MUST(pipe(ready));
    MUST(pipe(sealed));
    printf("before: %d %d %d %d\n", writes(file), writes(other), writes(again), writes(flying));
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        int own = MUST(open(path, O_RDWR)), before = writes(file) + writes(own);
        MUST(write(ready[1], "", 1));
        MUST(read(sealed[0], &byte, 1));
        printf("child: %d, then %d\n", before, writes(file) + writes(own));
        fflush(stdout);
        _exit(0);
    }
    carried(ends[0], flying);
    close(flying);
    MUST(read(ready[0], &byte, 1));
    TRY(fcntl(other, F_ADD_SEALS, seal));
    printf("after: %d %d %d %d\n", writes(file), writes(other), writes(again), writes(carried(ends[1], -1)));
    MUST(write(sealed[1], "", 1));
    MUST(waitpid(child, &status, 0));
    int fresh = MUST(open(path, O_RDWR));
    printf("opened after: %d\n", writes(fresh));
    lseek(file, 0, SEEK_SET);
    for (int i = 0; i < 30; i++)
        MUST(pread(file, &byte, 1, 3));
    content(file);
    for (int fd = 3; fd < 30; fd++)
        close(fd);
}

static void routines(void)
{
    withdrawn(F_SEAL_WRITE);
    withdrawn(F_SEAL_FUTURE_WRITE);
    withdrawn(F_SEAL_SHRINK | F_SEAL_GROW);
}

static void child_maps(void) {}

static void maps(void)
{
    int file = made(MFD_ALLOW_SEALING);
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    TRY(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE));
    printf("seals %x\n", fcntl(file, F_GET_SEALS));
    /* What may be written to later counts, and so does a part of a map, and a child's. */
    MUST(mprotect(map, 4096, PROT_READ));
    TRY(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE));
    in_child("child", child_maps);
    munmap(map, 4096);
    map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    munmap(map, 4096);
    TRY(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE));
    munmap(map + 4096, 4096);
    map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    TRY(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE));
    printf("seals %x\n", fcntl(file, F_GET_SEALS));
    munmap(map, 4096);
    file = made(MFD_ALLOW_SEALING);
    map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    char *later = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    TRY(fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
    map[0] = 'M';
    TRY(mprotect(later, 4096, PROT_READ | PROT_WRITE));
    later[1] = 'L';
    TRY(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    content(file);
    TRY(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE));
    munmap(map, 4096);
    munmap(later, 4096);
    TRY(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE));
}

/* A sealed file is shown by a shared map that can only be read. */
static void shown(void)
{
    static const int each[] = {F_SEAL_WRITE, F_SEAL_FUTURE_WRITE};
    for (int i = 0; i < 2; i++) {
        int file = made(MFD_ALLOW_SEALING);
        MUST(fcntl(file, F_ADD_SEALS, each[i]));
        char *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
        printf("read: %s\n", map == MAP_FAILED ? failing(-1) : map);
        TRY(mprotect(map, 4096, PROT_READ | PROT_WRITE));
        TRY(mprotect(map, 4096, PROT_READ | PROT_EXEC));
        TRY(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE));
    }
}

static void executable(void)
{
    struct stat s;
    static const unsigned int flags[] = {NOEXEC_SEAL, EXEC, NOEXEC_SEAL | MFD_ALLOW_SEALING, NOEXEC_SEAL | EXEC};
    for (int i = 0; i < 4; i++) {
        int file = TRY(memfd_create("thing", flags[i]));
        if (file < 0)
            continue;
        MUST(write(file, "text", 4));
        MUST(fstat(file, &s));
        printf("flags %x: mode %o, seals %x\n", flags[i], s.st_mode, fcntl(file, F_GET_SEALS));
        TRY(fchmod(file, 0700));
        TRY(fchmod(file, 0444));
        TRY(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK));
        SHOW(pwrite(file, "more", 4, 4));
    }
    int file = MUST(memfd_create("thing", MFD_ALLOW_SEALING));
    TRY(fcntl(file, F_ADD_SEALS, SEAL_EXEC));
    printf("seals %x\n", fcntl(file, F_GET_SEALS));
    TRY(fchmod(file, 0666));
    TRY(fchmod(file, 0711));
    TRY(fchmod(file, 0755));
    SHOW(write(file, "x", 1));
    file = MUST(memfd_create("thing", MFD_ALLOW_SEALING));
    MUST(fchmod(file, 0600));
    TRY(fcntl(file, F_ADD_SEALS, SEAL_EXEC));
    printf("seals %x\n", fcntl(file, F_GET_SEALS));
    SHOW(write(file, "x", 1));
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(flags), T(named), T(unnamed), T(seals), T(pages), T(routines), T(maps), T(shown), T(executable),
};
CHECK_MAIN(tests)
