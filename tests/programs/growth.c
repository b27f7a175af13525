/* What operations cost while something grows: `growth NAME N` does one kind of operation on N objects and prints the nanoseconds,
 * which are instructions on a machine that counts them as time. `growth list` prints the names, each with the N to begin with.
 * Twice the N may cost twice as much, and a little more for the depth of trees.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define MUST(call)                                                                                                     \
    ({                                                                                                                 \
        long must_result = (long)(call);                                                                               \
        if (must_result == -1) {                                                                                       \
            printf("line %d: %s: %s\n", __LINE__, #call, strerror(errno));                                             \
            exit(99);                                                                                                  \
        }                                                                                                              \
        must_result;                                                                                                   \
    })

static int *objects;
static struct timespec begun;

static void begin(void)
{
    clock_gettime(CLOCK_MONOTONIC, &begun);
}

static long passed(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - begun.tv_sec) * 1000000000L + now.tv_nsec - begun.tv_nsec;
}

static void make_events(int count)
{
    for (int i = 0; i < count; i++)
        objects[i] = MUST(eventfd(0, 0));
}

static int watch_events(int count, int step)
{
    int instance = MUST(epoll_create1(0));
    for (int i = step > 0 ? 0 : count - 1; i >= 0 && i < count; i += step) {
        struct epoll_event event = {.events = EPOLLIN};
        MUST(epoll_ctl(instance, EPOLL_CTL_ADD, objects[i], &event));
    }
    return instance;
}

static long descriptors(int count)
{
    begin();
    make_events(count);
    for (int i = 0; i < count; i++)
        MUST(close(objects[i]));
    return passed();
}

static long watched(int count)
{
    make_events(count);
    begin();
    watch_events(count, 1);
    return passed();
}

static long watched_backwards(int count)
{
    make_events(count);
    begin();
    int instance = watch_events(count, -1);
    for (int i = 0; i < count; i++)
        MUST(epoll_ctl(instance, EPOLL_CTL_DEL, objects[i], NULL));
    return passed();
}

static long watched_and_closed(int count)
{
    make_events(count);
    begin();
    int instance = watch_events(count, 1);
    for (int i = 0; i < count; i++)
        MUST(close(objects[i]));
    struct epoll_event event;
    MUST(epoll_wait(instance, &event, 1, 0));
    MUST(close(instance));
    return passed();
}

/* All that wait are looked at in each wait: linear. */
static long waits(int count)
{
    struct epoll_event event;
    make_events(count);
    int instance = watch_events(count, 1);
    begin();
    MUST(epoll_wait(instance, &event, 1, 1000));
    return passed() - 1000000000;
}

static long polls(int count)
{
    struct pollfd *records = calloc(count, sizeof *records);
    make_events(count);
    for (int i = 0; i < count; i++)
        records[i] = (struct pollfd){objects[i], POLLIN, 0};
    begin();
    MUST(poll(records, count, 1000));
    return passed() - 1000000000;
}

static long watchers_of_one(int count)
{
    int event = MUST(eventfd(0, 0));
    struct epoll_event record = {.events = EPOLLIN};
    begin();
    for (int i = 0; i < count; i++) {
        objects[i] = MUST(epoll_create1(0));
        MUST(epoll_ctl(objects[i], EPOLL_CTL_ADD, event, &record));
    }
    for (int i = 0; i < count; i++)
        MUST(close(objects[i]));
    return passed();
}

static long nested(int count)
{
    struct epoll_event record = {.events = EPOLLIN};
    int layers = 4, wide = count / layers;
    begin();
    for (int i = 0; i < wide * layers; i++)
        objects[i] = MUST(epoll_create1(0));
    for (int layer = 0; layer + 1 < layers; layer++)
        for (int i = 0; i < wide; i++)
            for (int k = 0; k < 8; k++)
                MUST(epoll_ctl(objects[layer * wide + i], EPOLL_CTL_ADD, objects[(layer + 1) * wide + (i + k) % wide], &record));
    return passed();
}

static long zombies(int count)
{
    begin();
    for (int i = 0; i < count; i++)
        if (MUST(vfork()) == 0)
            _exit(0);
    for (int i = 0; i < count; i++)
        MUST(wait(NULL));
    return passed();
}

static long zombies_by_number(int count)
{
    for (int i = 0; i < count; i++)
        if ((objects[i] = MUST(fork())) == 0)
            _exit(0);
    begin();
    for (int i = count - 1; i >= 0; i--)
        MUST(waitpid(objects[i], NULL, 0));
    return passed();
}

static long children(int count)
{
    int gate[2];
    char byte;
    MUST(pipe(gate));
    begin();
    for (int i = 0; i < count; i++)
        if (MUST(fork()) == 0) {
            close(gate[1]);
            _exit(read(gate[0], &byte, 1));
        }
    close(gate[1]);
    for (int i = 0; i < count; i++)
        MUST(wait(NULL));
    return passed();
}

