/* POSIX message queues and Linux's asynchronous input and output. */
#include "check.h"

#include <linux/aio_abi.h>
#include <mqueue.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

static char name[40];
static pid_t maker;

static void end_queue(void)
{
    if (getpid() == maker)
        mq_unlink(name);
}

__attribute__((constructor)) static void begin(void)
{
    maker = getpid();
    snprintf(name, sizeof name, "/check-%d", maker);
    atexit(end_queue);
}

static mqd_t make(int flags, long messages, long bytes)
{
    struct mq_attr attributes = {.mq_maxmsg = messages, .mq_msgsize = bytes};
    return mq_open(name, O_CREAT | flags, 0600, &attributes);
}

static void show_attributes(mqd_t queue)
{
    struct mq_attr found = {0};
    SHOW(mq_getattr(queue, &found));
    printf("flags %lo, %ld of %ld, %ld bytes\n", found.mq_flags, found.mq_curmsgs, found.mq_maxmsg, found.mq_msgsize);
}

static void take(mqd_t queue, size_t room)
{
    char text[8200] = "";
    unsigned priority = 77;
    errno = 0;
    ssize_t got = mq_receive(queue, text, room, &priority);
    printf("take: %zd %s, '%.*s' of %u\n", got, failing(got), got > 0 ? (int)got : 0, text, got >= 0 ? priority : 0);
}

static void names_and_sizes(void)
{
    SHOW(mq_open(name, O_RDWR));
    mqd_t queue = MUST(make(O_RDWR | O_EXCL, 4, 16));
    show_attributes(queue);
    TRY(make(O_RDWR | O_EXCL, 4, 16));
    mqd_t again = MUST(make(O_RDONLY, 8, 99));
    show_attributes(again);
    SHOW(mq_send(again, "x", 1, 0));
    SHOW(fcntl(queue, F_GETFD));
    MUST(mq_unlink(name));
    SHOW(mq_unlink(name));
    SHOW(mq_send(queue, "still", 5, 1));
    take(again, 16);
    SHOW(mq_close(queue));
    SHOW(mq_close(queue));
    static const long sizes[][2] = {{0, 8}, {8, 0}, {-1, 8}, {8, -1}, {70000, 8}, {8, 20 << 20}};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        printf("%ld of %ld: %s\n", sizes[i][0], sizes[i][1], failing(make(O_RDWR, sizes[i][0], sizes[i][1])));
    SHOW(mq_open("/", O_CREAT | O_RDWR, 0600, NULL));
    SHOW(mq_open("/a/b", O_CREAT | O_RDWR, 0600, NULL));
    SHOW(syscall(SYS_mq_open, "a/b", O_CREAT | O_RDWR, 0600, NULL));
    SHOW(syscall(SYS_mq_open, "", O_CREAT | O_RDWR, 0600, NULL));
    SHOW(syscall(SYS_mq_open, (char *)8, O_CREAT | O_RDWR, 0600, NULL));
    char long_name[300];
    memset(long_name, 'n', 299), long_name[0] = '/', long_name[299] = 0;
    SHOW(mq_open(long_name, O_CREAT | O_RDWR, 0600, NULL));
    queue = MUST(mq_open(name, O_CREAT | O_RDWR, 0600, NULL));
    show_attributes(queue);
    SHOW(mq_getattr(0, &(struct mq_attr){0}));
    SHOW(mq_getattr(99, &(struct mq_attr){0}));
}

static void priorities(void)
{
    mqd_t queue = MUST(make(O_RDWR | O_NONBLOCK, 5, 16));
    take(queue, 16);
    SHOW(mq_send(queue, "low", 3, 1));
    SHOW(mq_send(queue, "high", 4, 32767));
    SHOW(mq_send(queue, "low too", 7, 1));
    SHOW(mq_send(queue, "", 0, 5));
    SHOW(mq_send(queue, "high too", 8, 32767));
    SHOW(mq_send(queue, "full", 4, 0));
    SHOW(mq_send(queue, "x", 1, 32768));
    SHOW(mq_send(queue, "seventeen bytes..", 17, 0));
    SHOW(mq_send(queue, (char *)8, 4, 0));
    show_attributes(queue);
    take(queue, 15);
    for (int i = 0; i < 6; i++)
        take(queue, 16);
    struct mq_attr blocking = {0}, old, bad = {.mq_flags = 1};
    SHOW(mq_setattr(queue, &blocking, &old));
    printf("flags %lo\n", old.mq_flags);
    SHOW(mq_setattr(queue, &bad, &old));
    struct timespec past = {1, 0}, wrong = {1, -1};
    SHOW(mq_timedreceive(queue, (char[16]){0}, 16, NULL, &past));
    SHOW(mq_timedreceive(queue, (char[16]){0}, 16, NULL, &wrong));
    for (int i = 0; i < 5; i++)
        MUST(mq_send(queue, "x", 1, 0));
    SHOW(mq_timedsend(queue, "x", 1, 0, &past));
}

