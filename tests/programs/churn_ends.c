/* A thousand times every way in which threads and processes end: see churn.h. */
#include "churn.h"

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

/* Runs until the child stands still: sleeping, stopped or traced. */
static void until_still(pid_t child)
{
    char path[40], line[200];
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    for (int tries = 0; tries < 100000; tries++) {
        int file = MUST(open(path, O_RDONLY));
        ssize_t got = MUST(read(file, line, sizeof line - 1));
        close(file);
        line[got] = 0;
        char *name_end = strrchr(line, ')');
        if (name_end && strchr("SDTtZ", name_end[2]))
            return;
        sched_yield();
    }
    printf("the child never stands still: %s\n", line);
}

static pid_t start(void (*body)(void))
{
    pid_t child = MUST(fork());
    if (child == 0) {
        body();
        _exit(0);
    }
    return child;
}

static void expect_end(pid_t child, int wanted)
{
    int status = -1;
    MUST(waitpid(child, &status, 0));
    if ((status & ~0x80) != wanted)
        printf("status %x, not %x\n", status, wanted);
}

/* A child that ends by itself with this status. */
#define ENDS(what, wanted)                                                                                             \
    static void what##_once(void) { expect_end(start(what), wanted); }                                                 \
    CHURN(what)

/* A child that is killed while it stands in `what`. */
#define KILLED_IN(what)                                                                                                \
    static void what##_once(void)                                                                                      \
    {                                                                                                                  \
        pid_t child = start(what);                                                                                     \
        until_still(child);                                                                                            \
        kill(child, SIGKILL);                                                                                          \
        expect_end(child, SIGKILL);                                                                                    \
    }                                                                                                                  \
    CHURN(what)

/* Ends of whole processes. */

static void no_core(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
}
static void exit_call(void) { syscall(SYS_exit, 3); }
static void aborts(void) { no_core(); abort(); }
static void kills_itself(void) { kill(getpid(), SIGKILL); }
static void bad_instruction(void) { no_core(); __asm__ volatile("ud2"); }
static void bad_stack(void)
{
    no_core();
    __asm__ volatile("xor %esp, %esp\n push %rax");
}
static void bad_frame(void)
{
    no_core();
    __asm__ volatile("mov $0x10, %%esp\n mov $15, %%eax\n syscall" ::: "rax", "memory");
}
static void processor_limit(void) { raise(SIGXCPU); }
ENDS(exit_call, 3 << 8)
ENDS(aborts, SIGABRT)
ENDS(kills_itself, SIGKILL)
ENDS(bad_instruction, SIGILL)
ENDS(bad_stack, SIGSEGV)
ENDS(bad_frame, SIGSEGV)
ENDS(processor_limit, SIGXCPU)

static void stopped(void) { raise(SIGSTOP); }
KILLED_IN(stopped)

/* Nobody waits: the child goes by itself. */
static void unwaited_once(void)
{
    signal(SIGCHLD, SIG_IGN);
    pid_t child = MUST(fork());
    if (child == 0)
        _exit(0);
    while (waitpid(child, NULL, 0) != -1)
        ;
    signal(SIGCHLD, SIG_DFL);
}
CHURN(unwaited)

/* The middle one ends first: its child is found by who takes over orphans. */
static void orphan_once(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t child = MUST(fork());
    if (child == 0) {
        if (fork() == 0)
            _exit(4);
        _exit(5);
    }
    for (int waited = 0; waited < 2; waited++)
        MUST(wait(NULL));
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}
CHURN(orphan)

static void vfork_once(void)
{
    int status;
    pid_t child = vfork();
    if (child == 0)
        _exit(6);
    waitpid(child, &status, 0);
}
CHURN(vfork)

static void vfork_exec_once(void)
{
    int status;
    pid_t child = vfork();
    if (child == 0) {
        close(1);
        execl("/proc/self/exe", "churn_ends", "nothing", (char *)NULL);
        _exit(9);
    }
    waitpid(child, &status, 0);
}

/* What the process leaves behind. */

