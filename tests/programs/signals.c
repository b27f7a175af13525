/* Signals: handlers, what they are told, masks, restarting, stopping and continuing, and what survives a handler. */
#include "check.h"

#include <poll.h>
#include <setjmp.h>
#include <ucontext.h>

static volatile sig_atomic_t count, last, order[16], position;

static void counted(int number)
{
    count++;
    last = number;
    if (position < 16)
        order[position++] = number;
}

static void install(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    MUST(sigaction(number, &action, NULL));
}

static void mask(int how, int number)
{
    sigset_t set;
    sigemptyset(&set);
    if (number)
        sigaddset(&set, number);
    MUST(sigprocmask(how, &set, NULL));
}

static void handlers(void)
{
    for (int number = 1; number < 32; number++) {
        if (number == SIGKILL || number == SIGSTOP)
            continue;
        install(number, counted, 0);
        raise(number);
        printf("%d count %d last %d\n", number, count, last);
    }
    for (int number = SIGRTMIN; number <= SIGRTMAX; number += 10) {
        install(number, counted, 0);
        raise(number);
    }
    printf("count %d\n", count);
    struct sigaction old;
    MUST(sigaction(SIGUSR1, NULL, &old));
    printf("%d %x\n", old.sa_handler == counted, old.sa_flags & ~0x04000000);
    TRY(sigaction(SIGKILL, &old, NULL));
    TRY(sigaction(SIGSTOP, &old, NULL));
    TRY(sigaction(0, &old, NULL));
    TRY(sigaction(65, &old, NULL));
}

static void default_actions(void)
{
    for (int number = 1; number < 65; number++) {
        int status, options = WUNTRACED;
        if (number == 32 || number == 33)
            continue; /* the C library's own: what is inherited for them differs from shell to shell */
        fflush(stdout);
        pid_t child = MUST(fork());
        if (child == 0) {
            struct rlimit none = {0, 0};
            setrlimit(RLIMIT_CORE, &none);
            kill(getpid(), number);
            _exit(0);
        }
        waitpid(child, &status, options);
        printf("%d ", number);
        say_status("default", status);
        if (WIFSTOPPED(status)) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
        }
    }
}

static siginfo_t told;
static long told_address;
static void teller(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    told = *info;
    told_address = (long)info->si_addr;
    count++;
}

static void install_teller(int number, int flags)
{
    struct sigaction action = {.sa_sigaction = teller, .sa_flags = SA_SIGINFO | flags};
    MUST(sigaction(number, &action, NULL));
}

static void information(void)
{
    install_teller(SIGUSR1, 0);
    install_teller(SIGCHLD, 0);
    install_teller(SIGALRM, 0);
    kill(getpid(), SIGUSR1);
    printf("kill: %d code %d pid mine %d uid mine %d\n", told.si_signo, told.si_code, told.si_pid == getpid(),
           told.si_uid == getuid());
    raise(SIGUSR1);
    printf("raise: %d code %d\n", told.si_signo, told.si_code);
    union sigval value = {.sival_int = 77};
    if (sigqueue(getpid(), SIGUSR1, value) == 0)
        printf("queue: %d code %d value %d\n", told.si_signo, told.si_code, told.si_value.sival_int);
    for (int how = 0; how < 2; how++) {
        int before = count;
        pid_t child = MUST(fork());
        if (child == 0) {
            if (how)
                kill(getpid(), SIGKILL);
            _exit(5);
        }
        while (count == before)
            sleep_ms(1);
        printf("child: %d code %d status %d its pid %d\n", told.si_signo, told.si_code, told.si_status, told.si_pid == child);
        waitpid(child, NULL, 0);
    }
    int before_alarm = count;
    alarm(1);
    while (count == before_alarm)
        sleep_ms(10);
    printf("timer: %d code %d\n", told.si_signo, told.si_code);
}

static sigjmp_buf after_fault;
static void fault_teller(int number, siginfo_t *info, void *context)
{
    teller(number, info, context);
    ucontext_t *state = context;
    printf("%d code %d trap %lld error %lld", number, info->si_code, (long long)state->uc_mcontext.gregs[REG_TRAPNO],
           (long long)state->uc_mcontext.gregs[REG_ERR] & ~1 /* whether a page is present is the kernel's affair */);
    siglongjmp(after_fault, 1);
}

