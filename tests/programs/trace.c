/* Tracing: a thread's instructions, calls, signals, registers and memory seen and changed from outside (ptrace). */
#include "check.h"

#include <elf.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

/* The kernel's record; the C library's header names it otherwise. */
struct call_info {
    uint8_t op, pad[3];
    uint32_t arch;
    uint64_t ip, sp;
    uint64_t words[8];
};

static pid_t child;

static long request(int what, void *address, void *data)
{
    return syscall(SYS_ptrace, what, child, address, data);
}

/* Starts a child that is traced and has stopped itself. */
static void start(void (*body)(void))
{
    int status;
    fflush(stdout);
    child = MUST(fork());
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        body();
        fflush(stdout);
        _exit(0);
    }
    MUST(waitpid(child, &status, 0));
    say_status("start", status);
}

/* Waits for the next stop and says it, event included. */
static int next(const char *what)
{
    int status = 0;
    MUST(waitpid(child, &status, __WALL));
    if (WIFSTOPPED(status) && status >> 16)
        printf("%s: stopped by %d, event %d\n", what, WSTOPSIG(status), status >> 16);
    else
        say_status(what, status);
    return status;
}

static struct user_regs_struct registers(void)
{
    struct user_regs_struct all;
    MUST(request(PTRACE_GETREGS, 0, &all));
    return all;
}

static void go(int what, int signal)
{
    MUST(request(what, 0, (void *)(long)signal));
}

static void finish(void)
{
    go(PTRACE_CONT, 0);
    next("finish");
}

/* Instructions of all kinds, calls and a loop among them. */
void stepped(void);
extern char stepped_end[];
asm(".text\n.globl stepped\nstepped:\n"
    "xor %eax, %eax\n mov $5, %ecx\n"
    "1: add %ecx, %eax\n dec %ecx\n jnz 1b\n"
    "push %rax\n pop %rdx\n nop\n"
    "mov $39, %eax\n syscall\n"
    "call 2f\n jmp 3f\n2: ret\n3:"
    "mov $186, %eax\n syscall\n"
    "lea -64(%rsp), %rdi\n mov %rsp, %rsi\n mov $3, %ecx\n cld\n rep movsb\n"
    "pxor %xmm0, %xmm0\n cpuid\n"
    ".globl stepped_end\nstepped_end: ret\n");

static void step_body(void)
{
    void *rbx;
    asm volatile("mov %%rbx, %0" : "=r"(rbx));
    stepped();
    asm volatile("mov %0, %%rbx" ::"r"(rbx) : "rbx");
}

/* Steps until the function is left; each place, relative to its start. */
static void steps(void)
{
    long start_at = (long)stepped, end = (long)stepped_end, count = 0, outside = 0;
    start(step_body);
    for (int seen = 0; seen < 2 && count < 20000; outside++) {
        int status;
        go(PTRACE_SINGLESTEP, 0);
        MUST(waitpid(child, &status, 0));
        if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) {
            say_status("step", status);
            return;
        }
        long at = registers().rip;
        if (at >= start_at && at <= end) {
            siginfo_t info;
            MUST(request(PTRACE_GETSIGINFO, 0, &info));
            printf("%ld: at %ld code %d flags %llx\n", count++, at - start_at, info.si_code, registers().eflags & 0x100);
            seen |= at == end;
        } else if (seen)
            break;
    }
    finish();
}

static volatile long word = 40;
static volatile int stages;

__attribute__((noinline)) static int answer(void)
{
    stages++;
    return 1000;
}

static void poke_body(void)
{
    int one = answer();
    printf("word %ld answer %d\n", word, one);
}

/* Memory: data, text that the program may not write, and what is not there. */
static void peek_poke(void)
{
    long value = 0;
    start(poke_body);
    TRY(request(PTRACE_PEEKDATA, (void *)&word, &value));
    printf("%ld\n", value);
    TRY(request(PTRACE_POKEDATA, (void *)&word, (void *)42));
    for (char *at = (char *)answer; at < (char *)answer + 64; at++)
        if (memcmp(at, "\xb8\xe8\x03\0\0", 5) == 0) {
            TRY(request(PTRACE_PEEKTEXT, at, &value));
            value = (value & ~0xffff00L) | 7 << 8;
            TRY(request(PTRACE_POKETEXT, at, (void *)value));
            break;
        }
    printf("mine %ld %d\n", word, answer());
    TRY(request(PTRACE_PEEKDATA, 0, &value));
    TRY(request(PTRACE_POKEDATA, 0, 0));
    TRY(request(PTRACE_PEEKDATA, (void *)-8L, &value));
    TRY(request(PTRACE_PEEKDATA, (void *)&word, (void *)8));
    finish();
}

