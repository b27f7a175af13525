/* Cost of write to the console: nanoseconds a call, which under --icount are instructions.
   At a terminal also without OPOST, and the cost of reading lines that were typed during the first second.
   usage: console [calls]; the bytes go to descriptor 1, the figures to descriptor 2. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static double cost(const char *bytes, int count, int calls) {
    for (int i = 0; i < 40; i++) write(1, bytes, count);
    long start = now();
    for (int i = 0; i < calls; i++)
        if (write(1, bytes, count) != count) exit(1);
    return (double)(now() - start) / calls;
}

int main(int argc, char **argv) {
    int calls = argc > 1 ? atoi(argv[1]) : 1000;
    char line[1024];
    for (int i = 0; i < 1024; i++) line[i] = i % 64 == 63 ? '\n' : 'a' + i % 26;
    double one = cost("x", 1, calls), newline = cost("\n", 1, calls), many = cost(line, 1024, calls);
    dprintf(2, "\nwrite 1: %.0f  write newline: %.0f  write 1024 (16 lines): %.0f\n", one, newline, many);
    struct termios t;
    if (tcgetattr(1, &t)) return 0;
    t.c_oflag &= ~OPOST;
    tcsetattr(1, TCSANOW, &t);
    one = cost("x", 1, calls), many = cost(line, 1024, calls);
    t.c_oflag |= OPOST;
    tcsetattr(1, TCSANOW, &t);
    dprintf(2, "\nwithout OPOST: write 1: %.0f  write 1024: %.0f\n", one, many);
    int waiting = 0, lines = 0;
    long spent = 0;
    sleep(1);
    read(0, line, 1024);
    while (ioctl(0, FIONREAD, &waiting) == 0 && waiting > 0) {
        long start = now();
        int got = read(0, line, 1024);
        spent += now() - start;
        lines++;
        if (got <= 0) break;
    }
    if (lines) dprintf(2, "read a line: %.0f (%d lines)\n", (double)spent / lines, lines);
    return 0;
}