static void many_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (int i = 0; i < 10; i++)
        sigqueue(getpid(), SIGRTMIN + i % 3, (union sigval){.sival_int = i});
}
static void timers(void)
{
    struct itimerval soon = {{0, 500}, {0, 500}};
    struct itimerspec later = {{0, 0}, {100, 0}};
    timer_t timer;
    signal(SIGALRM, SIG_IGN);
    setitimer(ITIMER_REAL, &soon, NULL);
    for (int i = 0; i < 3; i++)
        if (timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0)
            timer_settime(timer, 0, &later, NULL);
    int fd = MUST(timerfd_create(CLOCK_MONOTONIC, 0));
    timerfd_settime(fd, 0, &later, NULL);
}
static void locks(void)
{
    struct flock part = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
    int fd = MUST(open("locked", O_RDWR | O_CREAT, 0600));
    MUST(fcntl(fd, F_SETLK, &part));
    part.l_start = 100;
    MUST(fcntl(fd, F_SETLK, &part));
    MUST(flock(MUST(open("locked", O_RDWR)), LOCK_EX));
}
static void segments(void)
{
    int id = MUST(shmget(IPC_PRIVATE, 40000, IPC_CREAT | 0600));
    char *at = shmat(id, NULL, 0);
    memset(at, 1, 40000);
    MUST(shmctl(id, IPC_RMID, NULL));
}
/* A segment that was removed goes with its last area, not with the next call on segments. */
static void large_segment(void)
{
    int id = MUST(shmget(IPC_PRIVATE, 4 << 20, IPC_CREAT | 0600));
    memset(shmat(id, NULL, 0), 1, 4 << 20);
    MUST(shmctl(id, IPC_RMID, NULL));
}
static void churn_large_segment(void)
{
    struct gauges before = {0}, after = {0};
    struct shmid_ds status;
    puts("start");
    for (int round = 0; round < 3; round++) {
        shmctl(0x7ffffff, IPC_STAT, &status);
        read_gauges(&before);
        expect_end(start(large_segment), 0);
        read_gauges(&after);
    }
    if (!is_as_before(&before, &after))
        printf("free frames: %ld before, %ld after\n", before.values[FREE_FRAMES], after.values[FREE_FRAMES]);
}
static void descriptors(void)
{
    for (int i = 0; i < 300; i++)
        MUST(dup(1));
}
IN_CHILD(many_signals)
IN_CHILD(timers)
IN_CHILD(locks)
IN_CHILD(segments)
IN_CHILD(descriptors)

/* Threads. */

static void *ends_at_once(void *nothing) { return nothing; }
static void *sleeps(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}
static pthread_t thread(void *(*body)(void *))
{
    pthread_t made;
    if (pthread_create(&made, NULL, body, NULL) != 0)
        _exit(98);
    return made;
}
static void joined(void)
{
    pthread_t one = thread(ends_at_once), other = thread(ends_at_once);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
}
static void left_sleeping(void) { thread(sleeps), thread(sleeps); }
static void first_ends_first(void)
{
    thread(ends_at_once);
    syscall(SYS_exit, 0);
}
static void *executes(void *nothing)
{
    close(1);
    execl("/proc/self/exe", "churn_ends", "nothing", (char *)NULL);
    return nothing;
}
static void thread_executes(void)
{
    thread(sleeps);
    thread(executes);
    pause();
}
static void *faults(void *nothing)
{
    no_core();
    *(volatile int *)8 = 0;
    return nothing;
}
static void thread_faults(void)
{
    thread(sleeps);
    thread(faults);
    pause();
}
static void threads_killed(void)
{
    thread(sleeps), thread(sleeps);
    pause();
}
static void *exits_all(void *nothing)
{
    _exit(0);
    return nothing;
}
static void thread_exits_all(void)
{
    thread(sleeps);
    thread(exits_all);
    pause();
}
static void own_tables(void)
{
    unshare(CLONE_FILES);
    unshare(CLONE_FS);
    MUST(dup(1));
    thread(sleeps);
}
static void joined_once(void) { joined(); }
CHURN(joined)
IN_CHILD(left_sleeping)
IN_CHILD(first_ends_first)
IN_CHILD(thread_executes)
IN_CHILD(thread_exits_all)
IN_CHILD(own_tables)
ENDS(thread_faults, SIGSEGV)
KILLED_IN(threads_killed)