static void break_body(void)
{
    for (int i = 0; i < 3; i++)
        answer();
    printf("stages %d\n", stages);
}

/* An int3 in the text, taken out for a step and put in again. */
static void breakpoint(void)
{
    long original, at = (long)answer;
    start(break_body);
    MUST(request(PTRACE_PEEKTEXT, (void *)at, &original));
    long trap = (original & ~0xffL) | 0xcc;
    for (int hit = 0; hit < 3; hit++) {
        siginfo_t info;
        MUST(request(PTRACE_POKETEXT, (void *)at, (void *)trap));
        go(PTRACE_CONT, 0);
        next("breakpoint");
        struct user_regs_struct all = registers();
        MUST(request(PTRACE_GETSIGINFO, 0, &info));
        printf("behind it by %ld code %x orig %lld\n", (long)all.rip - at, info.si_code, (long long)all.orig_rax);
        all.rip = at;
        MUST(request(PTRACE_SETREGS, 0, &all));
        MUST(request(PTRACE_POKETEXT, (void *)at, (void *)original));
        go(PTRACE_SINGLESTEP, 0);
        next("step");
    }
    finish();
}

static void said(int number, siginfo_t *info, void *context)
{
    (void)context;
    printf("handler %d code %d value %d\n", number, info->si_code, info->si_code < 0 ? info->si_value.sival_int : 0);
}

static void signal_body(void)
{
    struct sigaction action = {.sa_sigaction = said, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    signal(SIGHUP, SIG_IGN);
    for (int i = 0; i < 4; i++)
        raise(SIGUSR1);
    raise(SIGHUP);
    raise(SIGTERM);
    raise(SIGWINCH);
    raise(SIGKILL);
}

/* The tracer takes a signal away, changes it, changes its details, lets it through. */
static void signals_seen(void)
{
    siginfo_t info;
    start(signal_body);
    go(PTRACE_CONT, 0);
    next("first");
    go(PTRACE_CONT, 0);
    next("second, the first is gone");
    go(PTRACE_CONT, SIGUSR2);
    next("third, the second is another");
    MUST(request(PTRACE_GETSIGINFO, 0, &info));
    printf("code %d mine %d\n", info.si_code, info.si_pid == child);
    info.si_code = -1;
    info.si_value.sival_int = 77;
    TRY(request(PTRACE_SETSIGINFO, 0, &info));
    go(PTRACE_CONT, SIGUSR1);
    next("fourth, the third has other details");
    go(PTRACE_CONT, SIGUSR1);
    next("ignored");
    go(PTRACE_CONT, SIGHUP);
    next("deadly");
    go(PTRACE_CONT, 0);
    next("harmless");
    go(PTRACE_CONT, SIGWINCH);
    next("end");
}

static void call_body(void)
{
    syscall(SYS_getppid);
    printf("result %ld\n", syscall(SYS_getuid));
    fflush(stdout);
    (void)!write(1, "whole\nrest\n", 11);
    errno = 0;
    long result = syscall(SYS_close, 200);
    printf("close %ld %s\n", result, failing(result));
    result = syscall(SYS_kill, 0, 9);
    printf("kill %ld\n", result);
}

/* Both ends of each call; arguments, number and result are changed. */
static void calls(void)
{
    start(call_body);
    TRY(request(PTRACE_SETOPTIONS, 0, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)));
    for (int turn = 0; turn < 60; turn++) {
        int status;
        unsigned long message = 9;
        struct call_info info;
        go(PTRACE_SYSCALL, 0);
        MUST(waitpid(child, &status, 0));
        if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80)) {
            say_status("calls", status);
            break;
        }
        struct user_regs_struct all = registers();
        if (all.orig_rax != SYS_getppid && all.orig_rax != SYS_getuid && all.orig_rax != SYS_close
            && all.orig_rax != SYS_kill && !(all.orig_rax == SYS_write && all.rdx == 11))
            continue;
        memset(&info, 0, sizeof info);
        MUST(request(PTRACE_GETEVENTMSG, 0, &message));
        long bytes = request(0x420e, (void *)sizeof info, &info);
        printf("call %lld message %lu bytes %ld op %d arch %x", (long long)all.orig_rax, message, bytes, info.op, info.arch);
        printf(" same %d %d\n", info.ip == all.rip, info.sp == all.rsp);
        if (message == 1) {
            long first = all.orig_rax == SYS_getppid || all.orig_rax == SYS_getuid ? 0 : (int)info.words[1];
            printf("  rax %lld nr %ld first %ld\n", (long long)all.rax, (long)info.words[0], first);
            if (all.orig_rax == SYS_write)
                all.rdx = 6;
            if (all.orig_rax == SYS_kill)
                all.orig_rax = -1, all.rax = 55;
        } else {
            if (all.orig_rax == SYS_close)
                printf("  result %ld error %d\n", (long)info.words[0], (int)(info.words[1] & 0xff));
            if (all.orig_rax == SYS_getuid)
                all.rax = 4711;
        }
        MUST(request(PTRACE_SETREGS, 0, &all));
    }
}