static void readiness(void)
{
    mqd_t queue = MUST(make(O_RDWR | O_NONBLOCK, 1, 16));
    struct pollfd one = {queue, POLLIN | POLLOUT, 0};
    SHOW(poll(&one, 1, 0));
    printf("%x\n", one.revents);
    MUST(mq_send(queue, "x", 1, 3));
    SHOW(poll(&one, 1, 0));
    printf("%x\n", one.revents);
    char text[100] = "";
    ssize_t got = MUST(read(queue, text, 99));
    printf("%.*s", (int)got, text);
    SHOW(read(queue, text, 99));
    int set = MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, queue, &event));
    SHOW(epoll_wait(set, &event, 1, 0));
    take(queue, 16);
    SHOW(epoll_wait(set, &event, 1, 0));
}

static void who_waits(void)
{
    mqd_t queue = MUST(make(O_RDWR, 1, 16));
    int status;
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        char text[16];
        _exit(mq_receive(queue, text, 16, NULL) == 4 ? 3 : errno);
    }
    await_state(child, 'S');
    MUST(mq_send(queue, "four", 4, 0));
    show_attributes(queue);
    MUST(waitpid(child, &status, 0));
    say_status("receiver", status);
    MUST(mq_send(queue, "one", 3, 0));
    fflush(stdout);
    child = MUST(fork());
    if (child == 0)
        _exit(mq_send(queue, "two", 3, 0) == 0 ? 4 : errno);
    await_state(child, 'S');
    take(queue, 16);
    MUST(waitpid(child, &status, 0));
    say_status("sender", status);
    take(queue, 16);
}

static volatile sig_atomic_t told_value, told_code;
static void told(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    told_value = info->si_value.sival_int;
    told_code = info->si_code;
}

static void notification(void)
{
    struct sigaction action = {.sa_sigaction = told, .sa_flags = SA_SIGINFO};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 42};
    struct sigevent nothing = {.sigev_notify = SIGEV_NONE}, wrong = {.sigev_notify = 77};
    mqd_t queue = MUST(make(O_RDWR | O_NONBLOCK, 4, 16)), again;
    sigaction(SIGUSR1, &action, NULL);
    SHOW(mq_notify(queue, &wrong));
    event.sigev_signo = 65;
    SHOW(mq_notify(queue, &event));
    event.sigev_signo = SIGUSR1;
    SHOW(mq_notify(queue, NULL));
    SHOW(mq_notify(queue, &event));
    SHOW(mq_notify(queue, &event));
    MUST(mq_send(queue, "x", 1, 0));
    printf("told %d by %d\n", told_value, told_code);
    SHOW(mq_notify(queue, &event));
    told_value = 0;
    MUST(mq_send(queue, "x", 1, 0));
    printf("told %d\n", told_value);
    take(queue, 16), take(queue, 16);
    MUST(mq_send(queue, "x", 1, 0));
    printf("told %d\n", told_value);
    SHOW(mq_notify(queue, &nothing));
    SHOW(mq_notify(queue, &event));
    MUST(again = mq_open(name, O_RDONLY));
    SHOW(mq_close(again));
    SHOW(mq_notify(queue, &event));
    SHOW(mq_notify(queue, NULL));
    SHOW(mq_notify(0, NULL));
}

static void a_limit_of_bytes(void)
{
    struct rlimit limit = {20000, 20000};
    MUST(setrlimit(RLIMIT_MSGQUEUE, &limit));
    TRY(make(O_RDWR, 10, 4000));
    TRY(make(O_RDWR, 2, 4000));
    mqd_t first = mq_open(name, O_RDWR);
    show_attributes(first);
    char other[50];
    snprintf(other, sizeof other, "%s-2", name);
    struct mq_attr attributes = {.mq_maxmsg = 3, .mq_msgsize = 4000};
    TRY(mq_open(other, O_CREAT | O_RDWR, 0600, &attributes));
    mq_unlink(name), mq_close(first);
    mqd_t second = TRY(mq_open(other, O_CREAT | O_RDWR, 0600, &attributes)) >= 0;
    (void)second;
    mq_unlink(other);
}

/* Asynchronous input and output. */
static aio_context_t context;

static struct iocb block(int operation, int file, void *buffer, size_t bytes, long offset)
{
    return (struct iocb){.aio_lio_opcode = operation, .aio_fildes = file, .aio_buf = (uintptr_t)buffer, .aio_nbytes = bytes,
                         .aio_offset = offset, .aio_data = 1000 + operation};
}

static void show_events(long least, long most)
{
    struct io_event events[8] = {{0}};
    struct timespec none = {0, 0};
    long got = syscall(SYS_io_getevents, context, least, most, events, &none);
    printf("%ld events", got);
    for (int i = 0; i < got; i++)
        printf(", %lld for %lld", (long long)events[i].res, (long long)events[i].data);
    printf("\n");
}

