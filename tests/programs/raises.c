/* Signals that a thread sends to itself again and again: the first ones are delivered in Rust, the others by code, and nobody may see a
 * difference: registers, frames, masks, vector registers, what handlers change, and everything that is unusual. */
#include "check.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <ucontext.h>

/* So often until the code is sure to be there. */
#define OFTEN 20

static volatile int taken;
static ucontext_t seen;
static siginfo_t seen_info;
static struct _libc_fpstate seen_state;

static void count(int number)
{
    (void)number;
    taken++;
}

static void handle(int number, void *handler, int flags)
{
    struct sigaction action = {.sa_flags = flags};
    action.sa_sigaction = (void (*)(int, siginfo_t *, void *))handler;
    MUST(sigaction(number, &action, NULL));
}

static void keep_frame(int number, siginfo_t *info, void *context)
{
    ucontext_t *frame = context;
    seen = *frame;
    seen_info = *info;
    seen_state = *frame->uc_mcontext.fpregs;
    taken += number == info->si_signo;
}

static long registers_before[16], registers_after[16];

/* kill(pid, number) with a number in each other register; all are noted behind it. */
static void call_with_all_registers(long call, long a, long b, long c)
{
    for (int i = 0; i < 16; i++)
        registers_before[i] = (long)(0x1111111111111111ul * i);
    registers_before[0] = a;
    registers_before[1] = b;
    registers_before[2] = c;
    __asm__ volatile("push %%rbx; push %%rbp; push %%r12; push %%r13; push %%r14; push %%r15\n"
                     "mov %0, %%rax; mov %1, %%rcx; mov %2, %%rbp; push %%rbp\n"
                     "mov (%%rcx), %%rdi; mov 8(%%rcx), %%rsi; mov 16(%%rcx), %%rdx; mov 24(%%rcx), %%r10\n"
                     "mov 32(%%rcx), %%r8; mov 40(%%rcx), %%r9; mov 48(%%rcx), %%rbx; mov 56(%%rcx), %%r12\n"
                     "mov 64(%%rcx), %%r13; mov 72(%%rcx), %%r14; mov 80(%%rcx), %%r15; mov 88(%%rcx), %%rbp\n"
                     "movq %%rbx, %%xmm3; movq %%r12, %%xmm14; stc; std\n"
                     "syscall\n"
                     "mov (%%rsp), %%rcx; mov %%rax, 96(%%rcx)\n"
                     "pushf; pop 104(%%rcx); cld\n"
                     "mov %%rdi, (%%rcx); mov %%rsi, 8(%%rcx); mov %%rdx, 16(%%rcx); mov %%r10, 24(%%rcx)\n"
                     "mov %%r8, 32(%%rcx); mov %%r9, 40(%%rcx); mov %%rbx, 48(%%rcx); mov %%r12, 56(%%rcx)\n"
                     "mov %%r13, 64(%%rcx); mov %%r14, 72(%%rcx); mov %%r15, 80(%%rcx); mov %%rbp, 88(%%rcx)\n"
                     "movq %%xmm3, %%rax; movq %%xmm14, %%rbx; add %%rbx, %%rax; mov %%rax, 112(%%rcx)\n"
                     "pop %%rbp; pop %%r15; pop %%r14; pop %%r13; pop %%r12; pop %%rbp; pop %%rbx\n"
                     :
                     : "r"(call), "r"(registers_before), "r"(registers_after)
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm3", "xmm14", "memory", "cc");
}

static uint64_t digest_of(const void *bytes, size_t count)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < count; i++)
        digest = digest * 1000003 + ((const unsigned char *)bytes)[i];
    return digest;
}

/* What of the frame is the same on each Linux. */
static void show_frame(const char *what)
{
    greg_t *r = seen.uc_mcontext.gregs;
    uint32_t *software = (uint32_t *)((char *)&seen_state + 464);
    printf("%s: r10 %llx r8 %llx r9 %llx rbx %llx r12 %llx r15 %llx rbp %llx rax %llx flags %llx cs %llx\n", what, r[REG_R10],
           r[REG_R8], r[REG_R9], r[REG_RBX], r[REG_R12], r[REG_R15], r[REG_RBP], r[REG_RAX], r[REG_EFL], r[REG_CSGSFS]);
    printf("  uc_flags %lx link %p stack flags %x size %zu mask %lx old %llx state aligned %d magic %x in place %d\n",
           seen.uc_flags & 6, (void *)seen.uc_link, seen.uc_stack.ss_flags, seen.uc_stack.ss_size, seen.uc_sigmask.__val[0],
           r[REG_OLDMASK], ((long)seen.uc_mcontext.fpregs & 63) == 0, software[0], software[1] == software[4] + 4);
    printf("  signal %d code %d errno %d pid %d uid %u\n", seen_info.si_signo, seen_info.si_code, seen_info.si_errno,
           seen_info.si_pid == getpid(), seen_info.si_uid);
    printf("  xmm3 %x%08x mxcsr %x cwd %x\n", seen_state._xmm[3].element[1], seen_state._xmm[3].element[0], seen_state.mxcsr,
           seen_state.cwd);
}