static int thread_body(void *unused)
{
    (void)unused;
    return syscall(SYS_exit, 3);
}

/* The kernel clears it when the thread has ended. */
static volatile pid_t thread;

static void birth_body(void)
{
    static char stack[65536];
    int status;
    pid_t made = fork();
    if (made == 0)
        _exit(4);
    waitpid(made, &status, 0);
    made = vfork();
    if (made == 0)
        _exit(5);
    waitpid(made, &status, 0);
    clone(thread_body, stack + sizeof stack,
          CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID |
              CLONE_CHILD_CLEARTID,
          NULL, &thread, NULL, &thread);
    while (thread != 0)
        sleep_ms(1);
    execl("/proc/self/exe", "trace", "list-nothing", NULL);
}

/* Children, threads, programs and ends as events. Who runs first is not the same everywhere: each thread's own story. */
static void events(void)
{
    char stories[8][400] = {""};
    pid_t known[8] = {0};
    int living = 1;
    start(birth_body);
    known[0] = child;
    MUST(request(PTRACE_SETOPTIONS, 0,
                 (void *)(PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC
                          | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXIT)));
    go(PTRACE_CONT, 0);
    while (living) {
        int status, place = 0;
        unsigned long message = 0;
        pid_t who = waitpid(-1, &status, __WALL);
        if (who == -1)
            break;
        while (known[place] && known[place] != who)
            place++;
        if (!known[place])
            living++;
        known[place] = who;
        char *story = stories[place] + strlen(stories[place]);
        if (!WIFSTOPPED(status)) {
            sprintf(story, " status %x", status);
            living--;
            continue;
        }
        int event = status >> 16, signal = event || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
        child = who;
        if (event && event < 128)
            request(PTRACE_GETEVENTMSG, 0, &message);
        if (event == PTRACE_EVENT_EXIT)
            sprintf(story, " exit(%lx)", message);
        else if (event == PTRACE_EVENT_EXEC)
            sprintf(story, " exec(%d)", message == (unsigned long)known[0]);
        else if (event)
            sprintf(story, " event %d(%d)", event, message > 1);
        else
            sprintf(story, " signal %d", WSTOPSIG(status));
        go(PTRACE_CONT, signal);
    }
    for (int i = 0; i < 8 && known[i]; i++)
        printf("%d:%s\n", i, stories[i]);
    TRY(waitpid(-1, NULL, __WALL));
}

static void pause_body(void)
{
    for (;;)
        pause();
}

