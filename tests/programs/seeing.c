/* Something to look at, for the suite `seeing`.
 *
 *   seeing calls N     N times getppid, then the end
 *   seeing kinds       uses one of each kind of file so often that the kernel writes code for it, then prints
 *                      /proc/synthesis/quajects, a line of `=`, and /proc/synthesis/code
 *   seeing wait        a pipe with 300 bytes in it (descriptors 3 and 4), a child that reads from an empty one, and a
 *                      parent that asks for its parent's number again and again; prints `ready` when the child sleeps, and runs
 *                      until it is ended
 *   seeing flow        two processes that send each other a sequence of bytes through a pipe (3 and 4) for ever and check it,
 *                      a pipe with an alphabet in it (5 and 6), one whose bytes come out at standard output (7 and 8),
 *                      /dev/zero (9), a file of digits (10), and a pipe that is a new one again and again (11
 *                      and 12); `steps` counts what has come
 *   seeing births      a parent that makes children, one after the other, which go through `one_step`; `steps` counts those
 *                      that ended well
 *   seeing vfork       a child with its parent's memory, which goes through `one_step` again and again
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void ask(int times)
{
    for (int i = 0; i < times; i++)
        syscall(SYS_getppid);
}

/* Opens by name, and closes, as often as makes an open of it. */
static int again(const char *path, int flags)
{
    int fd = -1;
    for (int i = 0; i < 4; i++) {
        if (fd >= 0)
            close(fd);
        fd = open(path, flags);
    }
    return fd;
}

static int print(const char *path)
{
    static char bytes[1 << 16];
    int from = open(path, O_RDONLY);
    ssize_t got;
    while ((got = read(from, bytes, sizeof bytes)) > 0)
        if (write(1, bytes, got) != got)
            return 1;
    return from < 0 || got < 0;
}

static int kinds(void)
{
    int ends[2], file = memfd_create("kinds", 0);
    char bytes[64] = "kinds";
    again("/dev/null", O_RDWR);
    int zero = again("/dev/zero", O_RDONLY);
    /* What this machine does not have stays away. */
    int tty = again("/dev/tty", O_RDWR), window = open("/dev/tty1", O_RDWR | O_NOCTTY);
    int cd = open("/dev/cd", O_RDONLY), ad = open("/dev/ad", O_RDONLY);
    if (pipe(ends) || zero < 0 || file < 0)
        return 1;
    for (int i = 0; i < 40; i++) {
        if (write(ends[1], bytes, 7) != 7 || read(ends[0], bytes, 7) != 7 || read(zero, bytes, 5) != 5)
            return 1;
        if (write(file, bytes, 9) != 9 || pwrite(file, bytes, 9, i) != 9 || pread(file, bytes, 4, i) != 4)
            return 1;
        ask(3);
    }
    if (window >= 0 && write(window, bytes, 5) != 5)
        return 1;
    (void)tty, (void)cd, (void)ad;
    return print("/proc/synthesis/quajects") || write(1, "=\n", 2) != 2 || print("/proc/synthesis/code");
}

/* Whether a process sleeps, by the letter behind its name. */
static int sleeps(pid_t pid)
{
    char path[40], line[200] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int file = open(path, O_RDONLY);
    ssize_t got = read(file, line, sizeof line - 1);
    close(file);
    char *name_end = got > 0 ? strrchr(line, ')') : NULL;
    return name_end && name_end[1] && name_end[2] == 'S';
}

static int wait_to_be_seen(void)
{
    int full[2], empty[2];
    char bytes[10];
    memset(bytes, 'x', sizeof bytes);
    if (pipe(full) || pipe(empty))
        return 1;
    /* So often that the kernel has written code for it. */
    for (int i = 0; i < 30; i++)
        if (write(full[1], bytes, sizeof bytes) != sizeof bytes)
            return 1;
    ask(30);
    pid_t child = fork();
    if (child == 0) {
        close(full[0]);
        close(full[1]);
        close(empty[1]);
        _exit(read(empty[0], bytes, 1) != 1);
    }
    while (child > 0 && !sleeps(child))
        usleep(1000);
    if (child < 0 || write(1, "ready\n", 6) != 6)
        return 1;
    for (;;) {
        ask(10);
        usleep(2000);
    }
}