static void fault_information(void)
{
    struct sigaction action = {.sa_sigaction = fault_teller, .sa_flags = SA_SIGINFO};
    char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile int zero = 0, hundred = 100;
    int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    for (int i = 0; i < 5; i++)
        MUST(sigaction(faults[i], &action, NULL));
    for (volatile int step = 0; step < 9; step++) {
        printf("step %d: ", step);
        if (sigsetjmp(after_fault, 1)) {
            switch (step) {
            case 0: case 3: printf(" address %lx\n", told_address); break;
            case 1: printf(" the page %d\n", told_address == (long)page + 5); break;
            case 2: printf(" the page %d\n", told_address == (long)page + 7); break;
            default: printf("\n");
            }
            continue;
        }
        switch (step) {
        case 0: *(volatile char *)0x18 = 1; break;
        case 1: page[5] = 1; break;
        case 2: mprotect(page, 4096, PROT_NONE); *(volatile char *)(page + 7); break;
        case 3: *(volatile char *)0x0000900000000000; break;
        case 4: hundred = hundred / zero; break;
        case 5: __asm__ volatile("ud2"); break;
        case 6: __asm__ volatile("hlt"); break;
        case 7: __asm__ volatile("int3"); break;
        case 8: ((void (*)(void))0x20)(); break;
        }
        puts("went on");
    }
}

static void masks(void)
{
    sigset_t set;
    install(SIGUSR1, counted, 0);
    install(SIGUSR2, counted, 0);
    mask(SIG_BLOCK, SIGUSR1);
    raise(SIGUSR1);
    raise(SIGUSR1);
    raise(SIGUSR2);
    sigpending(&set);
    printf("count %d pending %d %d\n", count, sigismember(&set, SIGUSR1), sigismember(&set, SIGUSR2));
    mask(SIG_UNBLOCK, SIGUSR1);
    printf("count %d last %d\n", count, last);
    sigfillset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    sigprocmask(SIG_SETMASK, NULL, &set);
    printf("kill blocked %d stop blocked %d usr1 blocked %d\n", sigismember(&set, SIGKILL), sigismember(&set, SIGSTOP),
           sigismember(&set, SIGUSR1));
    TRY(sigprocmask(99, &set, NULL));
    raise(SIGUSR2);
    signal(SIGUSR2, SIG_IGN);
    sigpending(&set);
    printf("pending after ignoring %d\n", sigismember(&set, SIGUSR2));
}

static void in_order(void)
{
    int numbers[] = {SIGUSR2, SIGHUP, SIGTERM, SIGUSR1, SIGINT};
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int i = 0; i < 5; i++) {
        struct sigaction action = {.sa_handler = counted};
        sigfillset(&action.sa_mask);
        sigaction(numbers[i], &action, NULL);
        raise(numbers[i]);
    }
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 0; i < position; i++)
        printf("%d ", order[i]);
    puts("");
}

static void realtime_queue(void)
{
    struct sigaction action = {.sa_sigaction = teller, .sa_flags = SA_SIGINFO};
    MUST(sigaction(SIGRTMIN, &action, NULL));
    mask(SIG_BLOCK, SIGRTMIN);
    for (int i = 0; i < 5; i++)
        MUST(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}));
    mask(SIG_UNBLOCK, SIGRTMIN);
    printf("came %d times, last value %d\n", count, told.si_value.sival_int);
}

static int depth, deepest;
static void nested(int number)
{
    depth++;
    if (depth > deepest)
        deepest = depth;
    if (depth < 4 && position < 4) {
        position++;
        raise(number);
    }
    depth--;
    count++;
}
static void no_defer(void)
{
    install(SIGUSR1, nested, 0);
    raise(SIGUSR1);
    printf("deferred: deepest %d count %d\n", deepest, count);
    deepest = count = position = 0;
    install(SIGUSR1, nested, SA_NODEFER);
    raise(SIGUSR1);
    printf("not deferred: deepest %d count %d\n", deepest, count);
}

static void reset_body(void) { raise(SIGUSR1); raise(SIGUSR1); puts("not killed"); }
static void reset_handler(void)
{
    install(SIGUSR1, counted, SA_RESETHAND);
    in_child("second time", reset_body);
}