/* Stops told from signals; the process stops and goes on while the tracer only listens. */
static void seize(void)
{
    siginfo_t info;
    fflush(stdout);
    child = MUST(fork());
    if (child == 0)
        pause_body();
    TRY(request(PTRACE_SEIZE, (void *)1, 0));
    TRY(request(PTRACE_SEIZE, 0, (void *)0x4000));
    TRY(request(PTRACE_SEIZE, 0, (void *)PTRACE_O_TRACESYSGOOD));
    TRY(request(PTRACE_SEIZE, 0, 0));
    TRY(request(PTRACE_CONT, 0, 0));
    TRY(request(PTRACE_INTERRUPT, 0, 0));
    next("interrupted");
    MUST(request(PTRACE_GETSIGINFO, 0, &info));
    printf("signo %d code %x\n", info.si_signo, info.si_code);
    go(PTRACE_CONT, 0);
    MUST(kill(child, SIGSTOP));
    next("signal");
    TRY(request(PTRACE_LISTEN, 0, 0));
    go(PTRACE_CONT, SIGSTOP);
    next("group");
    TRY(request(PTRACE_LISTEN, 0, 0));
    SHOW(waitpid(child, NULL, WNOHANG | WUNTRACED));
    TRY(request(PTRACE_CONT, 0, 0));
    MUST(kill(child, SIGCONT));
    next("continued");
    go(PTRACE_CONT, 0);
    next("its signal");
    go(PTRACE_CONT, SIGCONT);
    MUST(kill(child, SIGUSR1));
    next("deadly");
    TRY(request(PTRACE_DETACH, 0, (void *)SIGUSR2));
    next("end");
}

static void float_body(void)
{
    double value = 1.5;
    asm volatile("movsd %0, %%xmm7\n int3\n movsd %%xmm7, %0" : "+m"(value)::"xmm7");
    printf("%g\n", value);
}

/* Registers: all ways to them give the same; floating point; what is not there. */
static void register_sets(void)
{
    struct user_regs_struct all, part;
    struct user_fpregs_struct floats;
    /* Room for the largest state there is: with the tiles of AMX it has 11,008 bytes. */
    static char wide[65536];
    struct iovec vector = {&part, sizeof part};
    unsigned long value = 0;
    start(float_body);
    go(PTRACE_CONT, 0);
    next("int3");
    all = registers();
    printf("cs %llx ss %llx ds %llx orig %lld\n", all.cs, all.ss, all.ds, (long long)all.orig_rax);
    TRY(request(PTRACE_PEEKUSER, (void *)offsetof(struct user, regs.rip), &value));
    printf("same %d\n", value == all.rip);
    TRY(request(PTRACE_GETREGSET, (void *)NT_PRSTATUS, &vector));
    printf("%zu same %d\n", vector.iov_len, memcmp(&all, &part, sizeof all) == 0);
    vector.iov_len = 16;
    TRY(request(PTRACE_GETREGSET, (void *)NT_PRSTATUS, &vector));
    printf("%zu\n", vector.iov_len);
    vector.iov_len = 15;
    TRY(request(PTRACE_GETREGSET, (void *)NT_PRSTATUS, &vector));
    TRY(request(PTRACE_GETREGSET, (void *)77, &vector));
    TRY(request(PTRACE_GETFPREGS, 0, &floats));
    double seven;
    memcpy(&seven, floats.xmm_space + 28, 8);
    printf("xmm7 %g cwd %x mxcsr %x\n", seven, floats.cwd, floats.mxcsr);
    seven = 2.25;
    memcpy(floats.xmm_space + 28, &seven, 8);
    TRY(request(PTRACE_SETFPREGS, 0, &floats));
    vector = (struct iovec){wide, sizeof wide};
    TRY(request(PTRACE_GETREGSET, (void *)NT_X86_XSTATE, &vector));
    memcpy(&seven, wide + 160 + 7 * 16, 8);
    printf("xmm7 %g enough %d features %d\n", seven, vector.iov_len >= 576, wide[464] & 3);
    TRY(request(PTRACE_SETREGSET, (void *)NT_X86_XSTATE, &vector));
    TRY(request(PTRACE_PEEKUSER, (void *)1, &value));
    TRY(request(PTRACE_PEEKUSER, (void *)sizeof(struct user), &value));
    TRY(request(PTRACE_PEEKUSER, (void *)offsetof(struct user, u_debugreg[7]), &value));
    TRY(request(PTRACE_POKEUSER, (void *)offsetof(struct user, u_debugreg[4]), 0));
    TRY(request(PTRACE_POKEUSER, (void *)offsetof(struct user, regs.fs_base), (void *)-1L));
    TRY(request(PTRACE_POKEUSER, (void *)offsetof(struct user, regs.cs), (void *)8));
    TRY(request(PTRACE_POKEUSER, (void *)offsetof(struct user, regs.cs), 0));
    TRY(request(PTRACE_POKEUSER, (void *)offsetof(struct user, regs.ss), 0));
    TRY(request(PTRACE_POKEUSER, (void *)offsetof(struct user, regs.ds), 0));
    TRY(request(PTRACE_POKEUSER, (void *)offsetof(struct user, u_tsize), 0));
    finish();
}