static long areas(int count)
{
    char *base = mmap(NULL, (size_t)count * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    begin();
    for (int i = 0; i < count; i++)
        MUST(mprotect(base + (size_t)i * 8192, 4096, PROT_READ));
    for (int i = count - 1; i >= 0; i--)
        MUST(munmap(base + (size_t)i * 8192, 4096));
    return passed();
}

static long maps(int count)
{
    void **all = calloc(count, sizeof *all);
    begin();
    for (int i = 0; i < count; i++) {
        all[i] = mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        MUST(all[i] == MAP_FAILED ? -1 : 0);
    }
    for (int i = 0; i < count; i++)
        MUST(munmap(all[i], 4096));
    return passed();
}

static long entries(int count)
{
    char name[40], buffer[4096];
    MUST(mkdir("grown", 0700));
    begin();
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "grown/%d", i * 7919 % count);
        MUST(close(MUST(open(name, O_CREAT | O_WRONLY, 0600))));
    }
    int folder = MUST(open("grown", O_RDONLY));
    while (MUST(syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0)
        ;
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "grown/%d", i);
        MUST(unlink(name));
    }
    long result = passed();
    MUST(rmdir("grown"));
    return result;
}

static long inotify_watches(int count)
{
    char name[40];
    MUST(mkdir("grown", 0700));
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "grown/%d", i);
        MUST(close(MUST(open(name, O_CREAT | O_WRONLY, 0600))));
    }
    int instance = MUST(inotify_init1(IN_NONBLOCK));
    begin();
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "grown/%d", i);
        objects[i] = MUST(inotify_add_watch(instance, name, IN_MODIFY));
    }
    for (int i = 0; i < count; i++)
        MUST(inotify_rm_watch(instance, objects[i]));
    long result = passed();
    MUST(close(instance));
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "grown/%d", i);
        MUST(unlink(name));
    }
    MUST(rmdir("grown"));
    return result;
}

static long timers(int count)
{
    struct itimerspec far = {.it_value.tv_sec = 1000};
    begin();
    for (int i = 0; i < count; i++) {
        objects[i] = MUST(timerfd_create(CLOCK_MONOTONIC, 0));
        far.it_value.tv_sec = 1000 + i * 7919 % count;
        MUST(timerfd_settime(objects[i], 0, &far, NULL));
    }
    for (int i = 0; i < count; i++)
        MUST(close(objects[i]));
    return passed();
}

static long queued_signals(int count)
{
    sigset_t set;
    struct rlimit limit = {100000, 100000};
    setrlimit(RLIMIT_SIGPENDING, &limit);
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    begin();
    for (int i = 0; i < count; i++)
        MUST(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}));
    for (int i = 0; i < count; i++)
        MUST(sigwaitinfo(&set, NULL));
    return passed();
}

static long locks(int count)
{
    int file = MUST(open("grown", O_CREAT | O_RDWR, 0600));
    begin();
    for (int i = 0; i < count; i++) {
        struct flock lock = {.l_type = F_WRLCK, .l_start = (long)(i * 7919L % count) * 2, .l_len = 1};
        MUST(fcntl(file, F_SETLK, &lock));
    }
    for (int i = 0; i < count; i++) {
        struct flock lock = {.l_type = F_UNLCK, .l_start = i * 2, .l_len = 1};
        MUST(fcntl(file, F_SETLK, &lock));
    }
    long result = passed();
    MUST(unlink("grown"));
    return result;
}

static long semaphores(int count)
{
    begin();
    for (int i = 0; i < count; i++)
        objects[i] = MUST(semget(IPC_PRIVATE, 1, 0600));
    for (int i = 0; i < count; i++)
        MUST(semctl(objects[i], 0, IPC_RMID));
    return passed();
}

static long undone(int count)
{
    for (int i = 0; i < count; i++)
        objects[i] = MUST(semget(IPC_PRIVATE, 1, 0600));
    begin();
    for (int i = 0; i < count; i++) {
        struct sembuf add = {0, 1, SEM_UNDO};
        MUST(semop(objects[i], &add, 1));
    }
    long result = passed();
    for (int i = 0; i < count; i++)
        MUST(semctl(objects[i], 0, IPC_RMID));
    return result;
}

static long messages(int count)
{
    struct {
        long type;
        char text[1];
    } message = {1, "x"};
    int queue = MUST(msgget(IPC_PRIVATE, 0600));
    begin();
    for (int i = 0; i < count; i++) {
        message.type = 1 + i;
        MUST(msgsnd(queue, &message, 1, IPC_NOWAIT));
    }
    for (int i = 0; i < count; i++)
        MUST(msgrcv(queue, &message, 1, 0, IPC_NOWAIT));
    long result = passed();
    MUST(msgctl(queue, IPC_RMID, NULL));
    return result;
}

static long segments(int count)
{
    begin();
    for (int i = 0; i < count; i++)
        objects[i] = MUST(shmget(IPC_PRIVATE, 4096, 0600));
    for (int i = 0; i < count; i++)
        MUST(shmctl(objects[i], IPC_RMID, NULL));
    return passed();
}

static int futexes[4096], arrived;

static void *wait_for_own(void *number)
{
    __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &futexes[(long)number], FUTEX_WAIT_PRIVATE, 0, NULL);
    return NULL;
}