/* Killed in the midst of calls. */

static int ends[2];
static void in_read(void) { char byte; MUST(pipe(ends)); read(ends[0], &byte, 1); }
static void in_write(void)
{
    static char many[200000];
    MUST(pipe(ends));
    write(ends[1], many, sizeof many);
}
static void in_splice(void)
{
    int file = MUST(open("file", O_RDWR | O_CREAT, 0600));
    MUST(ftruncate(file, 200000));
    MUST(pipe(ends));
    while (splice(file, NULL, ends[1], NULL, 4096, 0) > 0)
        ;
}
static void in_fifo(void)
{
    mkfifo("fifo", 0600);
    open("fifo", O_RDONLY);
}
static void in_poll(void)
{
    MUST(pipe(ends));
    struct pollfd wanted[] = {{ends[0], POLLIN, 0}, {MUST(eventfd(0, 0)), POLLIN, 0}};
    poll(wanted, 2, -1);
}
static void in_select(void)
{
    fd_set wanted;
    FD_ZERO(&wanted);
    MUST(pipe(ends));
    FD_SET(ends[0], &wanted);
    select(ends[0] + 1, &wanted, NULL, NULL, NULL);
}
static void in_epoll(void)
{
    int epoll = MUST(epoll_create1(0)), outer = MUST(epoll_create1(0));
    struct epoll_event event = {EPOLLIN, {0}};
    MUST(pipe(ends));
    MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
    MUST(epoll_ctl(outer, EPOLL_CTL_ADD, epoll, &event));
    epoll_wait(outer, &event, 1, -1);
}
static void in_nanosleep(void) { sleep_ms(1000000); }
static void in_futex(void)
{
    int word = 0;
    syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
}
static void in_shared_futex(void)
{
    int *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0);
}
static void in_pause(void) { pause(); }
static void in_sigtimedwait(void)
{
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    sigwaitinfo(&some, NULL);
}
static void in_signalfd(void)
{
    sigset_t some;
    struct signalfd_siginfo info;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    read(MUST(signalfd(-1, &some, 0)), &info, sizeof info);
}
static void in_timerfd(void)
{
    struct itimerspec later = {{0, 0}, {1000, 0}};
    uint64_t count;
    int fd = MUST(timerfd_create(CLOCK_MONOTONIC, 0));
    timerfd_settime(fd, 0, &later, NULL);
    read(fd, &count, sizeof count);
}
static void in_eventfd(void) { uint64_t count; read(MUST(eventfd(0, 0)), &count, sizeof count); }
static void in_recv(void)
{
    char byte;
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    recv(ends[0], &byte, 1, 0);
}
static void in_send(void)
{
    static char many[4000000];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    send(ends[0], many, sizeof many, 0);
}
static void in_datagram(void)
{
    static char many[1000];
    MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    while (send(ends[0], many, sizeof many, 0) > 0)
        ;
}
static int listener(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0churn"};
    int fd = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
    MUST(bind(fd, (struct sockaddr *)&name, sizeof name));
    MUST(listen(fd, 0));
    return fd;
}
static void in_accept(void) { accept(listener(), NULL, NULL); }
static void in_connect(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0churn"};
    listener();
    while (connect(MUST(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr *)&name, sizeof name) == 0)
        ;
}
static void in_flock(void)
{
    MUST(flock(MUST(open("locked", O_RDWR | O_CREAT, 0600)), LOCK_EX));
    flock(MUST(open("locked", O_RDWR)), LOCK_EX);
}
static void in_terminal(void)
{
    char byte;
    int main_end = MUST(posix_openpt(O_RDWR | O_NOCTTY));
    MUST(unlockpt(main_end));
    MUST(open(ptsname(main_end), O_RDWR | O_NOCTTY));
    MUST(write(main_end, "half a line", 11));
    read(main_end, &byte, 1);
    while (read(main_end, &byte, 1) > 0)
        ;
}
static void in_vfork(void)
{
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        write(ends[1], "x", 1);
        pause();
        _exit(0);
    }
}
/* The file is locked by the parent, whom the child outlives by nothing. */
static void record_lock_once(void)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = MUST(open("locked", O_RDWR | O_CREAT, 0600));
    MUST(fcntl(fd, F_SETLK, &all));
    pid_t child = MUST(fork());
    if (child == 0) {
        fcntl(fd, F_SETLKW, &all);
        _exit(0);
    }
    until_still(child);
    kill(child, SIGKILL);
    expect_end(child, SIGKILL);
    close(fd);
}
KILLED_IN(in_read)
KILLED_IN(in_write)
KILLED_IN(in_splice)
KILLED_IN(in_fifo)
KILLED_IN(in_poll)
KILLED_IN(in_select)
KILLED_IN(in_epoll)
KILLED_IN(in_nanosleep)
KILLED_IN(in_futex)
KILLED_IN(in_shared_futex)
KILLED_IN(in_pause)
KILLED_IN(in_sigtimedwait)
KILLED_IN(in_signalfd)
KILLED_IN(in_timerfd)
KILLED_IN(in_eventfd)
KILLED_IN(in_recv)
KILLED_IN(in_send)
KILLED_IN(in_datagram)
KILLED_IN(in_accept)
KILLED_IN(in_connect)
KILLED_IN(in_flock)
KILLED_IN(in_terminal)
CHURN(record_lock)