static void frames_are_the_same(const char *what, long call, long a, long b, long c)
{
    uint64_t first = 0;
    long after[16];
    handle(SIGUSR1, keep_frame, SA_SIGINFO);
    for (int i = 0; i < OFTEN; i++) {
        memset(&seen, 0, sizeof seen);
        call_with_all_registers(call, a, b, c);
        uint64_t digest = digest_of(&seen, sizeof seen - sizeof seen.__fpregs_mem - sizeof seen.__ssp) +
                          digest_of(&seen_info, sizeof seen_info) + digest_of(&seen_state, 8) + seen_state.mxcsr +
                          digest_of(&seen_state._xmm[3], 16) + digest_of((char *)&seen_state + 464, 48);
        /* The first time the program itself is not yet as it stays. */
        if (i <= 1)
            first = digest;
        if (i == 0) {
            memcpy(after, registers_after, sizeof after);
            show_frame(what);
            for (int at = 3; at < 15; at++)
                printf("  %d: %lx\n", at, registers_after[at] & (at == 13 ? 0xcd5 : -1L));
        } else if (digest != first)
            show_frame("another frame");
        if (memcmp(after, registers_after, 15 * sizeof *after) != 0)
            printf("other registers after signal %d\n", i);
    }
}

static void frames_and_registers(void)
{
    frames_are_the_same("kill", SYS_kill, getpid(), SIGUSR1, 3);
    frames_are_the_same("tgkill", SYS_tgkill, getpid(), gettid(), SIGUSR1);
    printf("%d taken\n", taken);
}

/* What the handler found: its arguments, its mask, fresh vector registers, an even stack. */
static void look_around(int number, siginfo_t *info, void *context)
{
    sigset_t now;
    uint32_t mxcsr;
    uint64_t sum, flags;
    __asm__ volatile("movq %%xmm3, %0; pushf; pop %1; stmxcsr %2" : "=r"(sum), "=r"(flags), "=m"(mxcsr));
    MUST(sigprocmask(SIG_BLOCK, NULL, &now));
    printf("%d %d %d: mask %lx xmm3 %lx mxcsr %x direction %ld even %d\n", number, info->si_signo, context != NULL, now.__val[0], sum,
           mxcsr, flags & 0x400, ((long)__builtin_frame_address(0) & 15) == 0);
    taken++;
}

static void what_handlers_find(void)
{
    static const int flags[] = {0, SA_NODEFER, SA_RESTART, SA_NODEFER | SA_RESTART};
    uint32_t strange = 0x9fc0;
    sigset_t some;
    for (int kind = 0; kind < 4; kind++) {
        struct sigaction action = {.sa_sigaction = look_around, .sa_flags = SA_SIGINFO | flags[kind]};
        sigaddset(&action.sa_mask, SIGHUP);
        sigaddset(&action.sa_mask, SIGRTMIN + 3);
        sigaddset(&action.sa_mask, SIGKILL);
        MUST(sigaction(SIGUSR2, &action, NULL));
        sigemptyset(&some);
        sigaddset(&some, SIGTERM);
        MUST(sigprocmask(SIG_SETMASK, &some, NULL));
        for (int i = 0; i < 10; i++) {
            __asm__ volatile("movq %0, %%xmm3; ldmxcsr %1" : : "r"(77L), "m"(strange) : "xmm3");
            raise(SIGUSR2);
            kill(getpid(), SIGUSR2);
        }
        strange = 0x1f80;
    }
    MUST(sigprocmask(SIG_BLOCK, NULL, &some));
    printf("mask %lx, %d taken\n", some.__val[0], taken);
}

static int what;

