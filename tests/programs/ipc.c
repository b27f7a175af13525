/* System V semaphores and message queues: every command, who waits and who goes on, what ends and removals leave. */
#include "check.h"

#include <pthread.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

union semun {
    int val;
    struct semid_ds *buf;
    unsigned short *array;
    struct seminfo *info;
};

struct text {
    long kind;
    char bytes[64];
};

static int set, queue;

static void end_objects(void)
{
    if (set > 0)
        semctl(set, 0, IPC_RMID);
    if (queue > 0)
        msgctl(queue, 0, IPC_RMID);
}

/* Only who made an object removes it. */
static pid_t maker;
static void end_own_objects(void)
{
    if (getpid() == maker)
        end_objects();
}

__attribute__((constructor)) static void begin(void)
{
    maker = getpid();
    atexit(end_own_objects);
}

static int operate(int semaphore, int change, int flags)
{
    struct sembuf one = {semaphore, change, flags};
    return semop(set, &one, 1);
}

static void show_values(const char *what)
{
    unsigned short values[8] = {0};
    struct semid_ds status;
    MUST(semctl(set, 0, IPC_STAT, (union semun){.buf = &status}));
    SHOW(semctl(set, 0, GETALL, (union semun){.array = values}));
    printf("%s:", what);
    for (unsigned i = 0; i < status.sem_nsems && i < 8; i++)
        printf(" %d", values[i]);
    printf("\n");
}

static void making_and_finding(void)
{
    key_t key = 0x5e300000 | (getpid() & 0xffff);
    SHOW(semget(key, 2, 0600));
    MUST(set = semget(key, 2, IPC_CREAT | IPC_EXCL | 0600));
    TRY(semget(key, 2, IPC_CREAT | IPC_EXCL | 0600));
    printf("found: %d\n", semget(key, 0, 0) == set);
    printf("found: %d\n", semget(key, 2, IPC_CREAT) == set);
    SHOW(semget(key, 3, 0));
    SHOW(semget(key, -1, 0));
    SHOW(semget(IPC_PRIVATE, 0, 0600));
    SHOW(semget(IPC_PRIVATE, 1000000, 0600));
    MUST(queue = msgget(key, IPC_CREAT | IPC_EXCL | 0640));
    TRY(msgget(key, IPC_CREAT | IPC_EXCL | 0640));
    printf("found: %d\n", msgget(key, 0) == queue);
    SHOW(msgget(key + 0x10000, 0));
    MUST(semctl(set, 0, IPC_RMID));
    SHOW(semget(key, 2, 0600));
    SHOW(semctl(set, 0, IPC_RMID));
    SHOW(semop(set, &(struct sembuf){0, 1, 0}, 1));
    SHOW(semctl(-1, 0, IPC_RMID));
    SHOW(semctl(set, 0, 99));
}

static void values_and_operations(void)
{
    MUST(set = semget(IPC_PRIVATE, 4, 0600));
    show_values("at first");
    SHOW(semctl(set, 1, SETVAL, (union semun){.val = 5}));
    SHOW(semctl(set, 4, SETVAL, (union semun){.val = 5}));
    SHOW(semctl(set, -1, GETVAL));
    SHOW(semctl(set, 1, SETVAL, (union semun){.val = 32768}));
    SHOW(semctl(set, 1, SETVAL, (union semun){.val = -1}));
    SHOW(semctl(set, 1, GETVAL));
    printf("own: %d %d\n", semctl(set, 1, GETPID) == getpid(), semctl(set, 0, GETPID));
    SHOW(operate(0, 3, 0));
    SHOW(operate(0, 0, IPC_NOWAIT));
    SHOW(operate(0, -4, IPC_NOWAIT));
    SHOW(operate(0, -3, 0));
    SHOW(operate(0, 0, IPC_NOWAIT));
    SHOW(operate(4, 1, 0));
    SHOW(operate(1, 32767, 0));
    struct sembuf torn[3] = {{0, 2, 0}, {1, -5, 0}, {2, -1, IPC_NOWAIT}};
    SHOW(semop(set, torn, 3));
    show_values("after what was torn");
    struct sembuf whole[3] = {{0, 2, 0}, {1, -5, 0}, {0, -1, IPC_NOWAIT}};
    SHOW(semop(set, whole, 3));
    show_values("after what was whole");
    SHOW(semop(set, whole, 0));
    SHOW(semop(set, whole, 501));
    SHOW(semop(set, (struct sembuf *)8, 1));
    unsigned short values[4] = {1, 2, 3, 32767}, large[4] = {1, 2, 3, 32768};
    SHOW(semctl(set, 0, SETALL, (union semun){.array = values}));
    SHOW(semctl(set, 0, SETALL, (union semun){.array = large}));
    SHOW(semctl(set, 0, SETALL, (union semun){.array = NULL}));
    show_values("all");
    struct timespec past = {-1, 0}, bad = {0, 1000000000}, soon = {0, 1000000};
    SHOW(semtimedop(set, &(struct sembuf){0, 0, 0}, 1, &past));
    SHOW(semtimedop(set, &(struct sembuf){0, 0, 0}, 1, &bad));
    SHOW(semtimedop(set, &(struct sembuf){0, 0, 0}, 1, &soon));
    SHOW(semtimedop(set, &(struct sembuf){0, -1, 0}, 1, &soon));
}