static void spin_body(void)
{
    for (;;)
        stages++;
}

/* A running program: it stops, is looked at, and goes on without its tracer. */
static void attach(void)
{
    char path[64], text[4096];
    fflush(stdout);
    child = MUST(fork());
    if (child == 0)
        spin_body();
    TRY(request(PTRACE_ATTACH, 0, 0));
    next("attached");
    TRY(request(PTRACE_ATTACH, 0, 0));
    snprintf(path, sizeof path, "/proc/%d/status", child);
    int status = MUST(open(path, O_RDONLY));
    text[MUST(read(status, text, sizeof text - 1))] = 0;
    close(status);
    char *state = strstr(text, "State:"), *tracer = strstr(text, "TracerPid:");
    printf("%.*s tracer %d\n", (int)strcspn(state, "\n"), state, atoi(tracer + 10) == getpid());
    snprintf(path, sizeof path, "/proc/%d/mem", child);
    int memory = MUST(open(path, O_RDWR));
    long value = 0;
    SHOW(pread(memory, &value, 8, (long)&word));
    printf("%ld\n", value);
    value = 43;
    SHOW(pwrite(memory, &value, 8, (long)&word));
    SHOW(pread(memory, &value, 8, 16));
    close(memory);
    struct iovec mine = {&value, 8}, theirs = {(void *)&word, 8};
    value = 0;
    SHOW(process_vm_readv(child, &mine, 1, &theirs, 1, 0));
    printf("%ld\n", value);
    TRY(request(PTRACE_DETACH, 0, 0));
    TRY(request(PTRACE_DETACH, 0, 0));
    TRY(kill(child, SIGTERM));
    next("end");
}

static void sleep_body(void)
{
    struct timespec left = {1, 0};
    long result = nanosleep(&left, NULL);
    printf("slept %ld\n", result);
}

/* A call that the tracer interrupts goes on as if nothing had been. */
static void interrupted(void)
{
    start(sleep_body);
    go(PTRACE_CONT, 0);
    await_state(child, 'S');
    MUST(kill(child, SIGSTOP));
    next("in a call");
    struct user_regs_struct all = registers();
    printf("orig %lld rax %lld\n", (long long)all.orig_rax, (long long)all.rax);
    finish();
}

/* Each request to somebody who is not traced, does not stand still, or is not there. */
static void refused(void)
{
    static const int requests[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 17, 24, 31, 33, 0x4200, 0x4201, 0x4202,
                                   0x4203, 0x4204, 0x4205, 0x4207, 0x4208, 0x4209, 0x420a, 0x420b, 0x420e, 999};
    static char room[8192];
    for (int turn = 0; turn < 3; turn++) {
        child = turn == 0 ? getpid() : turn == 1 ? 99999 : child;
        if (turn == 2)
            start(pause_body), go(PTRACE_CONT, 0), await_state(child, 'S');
        for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
            if (!(turn == 2 && requests[i] == 8))
                printf("%d %x %s\n", turn, requests[i], failing(request(requests[i], 0, room)));
    }
    TRY(request(PTRACE_ATTACH, 0, 0));
    MUST(kill(child, SIGSTOP));
    next("stop");
    TRY(request(PTRACE_CONT, 0, (void *)65));
    TRY(request(PTRACE_SETOPTIONS, 0, (void *)0x8000));
    TRY(request(PTRACE_INTERRUPT, 0, 0));
    TRY(request(PTRACE_LISTEN, 0, 0));
    TRY(request(999, 0, 0));
    TRY(request(PTRACE_GETSIGMASK, (void *)4, room));
    TRY(request(PTRACE_GETSIGMASK, (void *)8, room));
    TRY(request(PTRACE_KILL, 0, 0));
    next("end");
    child = getpid();
    TRY(request(PTRACE_ATTACH, 0, 0));
    TRY(request(PTRACE_SEIZE, 0, 0));
    child = 1 << 20;
    TRY(request(PTRACE_ATTACH, 0, 0));
}

static void handler_body(void)
{
    struct sigaction action = {.sa_sigaction = said, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR2);
}

