/* A code store that is full: everything opens and works, done in Rust, and when room comes back code is made again.
 *
 * Prints `refused N` (routines that found no room), `code N of M` (bytes while everything is open), then a line for each
 * thing that went right. A host has no such files: there the first two lines say 0.
 */
#include "check.h"

#define PAIRS 60

/* The sum of all numbers behind `word` in a file. */
static long sum_of(const char *path, const char *word)
{
    static char text[1 << 16];
    int fd = open(path, O_RDONLY);
    long sum = 0, length = 0, got;
    if (fd < 0)
        return 0;
    while (length < (long)sizeof text - 1 && (got = read(fd, text + length, sizeof text - 1 - length)) > 0)
        length += got;
    close(fd);
    text[length] = 0;
    for (char *at = text; (at = strstr(at, word)); at += strlen(word))
        sum += strtol(at + strlen(word), NULL, 10);
    return sum;
}

static void through(int to, int from, int number)
{
    char out[64], in[64] = "";
    int length = snprintf(out, sizeof out, "bytes of pair %d", number);
    if (write(to, out, length) != length)
        exit(3);
    if (to == from && lseek(from, 0, SEEK_SET) != 0)
        exit(4);
    if (read(from, in, sizeof in) != length || memcmp(in, out, length) != 0)
        exit(5);
    /* A byte at a time has its own way. */
    if (to != from && (write(to, "x", 1) != 1 || read(from, in, 1) != 1 || in[0] != 'x'))
        exit(6);
}

static int ends[PAIRS][2], files[PAIRS];

static void everything_opens(void)
{
    char name[64];
    for (int i = 0; i < PAIRS; i++) {
        MUST(pipe(ends[i]));
        snprintf(name, sizeof name, "/tmp/full-%d-%d", (int)getpid(), i);
        files[i] = MUST(open(name, O_RDWR | O_CREAT | O_TRUNC, 0600));
        MUST(unlink(name));
        int null = MUST(open("/dev/null", O_RDWR));
        if (write(null, "x", 1) != 1 || read(null, name, 1) != 0 || close(null) != 0)
            exit(7);
    }
}

static void everything_works(void)
{
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < PAIRS; i++) {
            through(ends[i][1], ends[i][0], i);
            MUST(lseek(files[i], 0, SEEK_SET));
            through(files[i], files[i], i);
        }
}

static void everything_closes(void)
{
    for (int i = 0; i < PAIRS; i++) {
        MUST(close(ends[i][0]));
        MUST(close(ends[i][1]));
        MUST(close(files[i]));
    }
}

/* A thread has code of its own; without room fork says so, as without memory. */
static const char *forked(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    if (child == -1)
        return errno == ENOMEM || errno == EAGAIN ? "refused" : "wrong errno";
    return waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7 ? "done" : "wrong status";
}

int main(void)
{
    everything_opens();
    everything_works();
    printf("refused %ld\n", sum_of("/proc/synthesis/quajects", " refused "));
    printf("code %ld\n", sum_of("/proc/synthesis/gauges", "code_bytes "));
    printf("full: fork %s\n", forked());
    everything_closes();
    printf("empty: fork %s\n", forked());
    everything_opens();
    everything_works();
    everything_closes();
    puts("end");
    return 0;
}
