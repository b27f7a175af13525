/* Processes as descriptors, what processes have in common, waiting for several words, barriers, scheduling, own copies of what is shared. */
#include "check.h"

#include <linux/futex.h>
#include <linux/kcmp.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

enum {
    CALL_PIDFD_SEND_SIGNAL = 424, CALL_PIDFD_OPEN = 434, CALL_CLONE3 = 435, CALL_PIDFD_GETFD = 438, CALL_PROCESS_MADVISE = 440,
    CALL_PROCESS_MRELEASE = 448, CALL_FUTEX_WAITV = 449, CALL_CACHESTAT = 451,
};

static int handle_of(pid_t pid, unsigned flags)
{
    return syscall(CALL_PIDFD_OPEN, pid, flags);
}

static int send_by(int handle, int signal, siginfo_t *info, unsigned flags)
{
    return syscall(CALL_PIDFD_SEND_SIGNAL, handle, signal, info, flags);
}

static pid_t sleeper(void)
{
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    return MUST(pid);
}

static void show_poll(const char *what, int handle, int ms)
{
    struct pollfd one = {handle, POLLIN | POLLOUT, 0};
    int count = poll(&one, 1, ms);
    printf("%s: %d, in %d out %d\n", what, count, !!(one.revents & POLLIN), !!(one.revents & POLLOUT));
}

static void a_handle_is_ready_at_the_end(void)
{
    int status;
    pid_t pid = sleeper();
    int handle = MUST(handle_of(pid, 0));
    SHOW(fcntl(handle, F_GETFD));
    show_poll("alive", handle, 0);
    SHOW(send_by(handle, 0, NULL, 0));
    SHOW(send_by(handle, SIGTERM, NULL, 0));
    show_poll("ended", handle, 5000);
    MUST(waitpid(pid, &status, 0));
    say_status("child", status);
    show_poll("waited for", handle, 0);
    SHOW(send_by(handle, 0, NULL, 0));
    SHOW(send_by(handle, SIGKILL, NULL, 0));
}

static void an_epoll_instance_tells_of_the_end(void)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 5};
    pid_t pid = sleeper();
    int handle = MUST(handle_of(pid, 0)), instance = MUST(epoll_create1(0));
    SHOW(epoll_ctl(instance, EPOLL_CTL_ADD, handle, &event));
    SHOW(epoll_wait(instance, &event, 1, 0));
    MUST(kill(pid, SIGKILL));
    SHOW(epoll_wait(instance, &event, 1, 5000));
    MUST(waitpid(pid, NULL, 0));
}

static void waiting_by_a_handle(void)
{
    siginfo_t info = {0};
    pid_t pid = sleeper();
    int handle = MUST(handle_of(pid, 0)), hasty = MUST(handle_of(pid, O_NONBLOCK));
    SHOW(waitid(P_PIDFD, handle, &info, WEXITED | WNOHANG));
    SHOW(info.si_pid);
    SHOW(waitid(P_PIDFD, hasty, &info, WEXITED));
    SHOW(waitid(P_PIDFD, 0, &info, WEXITED));
    SHOW(waitid(P_PIDFD, -1, &info, WEXITED));
    SHOW(waitid(P_PIDFD, 77, &info, WEXITED));
    MUST(kill(pid, SIGKILL));
    SHOW(waitid(P_PIDFD, handle, &info, WEXITED));
    SHOW(info.si_pid == pid);
    SHOW(info.si_status);
    SHOW(waitid(P_PIDFD, handle, &info, WEXITED));
}

static volatile sig_atomic_t came, came_value;

static void note(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    came = info->si_code;
    came_value = info->si_value.sival_int;
}

