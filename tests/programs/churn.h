/* A thousand times everything: afterwards no fewer frames are free, as many bytes of code live and as much of the kernel's
 * heap is in use as before, and there are as many processes and threads.
 *
 * The numbers come from /proc/synthesis/gauges. A host has no such file, and there is nothing to compare. In the guest,
 * whose folder of tests is /tmp/t, a missing file is a failure.
 */
#ifndef CHURN_H
#define CHURN_H
#include "check.h"

/* What must be as before; of free frames there may be a few more, and of what caches hold (code, heap) less: a cache of names gives
 * back a table when the names in it have changed. What is lost in every round shows as more, a thousand times. */
static const char *const NAMES[] = {
    "free_frames ", "code_bytes ", "code_routines ", "heap_bytes ", "heap_blocks ", "tasks ", "processes ", "threads ",
};
enum { FREE_FRAMES, CODE_BYTES, TASKS = 5, GAUGES = sizeof NAMES / sizeof *NAMES };

struct gauges {
    long values[GAUGES];
};

static inline int in_guest(void)
{
    const char *home = getenv("R");
    return access("/proc/synthesis", F_OK) == 0 || (home && strcmp(home, "/tmp/t") == 0);
}

/* The number behind "NAME " in a line; -1: there is none. */
static inline long gauge(const char *text, const char *name)
{
    char line[32] = "\n";
    char *found = strstr(text, strcat(line, name));
    return found ? atol(found + strlen(line)) : -1;
}

/* Frames of the kernel's heap count as free ones: how many pages its blocks lie in is chance, and the blocks are counted themselves.
 * Read with plain calls: a stream's buffer would itself change the number of free frames. */
static inline int read_gauges(struct gauges *gauges)
{
    static char text[4096];
    int fd = open("/proc/synthesis/gauges", O_RDONLY);
    text[0] = '\n';
    ssize_t length = fd < 0 ? -1 : read(fd, text + 1, sizeof text - 2);
    if (fd >= 0)
        close(fd);
    if (length <= 0)
        return 0;
    text[length + 1] = 0;
    for (int i = 0; i < GAUGES; i++)
        if ((gauges->values[i] = gauge(text, NAMES[i])) < 0)
            return 0;
    gauges->values[FREE_FRAMES] += gauge(text, "heap_pages ");
    return 1;
}

/* The kernel's heap may have no use any more for a few pages that something before this test left half full. */
enum { GIVEN_BACK_MAX = 8 };

static inline int is_as_before(const struct gauges *before, const struct gauges *after)
{
    long more = after->values[FREE_FRAMES] - before->values[FREE_FRAMES];
    if (more < 0 || more > GIVEN_BACK_MAX)
        return 0;
    for (int i = CODE_BYTES; i < TASKS; i++)
        if (after->values[i] > before->values[i])
            return 0;
    size_t others = (GAUGES - TASKS) * sizeof before->values[0];
    return memcmp(before->values + TASKS, after->values + TASKS, others) == 0;
}

/* Some warm rounds first: caches fill, inactive lists get their entries. Then a thousand must leave no trace. The kernel's heap may
 * have needed one page more at one moment; what is lost in every thousand is a leak. */
static inline void leaves_nothing(void (*once)(void))
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
    for (int i = 0; readable && i < GAUGES; i++)
        printf("%s: %ld before, %ld after\n", NAMES[i], before.values[i], after.values[i]);
}

#define CHURN(what) static void churn_##what(void) { leaves_nothing(what##_once); }

/* Does it in a child of its own, which ends by `_exit`: what it leaves open goes with it. */
#define IN_CHILD(what)                                                                                                 \
    static void what##_once(void)                                                                                      \
    {                                                                                                                  \
        int status;                                                                                                    \
        pid_t child = MUST(fork());                                                                                    \
        if (child == 0) {                                                                                              \
            what();                                                                                                    \
            _exit(0);                                                                                                  \
        }                                                                                                              \
        MUST(waitpid(child, &status, 0));                                                                              \
        if (status)                                                                                                    \
            printf("status %x\n", status);                                                                             \
    }                                                                                                                  \
    CHURN(what)
#endif
