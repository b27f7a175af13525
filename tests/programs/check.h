/* What every test program shares: cases by name, and results in words.
 *
 * `program list` prints the names of the cases; `program NAME` runs one. Everything printed must be the same on every
 * run and on every Linux: no addresses, process ids or times.
 */
#ifndef CHECK_H
#define CHECK_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct test {
    const char *name;
    void (*run)(void);
};

/* "ok", or the name of errno. */
static inline const char *failing(long result)
{
    const char *name = result == -1 ? strerrorname_np(errno) : "ok";
    return name ? name : "unnamed errno";
}

/* Prints the call's text and how it went; gives its result back. */
#define TRY(call)                                                                                                      \
    ({                                                                                                                 \
        errno = 0;                                                                                                     \
        long try_result = (long)(call);                                                                                \
        printf("%s -> %s\n", #call, failing(try_result));                                                              \
        try_result;                                                                                                    \
    })

/* The same with the number that came back, for calls whose result is the same everywhere. */
#define SHOW(call)                                                                                                     \
    ({                                                                                                                 \
        errno = 0;                                                                                                     \
        long show_result = (long)(call);                                                                               \
        printf("%s = %ld %s\n", #call, show_result, show_result == -1 ? failing(show_result) : "");                    \
        show_result;                                                                                                   \
    })

/* Set-up that must work for the test to mean anything. */
#define MUST(call)                                                                                                     \
    ({                                                                                                                 \
        errno = 0;                                                                                                     \
        long must_result = (long)(call);                                                                               \
        if (must_result == -1) {                                                                                       \
            printf("set-up failed at line %d: %s: %s\n", __LINE__, #call, failing(-1));                                \
            fflush(stdout);                                                                                            \
            _exit(99);                                                                                                 \
        }                                                                                                              \
        must_result;                                                                                                   \
    })

/* Prints a wait status in words. */
static inline void say_status(const char *what, int status)
{
    if (WIFEXITED(status))
        printf("%s: exit %d\n", what, WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        printf("%s: signal %d\n", what, WTERMSIG(status));
    else if (WIFSTOPPED(status))
        printf("%s: stopped by %d\n", what, WSTOPSIG(status));
    else if (WIFCONTINUED(status))
        printf("%s: continued\n", what);
    else
        printf("%s: status %x\n", what, status);
}

/* Runs `body` in a child and says how it ended. */
static inline void in_child(const char *what, void (*body)(void))
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        body();
        fflush(stdout);
        _exit(0);
    }
    MUST(child);
    while (waitpid(child, &status, 0) == -1 && errno == EINTR)
        ;
    say_status(what, status);
}

static inline void sleep_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) == -1 && errno == EINTR)
        ;
}

/* Waits until a process or thread is in this state: the letter behind its name in /proc. */
static inline void await_state(pid_t id, char state)
{
    char path[40], line[200];
    snprintf(path, sizeof path, "/proc/%d/stat", id);
    for (int tries = 0; tries < 10000; tries++) {
        int file = open(path, O_RDONLY);
        ssize_t got = read(file, line, sizeof line - 1);
        close(file);
        line[got > 0 ? got : 0] = 0;
        char *name_end = strrchr(line, ')');
        if (name_end && name_end[1] && name_end[2] == state)
            return;
        sleep_ms(1);
    }
    printf("waited ten seconds for state %c: %s\n", state, line);
}

static inline int check_main(int argc, char **argv, const struct test *tests, size_t count)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    for (size_t i = 0; argc == 2 && i < count; i++) {
        if (strcmp(argv[1], "list") == 0)
            puts(tests[i].name);
        else if (strcmp(argv[1], tests[i].name) == 0) {
            tests[i].run();
            puts("end");
            return 0;
        }
    }
    return argc == 2 && strcmp(argv[1], "list") == 0 ? 0 : 2;
}

#define CHECK_MAIN(tests)                                                                                              \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        return check_main(argc, argv, tests, sizeof tests / sizeof *tests);                                            \
    }
#endif