static void signals_carry_details(void)
{
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    siginfo_t info = {0};
    int own = MUST(handle_of(getpid(), 0));
    MUST(sigaction(SIGUSR1, &action, NULL));
    info.si_signo = SIGUSR1;
    info.si_code = SI_QUEUE;
    info.si_value.sival_int = 42;
    SHOW(send_by(own, SIGUSR1, &info, 0));
    SHOW(came == SI_QUEUE);
    SHOW(came_value);
    SHOW(send_by(own, SIGUSR1, NULL, 0));
    SHOW(came == SI_USER);
    SHOW(send_by(own, SIGUSR2, &info, 0));
    SHOW(send_by(own, SIGUSR1, NULL, 0x100));
    SHOW(send_by(own, SIGUSR1, (siginfo_t *)8, 0));
    SHOW(send_by(own, 65, NULL, 0));
    SHOW(send_by(0, SIGUSR1, NULL, 0));
    SHOW(send_by(88, SIGUSR1, NULL, 0));
    pid_t pid = sleeper();
    int handle = MUST(handle_of(pid, 0));
    info.si_code = SI_USER;
    SHOW(send_by(handle, SIGUSR1, &info, 0));
    info.si_code = SI_TKILL;
    SHOW(send_by(handle, SIGUSR1, &info, 0));
    MUST(kill(pid, SIGKILL));
    MUST(waitpid(pid, NULL, 0));
}

static void opening_nonsense(void)
{
    char byte;
    SHOW(handle_of(0, 0));
    SHOW(handle_of(-1, 0));
    SHOW(handle_of(0x3FFFFFFF, 0));
    SHOW(handle_of(getpid(), 1));
    int own = MUST(handle_of(getpid(), 0));
    SHOW(read(own, &byte, 1));
    SHOW(write(own, &byte, 1));
    SHOW(lseek(own, 0, SEEK_SET));
}

static void a_descriptor_of_another(void)
{
    int ends[2], status;
    char byte = 0;
    MUST(pipe(ends));
    pid_t pid = fork();
    if (pid == 0) {
        int own[2];
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, own));
        MUST(dup2(own[0], 60));
        MUST(write(ends[1], "r", 1));
        MUST(read(own[1], &byte, 1));
        _exit(byte);
    }
    MUST(pid);
    MUST(read(ends[0], &byte, 1));
    int handle = MUST(handle_of(pid, 0));
    int theirs = syscall(CALL_PIDFD_GETFD, handle, 60, 0);
    SHOW(theirs >= 0);
    SHOW(fcntl(theirs, F_GETFD));
    SHOW(syscall(SYS_kcmp, getpid(), pid, KCMP_FILE, theirs, 60));
    SHOW(syscall(CALL_PIDFD_GETFD, handle, 61, 0));
    SHOW(syscall(CALL_PIDFD_GETFD, handle, 60, 1));
    SHOW(syscall(CALL_PIDFD_GETFD, 0, 60, 0));
    SHOW(write(theirs, "x", 1));
    MUST(waitpid(pid, &status, 0));
    say_status("child", status);
    SHOW(syscall(CALL_PIDFD_GETFD, handle, 60, 0));
}

struct arguments {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};

static void a_birth_gives_a_handle(void)
{
    int handle = -1, status;
    struct arguments arguments = {.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&handle, .exit_signal = SIGCHLD};
    fflush(stdout);
    pid_t pid = syscall(CALL_CLONE3, &arguments, sizeof arguments);
    if (pid == 0)
        _exit(handle == -1 ? 7 : 8);
    MUST(pid);
    SHOW(handle > 2);
    SHOW(fcntl(handle, F_GETFD));
    show_poll("ends", handle, 5000);
    siginfo_t info;
    SHOW(waitid(P_PIDFD, handle, &info, WEXITED));
    SHOW(info.si_status);
    handle = -1;
    pid = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, &handle, NULL, NULL);
    if (pid == 0)
        _exit(9);
    MUST(waitpid(pid, &status, 0));
    say_status("the older call", status);
    SHOW(handle > 2);
    SHOW(syscall(SYS_clone, CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, NULL, &handle, NULL, NULL));
    SHOW(syscall(SYS_clone, CLONE_PIDFD | CLONE_DETACHED | SIGCHLD, NULL, &handle, NULL, NULL));
    SHOW(syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, (void *)8, NULL, NULL));
}

static void *nothing(void *argument)
{
    pid_t *tid = argument;
    *tid = gettid();
    for (;;)
        pause();
    return NULL;
}