/* Killed at any moment, wherever that is. */
static void *works(void *nothing)
{
    for (;;) {
        close(open("worked", O_RDWR | O_CREAT, 0600));
        if (pipe(ends) == 0)
            close(ends[0]), close(ends[1]);
        munmap(mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0), 65536);
    }
    return nothing;
}
static void works_and_executes(void)
{
    thread(works);
    executes(NULL);
}
static void at_any_moment_once(void)
{
    static int round;
    pid_t child = start(works_and_executes);
    for (int yields = round++ % 8; yields > 0; yields--)
        sched_yield();
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
CHURN(at_any_moment)

/* Traced ones. */

static void traced_child(void)
{
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    getppid();
}
static int run_on(pid_t child, int how, int options)
{
    int status;
    MUST(waitpid(child, &status, 0));
    if (options)
        MUST(ptrace(PTRACE_SETOPTIONS, child, 0, options));
    do {
        ptrace(how, child, 0, 0);
        MUST(waitpid(child, &status, 0));
    } while (WIFSTOPPED(status));
    return status;
}
static void traced_exit_once(void) { run_on(start(traced_child), PTRACE_CONT, 0); }
static void traced_calls_once(void) { run_on(start(traced_child), PTRACE_SYSCALL, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXIT); }
static void traced_exec(void)
{
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    executes(NULL);
}
static void traced_exec_once(void) { run_on(start(traced_exec), PTRACE_CONT, PTRACE_O_TRACEEXEC); }
static void traced_signal(void)
{
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    raise(SIGTERM);
}
static void traced_signal_once(void)
{
    int status;
    pid_t child = start(traced_signal);
    waitpid(child, &status, 0);
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    ptrace(PTRACE_CONT, child, 0, SIGTERM);
    expect_end(child, SIGTERM);
}
static void traced_killed_once(void)
{
    int status;
    pid_t child = start(traced_child);
    waitpid(child, &status, 0);
    ptrace(PTRACE_SYSCALL, child, 0, 0);
    waitpid(child, &status, 0);
    kill(child, SIGKILL);
    expect_end(child, SIGKILL);
}
static void traced_threads(void)
{
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    pthread_t made = thread(ends_at_once);
    pthread_join(made, NULL);
    thread(sleeps);
}
static void traced_threads_once(void)
{
    int status;
    pid_t child = start(traced_threads), stopped;
    waitpid(child, &status, 0);
    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXIT);
    for (stopped = child;; ) {
        ptrace(PTRACE_SYSCALL, stopped, 0, 0);
        stopped = MUST(waitpid(-1, &status, __WALL));
        if (stopped == child && !WIFSTOPPED(status))
            return;
    }
}
static void seized_once(void)
{
    int status;
    pid_t child = start(in_pause);
    MUST(ptrace(PTRACE_SEIZE, child, 0, 0));
    MUST(ptrace(PTRACE_INTERRUPT, child, 0, 0));
    MUST(waitpid(child, &status, 0));
    MUST(ptrace(PTRACE_DETACH, child, 0, 0));
    kill(child, SIGKILL);
    expect_end(child, SIGKILL);
}
/* The tracer ends first and takes its child along. */
static void tracer_ends(void)
{
    int status;
    pid_t child = start(traced_child);
    waitpid(child, &status, 0);
    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_EXITKILL);
}
static void tracer_ends_once(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    start(tracer_ends);
    for (int waited = 0; waited < 2; waited++)
        MUST(wait(NULL));
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}
static void stepped_once(void)
{
    int status;
    pid_t child = start(traced_child);
    waitpid(child, &status, 0);
    for (int steps = 0; steps < 20; steps++) {
        ptrace(PTRACE_SINGLESTEP, child, 0, 0);
        waitpid(child, &status, 0);
    }
    ptrace(PTRACE_CONT, child, 0, 0);
    expect_end(child, 0);
}
CHURN(traced_exit)
CHURN(traced_calls)
CHURN(traced_exec)
CHURN(traced_signal)
CHURN(traced_killed)
CHURN(traced_threads)
CHURN(seized)
CHURN(tracer_ends)
CHURN(stepped)
CHURN(vfork_exec)