static void alternate_stack(void)
{
    static char other[65536];
    stack_t stack = {.ss_sp = other, .ss_size = sizeof other}, old;
    SHOW(sigaltstack(NULL, &old));
    printf("flags %d\n", old.ss_flags);
    SHOW(sigaltstack(&stack, NULL));
    MUST(sigaltstack(NULL, &old));
    printf("flags %d same %d\n", old.ss_flags, old.ss_sp == other);
    stack.ss_size = 100;
    TRY(sigaltstack(&stack, NULL));
    stack.ss_flags = 99;
    TRY(sigaltstack(&stack, NULL));
    stack.ss_flags = SS_DISABLE;
    TRY(sigaltstack(&stack, NULL));
}

static char where_other[65536];
static void where(int number)
{
    char here;
    stack_t stack;
    (void)number;
    sigaltstack(NULL, &stack);
    printf("on the other stack %d flags %d change: %s\n", &here >= where_other && &here < where_other + sizeof where_other,
           stack.ss_flags, failing(sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL)));
}
static void alternate_stack_used(void)
{
    stack_t stack = {.ss_sp = where_other, .ss_size = sizeof where_other};
    MUST(sigaltstack(&stack, NULL));
    install(SIGUSR1, where, SA_ONSTACK);
    raise(SIGUSR1);
    install(SIGUSR1, where, 0);
    raise(SIGUSR1);
}

/* A child that sends a signal to its parent when that sleeps. With a status it waits until that sleeps again, and writes a byte
 * to `to` if that is not -1. */
static pid_t sender(int number, int to, int status)
{
    pid_t parent = getpid(), child = MUST(fork());
    if (child == 0) {
        await_state(parent, 'S');
        kill(parent, number);
        if (status)
            await_state(parent, 'S');
        if (to != -1)
            MUST(write(to, "x", 1));
        _exit(status);
    }
    return child;
}

static void interrupted_calls(void)
{
    int ends[2];
    char byte;
    MUST(pipe(ends));
    install(SIGUSR1, counted, 0);
    pid_t child = sender(SIGUSR1, -1, 0);
    TRY(read(ends[0], &byte, 1));
    waitpid(child, NULL, 0);
    child = sender(SIGUSR1, -1, 0);
    struct pollfd one = {ends[0], POLLIN, 0};
    TRY(poll(&one, 1, 10000));
    waitpid(child, NULL, 0);
    child = sender(SIGUSR1, -1, 0);
    struct timespec left = {10, 0};
    int slept = nanosleep(&left, &left);
    printf("nanosleep %s left more than 8 s %d\n", failing(slept), left.tv_sec >= 8);
    waitpid(child, NULL, 0);
    child = sender(SIGUSR1, -1, 0);
    TRY(pause());
    waitpid(child, NULL, 0);
    pid_t sleeper = MUST(fork());
    if (sleeper == 0) {
        sleep_ms(5000);
        _exit(0);
    }
    child = sender(SIGUSR1, -1, 0);
    TRY(waitpid(sleeper, NULL, 0));
    waitpid(child, NULL, 0);
    kill(sleeper, SIGKILL);
    waitpid(sleeper, NULL, 0);
    printf("count %d\n", count);
}

static void restarted_calls(void)
{
    int ends[2];
    char byte = 0;
    MUST(pipe(ends));
    install(SIGUSR1, counted, SA_RESTART);
    int status;
    pid_t child = sender(SIGUSR1, ends[1], 3);
    SHOW(read(ends[0], &byte, 1));
    printf("%c count %d\n", byte, count);
    waitpid(child, NULL, 0);
    child = sender(SIGUSR1, -1, 6);
    printf("wait is the child %d\n", waitpid(child, &status, 0) == child);
    say_status("child", status);
    printf("count %d\n", count);
    child = sender(SIGUSR1, -1, 0);
    struct pollfd one = {ends[0], POLLIN, 0};
    TRY(poll(&one, 1, 10000));
    waitpid(child, NULL, 0);
}

static void full_pipe_interrupted(void)
{
    int ends[2];
    static char many[200000];
    MUST(pipe(ends));
    install(SIGUSR1, counted, 0);
    pid_t child = sender(SIGUSR1, -1, 0);
    SHOW(write(ends[1], many, sizeof many));
    waitpid(child, NULL, 0);
    child = sender(SIGUSR1, -1, 0);
    TRY(write(ends[1], many, sizeof many));
    waitpid(child, NULL, 0);
}