static void what_two_have_in_common(void)
{
    pthread_t thread;
    static volatile pid_t tid;
    int one = MUST(open("/dev/null", O_RDONLY)), same = MUST(dup(one)), other = MUST(open("/dev/null", O_RDONLY));
    pid_t pid = sleeper(), own = getpid();
    pthread_create(&thread, NULL, nothing, (void *)&tid);
    while (tid == 0)
        sched_yield();
    SHOW(syscall(SYS_kcmp, own, own, KCMP_FILE, one, same));
    SHOW(syscall(SYS_kcmp, own, own, KCMP_FILE, one, other) > 0);
    SHOW(syscall(SYS_kcmp, own, pid, KCMP_FILE, one, one));
    SHOW(syscall(SYS_kcmp, own, own, KCMP_FILE, one, 99));
    for (int kind = KCMP_VM; kind <= KCMP_SIGHAND; kind++)
        printf("kind %d: thread %ld, process %d\n", kind, syscall(SYS_kcmp, own, tid, kind, 0, 0),
               syscall(SYS_kcmp, own, pid, kind, 0, 0) > 0);
    SHOW(syscall(SYS_kcmp, own, pid, KCMP_VM, 0, 0) + syscall(SYS_kcmp, pid, own, KCMP_VM, 0, 0));
    SHOW(syscall(SYS_kcmp, own, own, KCMP_SYSVSEM, 0, 0));
    SHOW(syscall(SYS_kcmp, own, own, 99, 0, 0));
    SHOW(syscall(SYS_kcmp, own, 0x3FFFFFFF, KCMP_VM, 0, 0));
    MUST(kill(pid, SIGKILL));
    MUST(waitpid(pid, NULL, 0));
}

static void advice_for_another(void)
{
    char *pages = mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct iovec ranges[2] = {{pages, 4 * 4096}, {pages + 4 * 4096, 4096}};
    int own = MUST(handle_of(getpid(), 0));
    memset(pages, 5, 8 * 4096);
    SHOW(syscall(CALL_PROCESS_MADVISE, own, ranges, 2, MADV_COLD, 0));
    SHOW(syscall(CALL_PROCESS_MADVISE, own, ranges, 2, MADV_PAGEOUT, 0));
    SHOW(pages[5]);
    SHOW(syscall(CALL_PROCESS_MADVISE, own, ranges, 2, MADV_COLD, 1));
    SHOW(syscall(CALL_PROCESS_MADVISE, own, ranges, 2, 99, 0));
    SHOW(syscall(CALL_PROCESS_MADVISE, 0, ranges, 2, MADV_COLD, 0));
    SHOW(syscall(CALL_PROCESS_MADVISE, own, 8, 2, MADV_COLD, 0));
    MUST(munmap(pages + 4 * 4096, 4096));
    SHOW(syscall(CALL_PROCESS_MADVISE, own, ranges, 2, MADV_COLD, 0));
    SHOW(syscall(CALL_PROCESS_MADVISE, own, ranges + 1, 1, MADV_COLD, 0));
    ranges[0].iov_base = pages + 1;
    SHOW(syscall(CALL_PROCESS_MADVISE, own, ranges, 1, MADV_COLD, 0));
    SHOW(syscall(CALL_PROCESS_MRELEASE, own, 0));
    SHOW(syscall(CALL_PROCESS_MRELEASE, own, 1));
    SHOW(syscall(CALL_PROCESS_MRELEASE, 0, 0));
}

struct word {
    uint64_t value, address;
    uint32_t flags, reserved;
};

static uint32_t words[3];