/* For debuggers to look at, and to change. */
volatile unsigned long steps;

/* Where a breakpoint stands. */
__attribute__((noinline)) void one_step(unsigned char byte)
{
    if (byte != (unsigned char)steps) {
        (void)!write(1, "broken\n", 7);
        _exit(1);
    }
    steps++;
}

static void send_sequence(int to)
{
    unsigned char next = 0, bytes[16];
    for (unsigned size = 1;; size = size % 16 + 1) {
        for (unsigned i = 0; i < size; i++)
            bytes[i] = next++;
        if (write(to, bytes, size) != (ssize_t)size)
            _exit(0);
        if (size == 16)
            usleep(500);
    }
}

/* A byte through descriptors 11 and 12, which are other pipes from time to time. */
static void pass_a_byte(void)
{
    static unsigned rounds;
    char byte = (char)rounds, back = 0;
    if (rounds++ % 100 == 0) {
        int ends[2];
        if (pipe(ends))
            _exit(1);
        if (ends[0] != 11) {
            dup2(ends[0], 11);
            dup2(ends[1], 12);
            close(ends[0]);
            close(ends[1]);
        }
    }
    if (write(12, &byte, 1) != 1 || read(11, &back, 1) != 1 || back != byte) {
        (void)!write(1, "broken\n", 7);
        _exit(1);
    }
}

static int flow(void)
{
    int sequence[2], letters[2], out[2];
    if (pipe(sequence) || pipe(letters) || pipe2(out, O_NONBLOCK))
        return 1;
    int zero = open("/dev/zero", O_RDONLY), digits = memfd_create("digits", 0);
    if (zero != 9 || digits != 10 || write(digits, "0123456789", 10) != 10 || lseek(digits, 0, SEEK_SET) != 0)
        return 1;
    if (write(letters[1], "abcdefghijklmnopqrstuvwxyz", 26) != 26)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        close(sequence[0]);
        send_sequence(sequence[1]);
    }
    /* Nothing of ours writes there, and the number stays taken. */
    dup2(zero, sequence[1]);
    if (child < 0 || write(1, "ready\n", 6) != 6)
        return 1;
    for (;;) {
        unsigned char bytes[7], text[64];
        ssize_t got = read(sequence[0], bytes, sizeof bytes);
        if (got <= 0)
            return 1;
        for (ssize_t i = 0; i < got; i++)
            one_step(bytes[i]);
        pass_a_byte();
        got = read(out[0], text, sizeof text);
        if (got > 0 && write(1, text, got) != got)
            return 1;
    }
}

static int births(void)
{
    if (write(1, "ready\n", 6) != 6)
        return 1;
    for (;; steps++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            one_step((unsigned char)steps);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            (void)!write(1, "broken\n", 7);
            return 1;
        }
        usleep(500);
    }
}

static int borrow_memory(void)
{
    if (write(1, "ready\n", 6) != 6)
        return 1;
    if (vfork() == 0)
        for (;;) {
            struct timespec little = {0, 1000000};
            one_step((unsigned char)steps);
            syscall(SYS_nanosleep, &little, NULL);
        }
    (void)!write(1, "broken\n", 7);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "calls")) {
        ask(atoi(argv[2]));
        return 0;
    }
    if (argc == 2 && !strcmp(argv[1], "kinds"))
        return kinds();
    if (argc == 2 && !strcmp(argv[1], "wait"))
        return wait_to_be_seen();
    if (argc == 2 && !strcmp(argv[1], "flow"))
        return flow();
    if (argc == 2 && !strcmp(argv[1], "births"))
        return births();
    if (argc == 2 && !strcmp(argv[1], "vfork"))
        return borrow_memory();
    fprintf(stderr, "usage: seeing calls N | kinds | wait | flow | births | vfork\n");
    return 2;
}