static void submitted_transfers(void)
{
    char path[] = "/tmp/aio-XXXXXX", text[16] = "";
    int file = MUST(mkstemp(path)), count;
    MUST(unlink(path));
    MUST(syscall(SYS_io_setup, 8, &context));
    struct iovec parts[2] = {{"ab", 2}, {"cde", 3}};
    struct iocb blocks[4] = {block(IOCB_CMD_PWRITE, file, "0123456789", 10, 0), block(IOCB_CMD_PREAD, file, text, 5, 3),
                             block(IOCB_CMD_PWRITEV, file, parts, 2, 10), block(IOCB_CMD_PREAD, file, text + 8, 5, 12)};
    struct iocb *all[4];
    for (int i = 0; i < 4; i++)
        all[i] = &blocks[i];
    MUST(count = eventfd(0, EFD_NONBLOCK));
    blocks[0].aio_flags = blocks[3].aio_flags = IOCB_FLAG_RESFD;
    blocks[0].aio_resfd = blocks[3].aio_resfd = count;
    show_events(0, 8);
    SHOW(syscall(SYS_io_submit, context, 4, all));
    show_events(0, 0);
    show_events(1, 2);
    show_events(2, 8);
    show_events(0, 8);
    printf("'%.5s' '%.5s'\n", text, text + 8);
    eventfd_t told = 0;
    SHOW(eventfd_read(count, &told));
    printf("told %d\n", (int)told);
    SHOW(lseek(file, 0, SEEK_CUR));
    struct io_event event;
    SHOW(syscall(SYS_io_cancel, context, all[0], &event));
    SHOW(syscall(SYS_io_destroy, context));
    SHOW(syscall(SYS_io_destroy, context));
    SHOW(syscall(SYS_io_submit, context, 1, all));
}

static void refused_submissions(void)
{
    char text[4];
    int ends[2], null = MUST(open("/dev/null", O_RDONLY));
    MUST(pipe(ends));
    context = 0;
    SHOW(syscall(SYS_io_setup, 0, &context));
    SHOW(syscall(SYS_io_setup, 1, NULL));
    context = 5;
    SHOW(syscall(SYS_io_setup, 1, &context));
    SHOW(syscall(SYS_io_destroy, context));
    context = 0;
    MUST(syscall(SYS_io_setup, 4, &context));
    struct iocb bad = block(77, ends[1], text, 4, 0), *one = &bad, *none = (void *)8;
    SHOW(syscall(SYS_io_submit, context, 1, &one));
    SHOW(syscall(SYS_io_submit, context, -1, &one));
    SHOW(syscall(SYS_io_submit, context, 0, &one));
    SHOW(syscall(SYS_io_submit, context, 1, &none));
    SHOW(syscall(SYS_io_submit, context, 1, NULL));
    bad = block(IOCB_CMD_PREAD, 99, text, 4, 0);
    SHOW(syscall(SYS_io_submit, context, 1, &one));
    bad = block(IOCB_CMD_PWRITE, null, text, 4, 0);
    SHOW(syscall(SYS_io_submit, context, 1, &one));
    bad = block(IOCB_CMD_PREAD, null, text, 4, 0);
    bad.aio_reserved2 = 1;
    SHOW(syscall(SYS_io_submit, context, 1, &one));
    bad = block(IOCB_CMD_PREAD, null, text, 4, 0);
    bad.aio_flags = IOCB_FLAG_RESFD, bad.aio_resfd = null;
    SHOW(syscall(SYS_io_submit, context, 1, &one));
    bad = block(IOCB_CMD_PWRITE, ends[1], "pipe", 4, 0);
    struct iocb read_back = block(IOCB_CMD_PREAD, ends[0], text, 4, 0), wrong = block(77, ends[1], text, 4, 0);
    struct iocb *three[3] = {&bad, &read_back, &wrong};
    SHOW(syscall(SYS_io_submit, context, 3, three));
    show_events(2, 4);
    printf("'%.4s'\n", text);
    struct timespec soon = {0, 1000000};
    struct io_event event;
    SHOW(syscall(SYS_io_getevents, context, 1, 1, &event, &soon));
    SHOW(syscall(SYS_io_getevents, context, 2, 1, &event, &soon));
    SHOW(syscall(SYS_io_getevents, context, -1, 1, &event, &soon));
    SHOW(syscall(SYS_io_pgetevents, context, 0, 1, &event, &soon, NULL));
}

static const struct test tests[] = {
    {"mqueue/names_and_sizes", names_and_sizes},
    {"mqueue/priorities", priorities},
    {"mqueue/readiness", readiness},
    {"mqueue/who_waits", who_waits},
    {"mqueue/notification", notification},
    {"mqueue/a_limit_of_bytes", a_limit_of_bytes},
    {"aio/submitted_transfers", submitted_transfers},
    {"aio/refused_submissions", refused_submissions},
};
CHECK_MAIN(tests)
