/* Processes that compute in vector registers at the same time, with calls in between: no register may change owner. */
#include "check.h"

#include <cpuid.h>
#include <ucontext.h>

enum { WORKERS = 6, ROUNDS = 400 };

/* A sum in all sixteen registers, with a call in the middle; every worker must get what one worker alone gets. */
static double with_sse(int seed, int calls)
{
    double sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double in[16], out[16];
        for (int i = 0; i < 16; i++)
            in[i] = seed * 1.5 + round * 0.25 + i;
        __asm__ volatile("movsd 0(%0), %%xmm0; movsd 8(%0), %%xmm1; movsd 16(%0), %%xmm2; movsd 24(%0), %%xmm3;"
                         "movsd 32(%0), %%xmm4; movsd 40(%0), %%xmm5; movsd 48(%0), %%xmm6; movsd 56(%0), %%xmm7;"
                         "movsd 64(%0), %%xmm8; movsd 72(%0), %%xmm9; movsd 80(%0), %%xmm10; movsd 88(%0), %%xmm11;"
                         "movsd 96(%0), %%xmm12; movsd 104(%0), %%xmm13; movsd 112(%0), %%xmm14; movsd 120(%0), %%xmm15;"
                         "test %2, %2; jz 1f; mov $24, %%eax; syscall; 1:" /* sched_yield: others run now */
                         "mov $400, %%ecx; 2: dec %%ecx; jnz 2b;"
                         "movsd %%xmm0, 0(%1); movsd %%xmm1, 8(%1); movsd %%xmm2, 16(%1); movsd %%xmm3, 24(%1);"
                         "movsd %%xmm4, 32(%1); movsd %%xmm5, 40(%1); movsd %%xmm6, 48(%1); movsd %%xmm7, 56(%1);"
                         "movsd %%xmm8, 64(%1); movsd %%xmm9, 72(%1); movsd %%xmm10, 80(%1); movsd %%xmm11, 88(%1);"
                         "movsd %%xmm12, 96(%1); movsd %%xmm13, 104(%1); movsd %%xmm14, 112(%1); movsd %%xmm15, 120(%1)" ::"r"(in),
                         "r"(out), "r"((long)calls)
                         : "rax", "rcx", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                           "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
        for (int i = 0; i < 16; i++)
            sum += out[i] == in[i] ? out[i] : 1e12;
    }
    return sum;
}

__attribute__((target("avx"))) static int with_avx(int seed)
{
    int bad = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t in[4] = {(uint64_t)seed << 32 | (uint64_t)round, 2, ~(uint64_t)seed, (uint64_t)round}, out[4], other[4];
        /* Both are stored at once: memcmp may end with vzeroupper. */
        __asm__ volatile("vmovdqu (%0), %%ymm5; vmovdqu (%0), %%ymm14; mov $24, %%eax; syscall; mov $200, %%ecx; 1: dec %%ecx; jnz 1b;"
                         "vpxor %%xmm4, %%xmm4, %%xmm4; vmovdqu %%ymm5, (%1); vmovdqu %%ymm14, (%2); vzeroupper" ::"r"(in), "r"(out), "r"(other)
                         : "rax", "rcx", "r11", "memory", "xmm4", "xmm5", "xmm14");
        bad += memcmp(in, out, sizeof in) != 0;
        bad += memcmp(in, other, sizeof in) != 0;
    }
    return bad;
}

static int x87(int seed)
{
    int bad = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double in = seed + round * 0.5, out;
        unsigned short control = 0x27f, read_back;
        __asm__ volatile("fldcw %3; fldl %2; mov $24, %%eax; syscall; fstpl %0; fnstcw %1"
                         : "=m"(out), "=m"(read_back) : "m"(in), "m"(control) : "rax", "rcx", "r11", "memory");
        bad += in != out || read_back != control;
    }
    return bad;
}

static int control_register(int seed)
{
    unsigned wanted = 0x1f80 | (unsigned)(seed % 4) << 13, got;
    int bad = 0;
    __asm__ volatile("ldmxcsr %0" ::"m"(wanted));
    for (int round = 0; round < ROUNDS; round++) {
        syscall(SYS_sched_yield);
        __asm__ volatile("stmxcsr %0" : "=m"(got));
        bad += (got & 0xffc0) != (wanted & 0xffc0);
    }
    return bad;
}

