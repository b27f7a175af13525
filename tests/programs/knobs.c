/* /proc/sys: what can be written, what is refused, and what the limits do. Every limit is put back. Needs root, and a system of its own:
 * what Linux prints is in knobs.txt (of `chosen` and `numbers`, which no host would bear, what its documents say). */
#include "check.h"

#include <sched.h>
#include <sys/ipc.h>
#include <sys/shm.h>

static char before[64][64];
static const char *changed[64];
static int changes;

/* What the file says, without the end of its line. */
static const char *said(const char *name)
{
    static char text[128];
    char path[128];
    snprintf(path, sizeof path, "/proc/sys/%s", name);
    int file = open(path, O_RDONLY);
    ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (got <= 0)
        return failing(-1);
    close(file);
    text[got - 1] = 0;
    return text;
}

static int put(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "/proc/sys/%s", name);
    int file = open(path, O_WRONLY);
    if (file < 0)
        return -1;
    long written = write(file, text, strlen(text));
    int reason = errno;
    close(file);
    errno = reason;
    return written < 0 ? -1 : 0;
}

static void restore(void)
{
    while (changes-- > 0)
        put(changed[changes], before[changes]);
    changes = 0;
}

/* Writes each of the words and says what came of it. The old value comes back at the end. */
static void written(const char *name, const char *const *words)
{
    snprintf(before[changes], sizeof *before, "%s", said(name));
    changed[changes++] = name;
    for (; *words; words++) {
        int result = put(name, *words);
        printf("%s <- %s: %s", name, *words, failing(result));
        printf(", is %s\n", result == 0 ? said(name) : "as it was");
    }
}
#define WRITTEN(name, ...) written(name, (const char *const[]){__VA_ARGS__, NULL})

static void as_nobody(void (*act)(void))
{
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        MUST(setgid(65534)), MUST(setuid(65534));
        act();
        fflush(stdout);
        _exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0));
    say_status("nobody", status);
}

static void all_words(void)
{
    WRITTEN("kernel/pid_max", "300", "301", "40000", "4194304", "4194305", "-1", "word");
    WRITTEN("kernel/shmmni", "4000", "32768", "32769", "-1");
    WRITTEN("kernel/shmmax", "1000000", "18446744073692774399", "word");
    WRITTEN("kernel/shmall", "1000", "18446744073692774399");
    WRITTEN("kernel/threads-max", "0", "1000");
    WRITTEN("kernel/msgmni", "100", "32768", "-1");
    WRITTEN("kernel/msgmax", "100", "-1");
    WRITTEN("kernel/msgmnb", "100", "-1");
    WRITTEN("kernel/domainname", "somewhere", "(none)");
    WRITTEN("fs/nr_open", "63", "1024", "65536");
    WRITTEN("fs/pipe-max-size", "0", "1", "5000", "1048576", "1048577", "4294967296");
    WRITTEN("fs/mqueue/msg_max", "0", "1", "65536", "65537");
    WRITTEN("fs/mqueue/msgsize_max", "127", "128", "16777216", "16777217");
    WRITTEN("fs/inotify/max_user_watches", "-1", "100");
    WRITTEN("vm/max_map_count", "-1", "1000", "65530");
    WRITTEN("vm/overcommit_memory", "-1", "0", "1", "3");
    restore();
    TRY(put("kernel/ostype", "x"));
    TRY(put("kernel/nothing", "x"));
}

static void nobodys(void)
{
    TRY(put("kernel/pid_max", "40000"));
    TRY(put("kernel/shmmax", "40000"));
    TRY(put("fs/nr_open", "40000"));
    printf("%s\n", said("kernel/shmmni"));
}

static void without_right(void) { as_nobody(nobodys); }

static void large_pipe(void)
{
    int ends[2];
    MUST(pipe(ends));
    SHOW(fcntl(ends[0], F_SETPIPE_SZ, 131072));
    SHOW(fcntl(ends[0], F_SETPIPE_SZ, 262144));
}

static void small_pipe(void)
{
    int ends[2], bytes = 0;
    MUST(pipe2(ends, O_NONBLOCK));
    SHOW(fcntl(ends[0], F_GETPIPE_SZ));
    while (write(ends[1], "x", 1) == 1)
        bytes++;
    printf("%d bytes\n", bytes);
    SHOW(fcntl(ends[0], F_SETPIPE_SZ, 4096));
    SHOW(fcntl(ends[0], F_SETPIPE_SZ, 16384));
}