static void *wait_for_one(void *number)
{
    (void)number;
    __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &futexes[0], FUTEX_WAIT_PRIVATE, 0, NULL);
    return NULL;
}

static long threads(int count, void *(*body)(void *), int step)
{
    pthread_t *all = calloc(count, sizeof *all);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    begin();
    for (long i = 0; i < count; i++)
        MUST(pthread_create(&all[i], &small, body, (void *)i) ? -1 : 0);
    while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < count)
        sched_yield();
    for (int i = 0; i < count; i++)
        while (syscall(SYS_futex, &futexes[i * step], FUTEX_WAKE_PRIVATE, 1) == 0)
            sched_yield();
    for (int i = 0; i < count; i++)
        MUST(pthread_join(all[i], NULL) ? -1 : 0);
    return passed();
}

static long futexes_of_their_own(int count)
{
    return threads(count, wait_for_own, 1);
}

static long one_futex(int count)
{
    return threads(count, wait_for_one, 0);
}

static long pipes(int count)
{
    begin();
    for (int i = 0; i < count; i++)
        MUST(pipe(objects + 2 * i));
    for (int i = 0; i < 2 * count; i++)
        MUST(close(objects[i]));
    return passed();
}

static long links(int count)
{
    char name[40];
    MUST(close(MUST(open("grown", O_CREAT | O_WRONLY, 0600))));
    begin();
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "grown.%d", i);
        MUST(link("grown", name));
    }
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "grown.%d", i);
        MUST(unlink(name));
    }
    long result = passed();
    MUST(unlink("grown"));
    return result;
}

static long datagrams(int count)
{
    int ends[2];
    begin();
    for (int i = 0; i < count; i++) {
        MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
        objects[2 * i] = ends[0];
        objects[2 * i + 1] = ends[1];
        MUST(send(ends[0], "x", 1, 0));
    }
    for (int i = 0; i < 2 * count; i++)
        MUST(close(objects[i]));
    return passed();
}

static long file_locks(int count)
{
    MUST(close(MUST(open("grown", O_CREAT | O_RDWR, 0600))));
    for (int i = 0; i < count; i++)
        objects[i] = MUST(open("grown", O_RDWR));
    begin();
    for (int i = 0; i < count; i++)
        MUST(flock(objects[i], LOCK_SH));
    for (int i = 0; i < count; i++)
        MUST(close(objects[i]));
    long result = passed();
    MUST(unlink("grown"));
    return result;
}

static long sleepers(int count)
{
    begin();
    for (int i = 0; i < count; i++)
        if (MUST(fork()) == 0) {
            struct timespec little = {0, 50000000 + i * 1000};
            nanosleep(&little, NULL);
            _exit(0);
        }
    for (int i = 0; i < count; i++)
        MUST(wait(NULL));
    return passed();
}

static long attributes(int count)
{
    char name[40];
    MUST(close(MUST(open("grown", O_CREAT | O_RDWR, 0600))));
    begin();
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "user.%d", i);
        MUST(setxattr("grown", name, "x", 1, 0));
    }
    long result = passed();
    MUST(unlink("grown"));
    return result;
}

static const struct {
    const char *name;
    long (*run)(int);
    int count;
} kinds[] = {
    {"descriptors", descriptors, 8000},
    {"watched", watched, 8000},
    {"watched_backwards", watched_backwards, 8000},
    {"watched_and_closed", watched_and_closed, 8000},
    {"waits", waits, 8000},
    {"polls", polls, 8000},
    {"watchers_of_one", watchers_of_one, 4000},
    {"nested", nested, 400},
    {"zombies", zombies, 1500},
    {"zombies_by_number", zombies_by_number, 1500},
    {"children", children, 500},
    {"areas", areas, 4000},
    {"maps", maps, 4000},
    {"entries", entries, 4000},
    {"inotify_watches", inotify_watches, 2000},
    {"timers", timers, 8000},
    {"queued_signals", queued_signals, 2000},
    {"locks", locks, 2000},
    {"file_locks", file_locks, 4000},
    {"semaphores", semaphores, 4000},
    {"undone", undone, 4000},
    {"messages", messages, 4000},
    {"segments", segments, 1000},
    {"futexes_of_their_own", futexes_of_their_own, 500},
    {"one_futex", one_futex, 500},
    {"pipes", pipes, 4000},
    {"links", links, 4000},
    {"datagrams", datagrams, 2000},
    {"sleepers", sleepers, 500},
    {"attributes", attributes, 500},
};

int main(int argc, char **argv)
{
    struct rlimit most = {65536, 65536};
    setrlimit(RLIMIT_NOFILE, &most);
    objects = calloc(1 << 17, sizeof *objects);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (argc == 2 && strcmp(argv[1], "list") == 0)
            printf("%s %d\n", kinds[i].name, kinds[i].count);
        if (argc == 3 && strcmp(argv[1], kinds[i].name) == 0)
            printf("%ld\n", kinds[i].run(atoi(argv[2])));
    }
    return 0;
}
