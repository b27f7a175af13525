/* Text windows: what is written to /dev/ttyN is seen in /dev/vcsN. The host's windows are left alone: this runs on Synthesis
 * only, and checks by itself. A case that fails says where, and exits 1. */
#include "check.h"
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <termios.h>

enum { ROWS = 24, COLUMNS = 80, CELLS = ROWS * COLUMNS };

static void failed(int line, const char *what)
{
    printf("line %d: %s (%s)\n", line, what, strerror(errno));
    fflush(stdout);
    _exit(1);
}

#define CHECK(what) ((what) ? (void)0 : failed(__LINE__, #what))

/* Window N, blank and as it was at first. */
static int window(int number)
{
    char path[16];
    snprintf(path, sizeof path, "/dev/tty%d", number);
    int fd = open(path, O_RDWR | O_NOCTTY);
    struct termios usual;
    CHECK(fd >= 0 && tcgetattr(fd, &usual) == 0);
    usual.c_oflag |= OPOST | ONLCR;
    usual.c_lflag |= ICANON | ECHO;
    CHECK(tcsetattr(fd, TCSAFLUSH, &usual) == 0 && write(fd, "\033\\\033c", 4) == 4);
    return fd;
}

static int cells_of(int number, const char *kind)
{
    char path[16];
    snprintf(path, sizeof path, "/dev/%s%d", kind, number);
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    return fd;
}

/* What the window shows. */
static void see(int number, char cells[CELLS + 1])
{
    int fd = cells_of(number, "vcs");
    CHECK(read(fd, cells, CELLS + 1) == CELLS && read(fd, cells, 1) == 0);
    cells[CELLS] = 0;
    close(fd);
}

/* Row `row` shows `text` and nothing behind it. */
static void shows_at(int line, int number, int row, const char *text)
{
    char cells[CELLS + 1], wanted[COLUMNS + 1];
    see(number, cells);
    snprintf(wanted, sizeof wanted, "%-80s", text);
    if (memcmp(cells + row * COLUMNS, wanted, COLUMNS)) {
        printf("line %d: row %d is \"%.80s\", not \"%s\"\n", line, row, cells + row * COLUMNS, text);
        fflush(stdout);
        _exit(1);
    }
}

#define SHOWS(number, row, text) shows_at(__LINE__, number, row, text)

static void cursor_at(int line, int number, int row, int column)
{
    unsigned char head[4];
    int fd = cells_of(number, "vcsa");
    CHECK(read(fd, head, 4) == 4);
    close(fd);
    if (head[0] != ROWS || head[1] != COLUMNS || head[2] != column || head[3] != row) {
        printf("line %d: %d x %d, cursor %d %d\n", line, head[0], head[1], head[3], head[2]);
        fflush(stdout);
        _exit(1);
    }
}

#define CURSOR(number, row, column) cursor_at(__LINE__, number, row, column)