static void all_workers(int (*work)(int))
{
    int bad = 0;
    for (int i = 0; i < WORKERS; i++)
        if (MUST(fork()) == 0)
            _exit(work(i + 1) ? 1 : 0);
    int status;
    while (wait(&status) > 0)
        bad += status != 0;
    printf("workers with a wrong register: %d\n", bad);
}

static int sse_worker(int seed) { return with_sse(seed, 1) != with_sse(seed, 0); }
static void sse(void)
{
    printf("%.3f\n", with_sse(3, 0));
    all_workers(sse_worker);
}
/* Without any call: only the clock takes the processor away. */
static int preempted_worker(int seed)
{
    double first = with_sse(seed, 0);
    for (int i = 0; i < 40; i++)
        if (with_sse(seed, 0) != first)
            return 1;
    return 0;
}
static void preempted(void) { all_workers(preempted_worker); }
static void avx(void)
{
    unsigned a, b, c = 0, d;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & (1u << 27)) && (c & (1u << 28)))
        all_workers(with_avx);
    else
        puts("workers with a wrong register: 0"); /* this processor has none, so none can be lost */
}
static void x87_stack(void) { all_workers(x87); }
static void modes(void) { all_workers(control_register); }

/* Two hand a byte to and fro and sleep at pipes meanwhile, a third computes: the wide registers are live over every call. */
__attribute__((target("avx"))) static int wide_call(long number, int file, const uint64_t in[4])
{
    uint64_t out[4], other[4];
    char byte = 0;
    long result = number;
    __asm__ volatile("vmovdqu (%[in]), %%ymm6; vmovdqu (%[in]), %%ymm13; syscall; vmovdqu %%ymm6, (%[out]); vmovdqu %%ymm13, (%[other]); vzeroupper"
                     : "+a"(result)
                     : [in] "r"(in), [out] "r"(out), [other] "r"(other), "D"((long)file), "S"(&byte), "d"(1L)
                     : "rcx", "r11", "memory", "xmm6", "xmm13");
    return result != 1 || memcmp(in, out, sizeof out) != 0 || memcmp(in, other, sizeof other) != 0;
}
static int hand_over(int from, int to, int begins)
{
    enum { TURNS = 4000 };
    int bad = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t in[4] = {(uint64_t)turn, ~(uint64_t)turn, (uint64_t)begins, 0x5a5a << begins};
        if (begins)
            bad += wide_call(SYS_write, to, in);
        bad += wide_call(SYS_read, from, in);
        if (!begins)
            bad += wide_call(SYS_write, to, in);
    }
    return bad;
}
static void wide_asleep(void)
{
    unsigned a, b, c = 0, d;
    int has_avx = __get_cpuid(1, &a, &b, &c, &d) && (c & (1u << 27)) && (c & (1u << 28));
    int bad = 0, status, there[2], back[2];
    MUST(pipe(there));
    MUST(pipe(back));
    pid_t burns = MUST(fork());
    if (burns == 0)
        for (int wrong = 0;;)
            if ((wrong += has_avx && with_avx(7)))
                _exit(1);
    pid_t other = MUST(fork());
    if (other == 0)
        _exit(has_avx && hand_over(there[0], back[1], 0) ? 1 : 0);
    bad += has_avx && hand_over(back[0], there[1], 1);
    waitpid(other, &status, 0);
    bad += status != 0;
    kill(burns, SIGKILL);
    waitpid(burns, &status, 0);
    bad += !WIFSIGNALED(status);
    printf("wrong %d\n", bad);
}

/* What a program saves and loads itself (XSAVE, XRSTOR: the dynamic linker does so at each first call of a function) is its own, also
   if it touched no vector register since others ran. */
