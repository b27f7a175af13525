/* Memory: mapping, protection, moving, the break, copy on write, growth of the stack, and every errno on the way. */
#include "check.h"

#include <setjmp.h>

#define PAGE 4096L

static sigjmp_buf back;
static void on_fault(int number) { siglongjmp(back, number); }

/* 0 when the byte can be read (or written), else the signal. */
static int reads(volatile char *at)
{
    struct sigaction action = {.sa_handler = on_fault}, old, old_bus;
    sigaction(SIGSEGV, &action, &old);
    sigaction(SIGBUS, &action, &old_bus);
    int number = sigsetjmp(back, 1);
    if (number == 0)
        (void)*at;
    sigaction(SIGSEGV, &old, NULL);
    sigaction(SIGBUS, &old_bus, NULL);
    return number;
}
static int writes(volatile char *at)
{
    struct sigaction action = {.sa_handler = on_fault}, old, old_bus;
    sigaction(SIGSEGV, &action, &old);
    sigaction(SIGBUS, &action, &old_bus);
    int number = sigsetjmp(back, 1);
    if (number == 0)
        *at = 'w';
    sigaction(SIGSEGV, &old, NULL);
    sigaction(SIGBUS, &old_bus, NULL);
    return number;
}

static char *map(long pages)
{
    char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(at == MAP_FAILED ? -1 : 0);
    return at;
}

static void map_and_unmap(void)
{
    char *at = map(8);
    long sum = 0;
    for (long i = 0; i < 8 * PAGE; i++)
        sum += at[i];
    printf("zero %ld aligned %d\n", sum, (long)at % PAGE == 0);
    memset(at, 1, 8 * PAGE);
    SHOW(munmap(at + 2 * PAGE, PAGE));
    printf("hole %d before %d after %d\n", reads(at + 2 * PAGE), reads(at + PAGE), reads(at + 3 * PAGE));
    SHOW(munmap(at, 8 * PAGE));
    printf("gone %d %d\n", reads(at), reads(at + 7 * PAGE));
    SHOW(munmap(at, 8 * PAGE));
    TRY(munmap(at + 1, PAGE));
    TRY(munmap(at, 0));
    TRY(munmap((void *)-PAGE, PAGE));
    TRY(munmap(at, -1));
}

