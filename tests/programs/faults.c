/* Programs that do wrong: each gets what Linux gives it, and the next program runs. */
#include "check.h"

#include <dirent.h>
#include <sys/socket.h>
#include <ucontext.h>

static void quiet(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
}

/* A fault in a child, so that the story goes on. */
#define FAULT(name, ...)                                                                                               \
    static void name##_body(void) { __VA_ARGS__; }                                                                     \
    static void name(void) { in_child(#name, name##_body); in_child("the next process", quiet); }

static volatile char sink;
#define AT(address) ((volatile char *)(uintptr_t)(address))
#define JUMP(address) ((void (*)(void))(uintptr_t)(address))()

FAULT(null_read, sink = *AT(0))
FAULT(null_write, *AT(0) = 1)
FAULT(wild_read, sink = *AT(0x123456789000))
FAULT(wild_write, *AT(0x123456789000) = 1)
FAULT(wild_jump, JUMP(0x123456789000))
FAULT(null_jump, JUMP(0))
FAULT(kernel_read, sink = *AT(0xffffffff80000000))
FAULT(kernel_write, *AT(0xffffffff80000000) = 1)
FAULT(kernel_jump, JUMP(0xffffffff80000000))
FAULT(kernel_half_read, sink = *AT(0xffff800000000000))
FAULT(kernel_half_write, *AT(0xffff800000000000) = 1)
FAULT(kernel_half_jump, JUMP(0xffff800000000000))
FAULT(last_byte_read, sink = *AT(-1))
FAULT(not_canonical_read, sink = *AT(0x0000900000000000))
FAULT(not_canonical_write, *AT(0x8000000000000000) = 1)
FAULT(not_canonical_jump, __asm__ volatile("jmp *%0" ::"r"(0x0000900000000000)))
/* A processor raises #SS here, which Linux tells as SIGBUS; TCG raises #GP. Both are right. */
static void not_canonical_stack(void)
{
    int status;
    pid_t child = MUST(fork());
    if (child == 0) {
        quiet();
        __asm__ volatile("mov %0, %%rsp; push %%rax" ::"r"(0x0000900000000000));
    }
    waitpid(child, &status, 0);
    puts(WIFSIGNALED(status) && (WTERMSIG(status) == SIGBUS || WTERMSIG(status) == SIGSEGV) ? "faulted" : "went on");
}
FAULT(limit_jump, JUMP(0x00007fffffffffff))
FAULT(code_write, *(volatile char *)(uintptr_t)&in_child = 1)
FAULT(data_jump, static char data[16] = {(char)0xc3}; JUMP(data))
FAULT(stack_jump, volatile char code[16] = {(char)0xc3}; JUMP(code))
FAULT(constant_write, *(volatile char *)(uintptr_t) "constant" = 1)
FAULT(divide, volatile int hundred = 100, zero = 0; sink = (char)(hundred / zero))
FAULT(divide_overflow, volatile int least = -2147483647 - 1, one = -1; sink = least / one)
FAULT(undefined, __asm__ volatile("ud2"))
FAULT(breakpoint, __asm__ volatile("int3"))
FAULT(single_step, __asm__ volatile("pushf; orl $0x100, (%rsp); popf; nop; nop"))
FAULT(halt, __asm__ volatile("hlt"))
FAULT(clear_interrupts, __asm__ volatile("cli"))
FAULT(port_in, __asm__ volatile("inb $0x80, %%al" ::: "rax"))
FAULT(port_out, __asm__ volatile("outb %al, $0x80"))
FAULT(read_control, __asm__ volatile("mov %%cr3, %%rax" ::: "rax"))
FAULT(write_control, __asm__ volatile("xor %%eax, %%eax; mov %%rax, %%cr0" ::: "rax"))
FAULT(read_msr, __asm__ volatile("mov $0xc0000082, %%ecx; rdmsr" ::: "rax", "rcx", "rdx"))
FAULT(load_table, __asm__ volatile("lidt 0(%rsp)"))
FAULT(interrupt_gate, __asm__ volatile("int $0x21"))
FAULT(page_fault_gate, __asm__ volatile("int $14"))
FAULT(double_fault_gate, __asm__ volatile("int $8"))
FAULT(bad_segment, __asm__ volatile("mov $0x3b8, %%eax; mov %%eax, %%ds" ::: "rax"))
FAULT(kernel_segment, __asm__ volatile("mov $0x10, %%eax; mov %%eax, %%ss" ::: "rax"))
/* Selectors that name a local descriptor table: nobody made one. Where the first page may be mapped it holds descriptors of
   level 3, data and code, which a processor finds there whose table is the one that a reset left; or it finds, where SMAP is
   on, that the kernel may not read them, which is another fault. */
static void tell_code(int signal, siginfo_t *info, void *context)
{
    (void)context;
    printf("signal %d, %s\n", signal, info->si_code == SI_KERNEL ? "protection" : "another code");
    fflush(stdout);
    _exit(1);
}
static void write_descriptors(void)
{
    struct sigaction action = {.sa_sigaction = tell_code, .sa_flags = SA_SIGINFO};
    uint64_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MUST(sigaction(SIGSEGV, &action, NULL));
    for (int i = 0; page != MAP_FAILED && i < 512; i++)
        *(volatile uint64_t *)((uintptr_t)page + 8 * (size_t)i) = i % 2 ? 0x00affb000000ffff : 0x00cff3000000ffff;
}
FAULT(local_data, write_descriptors(); __asm__ volatile("mov $7, %%eax; mov %%eax, %%ds" ::: "rax"))
FAULT(local_extra, write_descriptors(); __asm__ volatile("mov $23, %%eax; mov %%eax, %%es" ::: "rax"))
FAULT(local_stack, write_descriptors(); __asm__ volatile("mov $7, %%eax; mov %%eax, %%ss" ::: "rax"))
FAULT(local_base, write_descriptors(); __asm__ volatile("mov $39, %%eax; mov %%eax, %%fs" ::: "rax"))
FAULT(local_code, write_descriptors(); __asm__ volatile("movabs $0xf00000000, %%rax; push %%rax; ljmp *(%%rsp)" ::: "rax"))
FAULT(system_return, __asm__ volatile("sysretq"))
FAULT(swap_gs, __asm__ volatile("swapgs"))
/* A program may return from an interrupt to itself. QEMU before 9.1 reads the frame with the kernel's rights, and SMAP refuses. */
static void interrupt_return(void)
{
    int status;
    pid_t child = MUST(fork());
    if (child == 0) {
        quiet();
        __asm__ volatile("mov %%ss, %%ecx; mov %%cs, %%edx; mov %%rsp, %%rax; push %%rcx; push %%rax; pushfq; push %%rdx;"
                         "lea 1f(%%rip), %%rax; push %%rax; iretq; 1:" ::: "rax", "rcx", "rdx", "memory", "cc");
        _exit(0);
    }
    waitpid(child, &status, 0);
    puts(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) ? "ended" : "ended otherwise");
}
/* No misaligned vector loads and no alignment check (EFLAGS.AC): QEMU's TCG does not raise them, whatever the kernel does. */
FAULT(direction_flag, __asm__ volatile("std"); sink = (char)getppid(); __asm__ volatile("cld"))

/* read and write with the direction flag as it is said, always from the same instruction. */
static __attribute__((noinline)) long transfer(long number, int file, void *bytes, size_t count, int backwards)
{
    register long result __asm__("rax") = number;
    register long first __asm__("rdi") = file;
    register void *second __asm__("rsi") = bytes;
    register size_t third __asm__("rdx") = count;
    long flags = backwards ? 0x602 : 0x202;
    if (number == SYS_read)
        __asm__ volatile("push %4; popf; mov $0, %%eax; syscall; cld"
                         : "=a"(result) : "D"(first), "S"(second), "d"(third), "r"(flags) : "rcx", "r11", "memory");
    else
        __asm__ volatile("push %4; popf; mov $1, %%eax; syscall; cld"
                         : "=a"(result) : "D"(first), "S"(second), "d"(third), "r"(flags) : "rcx", "r11", "memory");
    return result;
}

static void copies_backwards(void)
{
    static char from[8192], to[8192];
    int pipes[2], zero = MUST(open("/dev/zero", O_RDONLY)), file = MUST(open("backwards", O_RDWR | O_CREAT, 0600));
    long total = 0, wrong = 0;
    MUST(pipe(pipes));
    for (int i = 0; i < 200; i++) {
        int backwards = i % 8 > 3;
        memset(from, i, sizeof from);
        memset(to, -1, sizeof to);
        total += transfer(SYS_write, pipes[1], from + 2048, 1003, backwards);
        total += transfer(SYS_read, pipes[0], to + 2048, 1003, backwards);
        wrong += memcmp(to + 2048, from, 1003) != 0 || to[2047] != -1 || to[2048 + 1003] != -1;
        total += transfer(SYS_read, zero, to + 2048, 500, backwards);
        wrong += to[2048] != 0 || to[2048 + 499] != 0 || to[2047] != -1;
        MUST(lseek(file, 0, SEEK_SET));
        total += transfer(SYS_write, file, from + 2048, 1003, backwards);
        MUST(lseek(file, 0, SEEK_SET));
        total += transfer(SYS_read, file, to + 2048, 1003, backwards);
        wrong += memcmp(to + 2048, from, 1003) != 0 || to[2047] != -1 || to[2048 + 1003] != -1;
    }
    unlink("backwards");
    printf("%ld bytes, %ld wrong\n", total, wrong);
}

/* Into the host's segment for 32-bit code. */
FAULT(compatible_segment, __asm__ volatile("lea 1f(%%rip), %%rax; push $0x23; push %%rax; lretq; 1: hlt" ::: "rax", "memory"))
FAULT(io_privilege, __asm__ volatile("pushf; orl $0x3000, (%rsp); popf; cli"))
FAULT(abort_itself, abort())
FAULT(kill_itself, kill(getpid(), SIGKILL))
FAULT(stop_forever_killed, alarm(1); for (;;) pause())

#pragma GCC diagnostic ignored "-Winfinite-recursion" /* it is what is tested */
static int recurse(volatile int depth)
{
    volatile char room[4096];
    room[0] = (char)depth;
    return recurse(depth + 1) + room[0];
}
FAULT(stack_overflow, sink = (char)recurse(0))

static void on_overflow(int signal_number)
{
    (void)signal_number;
    const char text[] = "handled on the other stack\n";
    write(1, text, sizeof text - 1);
    _exit(7);
}
static void overflow_handled_body(void)
{
    static char other[65536];
    stack_t stack = {.ss_sp = other, .ss_size = sizeof other};
    struct sigaction action = {.sa_handler = on_overflow, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sink = (char)recurse(0);
}
static void overflow_handled(void) { in_child("overflow_handled", overflow_handled_body); }

static void recurse_in_handler(int signal_number) { sink = (char)recurse(signal_number); }
static void handler_overflow_body(void)
{
    char *other = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(other, 4096, PROT_NONE);
    stack_t stack = {.ss_sp = other, .ss_size = 1 << 20};
    struct sigaction action = {.sa_handler = recurse_in_handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}
static void handler_overflow(void) { in_child("handler_overflow", handler_overflow_body); }

static void handler_without_stack_body(void)
{
    struct sigaction action = {.sa_handler = on_overflow};
    sigaction(SIGSEGV, &action, NULL);
    sink = (char)recurse(0);
}
static void handler_without_stack(void) { in_child("handler_without_stack", handler_without_stack_body); }

static void bad_handler_body(void)
{
    struct sigaction action = {.sa_handler = (void (*)(int))0x123456789000};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}
static void bad_handler(void) { in_child("bad_handler", bad_handler_body); }

static void kernel_handler_body(void)
{
    struct sigaction action = {.sa_handler = (void (*)(int))0xffffffff80000000};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}
static void kernel_handler(void) { in_child("kernel_handler", kernel_handler_body); }

static void blocked_fault_body(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    sink = *AT(0);
}
static void blocked_fault(void) { in_child("blocked_fault", blocked_fault_body); }

static void ignored_fault_body(void)
{
    signal(SIGSEGV, SIG_IGN);
    sink = *AT(0);
}
static void ignored_fault(void) { in_child("ignored_fault", ignored_fault_body); }

/* rt_sigreturn with frames that no kernel made. The stack pointer is where the frame would be. */
static void return_from(void *frame)
{
    __asm__ volatile("mov %0, %%rsp; mov $15, %%eax; syscall; ud2" ::"r"(frame) : "memory");
}
static void return_null(void) { return_from(NULL); }
static void return_kernel(void) { return_from((void *)0xffffffff80001000); }
static void return_unmapped(void) { return_from((void *)0x123456789000); }
static char frame[4096] __attribute__((aligned(64)));
static void return_ones(void) { memset(frame, 0xff, sizeof frame); return_from(frame + 1024); }
static void return_zeroes(void) { memset(frame, 0, sizeof frame); return_from(frame + 1024); }
static void garbage_frames(void)
{
    in_child("null frame", return_null);
    in_child("kernel frame", return_kernel);
    in_child("unmapped frame", return_unmapped);
    in_child("frame of ones", return_ones);
    in_child("frame of zeroes", return_zeroes);
}

/* A handler that changes the saved registers to what only the kernel may have. */
static int spoiled;
static void spoil(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    switch (spoiled) {
    case 0: registers[REG_RIP] = (greg_t)0xffffffff80000000; break;
    case 1: registers[REG_RIP] = (greg_t)0x0000900000000000; break;
    case 2: registers[REG_EFL] |= 0x3000; break;
    case 3: registers[REG_CSGSFS] = (registers[REG_CSGSFS] & ~0xffffLL) | 0x10; break;
    case 4: registers[REG_RSP] = (greg_t)0xffffffff80000000; break;
    case 5: registers[REG_EFL] &= ~0x200; break;
    }
}
static void spoiled_body(void)
{
    struct sigaction action = {.sa_sigaction = spoil, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    if (spoiled == 2)
        __asm__ volatile("cli");
    for (volatile int i = 0; i < 1000; i++)
        ;
    puts("went on");
}
static void spoiled_registers(void)
{
    for (spoiled = 0; spoiled < 6; spoiled++) {
        printf("%d ", spoiled);
        in_child("spoiled", spoiled_body);
    }
}

/* Forks until it may not, or until a bound that a healthy machine reaches. */
static void fork_bomb_body(void)
{
    int count = 0, status, gate[2];
    MUST(pipe(gate));
    struct rlimit few = {60000, 60000};
    getrlimit(RLIMIT_NPROC, &few);
    while (count < 300) {
        pid_t child = fork();
        if (child == 0) {
            char byte;
            close(gate[1]);
            _exit((int)read(gate[0], &byte, 1));
        }
        if (child == -1) {
            if (errno != EAGAIN && errno != ENOMEM)
                printf("fork: %s\n", failing(-1));
            break;
        }
        count++;
    }
    close(gate[1]);
    while (wait(&status) > 0)
        count--;
    printf("children that did not come back: %d\n", count);
}
static void fork_bomb(void) { in_child("fork_bomb", fork_bomb_body); in_child("the next process", quiet); }

/* Every process forks twice, to a depth: 2^8 processes, each waits for its own. */
static void fork_tree(int depth)
{
    for (int i = 0; depth > 0 && i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            fork_tree(depth - 1);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
}
static void fork_tree_body(void) { fork_tree(7); }
static void fork_tree_ends(void) { in_child("fork_tree", fork_tree_body); }

/* Reserves far more than there is: that must fail, not hang. The limit makes it the same on every machine. */
static void memory_limit_body(void)
{
    struct rlimit limit = {256 << 20, 256 << 20};
    MUST(setrlimit(RLIMIT_AS, &limit));
    int got = 0;
    while (got < 1000 && mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        got++;
    printf("stopped by %s before 256: %d\n", failing(-1), got < 256);
    printf("malloc: %s\n", malloc(512 << 20) ? "got it" : strerrorname_np(errno));
}
static void memory_limit(void) { in_child("memory_limit", memory_limit_body); }

/* Touches memory until there is none. Run only in the guest (see memory_bomb): the host has much more. */
static void memory_eater(void)
{
    for (;;) {
        char *piece = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (piece == MAP_FAILED)
            _exit(errno == ENOMEM ? 0 : 1);
        for (int i = 0; i < 1 << 20; i += 4096)
            piece[i] = 1;
    }
}
/* ENOMEM or a kill are both right; on the host nothing is eaten and the words are the same. */
static void memory_bomb(void)
{
    int status = 0;
    if (access("/proc/synthesis/gauges", F_OK) == 0) {
        pid_t child = MUST(fork());
        if (child == 0)
            memory_eater();
        waitpid(child, &status, 0);
    }
    int fine = (WIFEXITED(status) && WEXITSTATUS(status) == 0) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    puts(fine ? "the eater got ENOMEM or was killed" : "the eater ended otherwise");
    in_child("the next process", quiet);
}

static void descriptor_limit(void)
{
    struct rlimit limit = {100, 100};
    int count = 0, ends[2], fd;
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        count++;
    printf("open: %s at the limit: %d\n", failing(-1), count + 3 == 100);
    SHOW(pipe(ends));
    SHOW(dup(0));
    SHOW(fcntl(0, F_DUPFD, 99));
    SHOW(dup2(0, 100));
    SHOW(close(99));
    SHOW(pipe(ends));
    SHOW(open("/dev/null", O_RDONLY));
}

static void descriptors_by_thousand(void)
{
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max < 1024 ? limit.rlim_max : 1024;
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    for (int round = 0; round < 3; round++) {
        int count = 0;
        while (open("/dev/zero", O_RDONLY) >= 0)
            count++;
        printf("%d %s\n", count, failing(-1));
        for (int fd = 3; fd < 1024; fd++)
            close(fd);
    }
}

/* A quarter of a gigabyte in pipes, which is more than a kernel may have for them. How far it gets is nobody's business. */
static void full_pipes_body(void)
{
    static char bytes[65536];
    struct rlimit many = {9000, 9000};
    int pipes[2];
    setrlimit(RLIMIT_NOFILE, &many);
    for (int i = 0; i < 4200 && pipe2(pipes, O_NONBLOCK) == 0; i++)
        if (write(pipes[1], bytes, sizeof bytes) <= 0)
            break;
}
static void full_pipes(void)
{
    in_child("full pipes", full_pipes_body);
    in_child("once more", full_pipes_body);
}

/* Messages of no byte, or of one: they cost their receiver's kernel more than their bytes. */
static void small_messages(void)
{
    int ends[2];
    char byte = 'x';
    long sent = 0;
    MUST(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends));
    while (sent < 100000 && send(ends[0], &byte, 0, 0) == 0)
        sent++;
    printf("%s, %s\n", sent < 1000 ? "few" : "many", failing(-1));
    MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends));
    for (sent = 0; sent < 100000 && send(ends[0], &byte, 1, 0) == 1;)
        sent++;
    printf("%s, %s\n", sent < 1000 ? "few" : "many", failing(-1));
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends));
    long received = 0, wrong = 0;
    for (sent = 0; sent < 300000;) {
        for (int i = 0; i < 200; i++, sent++) {
            char next = (char)sent;
            MUST(write(ends[0], &next, 1));
        }
        char bytes[77];
        long count;
        while ((count = read(ends[1], bytes, sizeof bytes)) > 0)
            for (long i = 0; i < count; i++)
                wrong += bytes[i] != (char)received++;
    }
    printf("%ld bytes, %ld wrong\n", received, wrong);
}

static void absurd_arguments(void)
{
    size_t size = 160 * 1024;
    char *text = malloc(size), *arguments[64], *many[2] = {"x", NULL};
    memset(text, 'a', size - 1);
    text[size - 1] = 0;
    arguments[0] = text;
    arguments[1] = NULL;
    TRY(execve("/proc/self/exe", arguments, many + 1));
    text[100 * 1024] = 0;
    for (int i = 0; i < 63; i++)
        arguments[i] = text;
    arguments[63] = NULL;
    TRY(execve("/proc/self/exe", arguments, many + 1));
    static char *lots[4000000];
    for (int i = 0; i < 3999999; i++)
        lots[i] = "";
    TRY(execve("/proc/self/exe", lots, many + 1));
    TRY(execve("/proc/self/exe", many, (char **)0xffff800000000000));
    TRY(execve("", many, NULL));
    TRY(execve("/", many, NULL));
    TRY(execve("/dev/null", many, NULL));
}

/* A file that is torn at every length must be refused, and the caller lives. */
static void torn_programs(void)
{
    static char image[4096];
    int from = MUST(open("/proc/self/exe", O_RDONLY));
    MUST(read(from, image, sizeof image));
    int counts[3] = {0};
    for (int length = 0; length < 200; length += 7) {
        int fd = MUST(open("torn", O_CREAT | O_WRONLY | O_TRUNC, 0755)), status;
        MUST(write(fd, image, length));
        close(fd);
        fflush(stdout);
        pid_t child = MUST(fork());
        if (child == 0) {
            quiet();
            execl("./torn", "torn", (char *)NULL);
            _exit(errno == ENOEXEC ? 0 : 1);
        }
        waitpid(child, &status, 0);
        counts[WIFSIGNALED(status) ? 2 : WEXITSTATUS(status) == 0 ? 0 : 1]++;
    }
    printf("refused %d, other errno %d, killed %d\n", counts[0], counts[1], counts[2]);
}

/* One program, changed in one place. What Linux notices only when the old program is gone ends in SIGSEGV. */
static void absurd_programs(void)
{
    static const struct { const char *what; int in_segment; long offset; uint64_t value; } changes[] = {
        {"segment at zero", 1, 16, 0},
        {"segment in the kernel", 1, 16, 0xffffffff80000000},
        {"segment at the limit", 1, 16, 0x7ffffffff000},
        {"segment that wraps", 1, 16, UINT64_MAX - 0xfff},
        {"odd offset", 1, 8, 0x1001},
        {"larger in the file than in memory", 1, 40, 1},
        {"largest size", 1, 40, UINT64_MAX},
        {"entry in the kernel", 0, 24, 0xffffffff80000000},
        {"entry that is not canonical", 0, 24, 0x900000000000},
        {"entry at zero", 0, 24, 0},
    };
    /* ET_EXEC, one page of code that exits with 7: mov $60, %eax; mov $7, %edi; syscall. */
    static uint64_t program[512];
    static const unsigned char code[] = {0xb8, 60, 0, 0, 0, 0xbf, 7, 0, 0, 0, 0x0f, 0x05};
    static const uint64_t image[] = {
        0x00010102464c457f, 0, 0x00000001003e0002, 0x400100, 64, 0, 0x0038004000000000, 1,
        0x0000000500000001, 0, 0x400000, 0x400000, sizeof program, sizeof program, 0x1000,
    };
    for (int change = -1; change < (int)(sizeof changes / sizeof *changes); change++) {
        memcpy(program, image, sizeof image);
        memcpy((char *)program + 0x100, code, sizeof code);
        const char *what = change < 0 ? "no change" : changes[change].what;
        if (change >= 0)
            program[((changes[change].in_segment ? 64 : 0) + changes[change].offset) / 8] = changes[change].value;
        int fd = MUST(open("absurd", O_WRONLY | O_CREAT | O_TRUNC, 0755));
        MUST(write(fd, program, sizeof program));
        close(fd);
        int status;
        fflush(stdout);
        pid_t child = MUST(fork());
        if (child == 0) {
            char *arguments[] = {"absurd", NULL};
            struct rlimit none = {0, 0};
            setrlimit(RLIMIT_CORE, &none);
            signal(SIGSEGV, SIG_IGN);
            execve("absurd", arguments, arguments + 1);
            printf("%s: %s\n", what, failing(-1));
            fflush(stdout);
            _exit(0);
        }
        MUST(waitpid(child, &status, 0));
        say_status(what, status);
    }
}

static void deep_folders(void)
{
    int depth = 0;
    while (depth < 1500 && mkdir("d", 0755) == 0 && chdir("d") == 0)
        depth++;
    printf("%d\n", depth);
    char path[8192];
    printf("%s\n", getcwd(path, 2048) ? "path" : strerrorname_np(errno));
    while (depth-- > 0)
        if (chdir("..") || rmdir("d"))
            break;
    printf("%d\n", depth);
}

static void orphans(void)
{
    for (int i = 0; i < 20; i++) {
        pid_t child = MUST(fork());
        if (child == 0) {
            if (fork() == 0) {
                sleep_ms(20);
                _exit(1);
            }
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    sleep_ms(100);
    SHOW(waitpid(-1, NULL, WNOHANG));
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(null_read), T(null_write), T(wild_read), T(wild_write), T(wild_jump), T(null_jump), T(kernel_read),
    T(kernel_write), T(kernel_jump), T(kernel_half_read), T(kernel_half_write), T(kernel_half_jump), T(last_byte_read),
    T(not_canonical_read), T(not_canonical_write), T(not_canonical_jump), T(not_canonical_stack), T(limit_jump),
    T(code_write), T(data_jump), T(stack_jump), T(constant_write), T(divide), T(divide_overflow), T(undefined),
    T(breakpoint), T(single_step), T(halt), T(clear_interrupts), T(port_in), T(port_out), T(read_control),
    T(write_control), T(read_msr), T(load_table), T(interrupt_gate), T(page_fault_gate), T(double_fault_gate),
    T(bad_segment), T(kernel_segment), T(local_data), T(local_extra), T(local_stack), T(local_base),
    T(local_code), T(system_return), T(swap_gs), T(interrupt_return),
    T(direction_flag), T(copies_backwards), T(compatible_segment), T(io_privilege), T(abort_itself), T(kill_itself), T(stop_forever_killed), T(stack_overflow),
    T(overflow_handled), T(handler_overflow), T(handler_without_stack), T(bad_handler), T(kernel_handler),
    T(blocked_fault), T(ignored_fault), T(garbage_frames), T(spoiled_registers), T(fork_bomb), T(fork_tree_ends),
    T(memory_limit), T(memory_bomb), T(descriptor_limit), T(descriptors_by_thousand), T(full_pipes), T(small_messages), T(absurd_arguments),
    T(torn_programs), T(absurd_programs), T(deep_folders), T(orphans),
};
CHECK_MAIN(tests)