/* Who has no privilege gets no larger pipe than he may ask for. */
static void small_pipes(void)
{
    WRITTEN("fs/pipe-max-size", "8192");
    as_nobody(small_pipe);
    int ends[2];
    MUST(pipe(ends));
    SHOW(fcntl(ends[0], F_GETPIPE_SZ));
    restore();
    as_nobody(small_pipe);
}

/* What the limits do. Everything is printed after they are as they were. */
static void effects(void)
{
    static char text[4096];
    int used = 0;
#define SAY(call)                                                                                                      \
    (errno = 0, used += sprintf(text + used, "%s: %s\n", #call, (call) < 0 ? failing(-1) : "ok"))
    struct rlimit most = {1024, 2000}, more = {1024, 2001};
    WRITTEN("kernel/shmmax", "8192"), WRITTEN("fs/nr_open", "2000"), WRITTEN("fs/pipe-max-size", "131072");
    int segment = -1;
    SAY(segment = shmget(IPC_PRIVATE, 8192, 0600));
    SAY(shmget(IPC_PRIVATE, 8193, 0600));
    SAY(shmctl(segment, IPC_RMID, NULL));
    WRITTEN("kernel/shmall", "1");
    SAY(segment = shmget(IPC_PRIVATE, 4096, 0600));
    SAY(shmget(IPC_PRIVATE, 4096, 0600));
    SAY(shmctl(segment, IPC_RMID, NULL));
    WRITTEN("kernel/shmmni", "0");
    SAY(shmget(IPC_PRIVATE, 4096, 0600));
    SAY(setrlimit(RLIMIT_NOFILE, &more));
    SAY(setrlimit(RLIMIT_NOFILE, &most));
    as_nobody(large_pipe);
    restore();
    /* Pages with every second one of another right: as many areas. */
    char *map = mmap(NULL, 4000 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int made = 0;
    WRITTEN("vm/max_map_count", "500");
    while (made < 1900 && mprotect(map + 2 * made * 4096, 4096, PROT_NONE) == 0)
        made++;
    int reason = errno;
    restore();
    printf("areas end between 200 and 260: %d, %s\n", made > 200 && made < 260, strerrorname_np(reason));
    MUST(munmap(map, 4000 * 4096));
    fputs(text, stdout);
}

/* No request is too large for the memory where it is said so. */
static void overcommitted(void)
{
    long large = sysconf(_SC_PHYS_PAGES) * 4096 * 8;
    for (int way = 0; way < 2; way++) {
        char word[2] = {(char)('0' + way), 0};
        WRITTEN("vm/overcommit_memory", word);
        void *map = mmap(NULL, (size_t)large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        printf("%s\n", map == MAP_FAILED ? failing(-1) : "mapped");
        if (map != MAP_FAILED)
            MUST(munmap(map, (size_t)large));
        restore();
    }
}

/* A number of /proc/meminfo, in KB. */
static long memory(const char *label)
{
    char line[128];
    long number = -1;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && number == -1 && fgets(line, sizeof line, file))
        if (strncmp(line, label, strlen(label)) == 0)
            number = atol(line + strlen(label));
    if (file)
        fclose(file);
    return number;
}

static void *mapped(long megabytes, int rights, int kind)
{
    void *map = mmap(NULL, (size_t)megabytes << 20, rights, kind | MAP_ANONYMOUS, -1, 0);
    printf("%ld MB: %s\n", megabytes, map == MAP_FAILED ? failing(-1) : "mapped");
    return map;
}

static void a_fork(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    printf("fork: %s\n", child == -1 ? failing(-1) : "done");
    if (child > 0)
        MUST(waitpid(child, &status, 0));
}

/* All programs together may ask for 64 MB more than they have now. */
static void strict(void)
{
    char limit[32];
    int both = PROT_READ | PROT_WRITE;
    long had = memory("Committed_AS:");
    WRITTEN("vm/overcommit_ratio", "100");
    printf("all memory: %d\n", labs(memory("CommitLimit:") - memory("MemTotal:") - memory("SwapTotal:")) < 1024);
    snprintf(limit, sizeof limit, "%ld", had + (64 << 10));
    printf("%d\n", put("vm/overcommit_kbytes", limit));
    printf("ratio %s, limit as written: %d\n", said("vm/overcommit_ratio"), memory("CommitLimit:") == had + (64 << 10));
    TRY(put("vm/overcommit_memory", "2"));
    printf("%s\n", said("vm/overcommit_memory"));
    mapped(128, both, MAP_PRIVATE);
    mapped(128, both, MAP_PRIVATE | MAP_NORESERVE);
    mapped(128, both, MAP_SHARED);
    void *seen = mapped(128, PROT_READ, MAP_PRIVATE);
    TRY(mprotect(seen, 128 << 20, both));
    TRY(mprotect(seen, 8 << 20, both));
    TRY(mprotect(seen, 8 << 20, PROT_READ));
    printf("charged: %ld\n", (memory("Committed_AS:") - had + 512) >> 10);
    munmap(seen, 128 << 20);
    a_fork();
    void *own = mapped(40, both, MAP_PRIVATE);
    printf("charged: %ld\n", (memory("Committed_AS:") - had + 512) >> 10);
    a_fork();
    TRY(sbrk(40 << 20) == (void *)-1 ? -1 : 0);
    void *shared = mapped(12, both, MAP_SHARED);
    printf("charged: %ld\n", (memory("Committed_AS:") - had + 512) >> 10);
    own = mremap(own, 40 << 20, 60 << 20, MREMAP_MAYMOVE);
    printf("%s\n", own == MAP_FAILED ? failing(-1) : "grown");
    munmap(shared, 12 << 20);
    TRY(put("vm/overcommit_memory", "0"));
    TRY(put("vm/overcommit_ratio", "50"));
    printf("%s KB\n", said("vm/overcommit_kbytes"));
    changes = 0;
}

/* Numbers begin anew below the limit. */
static void numbers(void)
{
    pid_t highest = 0;
    WRITTEN("kernel/pid_max", "400");
    for (int i = 0; i < 300; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child > 0)
            waitpid(child, NULL, 0);
        highest = child > highest ? child : highest;
    }
    restore();
    printf("below: %d\n", highest > 300 && highest < 400);
}

static volatile char *touched(long bytes)
{
    char *map = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MUST(map == MAP_FAILED ? -1 : 0);
    for (long at = 0; at < bytes; at += 4096)
        map[at] = 1;
    return map;
}

static void weigh(const char *adjustment)
{
    int file = MUST(open("/proc/self/oom_score_adj", O_WRONLY));
    MUST(write(file, adjustment, strlen(adjustment)));
    close(file);
}

/* A child that holds so many bytes, with an adjustment; it is ready when this returns. */
static pid_t holder(const char *adjustment, long bytes)
{
    int ready[2];
    char byte;
    MUST(pipe(ready));
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        weigh(adjustment);
        touched(bytes);
        MUST(write(ready[1], "r", 1));
        for (;;)
            pause();
    }
    MUST(read(ready[0], &byte, 1));
    close(ready[0]), close(ready[1]);
    return child;
}

static void first_killed(const char *what, pid_t one, pid_t other)
{
    int status;
    pid_t dead = MUST(wait(&status));
    printf("%s: %s goes first", what, dead == one ? "the one" : dead == other ? "the other" : "nobody known");
    say_status("", status);
    kill(one, SIGKILL), kill(other, SIGKILL);
    while (wait(NULL) > 0)
        ;
}

/* A child that takes all memory. */
static pid_t bomb(const char *adjustment)
{
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        weigh(adjustment);
        for (;;)
            touched(1 << 20);
    }
    return child;
}

/* Who is killed for want of memory. */
static void chosen(void)
{
    long half = sysconf(_SC_PHYS_PAGES) * 4096 / 2;
    weigh("-1000");
    pid_t small = holder("1000", 1 << 20);
    first_killed("a small one that is offered", small, bomb("0"));
    pid_t large = holder("-1000", half);
    first_killed("a large one that is protected", large, bomb("0"));
    large = holder("-500", half);
    first_killed("a large one that is spared", large, bomb("0"));
    large = holder("0", half + half / 4);
    first_killed("a large one", large, bomb("0"));
}

#define T(name) {#name, name}
static const struct test tests[] = {{"words", all_words}, T(without_right), T(effects), T(overcommitted), T(strict), T(small_pipes), T(numbers), T(chosen)};

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (strcmp(what, "list") == 0)
            puts(tests[i].name);
        else if (strcmp(what, tests[i].name) == 0)
            return tests[i].run(), 0;
    }
    return strcmp(what, "list") == 0 ? 0 : 2;
}