/* A vfork parent killed while its child runs: the child goes by its parent's death. */
static void vfork_parent_once(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    char byte;
    MUST(pipe(ends));
    pid_t child = start(in_vfork);
    MUST(read(ends[0], &byte, 1));
    close(ends[0]), close(ends[1]);
    until_still(child);
    kill(child, SIGKILL);
    for (int waited = 0; waited < 2; waited++)
        MUST(wait(NULL));
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}
CHURN(vfork_parent)

static void nothing(void) {}

#define CASE(what) {#what, churn_##what}
static const struct test tests[] = {
    CASE(exit_call), CASE(aborts), CASE(kills_itself), CASE(bad_instruction), CASE(bad_stack), CASE(bad_frame),
    CASE(processor_limit), CASE(stopped), CASE(unwaited), CASE(orphan), CASE(vfork), CASE(vfork_exec),
    CASE(vfork_parent), CASE(many_signals), CASE(timers), CASE(locks), CASE(segments), CASE(large_segment), CASE(descriptors),
    CASE(joined), CASE(left_sleeping), CASE(first_ends_first), CASE(thread_executes), CASE(thread_exits_all),
    CASE(own_tables), CASE(thread_faults), CASE(threads_killed),
    CASE(in_read), CASE(in_write), CASE(in_splice), CASE(in_fifo), CASE(in_poll), CASE(in_select), CASE(in_epoll),
    CASE(in_nanosleep), CASE(in_futex), CASE(in_shared_futex), CASE(in_pause), CASE(in_sigtimedwait),
    CASE(in_signalfd), CASE(in_timerfd), CASE(in_eventfd), CASE(in_recv), CASE(in_send), CASE(in_datagram),
    CASE(in_accept), CASE(in_connect), CASE(in_flock), CASE(in_terminal), CASE(record_lock), CASE(at_any_moment),
    CASE(traced_exit), CASE(traced_calls), CASE(traced_exec), CASE(traced_signal), CASE(traced_killed),
    CASE(traced_threads), CASE(seized), CASE(tracer_ends), CASE(stepped),
    {"nothing", nothing}, /* what `exec` starts */
};
CHECK_MAIN(tests)
