/* A thousand times everything that makes files, maps and streams: see churn.h. */
#include "churn.h"

#include <dirent.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/xattr.h>

static void fork_once(void)
{
    int status;
    pid_t child = MUST(fork());
    if (child == 0)
        _exit(3);
    MUST(waitpid(child, &status, 0));
    if (status != 3 << 8)
        printf("status %x\n", status);
}

static void exec_once(void)
{
    int status;
    pid_t child = MUST(fork());
    if (child == 0) {
        close(1);
        execl("/proc/self/exe", "churn", "nothing", (char *)NULL);
        _exit(9);
    }
    MUST(waitpid(child, &status, 0));
    if (status)
        printf("status %x\n", status);
}

static void killed_once(void)
{
    int status;
    pid_t child = MUST(fork());
    if (child == 0) {
        char *room = malloc(300000);
        memset(room, 1, 300000);
        *(volatile int *)0 = 0;
    }
    MUST(waitpid(child, &status, 0));
    if (!WIFSIGNALED(status))
        printf("status %x\n", status);
}

static void open_once(const char *path, int flags)
{
    int fd = MUST(open(path, flags | O_CREAT, 0600));
    char byte = 0;
    if ((flags & O_ACCMODE) != O_WRONLY)
        (void)!read(fd, &byte, 1);
    close(fd);
}

static void null_once(void) { int fd = MUST(open("/dev/null", O_RDWR)); MUST(write(fd, "x", 1)); close(fd); }
static void zero_once(void) { char byte; int fd = MUST(open("/dev/zero", O_RDONLY)); MUST(read(fd, &byte, 1)); close(fd); }
static void file_once(void) { open_once("file", O_RDWR); }
static void folder_once(void) { close(MUST(open(".", O_RDONLY | O_DIRECTORY))); }

static void new_file_once(void)
{
    static char many[20000];
    int fd = MUST(open("new", O_RDWR | O_CREAT | O_EXCL, 0600));
    MUST(write(fd, many, sizeof many));
    MUST(rename("new", "other"));
    MUST(symlink("other", "link"));
    MUST(mkdir("folder", 0700));
    MUST(rmdir("folder"));
    MUST(unlink("link"));
    MUST(unlink("other"));
    close(fd);
}

static void pipe_once(void)
{
    int ends[2];
    char byte;
    MUST(pipe(ends));
    MUST(write(ends[1], "x", 1));
    MUST(read(ends[0], &byte, 1));
    close(ends[0]);
    close(ends[1]);
}

static void full_pipe_once(void)
{
    static char many[65536];
    int ends[2];
    MUST(pipe2(ends, O_NONBLOCK));
    MUST(write(ends[1], many, sizeof many));
    close(ends[1]);
    close(ends[0]);
}

static void dup_once(void)
{
    int one = MUST(dup(1)), two = MUST(dup2(one, 50)), three = MUST(fcntl(1, F_DUPFD_CLOEXEC, 60));
    close(one);
    close(two);
    close(three);
}

static void map_once(void)
{
    char *at = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(at, 1, 1 << 18);
    mprotect(at + 4096, 4096, PROT_NONE);
    char *moved = mremap(at, 4096, 1 << 17, MREMAP_MAYMOVE); /* there is no room to grow: it moves */
    munmap(moved, 1 << 17);
    munmap(at + 4096, (1 << 18) - 4096);
}

static void pipe_to_child_once(void)
{
    int ends[2], status;
    char byte = 0;
    MUST(pipe(ends));
    pid_t child = MUST(fork());
    if (child == 0) {
        write(ends[1], "y", 1);
        _exit(0);
    }
    close(ends[1]);
    MUST(read(ends[0], &byte, 1));
    close(ends[0]);
    waitpid(child, &status, 0);
}

static void on_signal(int number) { (void)number; }
static void signal_once(void)
{
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    signal(SIGUSR1, SIG_DFL);
}

static void proc_once(void)
{
    char text[512];
    int fd = open("/proc/self/stat", O_RDONLY);
    if (fd >= 0) {
        (void)!read(fd, text, sizeof text);
        close(fd);
    }
}

static void failed_exec_once(void)
{
    char *arguments[] = {"x", NULL};
    execve("/no/such", arguments, NULL);
    execve("/dev/null", arguments, NULL);
    execve("file", arguments, NULL);
}