/* Changes the frame that it returns to. */
static void change_frame(int number, siginfo_t *info, void *context)
{
    ucontext_t *frame = context;
    struct _libc_fpstate *state = frame->uc_mcontext.fpregs;
    uint64_t *header = (uint64_t *)((char *)state + 512);
    uint32_t *software = (uint32_t *)((char *)state + 464);
    (void)number;
    (void)info;
    taken++;
    switch (what) {
    case 0: frame->uc_mcontext.gregs[REG_R12] = 0x1234; break;
    case 1: state->_xmm[3].element[0] = 99; break;
    case 2: header[0] &= ~2u; break;
    case 3: header[0] = 0; break;
    case 4: software[0] = 0; break;
    case 5: frame->uc_mcontext.fpregs = NULL; break;
    case 6: frame->uc_mcontext.gregs[REG_EFL] ^= 0x8d5; break;
    case 7: frame->uc_mcontext.gregs[REG_EFL] |= 0x203000 | 0x200; break;
    case 8: sigaddset(&frame->uc_sigmask, SIGHUP); break;
    case 9: sigaddset(&frame->uc_sigmask, SIGKILL); break;
    case 10: frame->uc_mcontext.gregs[REG_RAX] = 55; break;
    case 11: state->mxcsr = 0x1f00; break;
    case 12: frame->uc_stack.ss_flags = SS_DISABLE; break;
    case 13: software[2] = 3; break;
    /* What no processor takes. */
    case 14: state->mxcsr = 0x10000; break;
    case 15: header[0] |= 1ul << 60; break;
    case 16: header[1] = 1; break;
    case 17: frame->uc_mcontext.fpregs = (void *)((char *)state + 8); break;
    case 18: frame->uc_mcontext.gregs[REG_RIP] = 0x800000000000; break;
    case 19: frame->uc_mcontext.gregs[REG_CSGSFS] = 0x10; break;
    case 20: frame->uc_mcontext.fpregs = (void *)0x7ffffffff000; break;
    case 21: frame->uc_mcontext.fpregs = (void *)0x1000; break;
    case 22: frame->uc_mcontext.gregs[REG_RIP] = 0; break;
    }
}

static void one_change(void)
{
    sigset_t now;
    handle(SIGUSR1, count, 0);
    for (int i = 0; i < OFTEN; i++)
        kill(getpid(), SIGUSR1);
    handle(SIGUSR1, change_frame, SA_SIGINFO);
    for (int i = 0; i < 2; i++) {
        call_with_all_registers(SYS_kill, getpid(), SIGUSR1, 3);
        sigprocmask(SIG_BLOCK, NULL, &now);
        printf("r12 %lx result %lx flags %lx vectors %lx mask %lx\n", registers_after[7], registers_after[12], registers_after[13] & 0xcd5,
               registers_after[14], now.__val[0]);
    }
}

static void frames_that_handlers_change(void)
{
    for (what = 0; what <= 22; what++) {
        char text[20];
        snprintf(text, sizeof text, "change %d", what);
        in_child(text, one_change);
    }
}

static int depth;

static void go_deeper(int number)
{
    int mine = ++depth;
    if (mine < 12)
        kill(getpid(), number == SIGUSR1 ? SIGUSR2 : SIGUSR1);
    if (depth < mine)
        printf("depth %d behind %d\n", depth, mine);
}

/* Each handler blocks its own signal, so two are nested by turns, and those that must wait come when they may. */
static void handlers_in_handlers(void)
{
    handle(SIGUSR1, go_deeper, SA_NODEFER);
    handle(SIGUSR2, go_deeper, SA_NODEFER);
    for (int i = 0; i < OFTEN; i++) {
        depth = 0;
        kill(getpid(), SIGUSR1);
        printf("%d ", depth);
    }
    handle(SIGUSR1, go_deeper, 0);
    handle(SIGUSR2, go_deeper, 0);
    for (int i = 0; i < OFTEN; i++) {
        depth = 0;
        kill(getpid(), SIGUSR1);
        printf("%d ", depth);
    }
    printf("\n");
}