static void suspended(void)
{
    sigset_t set;
    install(SIGUSR1, counted, 0);
    mask(SIG_BLOCK, SIGUSR1);
    raise(SIGUSR1);
    sigemptyset(&set);
    TRY(sigsuspend(&set));
    sigprocmask(SIG_SETMASK, NULL, &set);
    printf("count %d blocked again %d\n", count, sigismember(&set, SIGUSR1));
    pid_t child = sender(SIGUSR1, -1, 0);
    sigemptyset(&set);
    TRY(sigsuspend(&set));
    printf("count %d\n", count);
    waitpid(child, NULL, 0);
}

static void wait_statuses(void)
{
    int status;
    TRY(waitpid(-1, &status, 0));
    for (int code = 0; code < 600; code += 150) {
        pid_t child = MUST(fork());
        if (child == 0)
            _exit(code);
        waitpid(child, &status, 0);
        say_status("child", status);
    }
    pid_t child = MUST(fork());
    if (child == 0) {
        sleep_ms(10000);
        _exit(0);
    }
    SHOW(waitpid(child, &status, WNOHANG));
    kill(child, SIGTERM);
    struct rusage usage;
    printf("%d\n", wait4(child, &status, 0, &usage) == child);
    say_status("child", status);
    TRY(waitpid(child, &status, 0));
    TRY(waitpid(1, &status, 0));
    TRY(kill(child, 0));
}

static void zombies(void)
{
    pid_t child = MUST(fork());
    if (child == 0)
        _exit(9);
    await_state(child, 'Z');
    SHOW(kill(child, 0));
    SHOW(kill(child, SIGKILL));
    int status;
    waitpid(child, &status, 0);
    say_status("zombie", status);
    TRY(kill(child, 0));
    signal(SIGCHLD, SIG_IGN);
    child = MUST(fork());
    if (child == 0)
        _exit(0);
    TRY(waitpid(child, &status, 0));
}

static void stop_and_continue(void)
{
    int status;
    pid_t child = MUST(fork());
    if (child == 0)
        for (;;)
            pause();
    for (int i = 0; i < 2; i++) {
        kill(child, i ? SIGTSTP : SIGSTOP);
        printf("%d ", waitpid(child, &status, WUNTRACED) == child);
        say_status("after stop", status);
        SHOW(waitpid(child, &status, WUNTRACED | WNOHANG));
        kill(child, SIGCONT);
        printf("%d ", waitpid(child, &status, WCONTINUED) == child);
        say_status("after continue", status);
    }
    kill(child, SIGSTOP);
    waitpid(child, &status, WUNTRACED);
    kill(child, SIGTERM);
    SHOW(waitpid(child, &status, WNOHANG));
    kill(child, SIGCONT);
    waitpid(child, &status, 0);
    say_status("terminated", status);
    child = MUST(fork());
    if (child == 0)
        for (;;)
            pause();
    kill(child, SIGSTOP);
    waitpid(child, &status, WUNTRACED);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    say_status("killed while stopped", status);
}

static void groups(void)
{
    int status, died = 0;
    pid_t leader = MUST(fork());
    if (leader == 0) {
        setpgid(0, 0);
        for (int i = 0; i < 3; i++)
            if (fork() == 0)
                for (;;)
                    pause();
        install(SIGTERM, counted, 0);
        sleep_ms(60);
        kill(0, SIGTERM);
        while (wait(&status) > 0)
            died += WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
        printf("leader: died %d count %d\n", died, count);
        exit(0);
    }
    waitpid(leader, &status, 0);
    say_status("leader", status);
    pid_t group = 0;
    for (int i = 0; i < 3; i++) {
        pid_t child = MUST(fork());
        if (child == 0)
            for (;;)
                pause();
        setpgid(child, group);
        group = group ? group : child;
    }
    printf("group %d\n", getpgid(group) == group);
    SHOW(kill(-group, SIGKILL));
    int reaped = 0;
    while (waitpid(-group, &status, 0) > 0)
        reaped++;
    printf("reaped %d\n", reaped);
    TRY(kill(-group, 0));
    TRY(setpgid(0, 0x7ffffff0));
    TRY(setpgid(1, 0));
    printf("%s\n", setsid() == -1 ? failing(-1) : "new session");
    TRY(setsid());
}

