/* Cost of write to the console: nanoseconds a call, which under --icount are instructions.
   usage: console [calls]; the bytes go to descriptor 1, the figures to the file named by FIGURES or to descriptor 2. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    return 0;
}