/* Sends a descriptor, and receives it if asked to. */
static void pass(int to, int descriptor)
{
    char control[CMSG_SPACE(sizeof descriptor)] = {0};
    struct iovec part = {"x", 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    *CMSG_FIRSTHDR(&message) = (struct cmsghdr){CMSG_LEN(sizeof descriptor), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &descriptor, sizeof descriptor);
    sendmsg(to, &message, 0);
}

/* One descriptor that nobody receives, and sockets that only each other's messages hold. */
static void passing_once(void)
{
    int one[2], other[2], file = open("file", O_RDONLY | O_CREAT, 0600);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, one) < 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, other) < 0)
        exit(8);
    pass(one[0], file);
    pass(one[0], other[1]);
    pass(other[0], one[1]);
    pass(other[0], other[1]);
    close(file), close(one[0]), close(one[1]), close(other[0]), close(other[1]);
    /* The end of another socket is when Linux looks for such rings. */
    close(socket(AF_UNIX, SOCK_STREAM, 0));
}

/* Both ends of a pair sent over it, and nothing else happens to sockets. */
static void ring_once(void)
{
    int pair[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pass(pair[0], pair[0]);
    pass(pair[0], pair[1]);
    close(pair[0]), close(pair[1]);
}

/* Names that are never used again, found and not found. */
static void names_once(void)
{
    static int number;
    char name[40], other[40];
    struct stat status;
    snprintf(name, sizeof name, "name%d", number++);
    snprintf(other, sizeof other, "folder%d", number);
    stat(name, &status);
    close(MUST(open(name, O_RDWR | O_CREAT, 0600)));
    MUST(stat(name, &status));
    MUST(mkdir(other, 0700));
    MUST(link(name, "second"));
    MUST(unlink("second"));
    MUST(chdir(other));
    MUST(chdir(".."));
    MUST(rmdir(other));
    MUST(unlink(name));
    MUST(mkfifo(name, 0600));
    MUST(unlink(name));
}

static void listing_once(void)
{
    DIR *folder = opendir("/dev");
    while (folder && readdir(folder))
        ;
    closedir(folder);
}

/* The file has no name any more, but a map, and after that only an open end. */
static void unlinked_once(void)
{
    int fd = MUST(open("unlinked", O_RDWR | O_CREAT, 0600));
    MUST(ftruncate(fd, 100000));
    MUST(unlink("unlinked"));
    char *at = mmap(NULL, 100000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memset(at, 2, 100000);
    MUST(ftruncate(fd, 50000));
    munmap(at, 40960);
    close(fd);
    munmap(at + 40960, 100000 - 40960);
}

static void memory_file_once(void)
{
    int fd = MUST(memfd_create("churn", MFD_CLOEXEC));
    MUST(ftruncate(fd, 1 << 20));
    MUST(pwrite(fd, "x", 1, 900000));
    char *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    at[900000] = 'y';
    close(fd);
    munmap(at, 1 << 20);
}

static void attributes_once(void)
{
    close(MUST(open("file", O_RDWR | O_CREAT, 0600)));
    chmod("file", 0640);
    chown("file", getuid(), getgid());
    utimensat(AT_FDCWD, "file", NULL, 0);
    setxattr("file", "user.churn", "value", 5, 0);
    removexattr("file", "user.churn");
}

static void locking_once(void)
{
    struct flock part = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
    int fd = MUST(open("file", O_RDWR | O_CREAT, 0600));
    for (part.l_start = 0; part.l_start < 200; part.l_start += 20)
        MUST(fcntl(fd, F_SETLK, &part));
    part.l_start = 0, part.l_len = 0, part.l_type = F_UNLCK;
    MUST(fcntl(fd, F_SETLK, &part));
    part.l_type = F_RDLCK;
    MUST(fcntl(fd, F_OFD_SETLK, &part));
    MUST(flock(fd, LOCK_SH));
    close(fd);
}

/* The host may not let its tests mount: in the machine it works. */
static void mount_once(void)
{
    mkdir("mounted", 0700);
    if (mount("churn", "mounted", "tmpfs", 0, NULL) == 0) {
        int fd = MUST(open("mounted/file", O_RDWR | O_CREAT, 0600));
        MUST(write(fd, "content", 7));
        close(fd);
        MUST(mkdir("mounted/folder", 0700));
        MUST(umount("mounted"));
    }
    MUST(rmdir("mounted"));
}

static void epoll_once(void)
{
    struct epoll_event event = {EPOLLIN | EPOLLET, {0}};
    int epoll = MUST(epoll_create1(0)), outer = MUST(epoll_create1(0)), ends[2];
    MUST(pipe(ends));
    MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
    MUST(epoll_ctl(outer, EPOLL_CTL_ADD, epoll, &event));
    MUST(write(ends[1], "x", 1));
    MUST(epoll_wait(outer, &event, 1, 0));
    MUST(epoll_wait(epoll, &event, 1, 0));
    close(ends[0]);
    close(epoll);
    close(ends[1]);
    close(outer);
}

static void counters_once(void)
{
    struct itimerspec soon = {{0, 1000000}, {0, 1000000}};
    sigset_t some;
    uint64_t count = 1;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    int event = MUST(eventfd(0, 0)), timer = MUST(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK)), signals = MUST(signalfd(-1, &some, 0));
    MUST(write(event, &count, sizeof count));
    MUST(read(event, &count, sizeof count));
    MUST(timerfd_settime(timer, 0, &soon, NULL));
    read(timer, &count, sizeof count);
    close(event), close(timer), close(signals);
}

static void terminal_once(void)
{
    struct winsize size = {24, 80, 0, 0};
    char byte;
    int main_end = MUST(posix_openpt(O_RDWR | O_NOCTTY));
    MUST(unlockpt(main_end));
    int other = MUST(open(ptsname(main_end), O_RDWR | O_NOCTTY));
    MUST(ioctl(main_end, TIOCSWINSZ, &size));
    MUST(write(main_end, "a line\n", 7));
    MUST(read(other, &byte, 1));
    MUST(write(other, "left behind", 11));
    close(main_end);
    close(other);
}

static void stream_once(void)
{
    static char many[20000];
    int ends[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    MUST(send(ends[0], many, sizeof many, 0));
    MUST(recv(ends[1], many, 100, 0));
    MUST(shutdown(ends[0], SHUT_WR));
    close(ends[0]), close(ends[1]);
}

static void datagrams_once(void)
{
    int ends[2];
    MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    for (int i = 0; i < 5; i++)
        MUST(send(ends[0], "datagram", 8, 0));
    close(ends[1]), close(ends[0]);
}

/* One connection is taken, one waits, and one end writes to who is gone. */
static void connection_once(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0churned"};
    int listener = MUST(socket(AF_UNIX, SOCK_STREAM, 0)), ends[2];
    MUST(bind(listener, (struct sockaddr *)&name, sizeof name));
    MUST(listen(listener, 4));
    for (int i = 0; i < 2; i++) {
        ends[i] = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
        MUST(connect(ends[i], (struct sockaddr *)&name, sizeof name));
    }
    int taken = MUST(accept(listener, NULL, NULL));
    MUST(send(ends[0], "hello", 5, 0));
    MUST(send(ends[1], "unread", 6, 0));
    close(listener);
    send(ends[1], "nobody", 6, MSG_NOSIGNAL);
    close(taken), close(ends[0]), close(ends[1]);
}

static void moved_once(void)
{
    int file = MUST(open("file", O_RDWR | O_CREAT, 0600)), ends[2], others[2];
    static char many[10000];
    MUST(ftruncate(file, 10000));
    MUST(pipe(ends)), MUST(pipe(others));
    MUST(splice(file, NULL, ends[1], NULL, 8192, 0));
    MUST(tee(ends[0], others[1], 4096, 0));
    struct iovec part = {many, sizeof many};
    MUST(vmsplice(others[1], &part, 1, 0));
    MUST(lseek(file, 0, SEEK_SET));
    MUST(sendfile(ends[1], file, NULL, 100));
    close(file), close(ends[0]), close(ends[1]), close(others[0]), close(others[1]);
}

static void segment_once(void)
{
    int id = MUST(shmget(IPC_PRIVATE, 10000, IPC_CREAT | 0600));
    char *at = shmat(id, NULL, 0), *again = shmat(id, NULL, SHM_RDONLY);
    memset(at, 1, 10000);
    MUST(shmctl(id, IPC_RMID, NULL));
    MUST(shmdt(at));
    MUST(shmdt(again));
}

/* Pages far from each other have tables of their own. */
static void sparse_once(void)
{
    size_t bytes = 1ul << 36;
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t offset = 0; offset < bytes; offset += bytes / 8)
        at[offset] = 1;
    madvise(at, bytes / 2, MADV_DONTNEED);
    for (size_t page = 0; page < 16; page += 2)
        mprotect(at + page * 4096, 4096, PROT_READ);
    munmap(at, bytes);
}

static void shared_map_once(void)
{
    int status;
    char *at = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = MUST(fork());
    if (child == 0) {
        memset(at, 1, 1 << 16);
        _exit(0);
    }
    MUST(waitpid(child, &status, 0));
    munmap(at, 1 << 16);
}

static void queued_once(void)
{
    static int number;
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    for (int i = 0; i < 4; i++)
        MUST(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = number++}));
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGRTMIN + 1);
    for (int i = 0; i < 4; i++)
        MUST(sigtimedwait(&one, NULL, &(struct timespec){0, 0}));
    sigprocmask(SIG_SETMASK, &old, NULL);
}

