/* A thousand times everything: afterwards no fewer frames are free, and as many bytes of code live, as before.
 *
 * The numbers come from /proc/synthesis/gauges (`free_frames N`, `code_bytes N`). A host has no such file, and there
 * is nothing to compare. In the guest, whose folder of tests is /tmp/t, a missing file is a failure.
 */
#include "check.h"

#include <sys/socket.h>

struct gauges {
    long free_frames, code_bytes;
};

static int in_guest(void)
{
    const char *home = getenv("R");
    return access("/proc/synthesis", F_OK) == 0 || (home && strcmp(home, "/tmp/t") == 0);
}

/* Read with plain calls: a stream's buffer would itself change the number of free frames. */
static int read_gauges(struct gauges *gauges)
{
    static char text[4096];
    int fd = open("/proc/synthesis/gauges", O_RDONLY);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (length <= 0)
        return 0;
    text[length] = 0;
    char *frames = strstr(text, "free_frames "), *code = strstr(text, "code_bytes ");
    if (!frames || !code)
        return 0;
    gauges->free_frames = atol(frames + 12);
    gauges->code_bytes = atol(code + 11);
    return 1;
}

/* The kernel's heap may have no use any more for a few pages that something before this test left half full. */
enum { GIVEN_BACK_MAX = 8 };

static int is_as_before(const struct gauges *before, const struct gauges *after)
{
    long more = after->free_frames - before->free_frames;
    return more >= 0 && more <= GIVEN_BACK_MAX && after->code_bytes == before->code_bytes;
}

/* Some warm rounds first: caches fill, inactive lists get their entries. Then a thousand must leave no trace. The kernel's heap may
 * have needed one page more at one moment; what is lost in every thousand is a leak. */
static void leaves_nothing(void (*once)(void))
{
    struct gauges before = {0}, after = {0};
    puts("start");
    for (int i = 0; i < 20; i++)
        once();
    int readable = read_gauges(&after) && read_gauges(&after); /* the first read touches its own buffer */
    for (int thousand = 0; thousand < 3; thousand++) {
        before = after;
        for (int i = 0; i < 1000; i++)
            once();
        for (int wait = 0; readable && wait < 50; wait++) {
            read_gauges(&after);
            if (is_as_before(&before, &after))
                return;
            sleep_ms(10); /* what is retired may be freed a little later */
        }
        if (!readable)
            break;
    }
    if (in_guest() && !readable)
        puts("the gauges cannot be read");
    if (readable) {
        printf("free frames: %ld before, %ld after\n", before.free_frames, after.free_frames);
        printf("code bytes: %ld before, %ld after\n", before.code_bytes, after.code_bytes);
    }
}

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

#define CHURN(what) static void churn_##what(void) { leaves_nothing(what##_once); }
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
    {"nothing", nothing}, /* what `exec` starts */
};
CHECK_MAIN(tests)