static void inherited(void)
{
    sigset_t set;
    install(SIGUSR1, counted, 0);
    signal(SIGUSR2, SIG_IGN);
    mask(SIG_BLOCK, SIGTERM);
    mask(SIG_BLOCK, SIGHUP);
    raise(SIGHUP);
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        struct sigaction action;
        sigpending(&set);
        printf("fork: pending %d ", sigismember(&set, SIGHUP));
        sigprocmask(SIG_BLOCK, NULL, &set);
        sigaction(SIGUSR1, NULL, &action);
        printf("blocked %d handler kept %d\n", sigismember(&set, SIGTERM), action.sa_handler == counted);
        fflush(stdout);
        raise(SIGHUP);
        execl("/proc/self/exe", "signals", "after_exec", (char *)NULL);
        printf("%s\n", failing(-1));
        _exit(1);
    }
    int status;
    waitpid(child, &status, 0);
    say_status("child", status);
}

static void after_exec(void)
{
    sigset_t set;
    struct sigaction one, two;
    sigprocmask(SIG_BLOCK, NULL, &set);
    sigaction(SIGUSR1, NULL, &one);
    sigaction(SIGUSR2, NULL, &two);
    printf("exec: blocked %d %d usr1 default %d usr2 ignored %d ", sigismember(&set, SIGTERM),
           sigismember(&set, SIGHUP), one.sa_handler == SIG_DFL, two.sa_handler == SIG_IGN);
    sigpending(&set);
    printf("pending %d\n", sigismember(&set, SIGHUP));
}

/* What a handler does to vector registers must not reach what it interrupted. */
static void spoil_vectors(int number)
{
    count += number > 0;
    __asm__ volatile("pcmpeqd %%xmm0, %%xmm0; pcmpeqd %%xmm1, %%xmm1; pcmpeqd %%xmm7, %%xmm7; pcmpeqd %%xmm15, %%xmm15;"
                     "fninit; fld1" ::: "xmm0", "xmm1", "xmm7", "xmm15");
}
static void vectors_survive(void)
{
    install(SIGUSR1, spoil_vectors, 0);
    long pid = getpid(), good = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t in[4] = {(uint64_t)i * 0x123456789abcdef, 2, 3, 4}, out[4] = {0};
        long result;
        __asm__ volatile("movq %2, %%xmm0; movq %3, %%xmm1; movq %4, %%xmm7; movq %5, %%xmm15; syscall;"
                         "movq %%xmm0, 0(%6); movq %%xmm1, 8(%6); movq %%xmm7, 16(%6); movq %%xmm15, 24(%6)"
                         : "=a"(result)
                         : "a"(SYS_kill), "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3]), "r"(out), "D"(pid), "S"(SIGUSR1)
                         : "rcx", "r11", "memory", "xmm0", "xmm1", "xmm7", "xmm15");
        good += memcmp(in, out, sizeof in) == 0 && result == 0;
    }
    printf("good %ld count %d\n", good, count);
}

