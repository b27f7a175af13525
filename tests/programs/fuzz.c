/* Random kernel calls, from a seed: what a program can pass must never stop the kernel, nor show another's bytes.
 *
 *   fuzz SEED COUNT [CALLS]     COUNT workers, with seeds SEED, SEED+1, …; each makes CALLS calls (default 400)
 *   FUZZ_STREAMS=1              the workers also get standard input, output and error
 *   FUZZ_LOUD=1                 each call on standard error before it is made
 *
 * Each worker is a process with descriptors of every kind, pages of every kind, threads, children, alarms. Most arguments
 * are of the kind that the call expects, some are of another kind. The parent gives each worker a time limit, checks its own
 * memory afterwards and prints `seed N done`. A worker reports (`seed N: …`, status 1 in the end) when
 *   - a call changes a register that it must keep,
 *   - a buffer contains a word of the upper half that the worker did not make itself,
 *   - a buffer contains the secret that another process left in memory that was never shared.
 * Left out: reboot and what ends all processes; signals go to the worker and its children.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <stdarg.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096L
#define ARENA 0x1000000000L     /* pages that calls may unmap */
#define ARENA_PAGES 64L
#define KERNEL_ADDRESS 0xffffffff80200000L
#define DIRECT_ADDRESS 0xffff888000000000L
#define WORKER_MS 700

static unsigned long secret(void)
{
    /* Made from parts, so that it is not in the program's file. */
    volatile unsigned long half = 0x5ec2e7;
    return 0x0bad000000000000UL | half << 20 | 0x51de1;
}

struct report {
    volatile int count;
    char text[4000];
    volatile long call;         /* the last one, for whoever looks at a hang */
    volatile unsigned long secret;
};
static struct report *report;
static int is_loud;

/* Random numbers; each thread has its own state. */
struct chance { uint64_t state; };

static uint64_t draw(struct chance *chance)
{
    uint64_t x = chance->state += 0x9e3779b97f4a7c15UL;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9UL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebUL;
    return x ^ x >> 31;
}

static uint64_t below(struct chance *chance, uint64_t limit) { return draw(chance) % limit; }
static int once_in(struct chance *chance, uint64_t n) { return below(chance, n) == 0; }

/* A call with all registers and flags looked at. `after` gets rdi rsi rdx r10 r8 r9 rbx rbp r12 r13 r14 r15 and flags. */
long looked_at_call(long number, const long *arguments, long *after, long flags);
__asm__(".intel_syntax noprefix\n.text\n.globl looked_at_call\nlooked_at_call:\n"
        "push rbx\npush rbp\npush r12\npush r13\npush r14\npush r15\npush rdx\n"
        "mov r15, rcx\nmov rax, rdi\nmov r14, rsi\n"
        "mov rdi, [r14]\nmov rsi, [r14+8]\nmov rdx, [r14+16]\nmov r10, [r14+24]\nmov r8, [r14+32]\nmov r9, [r14+40]\n"
        "pushfq\nor [rsp], r15\n"
        "mov rbx, 0x1111\nmov rbp, 0x2222\nmov r12, 0x3333\nmov r13, 0x4444\nmov r14, 0x5555\nmov r15, 0x6666\n"
        "popfq\nsyscall\npushfq\n"
        "pop rcx\nxchg [rsp], rcx\n"
        "mov [rcx], rdi\nmov [rcx+8], rsi\nmov [rcx+16], rdx\nmov [rcx+24], r10\nmov [rcx+32], r8\nmov [rcx+40], r9\n"
        "mov [rcx+48], rbx\nmov [rcx+56], rbp\nmov [rcx+64], r12\nmov [rcx+72], r13\nmov [rcx+80], r14\nmov [rcx+88], r15\n"
        "pop rdx\nmov [rcx+96], rdx\ncld\n"
        "push 0x202\npopfq\n"
        "pop r15\npop r14\npop r13\npop r12\npop rbp\npop rbx\nret\n");
__asm__(".att_syntax prefix\n");

static long plain(long number, long a, long b, long c, long d, long e, long f)
{
    long arguments[6] = {a, b, c, d, e, f}, after[13];
    return looked_at_call(number, arguments, after, 0);
}

static void tell(const char *format, ...)
{
    va_list list;
    if (report->count++ > 3)
        return;
    size_t used = strlen(report->text);
    va_start(list, format);
    vsnprintf(report->text + used, sizeof report->text - used, format, list);
    va_end(list);
}

/* Descriptors of every kind on known numbers; calls add more. */
enum { FIRST = 3, KINDS = 24, FD_MAX = 48 };

static int put_fd(int fd, int at)
{
    if (fd == -1)
        return at + 1;
    if (fd != at) {
        dup2(fd, at);
        close(fd);
    }
    return at + 1;
}