static void bad_maps(void)
{
    int fd = MUST(open("f", O_RDWR | O_CREAT, 0600)), write_only = MUST(open("f", O_WRONLY)), folder = MUST(open(".", O_RDONLY));
    int ends[2];
    MUST(pipe(ends));
#define MAPS(...) printf("%s -> %s\n", #__VA_ARGS__, mmap(__VA_ARGS__) == MAP_FAILED ? failing(-1) : "ok")
    MAPS(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MAPS(NULL, PAGE, PROT_READ, MAP_ANONYMOUS, -1, 0);
    MAPS(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0);
    MAPS(NULL, PAGE, PROT_READ, MAP_PRIVATE, 99, 0);
    MAPS(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 1);
    MAPS(NULL, PAGE, PROT_READ, MAP_PRIVATE, folder, 0);
    MAPS(NULL, PAGE, PROT_READ, MAP_PRIVATE, ends[0], 0);
    MAPS(NULL, PAGE, PROT_READ, MAP_PRIVATE, write_only, 0);
    MAPS(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, MUST(open("f", O_RDONLY)), 0);
    MAPS((void *)1, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MAPS((void *)0xffff800000000000, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MAPS((void *)0x7ffffffff000, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MAPS(NULL, 1L << 47, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MAPS(NULL, -1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MAPS((void *)0xffff800000000000, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MAPS((void *)12345, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void fixed(void)
{
    char *at = map(6);
    memset(at, 'o', 6 * PAGE);
    char *over = mmap(at + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    printf("over %d fresh %d neighbours %c %c\n", over == at + PAGE, at[PAGE], at[0], at[2 * PAGE]);
    char *not_over = mmap(at + 2 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    printf("no replace: %s still %c\n", not_over == MAP_FAILED ? failing(-1) : "ok", at[2 * PAGE]);
    munmap(at + 3 * PAGE, PAGE);
    not_over = mmap(at + 3 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    printf("in the hole: %d\n", not_over == at + 3 * PAGE);
    munmap(at + 4 * PAGE, 2 * PAGE);
    char *hint = mmap(at + 4 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("hint taken %d\n", hint == at + 4 * PAGE);
    hint = mmap(at, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("hint not taken %d\n", hint != at && hint != MAP_FAILED);
}

static void protect(void)
{
    char *at = map(4);
    memset(at, 'x', 4 * PAGE);
    SHOW(mprotect(at + PAGE, 2 * PAGE, PROT_READ));
    printf("read %d write %d\n", reads(at + PAGE), writes(at + PAGE));
    SHOW(mprotect(at + PAGE, PAGE, PROT_NONE));
    printf("read %d write %d next %d\n", reads(at + PAGE), writes(at + PAGE), writes(at + 2 * PAGE));
    SHOW(mprotect(at, 4 * PAGE, PROT_READ | PROT_WRITE));
    printf("read %d write %d kept %c\n", reads(at + PAGE), writes(at + PAGE), at[PAGE + 1]);
    at[0] = (char)0xc3;
    SHOW(mprotect(at, PAGE, PROT_READ | PROT_EXEC));
    ((void (*)(void))at)();
    puts("executed");
    munmap(at + 3 * PAGE, PAGE);
    TRY(mprotect(at, 4 * PAGE, PROT_READ));
    TRY(mprotect(at + 1, PAGE, PROT_READ));
    TRY(mprotect(at, 0, PROT_READ));
    TRY(mprotect(at, -1, PROT_READ));
    TRY(mprotect((void *)-PAGE, PAGE, PROT_READ));
    TRY(mprotect(at, PAGE, 0x1000000));
}

static void move(void)
{
    char *at = map(4);
    for (int i = 0; i < 4; i++)
        at[i * PAGE] = (char)('a' + i);
    char *small = mremap(at, 4 * PAGE, 2 * PAGE, 0);
    printf("shrunk in place %d gone %d\n", small == at, reads(at + 2 * PAGE));
    char *blocker = mmap(at + 2 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    char *stays = mremap(at, 2 * PAGE, 5 * PAGE, 0);
    printf("cannot grow: %s\n", stays == MAP_FAILED ? failing(-1) : "ok");
    char *grown = mremap(at, 2 * PAGE, 50 * PAGE, MREMAP_MAYMOVE);
    printf("moved %d kept %c%c zero %d old %d\n", grown != at, grown[0], grown[PAGE], grown[40 * PAGE], reads(at));
    char *target = map(50);
    char *there = mremap(grown, 50 * PAGE, 50 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    printf("fixed %d %c\n", there == target, there[PAGE]);
#define MOVES(...) printf("%s -> %s\n", #__VA_ARGS__, mremap(__VA_ARGS__) == MAP_FAILED ? failing(-1) : "ok")
    MOVES(there + 1, PAGE, PAGE, 0);
    MOVES(there, PAGE, 0, 0);
    MOVES(there, PAGE, PAGE, 99);
    MOVES(there, PAGE, PAGE, MREMAP_FIXED, target);
    MOVES(there, 50 * PAGE, 50 * PAGE, MREMAP_FIXED | MREMAP_MAYMOVE, there + PAGE);
    MOVES((char *)0x10000, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
    MOVES(there, 60 * PAGE, 70 * PAGE, MREMAP_MAYMOVE);
    munmap(blocker, PAGE);
}

static void program_break(void)
{
    char *start = sbrk(0);
    SHOW(brk(start + 10 * PAGE));
    printf("grown %d zero %d\n", (char *)sbrk(0) == start + 10 * PAGE, start[9 * PAGE]);
    memset(start, 'b', 10 * PAGE);
    SHOW(brk(start + PAGE));
    SHOW(brk(start + 10 * PAGE));
    printf("kept %c fresh %d\n", start[0], start[5 * PAGE]);
    SHOW(brk(start));
    TRY(brk((void *)-1));
    TRY(brk((void *)0xffff800000000000));
    printf("same %d\n", sbrk(0) == start);
    printf("raw %d\n", syscall(SYS_brk, 0) == (long)start);
    printf("raw low %d\n", syscall(SYS_brk, 4096) == (long)start);
}

static char *shared_by_fork;
static void child_writes(void)
{
    printf("child sees %c\n", shared_by_fork[0]);
    for (int i = 0; i < 64; i++)
        shared_by_fork[i * PAGE] = 'c';
    printf("child wrote %c\n", shared_by_fork[63 * PAGE]);
}
static void copy_on_write(void)
{
    int data = 5;
    shared_by_fork = map(64);
    memset(shared_by_fork, 'p', 64 * PAGE);
    in_child("child", child_writes);
    printf("parent sees %c %c %d\n", shared_by_fork[0], shared_by_fork[63 * PAGE], data);
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        int ends[2];
        MUST(pipe(ends));
        pid_t grandchild = MUST(fork());
        if (grandchild == 0) {
            memset(shared_by_fork, 'g', 64 * PAGE);
            _exit(shared_by_fork[0]);
        }
        shared_by_fork[PAGE] = 'd';
        int status;
        waitpid(grandchild, &status, 0);
        printf("grandchild %c child %c %c\n", WEXITSTATUS(status), shared_by_fork[0], shared_by_fork[PAGE]);
        fflush(stdout);
        _exit(0);
    }
    shared_by_fork[2 * PAGE] = 'q';
    waitpid(child, NULL, 0);
    printf("parent %c %c %c\n", shared_by_fork[0], shared_by_fork[PAGE], shared_by_fork[2 * PAGE]);
}

/* The kernel's own writes must copy too: read() into a page that is shared since fork. */
static void kernel_writes_copy(void)
{
    int ends[2];
    char *page = map(1);
    MUST(pipe(ends));
    page[0] = 'o';
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        write(ends[1], "new", 3);
        read(ends[0], page, 3);
        _exit(page[0]);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %c parent %c\n", WEXITSTATUS(status), page[0]);
}

static void shared_memory(void)
{
    int *number = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(number == MAP_FAILED ? -1 : 0);
    for (int i = 0; i < 4; i++) {
        pid_t child = MUST(fork());
        if (child == 0) {
            __atomic_fetch_add(number, i + 1, __ATOMIC_SEQ_CST);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    printf("%d\n", *number);
}

static void file_maps(void)
{
    char text[3 * PAGE], *at;
    for (long i = 0; i < 3 * PAGE; i++)
        text[i] = (char)('a' + i / PAGE);
    int fd = MUST(open("file", O_RDWR | O_CREAT | O_TRUNC, 0600));
    MUST(write(fd, text, 2 * PAGE + 100));
    at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    printf("%c %c %c after the end %d beyond %d\n", at[0], at[PAGE], at[2 * PAGE + 99], at[2 * PAGE + 100], reads(at + 3 * PAGE));
    at[0] = 'Z';
    char byte;
    pread(fd, &byte, 1, 0);
    printf("file keeps %c\n", byte);
    close(fd);
    unlink("file");
    printf("still mapped %c %c\n", at[0], at[PAGE]);
    munmap(at, 4 * PAGE);
    fd = MUST(open("second", O_RDWR | O_CREAT | O_TRUNC, 0600));
    MUST(write(fd, text, 3 * PAGE));
    at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, PAGE);
    printf("offset %c write %d\n", at[5], writes(at));
    SHOW(mprotect(at, PAGE, PROT_READ | PROT_WRITE));
    at[5] = 'y';
    pread(fd, &byte, 1, PAGE + 5);
    printf("file %c memory %c\n", byte, at[5]);
    at = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) {
        at[7] = 'S';
        pread(fd, &byte, 1, 7);
        pwrite(fd, "T", 1, 8);
        printf("shared: file %c memory %c\n", byte, at[8]);
    }
}

/* What a private map shows of pages that it has not written to is the file as it is now. */
static void private_views(void)
{
    int fd = MUST(open("views", O_RDWR | O_CREAT | O_TRUNC, 0600));
    MUST(ftruncate(fd, 8 * PAGE));
    MUST(pwrite(fd, "ab", 2, 0)), MUST(pwrite(fd, "cd", 2, PAGE)), MUST(pwrite(fd, "e", 1, 2 * PAGE));
    volatile char *at = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    at[2 * PAGE + 1] = 'E';
    printf("before: %c %c %c%c hole %d\n", at[0], at[PAGE], at[2 * PAGE], at[2 * PAGE + 1], at[5 * PAGE]);
    MUST(pwrite(fd, "AB", 2, 0)), MUST(pwrite(fd, "x", 1, 2 * PAGE)), MUST(pwrite(fd, "h", 1, 5 * PAGE));
    printf("written: %c %c %c%c hole %c\n", at[0], at[PAGE], at[2 * PAGE], at[2 * PAGE + 1], at[5 * PAGE]);
    MUST(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 3 * PAGE));
    printf("punched: %d %d %c%c\n", at[0], at[PAGE], at[2 * PAGE], at[2 * PAGE + 1]);
    MUST(pwrite(fd, "new", 3, PAGE));
    printf("filled: %d %c %c\n", at[0], at[PAGE], at[2 * PAGE]);
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        MUST(pwrite(fd, "N", 1, PAGE));
        at[5 * PAGE] = 'c';
        printf("child: %c %c %c\n", at[PAGE], at[2 * PAGE], at[5 * PAGE]);
        fflush(stdout);
        _exit(0);
    }
    MUST(waitpid(child, NULL, 0));
    MUST(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, 5 * PAGE));
    printf("parent: %d %c %d\n", at[PAGE], at[2 * PAGE], at[5 * PAGE]);
    MUST(ftruncate(fd, PAGE)), MUST(ftruncate(fd, 8 * PAGE)), MUST(pwrite(fd, "z", 1, 2 * PAGE));
    printf("cut: %c %d\n", at[2 * PAGE], at[2 * PAGE + 1]);
}

static int grow(long left)
{
    volatile char room[PAGE];
    room[0] = (char)left;
    return left ? grow(left - 1) + room[0] - room[0] : 1;
}
static void stack_growth(void)
{
    printf("%d\n", grow(1500));
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    printf("limit at least 8 MiB %d\n", limit.rlim_cur >= 8 << 20);
}

static void sparse(void)
{
    long size = 1L << 34;
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    printf("%s\n", at == MAP_FAILED ? failing(-1) : "ok");
    long sum = 0;
    for (long i = 0; i < size; i += size / 64)
        at[i] = 1;
    for (long i = 0; i < size; i += size / 64)
        sum += at[i] + at[i + PAGE];
    printf("%ld\n", sum);
    SHOW(munmap(at, size));
}

static void many_maps(void)
{
    char *at[600];
    for (int i = 0; i < 600; i++) {
        at[i] = map(2);
        at[i][0] = (char)i;
        if (i % 3 == 0)
            mprotect(at[i] + PAGE, PAGE, PROT_NONE);
    }
    long sum = 0;
    for (int i = 0; i < 600; i++)
        sum += (unsigned char)at[i][0];
    for (int i = 0; i < 600; i += 2)
        munmap(at[i], 2 * PAGE);
    for (int i = 1; i < 600; i += 2)
        sum += (unsigned char)at[i][0];
    printf("%ld %d %d\n", sum, reads(at[3] + PAGE), reads(at[0]));
}

static void advice(void)
{
    char *at = map(4);
    memset(at, 'k', 4 * PAGE);
    SHOW(madvise(at, 2 * PAGE, MADV_DONTNEED));
    printf("%d %c\n", at[0], at[2 * PAGE]);
    TRY(madvise(at + 1, PAGE, MADV_NORMAL));
    TRY(madvise(at, PAGE, 9999));
}

/* Words for futex(2) in pages that are not there, or may not be used so. */
static void futexes_without_page(void)
{
    int file = MUST(open("shorter", O_RDWR | O_CREAT | O_TRUNC, 0600));
    MUST(ftruncate(file, 8192));
    char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    char *private = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    char *nothing = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *readable = mmap(NULL, 8192, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *fresh = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct timespec soon = {0, 1000};
    MUST(ftruncate(file, 4096));
    for (int flag = 0; flag <= 128; flag += 128) {
        SHOW(syscall(SYS_futex, shared, 1 | flag, 1, NULL, NULL, 0));
        SHOW(syscall(SYS_futex, shared + 4096, 1 | flag, 1, NULL, NULL, 0));
        SHOW(syscall(SYS_futex, shared + 4096, 0 | flag, 0, &soon, NULL, 0));
        SHOW(syscall(SYS_futex, shared, 3 | flag, 1, 1L, shared + 4096, 0));
        SHOW(syscall(SYS_futex, private + 4096, 1 | flag, 1, NULL, NULL, 0));
        SHOW(syscall(SYS_futex, nothing, 1 | flag, 1, NULL, NULL, 0));
        SHOW(syscall(SYS_futex, readable, 1 | flag, 1, NULL, NULL, 0));
        SHOW(syscall(SYS_futex, fresh, 1 | flag, 1, NULL, NULL, 0));
    }
    unlink("shorter");
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(map_and_unmap), T(bad_maps), T(fixed), T(protect), T(move), T(program_break), T(copy_on_write),
    T(kernel_writes_copy), T(shared_memory), T(file_maps), T(private_views), T(stack_growth), T(sparse), T(many_maps), T(advice),
    T(futexes_without_page),
};
CHECK_MAIN(tests)
