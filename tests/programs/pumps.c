/* Pumps: threads of the kernel that carry bytes between two pipes (/proc/synthesis/pumps). A host has none; there a child
 * does the same, and everything printed must be alike. */
#include "check.h"
#include <poll.h>

enum { INPUT, OUTPUT };

static int command(const char *text)
{
    int fd = open("/proc/synthesis/pumps", O_WRONLY);
    if (fd < 0)
        return -2;
    int result = write(fd, text, strlen(text)) < 0 ? -1 : 0;
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

/* A pump from one pipe's end to another's; the descriptors are closed here. */
static void pump(int input, int output, int others[2])
{
    char text[32], buffer[4096];
    snprintf(text, sizeof text, "%d %d", input, output);
    int result = command(text);
    if (result == -2) {
        pid_t child = fork();
        MUST(child);
        if (child == 0) {
            close(others[0]);
            close(others[1]);
            for (ssize_t bytes; (bytes = read(input, buffer, sizeof buffer)) > 0;)
                MUST(write(output, buffer, bytes));
            _exit(0);
        }
    } else if (result == -1) {
        printf("no pump: %s\n", failing(-1));
    }
    close(input);
    close(output);
}

/* Two pipes with a pump between them: writes go to ends[OUTPUT], reads come from ends[INPUT]. */
static void joined(int ends[2])
{
    int first[2], second[2];
    MUST(pipe(first));
    MUST(pipe(second));
    ends[INPUT] = second[0];
    ends[OUTPUT] = first[1];
    pump(first[0], second[1], ends);
}

static void carries_bytes(void)
{
    int ends[2];
    char text[6] = "";
    joined(ends);
    for (int i = 0; i < 3; i++) {
        MUST(write(ends[OUTPUT], "hello", 5));
        MUST(read(ends[INPUT], text, 5));
        puts(text);
    }
    close(ends[OUTPUT]);
    SHOW(read(ends[INPUT], text, 5));
}

static void carries_many_bytes_in_order(void)
{
    int ends[2];
    enum { WORDS = 1 << 17 };
    static uint32_t words[1024];
    joined(ends);
    if (fork() == 0) {
        close(ends[INPUT]);
        for (uint32_t at = 0; at < WORDS; at += 1024) {
            for (uint32_t i = 0; i < 1024; i++)
                words[i] = at + i;
            MUST(write(ends[OUTPUT], words, sizeof words));
        }
        _exit(0);
    }
    close(ends[OUTPUT]);
    FILE *stream = fdopen(ends[INPUT], "r");
    uint32_t word, wrong = 0, count = 0;
    for (; fread(&word, sizeof word, 1, stream) == 1; count++)
        wrong += word != count;
    printf("%u words, %u wrong\n", count, wrong);
}

static void a_chain_of_pumps(void)
{
    int ends[2], next[2];
    char text[6] = "";
    joined(ends);
    for (int i = 0; i < 5; i++) {
        MUST(pipe(next));
        int both[2] = {ends[OUTPUT], next[0]};
        pump(ends[INPUT], next[1], both);
        ends[INPUT] = next[0];
    }
    MUST(write(ends[OUTPUT], "hello", 5));
    MUST(read(ends[INPUT], text, 5));
    puts(text);
    close(ends[OUTPUT]);
    SHOW(read(ends[INPUT], text, 5));
}

/* A pump from a pipe into itself never ends by itself, and must stop nobody else. */
static void a_ring_lets_others_run(void)
{
    int ends[2];
    char text[64];
    MUST(pipe(ends));
    MUST(write(ends[OUTPUT], "round", 5));
    snprintf(text, sizeof text, "%d %d", ends[INPUT], ends[OUTPUT]);
    int result = command(text);
    alarm(5);
    usleep(20000);
    if (result == 0) {
        unsigned id = 0;
        char standing[16] = "", stop[32];
        FILE *list = fopen("/proc/synthesis/pumps", "r");
        while (fgets(text, sizeof text, list))
            if (sscanf(text, "%u %15s", &id, standing) == 2 && strcmp(standing, "running") == 0)
                break;
        fclose(list);
        snprintf(stop, sizeof stop, "stop %u", id);
        result = command(stop);
        usleep(2000);
    } else if (result == -2) {
        result = 0;
    }
    printf("stopped %d\n", result);
}

static void many_one_after_another(void)
{
    int good = 0;
    for (int i = 0; i < 200; i++) {
        int ends[2];
        char byte = 0;
        joined(ends);
        MUST(write(ends[OUTPUT], "x", 1));
        close(ends[OUTPUT]);
        good += read(ends[INPUT], &byte, 1) == 1 && byte == 'x' && read(ends[INPUT], &byte, 1) == 0;
        close(ends[INPUT]);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
    printf("good %d\n", good);
}

static void refuses(const char *text, int expected)
{
    errno = 0;
    int result = command(text);
    printf("%s: %s\n", text, result == -2 || (result == -1 && errno == expected) ? "refused" : "taken");
}

static void nonsense_is_refused(void)
{
    refuses("", EINVAL);
    refuses("1", EINVAL);
    refuses("one two", EINVAL);
    refuses("1 2 3", EINVAL);
    refuses("-1 5", EINVAL);
    refuses("900 901", EBADF);
    refuses("stop 99999999999", ESRCH);
    refuses("stop 0", ESRCH);
    refuses("\377\376 1", EINVAL);
    int file = open("/dev/null", O_RDWR);
    char text[32];
    snprintf(text, sizeof text, "%d %d", file, file);
    int result = command(text);
    printf("a device: %s\n", result == -2 || (result == -1 && errno == EINVAL) ? "refused" : "taken");
}

/* One user neither stops another's pump nor takes all that there may be. */
static void users_keep_to_their_own(void)
{
    int ends[2], taken = 0;
    unsigned id = 0;
    char text[64], stop[32] = "stop 1", standing[16];
    joined(ends);
    FILE *list = fopen("/proc/synthesis/pumps", "r");
    while (list && fgets(text, sizeof text, list))
        if (sscanf(text, "%u %15s", &id, standing) == 2 && strcmp(standing, "running") == 0)
            snprintf(stop, sizeof stop, "stop %u", id);
    if (fork() == 0) {
        if (getuid() == 0)
            MUST(setresuid(1000, 1000, 1000));
        int result = command(stop);
        printf("stop: %s\n", result == -2 || (result == -1 && errno == EPERM) ? "refused" : "taken");
        for (int pipes[2]; result != -2 && taken < 100 && pipe(pipes) == 0; taken++) {
            snprintf(text, sizeof text, "%d %d", pipes[INPUT], pipes[OUTPUT]);
            if (command(text) != 0)
                break;
        }
        printf("rings: %s\n", taken < 20 ? "few" : "many");
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    close(ends[OUTPUT]);
    if (list) {
        /* What the other user left behind goes on until somebody may stop it. */
        rewind(list);
        list = freopen("/proc/synthesis/pumps", "r", list);
        while (fgets(text, sizeof text, list))
            if (sscanf(text, "%u %15s", &id, standing) == 2 && strcmp(standing, "running") == 0) {
                snprintf(stop, sizeof stop, "stop %u", id);
                command(stop);
            }
    }
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(carries_bytes), T(carries_many_bytes_in_order), T(a_chain_of_pumps), T(a_ring_lets_others_run),
    T(many_one_after_another), T(nonsense_is_refused),
    T(users_keep_to_their_own),
};
CHECK_MAIN(tests)