/* All general registers and flags come back from a handler. */
static void registers_survive(void)
{
    install(SIGALRM, counted, 0);
    pid_t parent = getpid(), child = MUST(fork());
    for (int i = 0; child == 0 && i < 60; i++) {
        sleep_ms(1);
        kill(parent, SIGALRM);
    }
    if (child == 0)
        _exit(0);
    uint64_t bad = 0, spins = 0;
    while (count < 50 && spins < 2000000) {
        uint64_t wrong = 0;
        __asm__ volatile("mov $1, %%r8; mov $2, %%r9; mov $3, %%r10; mov $4, %%r11; mov $5, %%r12; mov $6, %%r13; mov $7, %%r14;"
                         "mov $500, %%ecx; 1: dec %%ecx; jnz 1b;"
                         "lea (%%r8, %%r9), %%rax; add %%r10, %%rax; add %%r11, %%rax; add %%r12, %%rax; add %%r13, %%rax;"
                         "add %%r14, %%rax; sub $28, %%rax; mov %%rax, %0"
                         : "=r"(wrong)::"rax", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14");
        bad += wrong != 0;
        spins++;
    }
    while (waitpid(child, NULL, 0) == -1 && errno == EINTR)
        ;
    printf("wrong %lu\n", (unsigned long)bad);
}

static void timers(void)
{
    struct itimerval timer = {{0, 2000}, {0, 2000}}, old;
    install(SIGALRM, counted, 0);
    MUST(setitimer(ITIMER_REAL, &timer, NULL));
    while (count < 5)
        pause();
    memset(&timer, 0, sizeof timer);
    MUST(setitimer(ITIMER_REAL, &timer, &old));
    printf("interval %ld us, at least five %d\n", (long)old.it_interval.tv_usec, count >= 5);
    SHOW(alarm(100));
    SHOW(alarm(0) > 98);
    SHOW(alarm(0));
    timer.it_value.tv_usec = 2000000;
    TRY(setitimer(ITIMER_REAL, &timer, NULL));
    TRY(setitimer(99, &old, NULL));
}

static void broken_pipe_body(void)
{
    int ends[2];
    MUST(pipe(ends));
    close(ends[0]);
    write(ends[1], "x", 1);
    puts("went on");
}
static void broken_pipe(void)
{
    in_child("default", broken_pipe_body);
    signal(SIGPIPE, SIG_IGN);
    int ends[2];
    MUST(pipe(ends));
    close(ends[0]);
    TRY(write(ends[1], "x", 1));
    install(SIGPIPE, counted, 0);
    TRY(write(ends[1], "x", 1));
    printf("count %d\n", count);
}

static void many(void)
{
    install(SIGUSR1, counted, 0);
    for (int i = 0; i < 5000; i++)
        kill(getpid(), SIGUSR1);
    printf("%d\n", count);
}

static void long_jump_out(void)
{
    volatile int rounds = 0;
    struct sigaction action = {.sa_sigaction = fault_teller, .sa_flags = SA_SIGINFO};
    MUST(sigaction(SIGSEGV, &action, NULL));
    while (rounds < 50) {
        rounds++;
        if (sigsetjmp(after_fault, 1) == 0)
            *(volatile char *)8 = 1;
        printf(" %d\n", rounds);
    }
}

#define T(name) {#name, name}
/* A call with flags that compiled code never has: alignment checks, backward copies, a nested task. The kernel must not run
 * with them, nor give them to another program. */
static void calls_with_odd_flags(void)
{
    static const unsigned long flags[] = {0x40000, 0x400, 0x4000};
    static char buffer[3 * 4096];
    for (int i = 0; i < 3; i++)
        for (int round = 0; round < 3; round++) {
            int ends[2], status;
            MUST(pipe(ends));
            MUST(write(ends[1], "0123456789", 10));
            memset(buffer, 'x', sizeof buffer);
            pid_t child = MUST(fork());
            if (child == 0) {
                long result = 10;
                for (long call = SYS_read; call <= SYS_write; call++) {
                    result = call;
                    __asm__ volatile("pushfq; orq %3, (%%rsp); popfq; syscall; pushfq; andq $~0x44400, (%%rsp); popfq"
                                     : "+a"(result) : "D"((long)ends[call]), "S"(buffer + 4097), "r"(flags[i]), "d"(10L)
                                     : "rcx", "r11", "memory", "cc");
                }
                _exit(result == 10 && memcmp(buffer + 4096, "x0123456789x", 12) == 0 ? 7 : 8);
            }
            MUST(waitpid(child, &status, 0));
            memset(buffer, 0, 16);
            MUST(read(ends[0], buffer, 16));
            printf("%lx: %x %.16s\n", flags[i], status, buffer);
            close(ends[0]);
            close(ends[1]);
        }
}

static const struct test tests[] = {
    T(handlers), T(default_actions), T(information), T(fault_information), T(masks), T(in_order), T(realtime_queue),
    T(no_defer), T(reset_handler), T(alternate_stack), T(alternate_stack_used), T(interrupted_calls),
    T(restarted_calls), T(full_pipe_interrupted), T(suspended), T(wait_statuses), T(zombies), T(stop_and_continue),
    T(groups), T(inherited), T(after_exec), T(vectors_survive), T(registers_survive), T(timers), T(broken_pipe),
    T(many), T(long_jump_out), T(calls_with_odd_flags),
};
CHECK_MAIN(tests)