static void *wakes_the_last(void *unused)
{
    (void)unused;
    while (syscall(SYS_futex, &words[2], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0)
        sched_yield();
    return NULL;
}

static void waiting_for_several_words(void)
{
    enum { WORD = 2 | 128 };
    struct word vector[3];
    struct timespec past = {0, 1}, wrong = {0, 2000000000}, soon;
    pthread_t thread;
    for (int i = 0; i < 3; i++)
        vector[i] = (struct word){0, (uintptr_t)&words[i], WORD, 0};
    pthread_create(&thread, NULL, wakes_the_last, NULL);
    SHOW(syscall(CALL_FUTEX_WAITV, vector, 3, 0, NULL, 0));
    pthread_join(thread, NULL);
    SHOW(syscall(CALL_FUTEX_WAITV, vector, 3, 0, &past, CLOCK_MONOTONIC));
    MUST(clock_gettime(CLOCK_REALTIME, &soon));
    SHOW(syscall(CALL_FUTEX_WAITV, vector, 3, 0, &soon, CLOCK_REALTIME));
    SHOW(syscall(CALL_FUTEX_WAITV, vector, 3, 0, &wrong, CLOCK_MONOTONIC));
    SHOW(syscall(CALL_FUTEX_WAITV, vector, 3, 0, &past, CLOCK_BOOTTIME));
    SHOW(syscall(CALL_FUTEX_WAITV, vector, 3, 1, &past, CLOCK_MONOTONIC));
    SHOW(syscall(CALL_FUTEX_WAITV, vector, 0, 0, &past, CLOCK_MONOTONIC));
    SHOW(syscall(CALL_FUTEX_WAITV, vector, 129, 0, &past, CLOCK_MONOTONIC));
    SHOW(syscall(CALL_FUTEX_WAITV, 8, 1, 0, &past, CLOCK_MONOTONIC));
    words[1] = 1;
    SHOW(syscall(CALL_FUTEX_WAITV, vector, 3, 0, &past, CLOCK_MONOTONIC));
    words[1] = 0;
    vector[2].reserved = 1;
    SHOW(syscall(CALL_FUTEX_WAITV, vector, 3, 0, &past, CLOCK_MONOTONIC));
    vector[2].reserved = 0;
    vector[2].address++;
    SHOW(syscall(CALL_FUTEX_WAITV, vector, 3, 0, &past, CLOCK_MONOTONIC));
    vector[2].address = 8;
    SHOW(syscall(CALL_FUTEX_WAITV, vector, 3, 0, &past, CLOCK_MONOTONIC));
    SHOW(syscall(SYS_futex, &words[0], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
}

static void interrupts(int signal)
{
    (void)signal;
}

static void a_signal_ends_the_wait(void)
{
    struct word one = {0, (uintptr_t)&words[0], 2 | 128, 0};
    struct sigaction action = {.sa_handler = interrupts};
    struct itimerval time = {{0, 0}, {0, 20000}};
    MUST(sigaction(SIGALRM, &action, NULL));
    MUST(setitimer(ITIMER_REAL, &time, NULL));
    SHOW(syscall(CALL_FUTEX_WAITV, &one, 1, 0, NULL, 0));
}

static int barrier(int command, unsigned flags)
{
    return syscall(SYS_membarrier, command, flags, 0);
}

static void barriers_are_registered_for(void)
{
    SHOW(barrier(MEMBARRIER_CMD_QUERY, 0) & 0x1ff);
    SHOW(barrier(MEMBARRIER_CMD_GLOBAL, 0));
    SHOW(barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0));
    SHOW(barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0));
    SHOW(barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0));
    SHOW(barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0));
    SHOW(barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0));
    SHOW(barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0));
    SHOW(barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0));
    SHOW(barrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0));
    SHOW(barrier(MEMBARRIER_CMD_GLOBAL, 1));
    SHOW(barrier(3, 0));
    SHOW(barrier(1 << 20, 0));
    SHOW(barrier(-1, 0));
}

struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t least, most;
    char more[8];
};

static void scheduling_by_a_record(void)
{
    struct attributes record = {.size = 48, .policy = SCHED_BATCH, .nice = 3}, got = {0};
    SHOW(syscall(SYS_sched_setattr, 0, &record, 0));
    SHOW(sched_getscheduler(0));
    SHOW(getpriority(PRIO_PROCESS, 0));
    SHOW(syscall(SYS_sched_getattr, 0, &got, 48, 0));
    SHOW(got.policy);
    SHOW(got.nice);
    record = (struct attributes){.size = 48, .policy = SCHED_IDLE, .flags = 1};
    SHOW(syscall(SYS_sched_setattr, 0, &record, 0));
    SHOW(sched_getscheduler(0) == (SCHED_IDLE | SCHED_RESET_ON_FORK));
    record = (struct attributes){.size = 48, .flags = 1 | 8 | 16};
    SHOW(syscall(SYS_sched_setattr, 0, &record, 0));
    SHOW(sched_getscheduler(0) == (SCHED_IDLE | SCHED_RESET_ON_FORK));
    record.size = 40;
    SHOW(syscall(SYS_sched_setattr, 0, &record, 0));
    record = (struct attributes){.size = 64, .policy = SCHED_IDLE, .flags = 1, .more = {1}};
    SHOW(syscall(SYS_sched_setattr, 0, &record, 0));
    record = (struct attributes){.size = 48, .policy = 77};
    SHOW(syscall(SYS_sched_setattr, 0, &record, 0));
    record = (struct attributes){.size = 48, .policy = SCHED_OTHER, .priority = 1};
    SHOW(syscall(SYS_sched_setattr, 0, &record, 0));
    record = (struct attributes){.size = 48, .flags = 1 << 20};
    SHOW(syscall(SYS_sched_setattr, 0, &record, 0));
    record.flags = 1;
    SHOW(syscall(SYS_sched_setattr, 0, &record, 1));
    SHOW(syscall(SYS_sched_setattr, 0, NULL, 0));
    SHOW(syscall(SYS_sched_setattr, 0, 8, 0));
    SHOW(syscall(SYS_sched_setattr, -1, &record, 0));
    SHOW(syscall(SYS_sched_setattr, 0x3FFFFFFF, &record, 0));
}

