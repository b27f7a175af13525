/* A pseudo terminal's master in packet mode. */
#include "check.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

static int master, slave;

static void begin(void)
{
    char name[64];
    int unlocked = 0;
    master = MUST(open("/dev/ptmx", O_RDWR | O_NOCTTY));
    MUST(ioctl(master, TIOCSPTLCK, &unlocked));
    MUST(ptsname_r(master, name, sizeof name));
    slave = MUST(open(name, O_RDWR | O_NOCTTY));
    MUST(fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK));
}

static void packets(int on) { MUST(ioctl(master, TIOCPKT, &on)); }

/* What a terminal does for its master may be done a little later. */
static void await_news(short wanted)
{
    struct pollfd poll_master = {.fd = master, .events = wanted};
    poll(&poll_master, 1, 2000);
}

static void packet(void)
{
    char bytes[64];
    await_news(POLLIN);
    struct pollfd poll_master = {.fd = master, .events = POLLIN | POLLPRI};
    poll(&poll_master, 1, 0);
    errno = 0;
    ssize_t got = read(master, bytes, sizeof bytes);
    printf("poll %x, read %zd", poll_master.revents, got);
    if (got < 0)
        printf(" %s", failing(-1));
    for (ssize_t i = 0; i < got; i++)
        printf(" %02x", (unsigned char)bytes[i]);
    puts("");
}

static void nothing(void)
{
    char byte;
    errno = 0;
    ssize_t got = read(master, &byte, 1);
    printf("nothing: %s\n", got > 0 ? "something" : failing(got));
}

static void data(void)
{
    begin();
    int on = 7;
    MUST(ioctl(master, TIOCGPKT, &on));
    printf("at first %d\n", on);
    TRY(ioctl(slave, TIOCPKT, &on));
    MUST(write(slave, "before\n", 7));
    packets(1);
    MUST(ioctl(master, TIOCGPKT, &on));
    printf("then %d\n", on);
    packet();
    nothing();
    MUST(write(slave, "hello", 5));
    packet();
    nothing();
    char few[3];
    MUST(write(slave, "12345", 5));
    await_news(POLLIN);
    SHOW(read(master, few, 1));
    printf("%02x\n", few[0]);
    SHOW(read(master, few, 3));
    printf("%02x %c%c\n", few[0], few[1], few[2]);
    packet();
    /* What is typed is echoed. */
    MUST(write(master, "x", 1));
    packet();
    packets(0);
    MUST(write(slave, "plain", 5));
    packet();
    TRY(ioctl(master, TIOCPKT, NULL));
    close(slave);
    packets(1);
    await_news(POLLHUP);
    SHOW(read(master, few, 3));
}

static void news(void)
{
    begin();
    packets(1);
    nothing();
    puts("flushed");
    tcflush(slave, TCIFLUSH);
    packet();
    tcflush(slave, TCOFLUSH);
    packet();
    tcflush(slave, TCIOFLUSH);
    packet();
    puts("stopped and started");
    tcflow(slave, TCOOFF);
    packet();
    tcflow(slave, TCOOFF);
    nothing();
    tcflow(slave, TCOON);
    packet();
    tcflow(slave, TCOON);
    nothing();
    puts("by keys");
    MUST(write(master, "\023", 1));
    packet();
    MUST(write(master, "\023", 1));
    nothing();
    MUST(write(master, "\021", 1));
    packet();
    puts("settings");
    struct termios settings;
    MUST(tcgetattr(slave, &settings));
    settings.c_iflag &= ~IXON;
    MUST(tcsetattr(slave, TCSANOW, &settings));
    packet();
    MUST(tcsetattr(slave, TCSANOW, &settings));
    nothing();
    settings.c_iflag |= IXON;
    MUST(tcsetattr(slave, TCSANOW, &settings));
    packet();
    settings.c_cc[VSTOP] = 'x';
    MUST(tcsetattr(slave, TCSANOW, &settings));
    packet();
    settings.c_lflag |= EXTPROC;
    MUST(tcsetattr(slave, TCSANOW, &settings));
    packet();
    settings.c_lflag &= ~EXTPROC;
    MUST(tcsetattr(slave, TCSANOW, &settings));
    packet();
    MUST(tcsetattr(slave, TCSANOW, &settings));
    nothing();
    puts("several at once, then data");
    tcflow(slave, TCOOFF);
    tcflow(slave, TCOON);
    tcflush(slave, TCIFLUSH);
    MUST(write(slave, "data", 4));
    packet();
    packet();
    puts("a signal key flushes");
    MUST(write(master, "\003", 1));
    packet();
    packet();
    puts("old news");
    packets(0);
    tcflush(slave, TCIFLUSH);
    packets(1);
    nothing();
}

static void wakes(void)
{
    begin();
    packets(1);
    MUST(fcntl(master, F_SETFL, O_RDWR));
    fflush(stdout);
    pid_t parent = getpid(), child = MUST(fork());
    if (child == 0) {
        await_state(parent, 'S');
        tcflush(slave, TCIFLUSH);
        _exit(0);
    }
    char bytes[8];
    SHOW(read(master, bytes, sizeof bytes));
    printf("%02x\n", bytes[0]);
    waitpid(child, NULL, 0);
    fflush(stdout);
    child = MUST(fork());
    if (child == 0) {
        await_state(parent, 'S');
        tcflow(slave, TCOOFF);
        _exit(0);
    }
    struct pollfd poll_master = {.fd = master, .events = POLLPRI};
    SHOW(poll(&poll_master, 1, 10000));
    printf("%x\n", poll_master.revents);
    waitpid(child, NULL, 0);
}

#define T(name) {#name, name}
static const struct test tests[] = {T(data), T(news), T(wakes)};
CHECK_MAIN(tests)