__attribute__((target("xsave"))) static int saves_itself(int seed)
{
    static unsigned char image[8192] __attribute__((aligned(64)));
    int bad = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t in[2] = {(uint64_t)seed << 32 | (uint64_t)round, ~(uint64_t)round}, saved[2], loaded[2];
        memset(image, 0, sizeof image);
        __asm__ volatile("movdqu (%0), %%xmm6; mov $24, %%eax; syscall; mov $2, %%eax; xor %%edx, %%edx; xsave (%3);"
                         "pxor %%xmm6, %%xmm6; mov $24, %%eax; syscall; mov $2, %%eax; xor %%edx, %%edx; xrstor (%3);"
                         "mov $24, %%eax; syscall; movdqu %%xmm6, (%2)" ::"r"(in), "r"(saved), "r"(loaded), "r"(image)
                         : "rax", "rcx", "rdx", "r11", "memory", "xmm6");
        memcpy(saved, image + 160 + 6 * 16, sizeof saved);
        bad += memcmp(in, saved, sizeof in) != 0;
        bad += memcmp(in, loaded, sizeof in) != 0;
    }
    return bad;
}
static void by_itself(void)
{
    unsigned a, b, c = 0, d;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & (1u << 27)))
        all_workers(saves_itself);
    else
        puts("workers with a wrong register: 0");
}

/* A handler says that a part of the state is not there: it begins anew. */
static volatile uint64_t dropped;
static void drop(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    unsigned char *image = (unsigned char *)((ucontext_t *)context)->uc_mcontext.fpregs;
    uint32_t magic;
    memcpy(&magic, image + 464, sizeof magic);
    uint64_t present;
    memcpy(&present, image + 512, sizeof present);
    present &= ~dropped;
    if (magic == 0x46505853)
        memcpy(image + 512, &present, sizeof present);
}
static void frame_without(void)
{
    struct sigaction action = {.sa_sigaction = drop, .sa_flags = SA_SIGINFO};
    MUST(sigaction(SIGUSR1, &action, NULL));
    long self = getpid();
    for (dropped = 1; dropped < 4; dropped++) {
        uint64_t in[2] = {0x1122334455667788, 0x99aabbccddeeff00}, out[2];
        unsigned short control = 0x27f, read_back;
        __asm__ volatile("fninit; fldcw %3; movdqu %2, %%xmm9; mov $62, %%eax; syscall; movdqu %%xmm9, %0; fnstcw %1; fninit"
                         : "=m"(out), "=m"(read_back) : "m"(in), "m"(control), "D"(self), "S"(SIGUSR1)
                         : "rax", "rcx", "r11", "xmm9", "memory");
        printf("without %d: %llx %llx %x\n", (int)dropped, (unsigned long long)out[0], (unsigned long long)out[1], read_back);
    }
}

static void fork_keeps(void)
{
    uint64_t in[2] = {0x1122334455667788, 0x99aabbccddeeff00}, out[2];
    long child;
    __asm__ volatile("movdqu %2, %%xmm9; mov $57, %%eax; syscall; movdqu %%xmm9, %1" : "=a"(child), "=m"(out) : "m"(in) : "rcx", "r11", "xmm9", "memory");
    int good = memcmp(in, out, sizeof in) == 0, status;
    if (child == 0)
        _exit(good ? 3 : 4);
    waitpid((pid_t)child, &status, 0);
    printf("parent %d ", good);
    say_status("child", status);
}

/* A new program must not see the registers of the old one. */
static void clean_after_exec(void)
{
    uint64_t out[2];
    __asm__ volatile("movdqu %%xmm13, %0" : "=m"(out));
    printf("clean %d\n", out[0] != 0x5ec2e75ec2e75ec2);
    fflush(stdout);
    if (out[0] == 0x5ec2e75ec2e75ec2 || getenv("AGAIN"))
        return;
    uint64_t secret[2] = {0x5ec2e75ec2e75ec2, 0x5ec2e75ec2e75ec2};
    char *arguments[] = {"vector", "clean_after_exec", NULL}, *environment[] = {"AGAIN=1", NULL};
    __asm__ volatile("movdqu %0, %%xmm13; mov $59, %%eax; syscall" ::"m"(secret), "D"("/proc/self/exe"), "S"(arguments), "d"(environment)
                     : "rax", "rcx", "r11", "memory", "xmm13");
    puts("exec failed");
}

#define T(name) {#name, name}
static const struct test tests[] = {T(sse), T(preempted), T(avx), T(x87_stack), T(modes), T(by_itself), T(wide_asleep), T(frame_without), T(fork_keeps), T(clean_after_exec)};
CHECK_MAIN(tests)
