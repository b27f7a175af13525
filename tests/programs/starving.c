/* Runs cases while allocations of the kernel fail: in images that are built for it (`bin/pc/build.sh --failing`), as the first
 * process.
 *
 *   starving SEED COUNT FOLDER NUMBER...      cases of the other suites, as the harness laid them out in FOLDER
 *   starving SEED COUNT -- PROGRAM ARGS...    one command
 *
 * Each case runs once as usual and COUNT times with seeds from SEED on; five seeds in a row have five rates. What the program makes
 * of it is its own affair: it may work, see an error, or be ended. But it can be ended, and when all seeds have been tried more than
 * once, the kernel holds no more than before. (That there is no panic is seen from outside.)
 */
#include "churn.h"
#include <dirent.h>
#include <ftw.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

/* One request of so many fails. */
static const int RATES[] = {12, 50, 200, 1000, 5000};
enum { PATIENCE_MS = 400, ENDING_MS = 20000, PASSES = 5, MOUNTS_MAX = 200 };

static void fail_no_more(void)
{
    int fd;
    /* Whoever ends the failing may meet it, too. */
    while ((fd = open("/proc/synthesis/failing", O_WRONLY)) < 0 && errno == ENOMEM)
        ;
    while (write(fd, "0 0\n", 4) < 0 && errno == ENOMEM)
        ;
    close(fd);
}

static int drop(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about, (void)kind;
    if (where->level > 0 || strcmp(path, "/tmp/starving") != 0)
        remove(path);
    return 0;
}

/* As `system`, by the one shell that is there. */
static int system_of(char *words)
{
    char *command[] = {"/bin/busybox", "sh", "-c", words, NULL};
    int status;
    pid_t pid = MUST(fork());
    if (pid == 0) {
        execv(command[0], command);
        _exit(127);
    }
    MUST(waitpid(pid, &status, 0));
    return status ? -1 : 0;
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

/* Where something is mounted, the oldest first. */
static int mounts(char paths[][300], int max)
{
    char line[400];
    int count = 0;
    FILE *lines = fopen("/proc/mounts", "r");
    while (lines && count < max && fgets(line, sizeof line, lines))
        count += sscanf(line, "%*s %299s", paths[count]) == 1;
    if (lines)
        fclose(lines);
    return count;
}

/* How many mounts there were when this program began. */
static int were_mounted;

/* Programs that were ended could not unmount what they had mounted. */
static void unmount(void)
{
    static char paths[MOUNTS_MAX][300];
    for (int count = mounts(paths, MOUNTS_MAX); count > were_mounted; count--)
        umount2(paths[count - 1], MNT_DETACH);
}

/* `words` is the line that has memory fail, or empty. Cases begin with it themselves, when all is prepared. */
static void child(char **command, int is_case, const char *words)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    setsid();
    setenv("SEED", words, 1);
    if (!is_case && *words) {
        int fd = MUST(open("/proc/synthesis/failing", O_WRONLY));
        MUST(write(fd, words, strlen(words)));
        close(fd);
    }
    execv(command[0], command);
    _exit(127);
}

/* Children that ended, until there is none or the time is over; `status` is that of `pid`. */
static int all_ended(int patience_ms, pid_t pid, int *status)
{
    for (int waited = 0; waited <= patience_ms; waited += 2) {
        pid_t ended;
        int how;
        while ((ended = waitpid(-1, &how, WNOHANG)) > 0)
            if (ended == pid)
                *status = how;
        if (ended < 0 && errno == ECHILD)
            return 1;
        sleep_ms(2);
    }
    return 0;
}

/* Runs it once, and says so if it cannot be started or ended. Seed 0: with all the memory it wants. */
static void once(char **command, int is_case, unsigned seed)
{
    char words[40] = "";
    int status = 0;
    if (seed)
        snprintf(words, sizeof words, "%u %d", seed, RATES[seed % (sizeof RATES / sizeof *RATES)]);
    pid_t pid = MUST(fork());
    if (pid == 0)
        child(command, is_case, words);
    int is_over = all_ended(PATIENCE_MS, pid, &status);
    fail_no_more();
    kill(-1, SIGCONT);
    kill(-1, SIGKILL);
    if (!is_over && !all_ended(ENDING_MS, pid, &status)) {
        printf("with seed %u: cannot be ended\n", seed);
        exit(1);
    }
    if (!seed && is_case && access("started", F_OK) < 0) {
        puts("it cannot be started");
        exit(1);
    }
    unmount();
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

/* Nothing is missing that was there at the end of an earlier pass. What caches gave back meanwhile may be more. */
static int is_no_worse(const struct gauges *before, const struct gauges *after)
{
    if (after->values[FREE_FRAMES] < before->values[FREE_FRAMES])
        return 0;
    for (int i = CODE_BYTES; i < GAUGES; i++)
        if (after->values[i] > before->values[i])
            return 0;
    return 1;
}

/* All seeds, several times: what every pass loses is lost, and then no pass ends as well as one before it. */
static void starve(char **command, int is_case, unsigned first, unsigned count)
{
    struct gauges ends[PASSES];
    once(command, is_case, 0);
    for (int pass = 0; pass < PASSES; pass++) {
        for (unsigned seed = first; seed < first + count; seed++)
            once(command, is_case, seed);
        /* What is retired may be freed a little later. */
        for (int wait = 0; wait < 10; wait++) {
            ends[pass] = now();
            for (int before = 0; before < pass; before++)
                if (is_no_worse(&ends[before], &ends[pass]))
                    return;
            sleep_ms(pass ? 5 : 0);
        }
    }
    for (int i = 0; i < GAUGES; i++) {
        printf("%s", NAMES[i]);
        for (int pass = 0; pass < PASSES; pass++)
            printf(" %ld%s", ends[pass].values[i], pass + 1 < PASSES ? "," : "\n");
    }
    exit(1);
}

/* How many requests failed so far. */
static long refused(void)
{
    char text[400] = "", *found;
    int fd = MUST(open("/proc/synthesis/failing", O_RDONLY));
    MUST(read(fd, text, sizeof text - 1));
    close(fd);
    found = strstr(text, "refused ");
    return found ? atol(found + 8) : 0;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        puts("usage: starving SEED COUNT FOLDER NUMBER...");
        return 2;
    }
    unsigned seed = atoi(argv[1]), count = atoi(argv[2]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    mkdir("/tmp/starving", 0777);
    MUST(chdir("/tmp/starving"));
    char *folder = argv[3], script[300], shells[400];
    snprintf(script, sizeof script, "%s/starve.sh", folder);
    snprintf(shells, sizeof shells, "/bin/busybox mkdir -p %s/bb; /bin/busybox --install -s %s/bb", folder, folder);
    int is_command = strcmp(folder, "--") == 0;
    if (!is_command)
        MUST(system_of(shells));
    are_there = (int)MUST(scandir("/tmp", &there, NULL, alphasort));
    static char paths[MOUNTS_MAX][300];
    were_mounted = mounts(paths, MOUNTS_MAX);
    signal(SIGPIPE, SIG_IGN);
    umask(022);
    if (is_command) {
        starve(argv + 4, 0, seed, count);
        printf("refused %ld\n", refused());
        return 0;
    }
    for (int i = 4; i < argc; i++) {
        char *command[] = {"/bin/busybox", "sh", script, folder, argv[i], NULL};
        starve(command, 1, seed, count);
        printf("done %s\n", argv[i]);
    }
    if (refused() == 0) {
        puts("nothing was refused");
        return 1;
    }
    return 0;
}