static void make_descriptors(void)
{
    int at = FIRST, pair[2];
    at = put_fd(open("plain", O_RDWR | O_CREAT, 0666), at);
    at = put_fd(open("plain", O_RDONLY), at);
    at = put_fd(open("plain", O_WRONLY | O_APPEND), at);
    at = put_fd(open(".", O_RDONLY | O_DIRECTORY), at);
    if (pipe(pair) == 0) {
        int other = fcntl(pair[1], F_DUPFD, 60);
        close(pair[1]);
        at = put_fd(pair[0], at);
        at = put_fd(other, at);
    }
    if (pipe2(pair, O_NONBLOCK) == 0) {
        int other = fcntl(pair[1], F_DUPFD, 60);
        close(pair[1]);
        at = put_fd(pair[0], at);
        at = put_fd(other, at);
    }
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) {
        int other = fcntl(pair[1], F_DUPFD, 60);
        close(pair[1]);
        at = put_fd(pair[0], at);
        at = put_fd(other, at);
    }
    at = put_fd(socket(AF_UNIX, SOCK_DGRAM, 0), at);
    at = put_fd(socket(AF_UNIX, SOCK_STREAM, 0), at);
    at = put_fd(eventfd(1, 0), at);
    at = put_fd(epoll_create1(0), at);
    at = put_fd(timerfd_create(CLOCK_MONOTONIC, 0), at);
    at = put_fd(memfd_create("memory", 3), at);
    at = put_fd(open("/proc/self/maps", O_RDONLY), at);
    at = put_fd(open("/proc/self/mem", O_RDWR), at);
    at = put_fd(open("/dev/null", O_RDWR), at);
    at = put_fd(open("/dev/zero", O_RDWR), at);
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    if (master != -1) {
        int zero = 0, number = 0;
        char name[32];
        syscall(SYS_ioctl, master, 0x40045431, &zero);
        syscall(SYS_ioctl, master, 0x80045430, &number);
        snprintf(name, sizeof name, "/dev/pts/%d", number);
        int slave = open(name, O_RDWR);
        slave = put_fd(slave, 61);
        at = put_fd(master, at);
        at = put_fd(61, at);
    }
    at = put_fd(open("/tmp/fuzz/program", O_RDONLY | O_PATH), at);
    at = put_fd(open("/proc", O_RDONLY | O_DIRECTORY), at);
}

static long a_descriptor(struct chance *chance)
{
    static const long strange[] = {-1, -100, 1 << 20, 0x7fffffff, 0x100000003L, 255, 256, 257, 64, 63, 1023};
    if (once_in(chance, 14))
        return strange[below(chance, sizeof strange / sizeof *strange)];
    return FIRST + below(chance, once_in(chance, 4) ? FD_MAX : KINDS);
}

/* Pages. 0..15 plain, 16 read only, 17 none, 18..19 file shared, 20..21 file private, 22 shared anonymous, 23 unmapped,
 * 24..31 plain, 32 beyond a file's end, 33.. untouched, 40.. unmapped. */
