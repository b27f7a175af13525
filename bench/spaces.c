/* What another address space costs a switch (S-2): two threads of one space, and two processes, hand a byte to and fro through pipes, and
 * touch so many pages each time they run. Nanoseconds a turn, the fastest of nine rounds, and the difference.
 *
 * gcc -O2 -pthread -o spaces bench/spaces.c && taskset -c 0 ./spaces
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 20000, ROUNDS = 9, PAGES_MOST = 1024 };

static int to[2], fro[2];
static int pages;

static char *room(void)
{
    char *at = mmap(NULL, PAGES_MOST * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED || madvise(at, PAGES_MOST * 4096, MADV_NOHUGEPAGE) != 0)
        exit(1);
    return at;
}

static void touch(volatile char *at)
{
    for (int page = 0; page < pages; page++)
        at[page * 4096 + page % 64 * 64]++;
}

static void *answer(void *unused)
{
    char byte, *own = room();
    (void)unused;
    while (read(to[0], &byte, 1) == 1 && byte) {
        touch(own);
        if (write(fro[1], &byte, 1) != 1)
            break;
    }
    munmap(own, PAGES_MOST * 4096);
    return NULL;
}

static double turns(void)
{
    struct timespec start, end;
    char byte = 1, *own = room();
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int turn = 0; turn < TURNS; turn++) {
        touch(own);
        if (write(to[1], &byte, 1) != 1 || read(fro[0], &byte, 1) != 1)
            exit(1);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    byte = 0;
    if (write(to[1], &byte, 1) != 1)
        exit(1);
    munmap(own, PAGES_MOST * 4096);
    return ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / TURNS;
}

static double one_space(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, answer, NULL);
    double ns = turns();
    pthread_join(thread, NULL);
    return ns;
}

static double two_spaces(void)
{
    pid_t child = fork();
    if (child == 0) {
        answer(NULL);
        _exit(0);
    }
    double ns = turns();
    waitpid(child, NULL, 0);
    return ns;
}

int main(void)
{
    static const int sizes[] = {0, 16, 64, 256, 1024};
    if (pipe(to) != 0 || pipe(fro) != 0)
        return 1;
    printf("%8s %14s %14s %12s\n", "pages", "one space, ns", "two spaces, ns", "a switch, ns");
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double best[2] = {1e12, 1e12};
        pages = sizes[i];
        for (int round = 0; round < ROUNDS; round++) {
            double one = one_space(), two = two_spaces();
            best[0] = one < best[0] ? one : best[0];
            best[1] = two < best[1] ? two : best[1];
        }
        printf("%8d %14.0f %14.0f %12.0f\n", pages, best[0], best[1], (best[1] - best[0]) / 2);
    }
    return 0;
}