static void timer_once(void)
{
    timer_t timer;
    struct sigevent quiet = {.sigev_notify = SIGEV_NONE};
    struct itimerspec later = {{0, 0}, {100, 0}};
    MUST(timer_create(CLOCK_MONOTONIC, &quiet, &timer));
    MUST(timer_settime(timer, 0, &later, NULL));
    MUST(timer_delete(timer));
}

/* The folder of a process that has gone. */
static void proc_child_once(void)
{
    char path[40], text[512];
    int status;
    pid_t child = MUST(fork());
    if (child == 0)
        pause();
    snprintf(path, sizeof path, "/proc/%d/maps", child);
    int maps = MUST(open(path, O_RDONLY));
    snprintf(path, sizeof path, "/proc/%d/fd", child);
    int folder = MUST(open(path, O_RDONLY | O_DIRECTORY));
    MUST(read(maps, text, sizeof text));
    kill(child, SIGKILL);
    MUST(waitpid(child, &status, 0));
    read(maps, text, sizeof text);
    close(maps), close(folder);
}

CHURN(fork)
CHURN(exec)
CHURN(killed)
CHURN(null)
CHURN(zero)
CHURN(file)
CHURN(folder)
CHURN(new_file)
CHURN(pipe)
CHURN(full_pipe)
CHURN(dup)
CHURN(map)
CHURN(pipe_to_child)
CHURN(signal)
CHURN(proc)
CHURN(failed_exec)
CHURN(passing)
CHURN(ring)
CHURN(names)
CHURN(listing)
CHURN(unlinked)
CHURN(memory_file)
CHURN(attributes)
CHURN(locking)
CHURN(mount)
CHURN(epoll)
CHURN(counters)
CHURN(terminal)
CHURN(stream)
CHURN(datagrams)
CHURN(connection)
CHURN(moved)
CHURN(segment)
CHURN(sparse)
CHURN(shared_map)
CHURN(queued)
CHURN(timer)
CHURN(proc_child)

