/* Runs programs while allocations of the kernel fail: in images that are built for it (`bin/pc/build.sh --failing`), as the first
 * process.
 *
 *   starving SEED COUNT PROGRAM [CASE...]     the cases of a test program, all that it lists when none is named
 *   starving SEED COUNT -- PROGRAM ARGS...    one command
 *
 * Each case runs COUNT times with seeds from SEED on; four seeds in a row have four rates. What the program makes of it is its own
 * affair: it may work, see an error, or be ended. But it can be ended, and when all seeds have been tried more than once, the
 * kernel holds no more than before. (That there is no panic is seen from outside.)
 */
#include "churn.h"
#include <dirent.h>
#include <ftw.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

/* One request of so many fails. */
static const int RATES[] = {12, 50, 200, 1000};
enum { PATIENCE_MS = 1500, ENDING_MS = 20000, PASSES = 4, CASES_MAX = 400 };

static void fail_from(unsigned seed, int rate)
{
    char text[40];
    int fd, length = snprintf(text, sizeof text, "%u %d\n", seed, rate);
    /* Whoever ends the failing may meet it, too. */
    while ((fd = open("/proc/synthesis/failing", O_WRONLY)) < 0 && errno == ENOMEM)
        ;
    while (write(fd, text, length) < 0 && errno == ENOMEM)
        ;
    close(fd);
}

/* Children that ended, until there is none or the time is over. */
static int all_ended(int patience_ms)
{
    for (int waited = 0; waited <= patience_ms; waited += 2) {
        pid_t ended;
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (ended < 0 && errno == ECHILD)
            return 1;
        sleep_ms(2);
    }
    return 0;
}

static int drop(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about, (void)kind;
    if (where->level > 0 || strcmp(path, "/tmp/starving") != 0)
        remove(path);
    return 0;
}

/* What stands in /tmp when this program begins. */
static struct dirent **there;
static int are_there;

/* Programs that were ended could not remove what they had made. */
static void tidy(void)
{
    nftw("/tmp/starving", drop, 16, FTW_DEPTH | FTW_PHYS);
    struct dirent **found;
    int count = scandir("/tmp", &found, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char path[300];
        int is_new = 1;
        for (int j = 0; j < are_there; j++)
            is_new &= strcmp(found[i]->d_name, there[j]->d_name) != 0;
        snprintf(path, sizeof path, "/tmp/%s", found[i]->d_name);
        if (is_new)
            nftw(path, drop, 16, FTW_DEPTH | FTW_PHYS);
        free(found[i]);
    }
    if (count >= 0)
        free(found);
}

/* What a program leaves behind in System V's tables. */
static void forget(const char *what)
{
    char name[40], line[300];
    int id;
    snprintf(name, sizeof name, "/proc/sysvipc/%s", what);
    FILE *lines = fopen(name, "r");
    while (lines && fgets(line, sizeof line, lines))
        if (sscanf(line, "%*s %d", &id) == 1)
            what[1] == 'h' ? shmctl(id, IPC_RMID, NULL) : what[1] == 'e' ? semctl(id, 0, IPC_RMID) : msgctl(id, IPC_RMID, NULL);
    if (lines)
        fclose(lines);
}

static void child(char **command)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    setsid();
    execv(command[0], command);
    _exit(127);
}

/* Runs it once; says so if it cannot be ended. */
static void once(char **command, const char *name, unsigned seed)
{
    int rate = RATES[seed % (sizeof RATES / sizeof *RATES)];
    fail_from(seed, rate);
    pid_t pid = fork();
    if (pid == 0)
        child(command);
    int is_over = all_ended(PATIENCE_MS);
    fail_from(0, 0);
    kill(-1, SIGCONT);
    kill(-1, SIGKILL);
    if (!is_over && !all_ended(ENDING_MS)) {
        printf("%s with seed %u: cannot be ended\n", name, seed);
        exit(1);
    }
    tidy();
    forget("shm"), forget("sem"), forget("msg");
}

static struct gauges now(void)
{
    struct gauges gauges;
    if (!read_gauges(&gauges)) {
        puts("the gauges cannot be read");
        exit(1);
    }
    return gauges;
}

/* All seeds, several times: what every pass loses is lost. */
static void starve(char **command, const char *name, unsigned first, unsigned count)
{
    struct gauges before, after = {0};
    printf("%s\n", name);
    fflush(stdout);
    for (int pass = 0; pass < PASSES; pass++) {
        before = after;
        for (unsigned seed = first; seed < first + count; seed++)
            once(command, name, seed);
        after = now();
        for (int wait = 0; pass && wait < 10; wait++) {
            if (is_as_before(&before, &after))
                return;
            sleep_ms(5);
            after = now();
        }
    }
    for (int i = 0; i < GAUGES; i++)
        printf("%s: %s%ld before, %ld after\n", name, NAMES[i], before.values[i], after.values[i]);
    exit(1);
}

/* The names that a test program prints. */
static int listed(char *program, char *names[CASES_MAX])
{
    char command[300], line[100];
    int count = 0;
    snprintf(command, sizeof command, "%s list", program);
    int ends[2];
    MUST(pipe(ends));
    if (MUST(fork()) == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execl(program, program, "list", NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *lines = fdopen(ends[0], "r");
    while (count < CASES_MAX && fgets(line, sizeof line, lines)) {
        line[strcspn(line, "\n")] = 0;
        names[count++] = strdup(line);
    }
    fclose(lines);
    while (wait(NULL) > 0)
        ;
    return count;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        puts("usage: starving SEED COUNT PROGRAM [CASE...]");
        return 2;
    }
    unsigned seed = atoi(argv[1]), count = atoi(argv[2]);
    mkdir("/tmp/starving", 0777);
    MUST(chdir("/tmp/starving"));
    are_there = (int)MUST(scandir("/tmp", &there, NULL, alphasort));
    signal(SIGPIPE, SIG_IGN);
    if (strcmp(argv[3], "--") == 0) {
        starve(argv + 4, argv[4], seed, count);
        return 0;
    }
    static char *names[CASES_MAX];
    int named = argc > 4 ? argc - 4 : listed(argv[3], names);
    for (int i = 0; i < named; i++) {
        char *name = argc > 4 ? argv[4 + i] : names[i];
        char *command[] = {argv[3], name, NULL};
        starve(command, name, seed, count);
    }
    int fd = open("/proc/synthesis/failing", O_RDONLY);
    char text[400];
    ssize_t length = read(fd, text, sizeof text);
    MUST(write(1, text, length));
    return 0;
}