static int fs_shared(void *unused)
{
    (void)unused;
    MUST(chdir("/dev"));
    umask(0111);
    MUST(unshare(CLONE_FS));
    MUST(chdir("/proc"));
    umask(0222);
    return 0;
}

static int files_shared(void *unused)
{
    (void)unused;
    MUST(close(50));
    MUST(unshare(CLONE_FILES));
    MUST(close(51));
    return 0;
}

static char stack[65536];

static void own_copies(void)
{
    char directory[64];
    MUST(dup2(1, 50));
    MUST(dup2(1, 51));
    pid_t pid = clone(fs_shared, stack + sizeof stack, CLONE_FS | SIGCHLD, NULL);
    MUST(waitpid(pid, NULL, 0));
    printf("%s, %o\n", getcwd(directory, sizeof directory), umask(0));
    pid = clone(files_shared, stack + sizeof stack, CLONE_FILES | SIGCHLD, NULL);
    MUST(waitpid(pid, NULL, 0));
    SHOW(fcntl(50, F_GETFD));
    SHOW(fcntl(51, F_GETFD));
    SHOW(unshare(0));
    SHOW(unshare(CLONE_SYSVSEM));
    SHOW(unshare(CLONE_THREAD | CLONE_SIGHAND | CLONE_VM));
    SHOW(unshare(CLONE_PARENT));
    pthread_t thread;
    static volatile pid_t tid;
    pthread_create(&thread, NULL, nothing, (void *)&tid);
    SHOW(unshare(CLONE_THREAD));
    SHOW(unshare(CLONE_VM));
}

static void pages_of_a_file_in_memory(void)
{
    uint64_t range[2] = {0, 0}, counts[5] = {9, 9, 9, 9, 9};
    int file = MUST(memfd_create("pages", 0)), ends[2];
    static char page[4096];
    MUST(ftruncate(file, 40 * 4096));
    MUST(pwrite(file, page, 4096, 0));
    MUST(pwrite(file, page, 4096, 10 * 4096));
    MUST(pwrite(file, page, 4096, 11 * 4096));
    SHOW(syscall(CALL_CACHESTAT, file, range, counts, 0));
    SHOW(counts[0]);
    range[0] = 4096, range[1] = 10 * 4096;
    SHOW(syscall(CALL_CACHESTAT, file, range, counts, 0));
    SHOW(counts[0]);
    range[0] = 100 * 4096, range[1] = 0;
    SHOW(syscall(CALL_CACHESTAT, file, range, counts, 0));
    SHOW(counts[0]);
    SHOW(counts[4]);
    SHOW(syscall(CALL_CACHESTAT, file, range, counts, 1));
    SHOW(syscall(CALL_CACHESTAT, file, 8, counts, 0));
    SHOW(syscall(CALL_CACHESTAT, file, range, 8, 0));
    SHOW(syscall(CALL_CACHESTAT, 99, range, counts, 0));
    MUST(pipe(ends));
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(a_handle_is_ready_at_the_end),
    T(an_epoll_instance_tells_of_the_end),
    T(waiting_by_a_handle),
    T(signals_carry_details),
    T(opening_nonsense),
    T(a_descriptor_of_another),
    T(a_birth_gives_a_handle),
    T(what_two_have_in_common),
    T(advice_for_another),
    T(waiting_for_several_words),
    T(a_signal_ends_the_wait),
    T(barriers_are_registered_for),
    T(scheduling_by_a_record),
    T(own_copies),
    T(pages_of_a_file_in_memory),
};
CHECK_MAIN(tests)