static void status_of_a_set(void)
{
    struct semid_ds status = {0};
    MUST(set = semget(IPC_PRIVATE, 3, 0644));
    MUST(semctl(set, 0, IPC_STAT, (union semun){.buf = &status}));
    printf("%lu semaphores, mode %o, operated %ld, changed %d\n", status.sem_nsems, status.sem_perm.mode, status.sem_otime,
           status.sem_ctime > 0);
    printf("own: %d %d\n", status.sem_perm.uid == geteuid(), status.sem_perm.cuid == geteuid());
    status.sem_perm.mode = 01600;
    status.sem_perm.gid = 77;
    SHOW(semctl(set, 0, IPC_SET, (union semun){.buf = &status}));
    MUST(operate(0, 1, 0));
    MUST(semctl(set, 0, IPC_STAT, (union semun){.buf = &status}));
    printf("mode %o, group %d, operated %d\n", status.sem_perm.mode, status.sem_perm.gid, status.sem_otime > 0);
    struct seminfo info;
    printf("any: %d\n", semctl(0, 0, IPC_INFO, (union semun){.info = &info}) >= 0);
    printf("%d at most, %d, %d, %d\n", info.semvmx, info.semopm, info.semmsl, info.semaem);
    int last = semctl(0, 0, SEM_INFO, (union semun){.info = &info}), seen = 0;
    printf("used: %d %d\n", info.semusz >= 1, info.semaem >= 3);
    for (int place = 0; place <= last; place++)
        seen |= semctl(place, 0, SEM_STAT, (union semun){.buf = &status}) == set && status.sem_nsems == 3;
    printf("seen: %d\n", seen);
}

static void *take_one(void *argument)
{
    long semaphore = (long)argument;
    long taken = operate(semaphore, -1, 0);
    return (void *)(taken == 0 ? 0L : (long)errno);
}

/* Until so many wait for the semaphore to grow, or to be 0. */
static void await_waiting(int semaphore, int what, int count)
{
    for (int tries = 0; tries < 10000 && semctl(set, semaphore, what) != count; tries++)
        sleep_ms(1);
    printf("%d wait\n", semctl(set, semaphore, what));
}

static void waiting_for_semaphores(void)
{
    MUST(set = semget(IPC_PRIVATE, 2, 0600));
    fflush(stdout);
    pid_t children[3];
    for (int i = 0; i < 3; i++) {
        children[i] = MUST(fork());
        if (children[i] == 0) {
            struct sembuf both[2] = {{0, -2, 0}, {1, i == 2 ? 0 : 1, 0}};
            _exit(semop(set, both, 2) == 0 ? 10 + i : errno);
        }
        await_waiting(0, GETNCNT, i + 1);
    }
    SHOW(semctl(set, 0, GETZCNT));
    int status;
    MUST(operate(0, 2, 0));
    MUST(waitpid(children[0], &status, 0));
    say_status("the first", status);
    await_waiting(0, GETNCNT, 2);
    show_values("one has gone");
    MUST(operate(0, 3, 0));
    MUST(waitpid(children[1], &status, 0));
    say_status("the second", status);
    show_values("two have gone");
    await_waiting(0, GETNCNT, 1);
    MUST(operate(0, 1, 0));
    await_waiting(1, GETZCNT, 1);
    MUST(semctl(set, 1, SETVAL, (union semun){.val = 0}));
    MUST(waitpid(children[2], &status, 0));
    say_status("the third", status);
    show_values("at the end");
}

