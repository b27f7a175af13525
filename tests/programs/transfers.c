/* Random reads and writes of files, pipes, sockets and devices, with buffers that are not there, or only in part: what each call
 * gives, where the file stands then, and what memory holds. Enough before to have routines for them. Runs in an empty folder. */
#include "check.h"

#include <sys/socket.h>
#include <sys/uio.h>

enum { PAGE = 4096, PAGES = 26, NOTHING = 16, READ_ONLY = 19, FRESH = 20, GONE = 25 };
enum { PIPE_OUT, PIPE_IN, FILE_BOTH, FILE_READ, FILE_APPEND, FILE_WRITE, FILE_AGAIN, NULL_FILE, ZERO, MEMORY, ONE_END, OTHER_END, FULL, NO_FILE, FILES };

static char *arena;
static int file[FILES];
static uint64_t state;

static uint64_t random_word(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t below(uint64_t limit)
{
    return random_word() % limit;
}

static uint64_t hash(void)
{
    uint64_t sum = 14695981039346656037u;
    for (int page = 0; page < PAGES; page++)
        for (int at = 0; page != NOTHING && page != GONE && at < PAGE; at += 8)
            sum = (sum ^ *(uint64_t *)(arena + page * PAGE + at)) * 1099511628211u;
    return sum;
}

static char *a_pointer(void)
{
    char *const limit = (char *)0x7ffffffff000;
    switch (below(14)) {
    case 0: return (char *)below(16);
    case 1: return limit + below(3);
    case 2: return (char *)(random_word() | 1ul << 63);
    case 3: return (char *)(1ul << 47) + below(1 << 20);
    case 4: return arena + NOTHING * PAGE - below(200);
    case 5: return arena + READ_ONLY * PAGE - below(100);
    case 6: return arena + GONE * PAGE - below(9000);
    case 7: return arena + FRESH * PAGE + below(4 * PAGE);
    case 8: return arena + (NOTHING + 1) * PAGE - below(20);
    default: return arena + below(NOTHING * PAGE);
    }
}

static uint64_t a_count(void)
{
    static const uint64_t counts[] = {0,    1,    2,    7,    8,     9,     15,    16,    17,         31,           32,           33,
                                      39,   40,   41,   63,   64,    65,    100,   1000,  4088,       4095,         4096,         4097,
                                      8192, 8193, 9000, 16384, 60000, 65535, 65536, 65537, 0x7fffffff, 0xffffffffu, 0x100000000, ~0ul};
    return counts[below(below(3) ? 28 : sizeof counts / sizeof *counts)];
}

static void make_arena(void)
{
    arena = mmap((void *)0x10000000000, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (arena == MAP_FAILED)
        exit(9);
    for (int at = 0; at < FRESH * PAGE; at++)
        arena[at] = at * 7 + (at >> 8);
    MUST(mprotect(arena + NOTHING * PAGE, PAGE, PROT_NONE));
    MUST(mprotect(arena + READ_ONLY * PAGE, PAGE, PROT_READ));
    MUST(munmap(arena + GONE * PAGE, PAGE));
}

static void open_all(void)
{
    MUST(pipe2(&file[PIPE_OUT], O_NONBLOCK));
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, &file[ONE_END]));
    file[FILE_BOTH] = MUST(open("f", O_RDWR | O_CREAT | O_TRUNC, 0600));
    file[FILE_READ] = MUST(open("f", O_RDONLY));
    file[FILE_APPEND] = MUST(open("f", O_RDWR | O_APPEND));
    file[FILE_WRITE] = MUST(open("f", O_WRONLY));
    file[FILE_AGAIN] = MUST(dup(file[FILE_BOTH]));
    file[NULL_FILE] = MUST(open("/dev/null", O_RDWR));
    file[ZERO] = MUST(open("/dev/zero", O_RDWR));
    file[FULL] = MUST(open("/dev/full", O_RDWR));
    file[MEMORY] = MUST(memfd_create("m", 0));
    file[NO_FILE] = 200;
    char text[64] = "warm";
    for (int round = 0; round < 12; round++)
        for (int i = 0; i < FULL; i++) {
            pwrite(file[i], text, 5, 0);
            pread(file[i], text, 5, 0);
            write(file[i], text, 1 + round * 5 % 40);
            lseek(file[i], round, SEEK_SET);
            read(file[i], text, sizeof text);
        }
}

static int is_stream(int i)
{
    return i <= PIPE_IN || i == ONE_END || i == OTHER_END;
}

/* How much of a stream's call is done before it meets the hole is not said anywhere. */
static long transfer(int which, long *kind)
{
    int fd = file[which];
    char *address = is_stream(which) ? arena + below(2 * PAGE) : a_pointer();
    uint64_t count = is_stream(which) ? a_count() % (12 * PAGE) : a_count();
    long offset = below(6) ? (long)below(40000) : -1 - (long)below(9);
    if (which == ZERO && count > 65536)
        count = 65536;
    struct iovec parts[3];
    int number = below(4);
    for (int i = 0; i < number; i++)
        parts[i] = (struct iovec){a_pointer(), a_count() & (below(5) ? 65535 : ~0ul)};
    *kind = below(is_stream(which) ? 4 : 10);
    switch (*kind) {
    case 0:
    case 1: return syscall(SYS_read, fd, address, count);
    case 2:
    case 3: return syscall(SYS_write, fd, address, count);
    case 4: return syscall(SYS_pread64, fd, address, count, offset);
    case 5: return syscall(SYS_pwrite64, fd, address, count, offset);
    case 6: return syscall(SYS_lseek, fd, offset, below(6) ? SEEK_SET : below(3));
    case 7: return syscall(SYS_readv, fd, parts, number);
    case 8: return syscall(SYS_writev, fd, parts, number);
    default: return below(4) ? syscall(SYS_fcntl, fd, F_SETFL, below(2) ? O_APPEND : 0) : syscall(SYS_ftruncate, fd, below(50000));
    }
}

static void random_transfers(uint64_t seed, int calls)
{
    state = seed * 2654435761u + 88172645463325252u;
    make_arena();
    open_all();
    for (int i = 0; i < calls; i++) {
        struct stat before, after;
        long kind;
        int which = below(FILES);
        if (is_stream(which) && below(3))
            which = FILE_BOTH;
        int is_file = fstat(file[which], &before) == 0 && S_ISREG(before.st_mode);
        errno = 0;
        long result = transfer(which, &kind);
        const char *name = result == -1 ? failing(-1) : "";
        int base = which == MEMORY ? MEMORY : FILE_BOTH;
        /* A write that fails may have made the file longer. */
        if (is_file && result <= 0 && kind != 9)
            MUST(ftruncate(file[base], before.st_size));
        MUST(fstat(file[base], &after));
        long places[] = {lseek(file[FILE_BOTH], 0, SEEK_CUR), lseek(file[FILE_APPEND], 0, SEEK_CUR), lseek(file[MEMORY], 0, SEEK_CUR)};
        printf("%d: file %d call %ld = %ld %s; size %ld, at %ld %ld %ld, memory %lx\n", i, which, kind, result, name, (long)after.st_size,
               places[0], places[1], places[2], hash());
    }
}

static void one(void)
{
    random_transfers(1, 400);
}

static void two(void)
{
    random_transfers(2, 400);
}

static void three(void)
{
    random_transfers(3, 400);
}

#define T(name) {#name, name}
static const struct test tests[] = {T(one), T(two), T(three)};

/* `transfers SEED CALLS` for others. */
int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc == 3) {
        random_transfers(strtoul(argv[1], NULL, 0), atoi(argv[2]));
        return 0;
    }
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