static void nothing(void) {}

static const struct test tests[] = {
    {"fork", churn_fork},
    {"exec", churn_exec},
    {"killed", churn_killed},
    {"null", churn_null},
    {"zero", churn_zero},
    {"file", churn_file},
    {"folder", churn_folder},
    {"new_file", churn_new_file},
    {"pipe", churn_pipe},
    {"full_pipe", churn_full_pipe},
    {"dup", churn_dup},
    {"map", churn_map},
    {"pipe_to_child", churn_pipe_to_child},
    {"signal", churn_signal},
    {"proc", churn_proc},
    {"failed_exec", churn_failed_exec},
    {"passing", churn_passing},
    {"ring", churn_ring},
    {"names", churn_names},
    {"listing", churn_listing},
    {"unlinked", churn_unlinked},
    {"memory_file", churn_memory_file},
    {"attributes", churn_attributes},
    {"locking", churn_locking},
    {"mount", churn_mount},
    {"epoll", churn_epoll},
    {"counters", churn_counters},
    {"terminal", churn_terminal},
    {"stream", churn_stream},
    {"datagrams", churn_datagrams},
    {"connection", churn_connection},
    {"moved", churn_moved},
    {"segment", churn_segment},
    {"sparse", churn_sparse},
    {"shared_map", churn_shared_map},
    {"queued", churn_queued},
    {"timer", churn_timer},
    {"proc_child", churn_proc_child},
    {"nothing", nothing}, /* what `exec` starts */
};
CHECK_MAIN(tests)