static void nobody_takes_what_another_waited_for(void)
{
    pthread_t thread;
    void *result;
    MUST(set = semget(IPC_PRIVATE, 1, 0600));
    pthread_create(&thread, NULL, take_one, (void *)0);
    await_waiting(0, GETNCNT, 1);
    MUST(operate(0, 1, 0));
    SHOW(operate(0, -1, IPC_NOWAIT));
    pthread_join(thread, &result);
    printf("taken: %ld\n", (long)result);
}

static void on_signal(int signal)
{
    (void)signal;
}

static void ends_of_a_wait(void)
{
    MUST(set = semget(IPC_PRIVATE, 1, 0600));
    MUST(queue = msgget(IPC_PRIVATE, 0600));
    int status;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0)
        _exit(operate(0, -1, 0) == 0 ? 0 : errno);
    await_waiting(0, GETNCNT, 1);
    MUST(kill(child, SIGUSR1));
    MUST(waitpid(child, &status, 0));
    printf("by a signal: %d\n", WEXITSTATUS(status) == EINTR);
    await_waiting(0, GETNCNT, 0);
    child = MUST(fork());
    if (child == 0)
        _exit(operate(0, -1, 0) == 0 ? 0 : errno);
    await_waiting(0, GETNCNT, 1);
    MUST(semctl(set, 0, IPC_RMID));
    MUST(waitpid(child, &status, 0));
    printf("by removal: %d\n", WEXITSTATUS(status) == EIDRM);
    for (int round = 0; round < 2; round++) {
        fflush(stdout);
        child = MUST(fork());
        if (child == 0) {
            struct text text;
            _exit(msgrcv(queue, &text, sizeof text.bytes, 0, 0) >= 0 ? 0 : errno);
        }
        await_state(child, 'S');
        if (round == 0)
            MUST(kill(child, SIGUSR1));
        else
            MUST(msgctl(queue, IPC_RMID, NULL));
        MUST(waitpid(child, &status, 0));
        printf("%d\n", WEXITSTATUS(status) == (round == 0 ? EINTR : EIDRM));
    }
}

static void undoing_child(void)
{
    MUST(operate(0, 3, SEM_UNDO));
    MUST(operate(1, -2, SEM_UNDO));
    MUST(operate(1, -1, 0));
    show_values("in the child");
}

static void forgotten_child(void)
{
    MUST(operate(0, 3, SEM_UNDO));
    MUST(semctl(set, 0, SETVAL, (union semun){.val = 9}));
}

static void clamped_child(void)
{
    MUST(operate(0, 4, SEM_UNDO));
    MUST(operate(0, -10, 0));
}

static void what_an_end_takes_back(void)
{
    MUST(set = semget(IPC_PRIVATE, 2, 0600));
    MUST(semctl(set, 1, SETVAL, (union semun){.val = 5}));
    in_child("undoing", undoing_child);
    show_values("taken back");
    in_child("forgotten", forgotten_child);
    show_values("forgotten");
    in_child("clamped", clamped_child);
    show_values("not below 0");
    SHOW(operate(1, 32767, SEM_UNDO));
    MUST(semctl(set, 1, SETVAL, (union semun){.val = 0}));
    SHOW(operate(1, 32767, SEM_UNDO));
    MUST(semctl(set, 1, SETVAL, (union semun){.val = 0}));
    /* A process that waits goes on when another's end gives back what it took. */
    fflush(stdout);
    MUST(semctl(set, 0, SETVAL, (union semun){.val = 1}));
    MUST(operate(0, -1, 0));
    pid_t waiter = MUST(fork());
    if (waiter == 0)
        _exit(operate(0, -1, 0) == 0 ? 5 : errno);
    await_waiting(0, GETNCNT, 1);
    MUST(operate(0, 1, 0));
    int status;
    MUST(waitpid(waiter, &status, 0));
    say_status("waiter", status);
    MUST(semctl(set, 0, SETVAL, (union semun){.val = 1}));
    pid_t holder = MUST(fork());
    if (holder == 0) {
        operate(0, -1, SEM_UNDO);
        pause();
        _exit(0);
    }
    for (int tries = 0; tries < 10000 && semctl(set, 0, GETVAL) != 0; tries++)
        sleep_ms(1);
    waiter = MUST(fork());
    if (waiter == 0)
        _exit(operate(0, -1, 0) == 0 ? 6 : errno);
    await_waiting(0, GETNCNT, 1);
    MUST(kill(holder, SIGKILL));
    MUST(waitpid(waiter, &status, 0));
    say_status("waiter", status);
    MUST(waitpid(holder, &status, 0));
    say_status("holder", status);
}