/* A step into a handler stops at its first instruction. */
static void handler_step(void)
{
    start(handler_body);
    go(PTRACE_CONT, 0);
    next("before");
    go(PTRACE_SINGLESTEP, SIGUSR1);
    next("handler");
    struct user_regs_struct all = registers();
    printf("at its start %d, argument %d\n", all.rip == (unsigned long)said, (int)all.rdi);
    finish();
}

static volatile long other;

static void watch_body(void)
{
    for (long i = 1; i < 4; i++) {
        other += i;
        word = 40 + i;
    }
    answer();
    printf("word %ld other %ld stages %d\n", word, other, stages);
}

static void debug_register(int number, unsigned long value)
{
    long result = request(PTRACE_POKEUSER, (void *)(offsetof(struct user, u_debugreg) + 8 * number), (void *)value);
    printf("register %d: %s\n", number, failing(result));
}

static void *writer(void *from)
{
    for (long i = 1; i < 4; i++) {
        other += i;
        word = 50 + i;
    }
    /* What a call stores is nobody's instruction. */
    MUST(read(*(int *)from, (void *)&word, sizeof word) == sizeof word ? 0 : -1);
    for (long i = 1; i < 1000; i++)
        other += i;
    word = 99;
    return NULL;
}

static volatile int writer_ends;

static void *busy(void *nothing)
{
    while (!writer_ends)
        other++;
    return nothing;
}

static void threads_body(void)
{
    pthread_t one, two;
    int ends[2];
    long value = 77;
    MUST(pipe(ends)), MUST(write(ends[1], &value, sizeof value));
    MUST(pthread_create(&one, NULL, busy, NULL) ? -1 : 0);
    MUST(pthread_create(&two, NULL, writer, ends) ? -1 : 0);
    MUST(pthread_join(two, NULL) ? -1 : 0);
    writer_ends = 1;
    MUST(pthread_join(one, NULL) ? -1 : 0);
}

static void watch_word(void)
{
    MUST(request(PTRACE_POKEUSER, (void *)offsetof(struct user, u_debugreg[0]), (void *)&word));
    MUST(request(PTRACE_POKEUSER, (void *)offsetof(struct user, u_debugreg[7]), (void *)(1 | 9 << 16)));
}

/* All threads watch a word that one of them writes, while one sleeps and one runs: only the writer is told. The tracer's own stores are
 * nobody's either. */
static void watched_threads(void)
{
    pid_t first, seen[3];
    int made = 0, status, hits[3] = {0};
    start(threads_body);
    first = seen[made++] = child;
    MUST(request(PTRACE_SETOPTIONS, 0, (void *)PTRACE_O_TRACECLONE));
    for (go(PTRACE_CONT, 0); (child = MUST(waitpid(-1, &status, __WALL))) > 0;) {
        int who = 0, signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
        if (!WIFSTOPPED(status)) {
            if (child == first)
                break;
            continue;
        }
        while (who < made && seen[who] != child)
            who++;
        if (who == made) {
            seen[made++] = child, signal = 0;
            watch_word();
        } else if (status >> 16) {
            if (made == 1)
                watch_word();
            signal = 0;
        } else if (signal == SIGTRAP) {
            long value = 0;
            MUST(request(PTRACE_PEEKDATA, (void *)&word, &value));
            printf("%s thread: word %ld\n", who ? "another" : "the first", value);
            if (++hits[who] > 10)
                break;
            signal = 0;
            MUST(request(PTRACE_POKEDATA, (void *)&word, (void *)(value + 1000)));
        }
        go(PTRACE_CONT, signal);
    }
    say_status("end", status);
    printf("told: the first %d, others %d, both of them %d\n", hits[0], hits[1] + hits[2], hits[1] && hits[2]);
}

/* The processor's breakpoints: a word that is written, an instruction that is executed. */
static void watchpoints(void)
{
    start(watch_body);
    debug_register(0, (unsigned long)&word);
    debug_register(1, (unsigned long)answer);
    debug_register(7, 1 | 1 << 2 | 9 << 16);
    for (int turn = 0; turn < 4; turn++) {
        siginfo_t info;
        unsigned long status = 0;
        long value = 0;
        go(PTRACE_CONT, 0);
        next("watched");
        MUST(request(PTRACE_GETSIGINFO, 0, &info));
        MUST(request(PTRACE_PEEKUSER, (void *)offsetof(struct user, u_debugreg[6]), &status));
        MUST(request(PTRACE_PEEKDATA, (void *)&word, &value));
        printf("code %d status %lx word %ld there %d\n", info.si_code, status & 0x400f, value,
               registers().rip == (unsigned long)answer);
        debug_register(6, 0);
    }
    debug_register(7, 0);
    debug_register(0, -1);
    debug_register(0, (unsigned long)&word + 1);
    debug_register(7, 1 | 9 << 16);
    finish();
}