/* Blocked, ignored, default, once, on another stack, real-time, continuing: what code leaves to Rust. */
static void what_is_unusual(void)
{
    static char other[65536];
    stack_t stack = {.ss_sp = other, .ss_size = sizeof other}, now;
    sigset_t some, waits;
    handle(SIGUSR1, count, 0);
    for (int i = 0; i < OFTEN; i++)
        kill(getpid(), SIGUSR1) == 0 ? raise(SIGUSR1) : 0;
    printf("%d\n", taken);
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    MUST(sigprocmask(SIG_BLOCK, &some, NULL));
    kill(getpid(), SIGUSR1);
    raise(SIGUSR1);
    MUST(sigpending(&waits));
    printf("blocked: %d, waits %d\n", taken, sigismember(&waits, SIGUSR1));
    MUST(sigprocmask(SIG_UNBLOCK, &some, NULL));
    printf("let through: %d\n", taken);
    signal(SIGUSR1, SIG_IGN);
    SHOW(kill(getpid(), SIGUSR1));
    handle(SIGUSR1, count, SA_RESETHAND);
    SHOW(kill(getpid(), SIGUSR1));
    struct sigaction action;
    MUST(sigaction(SIGUSR1, NULL, &action));
    printf("once: %d, default %d\n", taken, action.sa_handler == SIG_DFL);
    handle(SIGUSR1, count, SA_ONSTACK);
    MUST(sigaltstack(&stack, NULL));
    SHOW(kill(getpid(), SIGUSR1));
    MUST(sigaltstack(NULL, &now));
    printf("other stack: %d %x %zu\n", taken, now.ss_flags, now.ss_size);
    handle(SIGUSR1, count, 0);
    SHOW(raise(SIGUSR1));
    stack.ss_flags = SS_DISABLE;
    MUST(sigaltstack(&stack, NULL));
    SHOW(raise(SIGUSR1));
    handle(SIGRTMIN, count, 0);
    handle(SIGCONT, count, 0);
    handle(SIGTSTP, count, 0);
    SHOW(kill(getpid(), SIGRTMIN));
    SHOW(kill(getpid(), SIGCONT));
    SHOW(kill(getpid(), SIGTSTP));
    SHOW(kill(getpid(), 0));
    SHOW(kill(getpid(), 65));
    SHOW(kill(getpid(), -1));
    SHOW(syscall(SYS_tgkill, getpid(), gettid(), 65));
    SHOW(syscall(SYS_tgkill, getpid(), 1 << 30, SIGUSR1));
    SHOW(syscall(SYS_kill, 0xffffffff00000000 | getpid(), 0xffffffff00000000 | SIGUSR1));
    printf("%d\n", taken);
}

static void die(void)
{
    handle(SIGUSR1, count, 0);
    for (int i = 0; i < OFTEN; i++)
        kill(getpid(), SIGUSR1);
    signal(SIGUSR1, SIG_DFL);
    kill(getpid(), SIGUSR1);
}

static char *stack_top;

/* No room for a frame. */
static void jump_off(void)
{
    handle(SIGUSR1, count, 0);
    for (int i = 0; i < OFTEN; i++)
        kill(getpid(), SIGUSR1);
    fflush(stdout);
    __asm__ volatile("mov %0, %%rsp; mov %1, %%edi; mov %2, %%esi; mov %3, %%eax; syscall; ud2"
                     :
                     : "r"(stack_top), "r"(getpid()), "i"(SIGUSR1), "i"(SYS_kill)
                     : "memory");
}

static void ends(void)
{
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    in_child("default", die);
    stack_top = page + 256;
    MUST(munmap(page - 4096, 4096) == 0 ? 0 : -1);
    in_child("no room", jump_off);
    stack_top = (char *)300;
    in_child("near zero", jump_off);
    stack_top = (char *)0xffffffff90000000;
    in_child("the kernel's", jump_off);
}

static void *idle(void *unused)
{
    (void)unused;
    pause();
    return NULL;
}

/* With another thread the process's signals may be anybody's; a child has a number of its own. */
static void threads_and_children(void)
{
    pthread_t thread;
    sigset_t all;
    int status;
    handle(SIGUSR1, keep_frame, SA_SIGINFO);
    for (int i = 0; i < OFTEN; i++)
        kill(getpid(), SIGUSR1) == 0 ? raise(SIGUSR1) : 0;
    pid_t child = MUST(fork());
    if (child == 0) {
        for (int i = 0; i < OFTEN; i++)
            kill(getpid(), SIGUSR1) == 0 ? raise(SIGUSR1) : 0;
        printf("child: %d, itself %d\n", taken, seen_info.si_pid == getpid());
        fflush(stdout);
        _exit(0);
    }
    MUST(waitpid(child, &status, 0));
    printf("%d\n", taken);
    MUST(pthread_create(&thread, NULL, idle, NULL));
    for (int i = 0; i < OFTEN; i++)
        raise(SIGUSR1);
    printf("beside another: %d\n", taken);
    sigfillset(&all);
    MUST(sigprocmask(SIG_BLOCK, &all, NULL));
    kill(getpid(), SIGUSR1);
    while (taken < 3 * OFTEN + 1)
        sleep_ms(1);
    printf("the other takes it: %d\n", taken);
    int descriptor = MUST(signalfd(-1, &all, 0));
    struct signalfd_siginfo told;
    raise(SIGUSR1);
    SHOW(read(descriptor, &told, sizeof told) == sizeof told);
    printf("%d %d\n", told.ssi_signo, taken);
}

static const struct test tests[] = {
    {"frames_and_registers", frames_and_registers},
    {"what_handlers_find", what_handlers_find},
    {"frames_that_handlers_change", frames_that_handlers_change},
    {"handlers_in_handlers", handlers_in_handlers},
    {"what_is_unusual", what_is_unusual},
    {"ends", ends},
    {"threads_and_children", threads_and_children},
};

CHECK_MAIN(tests)