static int give(long kind, const char *text, int flags)
{
    struct text message = {.kind = kind};
    strcpy(message.bytes, text);
    return msgsnd(queue, &message, strlen(text), flags);
}

static void take(size_t room, long kind, int flags)
{
    struct text message = {0};
    errno = 0;
    int got = msgrcv(queue, &message, room, kind, flags);
    printf("take %zu of %ld with %o: %d %s, %ld '%.*s'\n", room, kind, flags, got, failing(got), message.kind, got > 0 ? got : 0, message.bytes);
}

static void messages_by_kind(void)
{
    MUST(queue = msgget(IPC_PRIVATE, 0600));
    take(10, 0, IPC_NOWAIT);
    SHOW(give(5, "five", 0));
    SHOW(give(3, "three", 0));
    SHOW(give(5, "fünf", 0));
    SHOW(give(7, "", 0));
    SHOW(give(2, "two", 0));
    take(64, 3, IPC_NOWAIT | MSG_COPY);
    take(64, 0, IPC_NOWAIT | MSG_COPY);
    take(64, 5, IPC_NOWAIT | MSG_COPY);
    take(64, 0, MSG_COPY);
    take(64, 0, IPC_NOWAIT | MSG_COPY | MSG_EXCEPT);
    take(64, 9, IPC_NOWAIT);
    take(64, -4, IPC_NOWAIT);
    take(64, -4, IPC_NOWAIT);
    take(64, -4, IPC_NOWAIT);
    take(2, 5, IPC_NOWAIT);
    take(2, 5, IPC_NOWAIT | MSG_NOERROR);
    take(64, 5, IPC_NOWAIT | MSG_EXCEPT);
    take(64, 0, 0);
    take(64, 0, IPC_NOWAIT);
    SHOW(give(0, "zero", 0));
    SHOW(give(-1, "negative", 0));
    SHOW(msgsnd(queue, (void *)8, 1, 0));
    struct text message = {.kind = 1};
    SHOW(msgsnd(queue, &message, 8193, 0));
    SHOW(msgsnd(queue, &message, -1, 0));
    SHOW(msgrcv(queue, &message, -1, 0, 0));
    SHOW(msgsnd(-1, &message, 1, 0));
    SHOW(msgrcv(-1, &message, 1, 0, 0));
}

static void a_full_queue(void)
{
    struct msqid_ds status;
    char large[8200] = {1};
    MUST(queue = msgget(IPC_PRIVATE, 0600));
    SHOW(msgsnd(queue, large, 8192, IPC_NOWAIT));
    SHOW(msgsnd(queue, large, 8192, IPC_NOWAIT));
    SHOW(msgsnd(queue, large, 1, IPC_NOWAIT));
    SHOW(msgctl(queue, IPC_STAT, &status));
    printf("%lu messages, %lu bytes of %lu, own %d %d\n", status.msg_qnum, status.__msg_cbytes, status.msg_qbytes,
           status.msg_lspid == getpid(), status.msg_lrpid == 0);
    status.msg_qbytes = 16384;
    SHOW(msgctl(queue, IPC_SET, &status));
    SHOW(msgsnd(queue, large, 1, IPC_NOWAIT));
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0)
        _exit(msgsnd(queue, large, 8192, 0) == 0 ? 4 : errno);
    await_state(child, 'S');
    SHOW(msgrcv(queue, large, 8192, 0, 0));
    int last;
    MUST(waitpid(child, &last, 0));
    say_status("sender", last);
    MUST(msgctl(queue, IPC_STAT, &status));
    printf("%lu messages, %lu bytes\n", status.msg_qnum, status.__msg_cbytes);
}