static void put(int fd, const char *text)
{
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void set_flags(int fd, tcflag_t output, tcflag_t local)
{
    struct termios settings;
    CHECK(tcgetattr(fd, &settings) == 0);
    settings.c_oflag = output;
    settings.c_lflag = local;
    settings.c_cc[VMIN] = 1;
    CHECK(tcsetattr(fd, TCSANOW, &settings) == 0);
}

static void shows_text(void)
{
    int fd = window(1);
    put(fd, "hello\nworld\tX\010Y");
    put(fd, "\033[5;70Hwraps at the edge");
    SHOWS(1, 0, "hello");
    SHOWS(1, 1, "world   Y");
    SHOWS(1, 4, "                                                                     wraps at th");
    SHOWS(1, 5, "e edge");
    CURSOR(1, 5, 6);
    put(fd, "\033[2J\033[1;1H\033[7mx\033[1;31my\033[m");
    unsigned char cells[8];
    int shown = cells_of(1, "vcsa");
    CHECK(pread(shown, cells, 8, 4) == 8);
    CHECK(!memcmp(cells, "x\x70y\x4f \x07 \x07", 4) || !memcmp(cells, "x\x70y", 3));
}

static void scrolls(void)
{
    int fd = window(1);
    char line[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(line, sizeof line, "line %d\n", i);
        put(fd, line);
    }
    SHOWS(1, 0, "line 977");
    SHOWS(1, 22, "line 999");
    SHOWS(1, 23, "");
    put(fd, "\033[3;5r\033[5;1Htwo\nthree\033[r");
    SHOWS(1, 2, "line 980");
    SHOWS(1, 3, "twoe 981");
    SHOWS(1, 4, "three");
    SHOWS(1, 5, "line 982");
    put(fd, "\033[1;1H\033M\033[4;1H\033[2K");
    SHOWS(1, 0, "");
    SHOWS(1, 1, "line 977");
}

/* A sequence in pieces, and another machine in the middle of it. */
static void sequences_in_pieces(void)
{
    int fd = window(1);
    const char *text = "a\033[7;3Hb\033[2D\033[K\033[12dc";
    for (const char *at = text; *at; at++) {
        set_flags(fd, (at - text) % 2 ? OPOST | ONLCR : 0, 0);
        CHECK(write(fd, at, 1) == 1);
    }
    SHOWS(1, 0, "a");
    SHOWS(1, 6, "");
    SHOWS(1, 11, " c");
    set_flags(fd, OPOST | ONLCR, ICANON | ECHO);
}

static void raw_output(void)
{
    int fd = window(1);
    set_flags(fd, 0, 0);
    put(fd, "one\ntwo");
    SHOWS(1, 0, "one");
    SHOWS(1, 1, "   two");
    set_flags(fd, OPOST | ONLCR, 0);
    put(fd, "\nthree");
    SHOWS(1, 2, "three");
    set_flags(fd, OPOST | ONLCR | XTABS, 0);
    put(fd, "\tfour");
    SHOWS(1, 2, "three   four");
}

/* Nothing of a piece that is not all there; pages that come when they are touched. */
static void bad_buffers(void)
{
    int fd = window(1);
    put(fd, "before");
    char *pages = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && munmap(pages + 8192, 4096) == 0);
    memset(pages + 8192 - 10, 'x', 10);
    CHECK(write(fd, pages + 8192 - 10, 11) == -1 && errno == EFAULT);
    CHECK(write(fd, pages + 8192 - 10, 4000) == -1 && errno == EFAULT);
    char *volatile nowhere = 0;
    CHECK(write(fd, nowhere, 10) == -1 && errno == EFAULT);
    CHECK(write(fd, nowhere - 4096, 10) == -1 && errno == EFAULT);
    CHECK(write(fd, nowhere, 0) == 0);
    SHOWS(1, 0, "before");
    CHECK(write(fd, pages + 8192 - 10, 10) == 10);
    SHOWS(1, 0, "beforexxxxxxxxxx");
    char path[] = "/tmp/windowXXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0 && unlink(path) == 0 && ftruncate(file, 8192) == 0);
    CHECK(pwrite(file, "across pages", 12, 4090) == 12);
    char *map = mmap(0, 8192, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(map != MAP_FAILED && write(fd, map + 4090, 12) == 12);
    SHOWS(1, 0, "beforexxxxxxxxxxacross pages");
}

/* The same text in one write, in pieces, as vectors, raw and through Rust's filter. */
static void writes_of_all_sizes(void)
{
    enum { BYTES = 300000 };
    char *text = malloc(BYTES + 16);
    unsigned seed = 7;
    int bytes = 0;
    while (bytes < BYTES) {
        seed = seed * 1103515245 + 12345;
        unsigned random = seed >> 16;
        if (random % 50 == 0)
            bytes += sprintf(text + bytes, "\033[%d;%dH", random % 29, random % 83);
        else if (random % 50 == 1)
            bytes += sprintf(text + bytes, "\033[%d%c", random % 4, "JKmALMP@mmmmmmmm"[random / 64 % 16]);
        else
            text[bytes++] = random % 31 ? 32 + random % 95 : '\n';
    }
    char first[CELLS + 1], other[CELLS + 1];
    int fd = window(1);
    CHECK(write(fd, text, bytes) == bytes);
    see(1, first);
    int letters = 0;
    for (int i = 0; i < CELLS; i++)
        letters += first[i] != ' ';
    CHECK(letters > 100);
    for (int piece = 1; piece < 70000; piece = piece * 9 + 1) {
        fd = window(2);
        for (int at = 0; at < bytes; at += piece) {
            int part = bytes - at < piece ? bytes - at : piece;
            CHECK(write(fd, text + at, part) == part);
        }
        see(2, other);
        CHECK(!memcmp(first, other, CELLS));
        close(fd);
    }
    fd = window(3);
    struct iovec parts[3] = {{text, 4096}, {text + 4096, 5}, {text + 4101, bytes - 4101}};
    CHECK(writev(fd, parts, 3) == bytes);
    see(3, other);
    CHECK(!memcmp(first, other, CELLS));
    fd = window(3);
    struct termios settings;
    CHECK(tcgetattr(fd, &settings) == 0);
    settings.c_iflag |= IUTF8;
    CHECK(tcsetattr(fd, TCSANOW, &settings) == 0 && write(fd, text, bytes) == bytes);
    see(3, other);
    CHECK(!memcmp(first, other, CELLS));
    settings.c_iflag &= ~IUTF8;
    CHECK(tcsetattr(fd, TCSANOW, &settings) == 0);
    free(text);
}

static void on_alarm(int signal)
{
    (void)signal;
}

static void input(void)
{
    int fd = window(1);
    char line[64] = "";
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && read(fd, line, 64) == -1 && errno == EAGAIN);
    CHECK(fcntl(fd, F_SETFL, 0) == 0);
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval soon = {{0, 0}, {0, 20000}};
    CHECK(sigaction(SIGALRM, &action, 0) == 0 && setitimer(ITIMER_REAL, &soon, 0) == 0);
    CHECK(read(fd, line, 64) == -1 && errno == EINTR);
    for (const char *key = "tyx\177ped\n"; *key; key++)
        CHECK(ioctl(fd, TIOCSTI, key) == 0);
    CHECK(read(fd, line, 64) == 6 && !memcmp(line, "typed\n", 6));
    SHOWS(1, 0, "typed");
    CURSOR(1, 1, 0);
    set_flags(fd, OPOST | ONLCR, 0);
    put(fd, "\033[4;9Htext\033[6n, more");
    CHECK(read(fd, line, 64) == 7 && !memcmp(line, "\033[4;13R", 7));
    SHOWS(1, 3, "        text, more");
    put(fd, "\033[5n\033[c");
    CHECK(read(fd, line, 64) == 9 && !memcmp(line, "\033[0n\033[?6c", 9));
}