static void make_pages(void)
{
    char *arena = (char *)ARENA;
    munmap(arena, ARENA_PAGES * PAGE);
    mmap(arena, 40 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memset(arena, 0, 16 * PAGE);
    mprotect(arena + 16 * PAGE, PAGE, PROT_READ);
    mprotect(arena + 17 * PAGE, PAGE, PROT_NONE);
    int file = open("plain", O_RDWR | O_CREAT, 0666);
    if (file != -1) {
        struct stat status;
        if (fstat(file, &status) == 0 && status.st_size < 3 * PAGE)
            if (ftruncate(file, 3 * PAGE) == -1)
                _exit(98);
        mmap(arena + 18 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
        mmap(arena + 20 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0);
        mmap(arena + 32 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 64 * PAGE);
        close(file);
    }
    mmap(arena + 22 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    munmap(arena + 23 * PAGE, PAGE);
}

static long a_pointer(struct chance *chance)
{
    static const long strange[] = {0, 1, 8, KERNEL_ADDRESS, DIRECT_ADDRESS, -1, -8, -4096, 0x7ffffffff000L, 0x7fffffffeff8L,
        0x800000000000L, 0x7fffffffffffL, (long)0x8000000000000000UL, 0x400000, 0xffff800000000000L, 0x7fff00000000L};
    long page = ARENA + below(chance, 34) * PAGE;
    switch (below(chance, 16)) {
    case 0: return strange[below(chance, sizeof strange / sizeof *strange)];
    case 1: return ARENA + 16 * PAGE - below(chance, 64);              /* runs into the read-only page */
    case 2: return ARENA + 17 * PAGE - below(chance, 32);              /* runs into no access */
    case 3: return ARENA + 23 * PAGE - below(chance, 32);
    case 4: return ARENA + 32 * PAGE - below(chance, 32);
    case 5: return page + PAGE - below(chance, 64);
    case 6: return page + below(chance, PAGE);
    case 7: return ARENA + 18 * PAGE + below(chance, 4 * PAGE);
    default: return ARENA + below(chance, 8) * PAGE + below(chance, 256) * 8;
    }
}

static long a_length(struct chance *chance)
{
    static const long strange[] = {0, 1, -1, 0x7fffffff, 0x80000000L, 0x7ffff000, 0x7fffffffffffffffL, 1L << 47, 1L << 40,
        0xffffffffL, 0x100000000L, 4095, 4096, 4097, 65536, 65537, 1 << 20};
    switch (below(chance, 8)) {
    case 0: return strange[below(chance, sizeof strange / sizeof *strange)];
    case 1: return below(chance, 20) * PAGE;
    case 2: case 3: return below(chance, 10000);
    default: return below(chance, 128);
    }
}

static long an_offset(struct chance *chance)
{
    static const long strange[] = {-1, -4096, 0x7fffffffffffffffL, 0x7ffffffffffff000L, 1L << 32, 1L << 31, 1L << 43, 1L << 62};
    return once_in(chance, 8) ? strange[below(chance, 8)] : (long)below(chance, 6 * PAGE);
}

static long a_number(struct chance *chance)
{
    switch (below(chance, 5)) {
    case 0: return 1L << below(chance, 64);
    case 1: return 1L << below(chance, 24) | 1L << below(chance, 24);
    case 2: return draw(chance) >> below(chance, 64);
    default: return below(chance, 20);
    }
}

static long a_path(struct chance *chance)
{
    static const char *paths[] = {"plain", "other", "link", "loop", "folder", "folder/inside", "folder/../plain", ".", "..", "",
        "/", "/dev/null", "/dev/zero", "/dev/tty", "/dev/ptmx", "/dev/full", "/dev/urandom", "/proc/self/maps", "/proc/self/mem",
        "/proc/self/exe", "/proc/self/fd/3", "/proc/self/fd/7", "/proc/self/cwd/plain", "/proc/self/root", "/proc/self/stat",
        "/proc/self/status", "/proc/self/environ", "/proc/self/task", "/proc/1/maps", "/proc/1/mem", "/proc/meminfo", "/proc/self/fd", "/proc/self/pagemap",
        "/proc/synthesis/gauges", "/proc/synthesis", "/proc/sys/kernel/pid_max", "/proc/mounts", "/sys", "/dev/fd/5", "/dev/stdin",
        "socket", "fifo", "program", "script", "/tmp/fuzz/program", "none/such", "plain/", "folder/", "loop/x", "/dev/pts/0",
        "/proc/self/comm", "/proc/self/oom_score_adj", "/proc/self/auxv", "/proc/self/cmdline", "/proc/stat", "/dev/shm/x"};
    long at = ARENA + 8 * PAGE + below(chance, 64) * 8;
    switch (below(chance, 20)) {
    case 0:
        memset((char *)ARENA + 24 * PAGE, 'a', 2 * PAGE);
        return ARENA + 24 * PAGE + below(chance, PAGE);     /* long, and ends or not */
    case 1: {
        const char *text = paths[below(chance, sizeof paths / sizeof *paths)];      /* at the edge of nothing */
        size_t bytes = strlen(text) + !once_in(chance, 3);
        memcpy((char *)ARENA + 15 * PAGE + (PAGE - bytes), text, bytes);
        return ARENA + 16 * PAGE - bytes;
    }
    case 2: return a_pointer(chance);
    case 3: {
        char *text = (char *)ARENA + 26 * PAGE;
        for (int i = 0; i < 4090; i += 2)
            memcpy(text + i, once_in(chance, 2) ? "./" : "a/", 2);
        text[below(chance, 4096)] = 0;
        return (long)text;
    }
    }
    strcpy((char *)at, paths[below(chance, sizeof paths / sizeof *paths)]);
    return at;
}

static void on_signal(int signal) { (void)signal; }
static sigjmp_buf jump;
static volatile int is_armed;
static pid_t main_thread;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)info;
    if (signal == SIGTRAP) {
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100L;
        return;
    }
    if (is_armed && syscall(SYS_gettid) == main_thread)
        siglongjmp(jump, 1);
    syscall(SYS_exit, 1);
}

static long a_child;
static char other_stack[16384];

static long a_process(struct chance *chance)
{
    switch (below(chance, 5)) {
    case 0: return a_child > 1 ? a_child : getpid();
    case 1: return 0;
    case 2: return syscall(SYS_gettid);
    case 3: return 99999 + below(chance, 1L << 32);
    default: return getpid();
    }
}

static void fill(struct chance *chance, long *words, int count)
{
    for (int i = 0; i < count; i++)
        switch (below(chance, 6)) {
        case 0: words[i] = 0; break;
        case 1: words[i] = a_pointer(chance); break;
        case 2: words[i] = a_number(chance); break;
        case 3: words[i] = a_length(chance); break;
        default: words[i] = below(chance, 4);
        }
}

/* One argument of kind `kind`; records are made in page 9. */
static long an_argument(struct chance *chance, char kind)
{
    long *words = (long *)(ARENA + 9 * PAGE + below(chance, 7) * 512);
    if (once_in(chance, 24))
        kind = "fbplioN"[below(chance, 7)];
    switch (kind) {
    case 'f': return a_descriptor(chance);
    case 'b': return a_pointer(chance);
    case 'p': return a_path(chance);
    case 'l': return a_length(chance);
    case 'o': return an_offset(chance);
    case 'i': return a_number(chance);
    case 'z': return 0;
    case 'm': return below(chance, 01000);
    case 'd': return once_in(chance, 3) ? a_descriptor(chance) : -100;
    case 's': return once_in(chance, 8) ? a_number(chance) : (long)below(chance, 66);
    case 't': return a_process(chance);
    case 'c': return below(chance, 14) - 1;
    case 'w': return below(chance, 4);
    case 'n': return below(chance, 6);
    case 'a': return ARENA + below(chance, ARENA_PAGES) * PAGE + (once_in(chance, 10) ? 1 : 0);
    case 'L': return once_in(chance, 10) ? a_length(chance) : (long)below(chance, 30) * PAGE;
    case 'v':
        for (int i = 0; i < 12; i += 2) {
            words[i] = a_pointer(chance);
            words[i + 1] = a_length(chance);
        }
        return (long)words;
    case 'h':
        fill(chance, words, 8);
        words[0] = once_in(chance, 2) ? 0 : an_argument(chance, 'A');
        words[1] = below(chance, 130);
        words[2] = ARENA + 10 * PAGE;
        an_argument(chance, 'v');
        words[3] = below(chance, 6);
        words[4] = once_in(chance, 2) ? 0 : ARENA + 11 * PAGE;
        words[5] = below(chance, 100);
        for (int i = 0; i < 6; i++) {
            ((long *)(ARENA + 10 * PAGE))[i * 2] = a_pointer(chance);
            ((long *)(ARENA + 10 * PAGE))[i * 2 + 1] = a_length(chance);
        }
        ((long *)(ARENA + 11 * PAGE))[0] = 16 + below(chance, 30);
        ((int *)(ARENA + 11 * PAGE))[2] = 1;
        ((int *)(ARENA + 11 * PAGE))[3] = 1 + below(chance, 2);
        for (int i = 4; i < 20; i++)
            ((int *)(ARENA + 11 * PAGE))[i] = a_descriptor(chance);
        return (long)words;
    case 'A':
        words = (long *)(ARENA + 12 * PAGE);
        memset(words, 0, 128);
        *(short *)words = once_in(chance, 6) ? (short)below(chance, 50) : AF_UNIX;
        strcpy((char *)words + 2, once_in(chance, 2) ? "socket" : "other");
        return (long)words;
    case 'T':
        words[0] = once_in(chance, 12) ? a_number(chance) : 0;
        words[1] = once_in(chance, 12) ? a_number(chance) : (long)below(chance, 3000000);
        words[2] = words[0];
        words[3] = words[1];
        return (long)words;
    case 'P':
        for (int i = 0; i < 8; i++) {
            ((int *)words)[i * 2] = a_descriptor(chance);
            ((int *)words)[i * 2 + 1] = below(chance, 0x10000);
        }
        return (long)words;
    case 'E':
        ((int *)words)[0] = draw(chance);
        ((int *)words)[1] = a_descriptor(chance);
        return (long)words;
    case 'S':
        words[0] = once_in(chance, 2) ? 0 : draw(chance) & draw(chance);
        return (long)words;
    case 'H':
        words[0] = once_in(chance, 6) ? a_pointer(chance) : once_in(chance, 3) ? (long)below(chance, 2) : (long)on_signal;
        words[1] = 0x04000000 | (draw(chance) & 0x58000004);
        words[2] = (long)({ void *r; __asm__("lea give_back(%%rip), %0" : "=r"(r)); r; });
        words[3] = draw(chance) & draw(chance);
        return (long)words;
    case 'N':
        fill(chance, words, 32);
        return (long)words;
    case 'k':
        /* Not in the arena, where calls would spoil the frames, and for one thread alone. */
        if (plain(SYS_gettid, 0, 0, 0, 0, 0, 0) != main_thread)
            return 0;
        words[0] = (long)other_stack;
        words[1] = below(chance, 3);
        words[2] = 8192;
        return (long)words;
    case 'V':
        words[0] = an_argument(chance, 'p');
        words[1] = an_argument(chance, 'p');
        words[2] = once_in(chance, 10) ? a_pointer(chance) : 0;
        words[3] = 0;
        return (long)words;
    case 'g': return below(chance, 0x14);
    case 'I': {
        static const long requests[] = {0x5401, 0x5402, 0x5403, 0x5404, 0x5405, 0x5406, 0x5407, 0x5408, 0x5409, 0x540a, 0x540b, 0x540c, 0x540d,
            0x540e, 0x540f, 0x5410, 0x5411, 0x5412, 0x5413, 0x5414, 0x5415, 0x541b, 0x5420, 0x5421, 0x5422, 0x5423, 0x5424, 0x5425,
            0x5429, 0x5450, 0x5451, 0x5452, 0x80045430, 0x40045431, 0x5441, 0x40049409, 0x80086601, 0x802c542a, 0x402c542b};
        return once_in(chance, 8) ? a_number(chance) : requests[below(chance, sizeof requests / sizeof *requests)];
    }
    }
    return 0;
}

__asm__("give_back: mov $15, %eax\nsyscall\n");

/* Calls and the kinds of their arguments; those that are not here get anything. */
struct call { short number; const char *kinds; };
static const struct call calls[] = {
    {SYS_read, "fbl"}, {SYS_write, "fbl"}, {SYS_read, "fbl"}, {SYS_write, "fbl"}, {SYS_open, "pim"}, {SYS_close, "f"}, {SYS_stat, "pb"},
    {SYS_fstat, "fb"}, {SYS_lstat, "pb"}, {SYS_poll, "Pnn"}, {SYS_lseek, "fon"}, {SYS_mmap, "aLnifo"}, {SYS_mmap, "aLnifo"}, {SYS_mprotect, "aLn"},
    {SYS_munmap, "aL"}, {SYS_brk, "b"}, {SYS_rt_sigaction, "sHbi"}, {SYS_rt_sigaction, "sHbi"}, {SYS_rt_sigprocmask, "nSbi"}, {SYS_ioctl, "fIb"}, {SYS_ioctl, "fIN"},
    {SYS_pread64, "fblo"}, {SYS_pwrite64, "fblo"}, {SYS_readv, "fvn"}, {SYS_writev, "fvn"}, {SYS_access, "pn"}, {SYS_pipe, "b"},
    {SYS_select, "lNNNT"}, {SYS_sched_yield, ""}, {SYS_mremap, "aLLna"}, {SYS_msync, "aLn"}, {SYS_mincore, "aLb"}, {SYS_madvise, "aLi"},
    {SYS_shmget, "nLi"}, {SYS_shmat, "nai"}, {SYS_shmctl, "niN"}, {SYS_shmdt, "a"}, {SYS_dup, "f"}, {SYS_dup2, "ff"}, {SYS_nanosleep, "Tb"}, {SYS_getitimer, "nb"},
    {SYS_setitimer, "nTb"}, {SYS_getpid, ""}, {SYS_sendfile, "ffNl"}, {SYS_socket, "nni"}, {SYS_connect, "fAl"},
    {SYS_accept, "fbb"}, {SYS_sendto, "fbliAl"}, {SYS_recvfrom, "fblibb"}, {SYS_sendmsg, "fhi"}, {SYS_recvmsg, "fhi"}, {SYS_shutdown, "fn"}, {SYS_bind, "fAl"},
    {SYS_listen, "fn"}, {SYS_getsockname, "fbN"}, {SYS_getpeername, "fbN"}, {SYS_socketpair, "nnib"}, {SYS_setsockopt, "finNl"}, {SYS_getsockopt, "finbN"},
    {SYS_wait4, "tbnb"}, {SYS_kill, "ts"}, {SYS_uname, "b"}, {SYS_fcntl, "fni"}, {SYS_fcntl, "fiN"}, {SYS_flock, "fn"}, {SYS_fsync, "f"},
    {SYS_truncate, "po"}, {SYS_ftruncate, "fo"}, {SYS_getdents, "fbl"}, {SYS_getcwd, "bl"}, {SYS_chdir, "p"}, {SYS_fchdir, "f"}, {SYS_rename, "pp"}, {SYS_mkdir, "pm"}, {SYS_rmdir, "p"},
    {SYS_creat, "pm"}, {SYS_link, "pp"}, {SYS_unlink, "p"}, {SYS_symlink, "pp"}, {SYS_readlink, "pbl"}, {SYS_chmod, "pm"}, {SYS_fchmod, "fm"}, {SYS_umask, "m"},
    {SYS_gettimeofday, "bb"}, {SYS_getrlimit, "gb"}, {SYS_getrusage, "nb"}, {SYS_sysinfo, "b"}, {SYS_times, "b"}, {SYS_getgroups, "nb"}, {SYS_setgroups, "nN"},
    {SYS_setpgid, "tt"}, {SYS_getpgid, "t"}, {SYS_getsid, "t"}, {SYS_rt_sigpending, "bi"}, {SYS_rt_sigtimedwait, "SbTi"}, {SYS_rt_sigqueueinfo, "tsN"},
    {SYS_sigaltstack, "kb"}, {SYS_utime, "pN"}, {SYS_mknod, "pmi"}, {SYS_statfs, "pb"}, {SYS_fstatfs, "fb"}, {SYS_getpriority, "nt"}, {SYS_setpriority, "nti"},
    {SYS_sched_setparam, "tN"}, {SYS_sched_getparam, "tb"}, {SYS_sched_setscheduler, "tnN"}, {SYS_prctl, "iNbii"}, {SYS_prctl, "iii"}, {SYS_arch_prctl, "ib"},
    {SYS_gettid, ""}, {SYS_readahead, "fol"}, {SYS_tkill, "ts"}, {SYS_time, "b"}, {SYS_futex, "bniTbi"}, {SYS_futex, "biiTbi"}, {SYS_sched_setaffinity, "tlN"}, {SYS_sched_getaffinity, "tlb"},
    {SYS_epoll_create, "n"}, {SYS_getdents64, "fbl"}, {SYS_set_tid_address, "b"}, {SYS_fadvise64, "foln"}, {SYS_timer_create, "cNb"}, {SYS_timer_settime, "nnTb"},
    {SYS_timer_gettime, "nb"}, {SYS_timer_getoverrun, "n"}, {SYS_timer_delete, "n"}, {SYS_clock_gettime, "cb"}, {SYS_clock_getres, "cb"}, {SYS_clock_nanosleep, "cnTb"},
    {SYS_epoll_wait, "fbnn"}, {SYS_epoll_ctl, "fnfE"}, {SYS_epoll_ctl, "fnfE"}, {SYS_tgkill, "tts"}, {SYS_utimes, "pN"}, {SYS_waitid, "ntbib"}, {SYS_openat, "dpim"}, {SYS_openat, "dpim"}, {SYS_openat, "dpzz"},
    {SYS_mkdirat, "dpm"}, {SYS_newfstatat, "dpbi"}, {SYS_unlinkat, "dpi"}, {SYS_renameat, "dpdp"}, {SYS_linkat, "dpdpi"}, {SYS_symlinkat, "pdp"}, {SYS_readlinkat, "dpbl"},
    {SYS_fchmodat, "dpm"}, {SYS_faccessat, "dpn"}, {SYS_pselect6, "lNNNTN"}, {SYS_ppoll, "PnTSl"}, {SYS_set_robust_list, "bl"}, {SYS_get_robust_list, "tbb"},
    {SYS_splice, "fNfNli"}, {SYS_tee, "ffli"}, {SYS_vmsplice, "fvni"}, {SYS_sync_file_range, "foli"}, {SYS_utimensat, "dpTi"}, {SYS_epoll_pwait, "fbnnSl"}, {SYS_signalfd, "fSl"}, {SYS_timerfd_create, "ci"}, {SYS_eventfd, "i"},
    {SYS_fallocate, "fnoo"}, {SYS_timerfd_settime, "fnTb"}, {SYS_timerfd_gettime, "fb"}, {SYS_accept4, "fbbi"}, {SYS_signalfd4, "fSli"}, {SYS_eventfd2, "ii"}, {SYS_epoll_create1, "i"},
    {SYS_dup3, "ffi"}, {SYS_pipe2, "bi"}, {SYS_inotify_init1, "i"}, {SYS_preadv, "fvno"}, {SYS_pwritev, "fvno"}, {SYS_recvmmsg, "fhniT"}, {SYS_sendmmsg, "fhni"}, {SYS_prlimit64, "tgNb"}, {SYS_prlimit64, "tgNb"},
    {SYS_process_vm_readv, "tvnvnz"}, {SYS_process_vm_writev, "tvnvnz"}, {SYS_sched_setattr, "tNi"}, {SYS_sched_getattr, "tbli"}, {SYS_renameat2, "dpdpi"}, {SYS_getrandom, "bli"}, {SYS_memfd_create, "pi"},
    {SYS_membarrier, "ii"}, {SYS_mlock, "aL"}, {SYS_munlock, "aL"}, {SYS_mlockall, "n"}, {SYS_copy_file_range, "fNfNli"}, {SYS_preadv2, "fvnozi"}, {SYS_pwritev2, "fvnozi"}, {SYS_statx, "dpiib"}, {SYS_rseq, "bliz"},
    {SYS_getxattr, "ppbl"}, {SYS_setxattr, "ppbli"}, {SYS_close_range, "ffn"}, {SYS_openat2, "dpNl"}, {SYS_faccessat2, "dpni"}, {SYS_epoll_pwait2, "fbnTSl"}, {SYS_pidfd_open, "ti"},
    {SYS_getcpu, "bbb"}, {SYS_alarm, "n"}, {SYS_personality, "i"}, {SYS_rt_sigsuspend, "Sl"}, {SYS_chown, "pii"}, {SYS_getresuid, "bbb"}, {SYS_rt_tgsigqueueinfo, "ttsN"}, {SYS_capget, "NN"}, {SYS_mount, "pppiN"}, {SYS_umount2, "pi"}, {SYS_chroot, "p"},
};
#define CALL_COUNT (sizeof calls / sizeof *calls)

static int is_left_out(long number)
{
    switch (number) {
    case SYS_reboot: case SYS_clone: case SYS_fork: case SYS_vfork: case SYS_exit_group: case SYS_exit: case SYS_execve:
    case SYS_execveat: case SYS_rt_sigreturn: case SYS_clone3: case SYS_pause: case SYS_setsid: case SYS_ptrace: case SYS_pidfd_send_signal:
    case SYS_kexec_load: case SYS_init_module: case SYS_delete_module: case SYS_swapoff: case SYS_swapon: case SYS_settimeofday:
    case SYS_clock_settime: case SYS_adjtimex: case SYS_sethostname: case SYS_setdomainname: case SYS_acct: case SYS_vhangup: case SYS_pivot_root: case SYS_iopl: case SYS_ioperm: case SYS_seccomp:
        return 1;
    }
    return 0;
}

/* Addresses of the kernel's windows, as far as a small machine fills them, but not those that are used as arguments. */
static int is_kernels(unsigned long word)
{
    static const unsigned windows[][2] = {{0x80200, 0x80800}, {0xa0000, 0xa4000}, {0xc0000, 0xc0800}, {0xd0000, 0xd0800}};
    if (word == (unsigned long)KERNEL_ADDRESS || word == (unsigned long)DIRECT_ADDRESS)
        return 0;
    if (word >> 32 != 0xffffffffUL)
        return word >> 32 == 0xffff8880UL;
    for (int i = 0; i < 4; i++)
        if ((word & 0xffffffffUL) >> 12 >= windows[i][0] && (word & 0xffffffffUL) >> 12 < windows[i][1])
            return 1;
    return 0;
}

static void scan(long number, const long *arguments)
{
    static const unsigned char in_core[] = {0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14};
    for (size_t p = 0; p < sizeof in_core; p++) {
        unsigned long *words = (unsigned long *)(ARENA + in_core[p] * PAGE);
        for (int i = 0; i < 512; i++) {
            unsigned long word = words[i];
            if (word == report->secret)
                tell("call %ld(%lx, %lx, %lx) left the secret at %p", number, arguments[0], arguments[1], arguments[2], (void *)(words + i));
            if (is_kernels(word))
                tell("call %ld(%lx, %lx, %lx) left %lx at %p", number, arguments[0], arguments[1], arguments[2], word, (void *)(words + i));
        }
    }
}

static void one_call(struct chance *chance)
{
    long arguments[6], after[13];
    long number;
    const char *kinds = "";
    if (once_in(chance, 8)) {
        number = below(chance, 471);
    } else {
        const struct call *call = &calls[below(chance, CALL_COUNT)];
        number = call->number;
        kinds = call->kinds;
    }
    if (is_left_out(number))
        return;
    for (int i = 0; i < 6; i++) {
        char kind = *kinds ? *kinds++ : "fbplioNzn"[below(chance, 9)];
        arguments[i] = an_argument(chance, kind);
    }
    if (number == SYS_kill || number == SYS_tkill || number == SYS_tgkill || number == SYS_rt_sigqueueinfo || number == SYS_rt_tgsigqueueinfo) {
        long signal = number == SYS_tgkill || number == SYS_rt_tgsigqueueinfo ? 2 : 1;
        arguments[0] = a_process(chance);
        if (arguments[signal] == SIGKILL || arguments[signal] == SIGSTOP)
            arguments[signal] = SIGUSR1;
        if ((int)arguments[0] < 0 || (int)arguments[0] == 1)
            arguments[0] = getpid();
    }
    if (number == SYS_setrlimit || number == SYS_prlimit64)
        if (number == SYS_prlimit64 && (int)arguments[0] == 1)
            return;
    if ((number == SYS_munmap || number == SYS_mmap || number == SYS_mprotect || number == SYS_mremap) && (arguments[0] < ARENA || arguments[0] > ARENA + ARENA_PAGES * PAGE))
        arguments[0] = ARENA;
    long flags = once_in(chance, 30) ? 0x400 : once_in(chance, 30) ? 0x40000 : once_in(chance, 60) ? 0x100 : once_in(chance, 60) ? 0x4000 : once_in(chance, 60) ? 0x200000 : 0;
    report->call = number;
    if (is_loud)
        dprintf(900, "%ld(%lx, %lx, %lx, %lx, %lx, %lx)\n", number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    looked_at_call(number, arguments, after, flags);
    for (int i = 0; i < 6; i++)
        if (after[i] != arguments[i])
            tell("call %ld changed argument register %d from %lx to %lx", number, i, arguments[i], after[i]);
    for (int i = 0; i < 6; i++)
        if (after[6 + i] != 0x1111 * (i + 1))
            tell("call %ld changed kept register %d to %lx", number, i, after[6 + i]);
    if ((after[12] & 0x400) != (flags & 0x400))
        tell("call %ld changed the direction flag", number);
}

/* Threads share everything, and use neither errno nor the heap. */
static int in_thread(void *argument)
{
    struct chance chance = {(uint64_t)argument};
    for (int i = 0; i < 60; i++)
        one_call(&chance);
    plain(SYS_exit, 0, 0, 0, 0, 0, 0);
    return 0;
}

static char stacks[4][32768] __attribute__((aligned(16)));

static void a_birth(struct chance *chance, int depth, long count);

static void work(struct chance *chance, int depth, long count)
{
    long nothing[6] = {0};
    for (volatile long i = 0; i < count; i++) {
        is_armed = 1;
        if (sigsetjmp(jump, 1) == 0) {
            if (once_in(chance, 25))
                make_pages();
            if (once_in(chance, 60))
                make_descriptors();
            if (once_in(chance, 40))
                a_birth(chance, depth, count);
            one_call(chance);
            if (is_loud || i % 16 == 0)
                scan(report->call, nothing);
        }
    }
}

static void a_birth(struct chance *chance, int depth, long count)
{
    uint64_t seed = draw(chance);
    switch (below(chance, 5)) {
    case 0: case 1: case 2:
        if (depth < 3) {
            long child = fork();
            if (child == 0) {
                struct chance own = {seed};
                main_thread = syscall(SYS_gettid);
                struct itimerval soon = {{0, 5000}, {0, 1000 + seed % 20000}};
                setitimer(ITIMER_REAL, &soon, NULL);
                work(&own, depth + 1, count / 4);
                _exit(0);
            }
            a_child = child;
            if (once_in(chance, 2))
                waitpid(child, NULL, once_in(chance, 2) ? WNOHANG : 0);
        }
        break;
    case 3: {
        static int next;
        if (next < 4)
            clone(in_thread, stacks[next++] + 32000, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, (void *)seed);
        break;
    }
    case 4: {
        long child = fork();
        if (child == 0) {
            long vector = an_argument(chance, 'V');
            if (once_in(chance, 3)) {
                int program = open("program", O_RDWR | O_CREAT | O_TRUNC, 0777);
                unsigned char bytes[512];
                for (int i = 0; i < 512; i++)
                    bytes[i] = i < 64 + 56 ? ((unsigned char *)0x400000)[i] : draw(chance);
                for (int i = 0; i < 3; i++)
                    bytes[16 + below(chance, 200)] = draw(chance);
                if (write(program, bytes, sizeof bytes) == -1)
                    _exit(97);
                close(program);
                char *const words[] = {(char *)"program", NULL};
                execve("program", words, words);
            } else if (once_in(chance, 2)) {
                plain(SYS_execve, an_argument(chance, 'p'), vector, vector, 0, 0, 0);
            } else {
                plain(SYS_execveat, an_argument(chance, 'd'), an_argument(chance, 'p'), vector, vector, a_number(chance), 0);
            }
            _exit(0);
        }
        a_child = child;
        break;
    }
    }
}

static void worker(uint64_t seed, long count)
{
    struct chance chance = {seed * 0x10001};
    setsid();
    int null = open("/dev/null", O_RDWR);
    if (is_loud)
        dup2(2, 900);
    int keeps = getenv("FUZZ_STREAMS") != NULL;
    for (int fd = 0; fd < 3; fd++) {
        if (keeps)
            dup2(fd, 40 + fd);
        dup2(null, fd);
    }
    for (int fd = 3; fd < 256; fd++)
        if (!keeps || fd < 40 || fd > 42)
            close(fd);
    struct sigaction action = {.sa_handler = on_signal};
    for (int signal = 1; signal < 65; signal++)
        if (signal != SIGCHLD)
            sigaction(signal, &action, NULL);
    static char alternative[65536];
    stack_t stack = {.ss_sp = alternative, .ss_size = sizeof alternative};
    sigaltstack(&stack, NULL);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (int i = 0; i < 5; i++)
        sigaction(faults[i], &action, NULL);
    struct rlimit limit = {192 << 20, 192 << 20};
    setrlimit(RLIMIT_AS, &limit);
    limit = (struct rlimit){1 << 20, 1 << 20};
    if (once_in(&chance, 2))
        setrlimit(RLIMIT_FSIZE, &limit);
    limit = (struct rlimit){24, 24};
    setrlimit(RLIMIT_NPROC, &limit);
    main_thread = getpid();
    make_descriptors();
    make_pages();
    struct itimerval soon = {{0, 3000}, {0, 5000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    work(&chance, 0, count);
    _exit(0);
}

static void make_files(void)
{
    if (system("exec 2>/dev/null; true") == -1) {
    }
    mkdir("/tmp", 0777);
    mkdir("/tmp/fuzz", 0777);
    if (chdir("/tmp/fuzz") == -1)
        exit(2);
    static const char *names[] = {"plain", "other", "link", "loop", "folder/inside", "folder", "socket", "fifo", "program", "script", "/dev/shm/x", "folder/plain", "folder/other"};
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (unlink(names[i]) == -1)
                rmdir(names[i]);
    close(open("other", O_RDWR | O_CREAT, 0666));
    mkdir("folder", 0777);
    close(open("folder/inside", O_RDWR | O_CREAT, 0666));
    if (symlink("plain", "link") == -1 || symlink("loop", "loop") == -1)
        return;
    mkfifo("fifo", 0666);
    int script = open("script", O_RDWR | O_CREAT, 0777);
    if (script != -1 && write(script, "#!/tmp/fuzz/script\n", 19) == 19)
        close(script);
}

/* A process that leaves the secret in its pages, and goes. */
static void leave_secret(void)
{
    pid_t child = fork();
    if (child == 0) {
        long count = 8 << 17;
        unsigned long *words = mmap(NULL, count * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (long i = 0; words != MAP_FAILED && i < count; i++)
            words[i] = report->secret;
        int pair[2];
        if (pipe(pair) == 0 && words != MAP_FAILED && write(pair[1], words, 4096) != 4096)
            _exit(1);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    long count = argc > 2 ? atol(argv[2]) : 1;
    long per_worker = argc > 3 ? atol(argv[3]) : 400;
    is_loud = getenv("FUZZ_LOUD") != NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    report = mmap((void *)0x2a5a5b5000L, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    uint32_t *pattern = malloc(1 << 20);
    for (uint32_t i = 0; i < 1 << 18; i++)
        pattern[i] = i * 2654435761u;
    int bad = 0;
    for (long n = 0; n < count; n++, seed++) {
        report->secret = secret();
        make_files();
        leave_secret();
        pid_t child = fork();
        if (child == 0)
            worker(seed, per_worker);
        int status = 0;
        long end = now_ms() + WORKER_MS;
        const char *how = "done";
        for (;;) {
            pid_t who = waitpid(-1, &status, WNOHANG);
            if (who == child)
                break;
            if (now_ms() > end) {
                how = "done (timed out)";
                break;
            }
            struct timespec little = {0, 2000000};
            if (who <= 0)
                nanosleep(&little, NULL);
        }
        if (getpid() == 1)
            kill(-1, SIGKILL);
        else
            kill(-child, SIGKILL);
        long last = report->call;
        end = now_ms() + WORKER_MS;
        while (getpid() == 1 ? waitpid(-1, &status, WNOHANG) != -1 : waitpid(child, &status, WNOHANG) == 0) {
            struct timespec little = {0, 1000000};
            nanosleep(&little, NULL);
            if (now_ms() > end) {
                printf("seed %lu: a killed process does not end; last call %ld\n", seed, last);
                bad = 1;
                break;
            }
        }
        if (report->count) {
            printf("seed %lu: %s\n", seed, report->text);
            bad = 1;
            report->count = 0;
            memset(report->text, 0, sizeof report->text);
        }
        for (uint32_t i = 0; i < 1 << 18; i++)
            if (pattern[i] != i * 2654435761u) {
                printf("seed %lu: the parent's memory changed at word %u\n", seed, i);
                bad = 1;
                break;
            }
        printf("seed %lu %s, last call %ld\n", seed, how, last);
    }
    puts(bad ? "bad" : "end");
    return bad;
}