static void who_waits_gets_the_message(void)
{
    MUST(queue = msgget(IPC_PRIVATE, 0600));
    pid_t children[3];
    int status;
    fflush(stdout);
    static const long kinds[3] = {4, -9, 4};
    for (int i = 0; i < 3; i++) {
        children[i] = MUST(fork());
        if (children[i] == 0) {
            struct text text;
            int got = msgrcv(queue, &text, i == 2 ? 1 : sizeof text.bytes, kinds[i], 0);
            _exit(got < 0 ? errno : got);
        }
        await_state(children[i], 'S');
    }
    MUST(give(20, "nobody's", 0));
    MUST(give(4, "one", 0));
    MUST(waitpid(children[0], &status, 0));
    say_status("first", status);
    MUST(give(4, "four", 0));
    MUST(waitpid(children[1], &status, 0));
    say_status("second", status);
    MUST(give(4, "fives", 0));
    MUST(waitpid(children[2], &status, 0));
    printf("too long: %d\n", WEXITSTATUS(status) == E2BIG);
    take(64, 0, IPC_NOWAIT);
    take(64, 0, IPC_NOWAIT);
}

static void limits_of_queues(void)
{
    struct msginfo info;
    struct msqid_ds status;
    MUST(queue = msgget(IPC_PRIVATE, 0600));
    MUST(give(1, "abc", 0));
    printf("any: %d\n", msgctl(0, IPC_INFO, (struct msqid_ds *)&info) >= 0);
    printf("%d %d %d\n", info.msgmax, info.msgmnb, info.msgssz);
    int last = msgctl(0, MSG_INFO, (struct msqid_ds *)&info), seen = 0;
    printf("used: %d %d %d\n", info.msgpool >= 1, info.msgmap >= 1, info.msgtql >= 3);
    for (int place = 0; place <= last; place++)
        seen |= msgctl(place, MSG_STAT, &status) == queue && status.msg_qnum == 1;
    printf("seen: %d\n", seen);
    SHOW(msgctl(queue, 99, &status));
    SHOW(msgctl(-1, IPC_STAT, &status));
}

static int has_line(const char *path, int id)
{
    char line[300];
    int found = 0, key, number;
    FILE *file = fopen(path, "r");
    MUST(file ? 0 : -1);
    MUST(fgets(line, sizeof line, file) ? 0 : -1);
    printf("%s", line);
    while (fgets(line, sizeof line, file))
        found |= sscanf(line, "%d %d", &key, &number) == 2 && number == id;
    fclose(file);
    return found;
}

static void what_proc_shows(void)
{
    MUST(set = semget(IPC_PRIVATE, 3, 0640));
    MUST(queue = msgget(IPC_PRIVATE, 0604));
    printf("%d\n", has_line("/proc/sysvipc/sem", set));
    printf("%d\n", has_line("/proc/sysvipc/msg", queue));
}

static const struct test tests[] = {
    {"ipc/making_and_finding", making_and_finding},
    {"ipc/values_and_operations", values_and_operations},
    {"ipc/status_of_a_set", status_of_a_set},
    {"ipc/waiting_for_semaphores", waiting_for_semaphores},
    {"ipc/nobody_takes_what_another_waited_for", nobody_takes_what_another_waited_for},
    {"ipc/ends_of_a_wait", ends_of_a_wait},
    {"ipc/what_an_end_takes_back", what_an_end_takes_back},
    {"ipc/messages_by_kind", messages_by_kind},
    {"ipc/a_full_queue", a_full_queue},
    {"ipc/who_waits_gets_the_message", who_waits_gets_the_message},
    {"ipc/limits_of_queues", limits_of_queues},
    {"ipc/what_proc_shows", what_proc_shows},
};
CHECK_MAIN(tests)