/* A signal ends a write that would take long, with what was written until then. */
static void a_long_write_is_interrupted(void)
{
    enum { MUCH = 64 << 20 };
    int fd = window(1);
    char *text = mmap(0, MUCH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval soon = {{0, 9000}, {0, 9000}}, never = {{0, 0}, {0, 0}};
    CHECK(text != MAP_FAILED && sigaction(SIGALRM, &action, 0) == 0 && setitimer(ITIMER_REAL, &soon, 0) == 0);
    ssize_t written = write(fd, text, MUCH);
    CHECK(setitimer(ITIMER_REAL, &never, 0) == 0);
    CHECK(written > 0 && written < MUCH && written % 4096 == 0);
}

static void names_and_numbers(void)
{
    int fd = window(1);
    struct winsize size;
    struct stat stat;
    unsigned device;
    CHECK(isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row == ROWS && size.ws_col == COLUMNS);
    CHECK(fstat(fd, &stat) == 0 && S_ISCHR(stat.st_mode) && stat.st_rdev == makedev(4, 1));
    CHECK(ioctl(fd, TIOCGDEV, &device) == 0 && device == 0x401);
    CHECK(!strcmp(ttyname(fd), "/dev/tty1"));
    CHECK(open("/dev/tty9", O_RDWR) == -1 && errno == ENOENT);
    CHECK(open("/dev/vcs8", O_RDONLY) == -1 && errno == ENXIO);
    CHECK(mknod("/tmp/nowindow", S_IFCHR | 0600, makedev(4, 9)) == 0);
    CHECK(open("/tmp/nowindow", O_RDWR | O_NOCTTY) == -1 && errno == ENXIO && unlink("/tmp/nowindow") == 0);
    put(fd, "abc");
    char seen[4] = "";
    int shown = open("/dev/vcs", O_RDONLY);
    CHECK(shown >= 0 && read(shown, seen, 3) == 3 && !memcmp(seen, "abc", 3));
    put(fd, "\rxyz");
    CHECK(lseek(shown, 1, SEEK_SET) == 1 && read(shown, seen, 2) == 2 && !memcmp(seen, "yz", 2));
    CHECK(lseek(shown, 0, SEEK_END) == CELLS && read(shown, seen, 1) == 0);
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

/* A window is a session's terminal like any other. */
static void sessions(void)
{
    close(window(4));
    pid_t child = fork();
    if (child) {
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        return;
    }
    CHECK(setsid() > 0);
    int fd = open("/dev/tty4", O_RDWR);
    CHECK(fd >= 0 && tcgetpgrp(fd) == getpgrp());
    CHECK(signal(SIGINT, on_interrupt) != SIG_ERR && ioctl(fd, TIOCSTI, "\003") == 0 && interrupted);
    int mine = open("/dev/tty", O_RDWR);
    CHECK(mine >= 0);
    put(mine, "mine");
    SHOWS(4, 0, "^Cmine");
    _exit(0);
}

static void in_a_session(void (*body)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        CHECK(setsid() > 0);
        body();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* So often that the call is done in code where there is some. */
static void open_often(const char *path, int flags)
{
    for (int i = 0; i < 6; i++) {
        int fd = open(path, flags);
        CHECK(fd >= 0 && close(fd) == 0);
    }
}

static void asks_to_be_alone(void)
{
    int fd = open("/dev/tty6", O_RDWR);
    CHECK(fd >= 0 && setresuid(1000, 1000, 1000) == 0);
    open_often("/dev/tty6", O_RDWR | O_NOCTTY);
    CHECK(ioctl(fd, TIOCEXCL) == 0 && open("/dev/tty6", O_RDWR | O_NOCTTY) == -1 && errno == EBUSY);
    CHECK(ioctl(fd, TIOCNXCL) == 0);
    open_often("/dev/tty6", O_RDWR | O_NOCTTY);
}

static void opened_alone(void)
{
    close(window(6));
    CHECK(chmod("/dev/tty6", 0666) == 0);
    in_a_session(asks_to_be_alone);
    CHECK(chmod("/dev/tty6", 0620) == 0);
}

/* A window that belongs to another session when it is opened, and to nobody later. */
static void opens_when_it_is_free(void)
{
    int ready[2], end[2], status;
    char byte;
    CHECK(pipe(ready) == 0 && pipe(end) == 0);
    pid_t owner = fork();
    if (owner == 0) {
        CHECK(setsid() > 0 && open("/dev/tty6", O_RDWR) >= 0 && write(ready[1], "x", 1) == 1);
        _exit(read(end[0], &byte, 1) != 1);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    open_often("/dev/tty6", O_RDWR);
    CHECK(write(end[1], "x", 1) == 1 && waitpid(owner, &status, 0) == owner && status == 0);
    int fd = open("/dev/tty6", O_RDWR);
    CHECK(fd >= 0 && tcgetpgrp(fd) == getpgrp());
}

static void free_again(void)
{
    close(window(6));
    in_a_session(opens_when_it_is_free);
}

/* Two who write at the same time: each write is whole. */
static void two_writers(void)
{
    int fd = window(5);
    pid_t child = fork();
    for (int i = 0; i < 2000; i++)
        put(fd, child ? "\033[3;10Hparent" : "\033[4;10Hchild\033[1m\033[m");
    if (child == 0)
        _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    SHOWS(5, 2, "         parent");
    SHOWS(5, 3, "         child");
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(shows_text), T(scrolls), T(sequences_in_pieces), T(raw_output), T(bad_buffers), T(writes_of_all_sizes),
    T(input), T(a_long_write_is_interrupted), T(names_and_numbers), T(sessions),
    T(opened_alone), T(free_again), T(two_writers),
};
CHECK_MAIN(tests)