/* The tracer ends: with the option its threads do, without it they go on. */
static void tracer_ends(void)
{
    MUST(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
    for (int kills = 0; kills < 2; kills++) {
        int ends[2], status;
        MUST(pipe(ends));
        fflush(stdout);
        pid_t tracer = MUST(fork());
        if (tracer == 0) {
            start(spin_body);
            if (kills)
                MUST(request(PTRACE_SETOPTIONS, 0, (void *)PTRACE_O_EXITKILL));
            MUST(write(ends[1], &child, sizeof child));
            _exit(0);
        }
        MUST(read(ends[0], &child, sizeof child));
        MUST(waitpid(tracer, &status, 0));
        if (kills)
            await_state(child, 'Z');
        printf("killed %d ended %d\n", kills, waitpid(child, &status, WNOHANG) == child);
        kill(child, SIGKILL);
        close(ends[0]);
        close(ends[1]);
    }
}

/* process_vm_readv and writev: what comes first when several things are wrong, and how far they get before the end. */
static void vectors(void)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *many = mmap(NULL, 1 << 22, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static struct iovec full[1024];
    MUST(munmap(pages + 4096, 4096));
    struct iovec good = {many, 200}, edge = {pages + 4096 - 100, 200}, none = {many, 0}, bad = {(void *)8, 16};
    struct iovec negative = {many, -1UL};
    const pid_t self = getpid(), nobody = 0x7fffffff;
    for (int i = 0; i < 1024; i++)
        full[i] = (struct iovec){many, 1 << 22};
    SHOW(process_vm_readv(nobody, &none, 1, &good, 1, 0));
    SHOW(process_vm_readv(nobody, &good, 1, &none, 1, 0));
    SHOW(process_vm_readv(nobody, &good, 1, &good, 0, 0));
    SHOW(process_vm_readv(nobody, &good, 1, &good, 1, 0));
    SHOW(process_vm_readv(nobody, &good, 1, &good, 1025, 0));
    SHOW(process_vm_readv(nobody, &good, 1, &good, 1, 1));
    SHOW(process_vm_readv(nobody, NULL, 1, &good, 1, 0));
    SHOW(process_vm_readv(self, &negative, 1, &good, 1, 0));
    SHOW(process_vm_readv(self, &good, 1, &bad, 1, 0));
    SHOW(process_vm_readv(self, &bad, 1, &good, 1, 0));
    SHOW(process_vm_readv(self, &good, 1, &edge, 1, 0));
    SHOW(process_vm_readv(self, &edge, 1, &good, 1, 0));
    SHOW(process_vm_writev(self, &good, 1, &edge, 1, 0));
    SHOW(process_vm_writev(self, &edge, 1, &good, 1, 0));
    /* 4 GiB, of which a call moves half; it must be possible to end it. */
    if ((child = MUST(fork())) == 0)
        _exit(process_vm_readv(getppid(), full, 1024, full, 1024, 0) == 0x7ffff000 ? 0 : 1);
    usleep(20000);
    kill(child, SIGKILL);
    int status;
    MUST(waitpid(child, &status, 0));
    puts(WIFEXITED(status) && WEXITSTATUS(status) ? "moved too much" : "ended");
}

static const struct test tests[] = {
    {"steps", steps},
    {"peek-poke", peek_poke},
    {"breakpoint", breakpoint},
    {"signals", signals_seen},
    {"calls", calls},
    {"events", events},
    {"seize", seize},
    {"registers", register_sets},
    {"attach", attach},
    {"interrupted", interrupted},
    {"refused", refused},
    {"handler-step", handler_step},
    {"watched_threads", watched_threads},
    {"watchpoints", watchpoints},
    {"tracer-ends", tracer_ends},
    {"vectors", vectors},
};
CHECK_MAIN(tests)
