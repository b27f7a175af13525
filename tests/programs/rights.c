/* Who may look into whom, and what tracing, set-user-id programs and dumpability have to do with each other. All needs
 * root to begin with, which the programs give up in children. */
#include "check.h"

#include <sched.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

enum { NOBODY = 1234, OTHER = 2345 };

static char copy[64], ordinary[64], unreadable[64];
static volatile char secret[16] = "secret";

static void put(const char *to, uid_t owner, mode_t mode)
{
    char buffer[65536];
    ssize_t bytes;
    int from = MUST(open("/proc/self/exe", O_RDONLY)), into = MUST(open(to, O_CREAT | O_TRUNC | O_WRONLY, 0600));
    while ((bytes = MUST(read(from, buffer, sizeof buffer))) > 0)
        MUST(write(into, buffer, bytes));
    close(from);
    close(into);
    MUST(chown(to, owner, owner));
    MUST(chmod(to, mode));
}

/* Copies of this program in a folder of their own: root's with its bits set, an ordinary one, one that nobody may read. */
static void prepare(void)
{
    char folder[32] = "/tmp/rights.XXXXXX";
    if (mkdtemp(folder) == NULL)
        exit(9);
    MUST(chmod(folder, 0755));
    snprintf(copy, sizeof copy, "%s/root", folder);
    snprintf(ordinary, sizeof ordinary, "%s/ordinary", folder);
    snprintf(unreadable, sizeof unreadable, "%s/unreadable", folder);
    put(copy, 0, 06755);
    put(ordinary, 0, 0755);
    put(unreadable, 0, 0711);
}

static void clean(void)
{
    unlink(copy);
    unlink(ordinary);
    unlink(unreadable);
    *strrchr(copy, '/') = 0;
    MUST(rmdir(copy));
}

static void become(uid_t user)
{
    MUST(setresgid(user, user, user));
    MUST(setresuid(user, user, user));
}

/* What a copy prints of itself. */
static void tell(void)
{
    uid_t real, effective, saved;
    gid_t group, effective_group, saved_group;
    MUST(getresuid(&real, &effective, &saved));
    MUST(getresgid(&group, &effective_group, &saved_group));
    printf("users %d %d %d, groups %d %d %d, dumpable %d, secure %ld\n", real, effective, saved, group, effective_group, saved_group,
           prctl(PR_GET_DUMPABLE), getauxval(AT_SECURE));
}

static void executes(const char *program)
{
    execl(program, "copy", "tell", NULL);
    printf("not executed: %s\n", failing(-1));
}

static void run(const char *what, void (*body)(void)) { in_child(what, body); }

static void as_user(void) { become(NOBODY); executes(copy); }
static void as_ordinary(void) { become(NOBODY); executes(ordinary); }
static void as_unreadable(void) { become(NOBODY); executes(unreadable); }
static void without_new(void) { become(NOBODY); MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); executes(copy); }
static void kept_back(void)
{
    MUST(setresuid(NOBODY, OTHER, OTHER));
    executes(ordinary);
}

static void let_go(void)
{
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    kept_back();
}

static void half_root(void) { MUST(setresuid(NOBODY, 0, 0)); executes(copy); }

static void sets_ids(void)
{
    prepare();
    run("user", as_user);
    run("ordinary", as_ordinary);
    run("unreadable", as_unreadable);
    run("no new privileges", without_new);
    run("half root", half_root);
    run("two users", kept_back);
    run("two users without new privileges", let_go);
    clean();
}

/* A tracer runs its child up to the end, whatever the child executes. */
static void traced(const char *what, uid_t tracer, uid_t tracee)
{
    int status;
    fflush(stdout);
    pid_t middle = MUST(fork());
    if (middle == 0) {
        become(tracer);
        pid_t child = MUST(fork());
        if (child == 0) {
            if (tracee != tracer)
                become(tracee);
            MUST(ptrace(PTRACE_TRACEME, 0, 0, 0));
            executes(copy);
            _exit(1);
        }
        while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
            MUST(ptrace(PTRACE_CONT, child, 0, 0));
        say_status(what, status);
        exit(0);
    }
    waitpid(middle, &status, 0);
}

static void traced_by_user(void)
{
    prepare();
    traced("by itself", NOBODY, NOBODY);
    traced("by root", 0, NOBODY);
    traced("root by root", 0, 0);
    clean();
}

static char stack[65536] __attribute__((aligned(16)));

static int sharer(void *unused)
{
    (void)unused;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() != 1)
        sleep_ms(1);
    return 0;
}

/* Whoever shares its folders with another could have them changed under the program's feet. */
static void shares_folders(void)
{
    become(NOBODY);
    MUST(clone(sharer, stack + sizeof stack, CLONE_FS | SIGCHLD, NULL));
    executes(copy);
}

static void shared_folders(void)
{
    prepare();
    run("sharer", shares_folders);
    clean();
}

/* Starts a child as `user`, with `dumpable`, that waits for its end. */
static pid_t waiter(uid_t user, int dumpable)
{
    int ready[2];
    char byte;
    MUST(pipe(ready));
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        become(user);
        MUST(prctl(PR_SET_DUMPABLE, dumpable));
        MUST(write(ready[1], "", 1));
        pause();
    }
    MUST(read(ready[0], &byte, 1));
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void open_of(pid_t child, const char *name, int flags)
{
    char path[64];
    struct stat about;
    char bytes[64];
    snprintf(path, sizeof path, "/proc/%d/%s", child, name);
    int known = stat(path, &about);
    printf("%s: %s, user %d, mode %o; ", name, failing(known), known == 0 ? (int)about.st_uid : -1,
           known == 0 ? about.st_mode & 07777 : 0);
    int file = open(path, flags);
    printf("open %s", failing(file));
    if (file >= 0 && strcmp(name, "mem") != 0) {
        ssize_t got = read(file, bytes, sizeof bytes);
        printf(", read %s", got == -1 ? failing(-1) : got > 0 ? "some" : "nothing");
    }
    if (file >= 0 && strcmp(name, "mem") == 0) {
        printf(", read %s", failing(pread(file, bytes, sizeof secret, (off_t)(uintptr_t)secret)));
        if ((flags & O_ACCMODE) == O_RDWR)
            printf(", write %s", failing(pwrite(file, "public", 7, (off_t)(uintptr_t)secret)));
    }
    printf("\n");
    close(file);
}

static pid_t target;

static void look(void)
{
    static const char *const names[] = {"environ", "maps", "auxv", "status", "cmdline", "stat", "io", "smaps", "comm", "limits"};
    char link[256];
    char path[64];
    become(NOBODY);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        open_of(target, names[i], O_RDONLY);
    open_of(target, "mem", O_RDWR);
    open_of(target, "comm", O_WRONLY);
    open_of(target, "oom_score_adj", O_WRONLY);
    static const char *const links[] = {"exe", "cwd", "root", "fd/0", "ns/pid"};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", target, links[i]);
        printf("%s: %s\n", links[i], failing(readlink(path, link, sizeof link) < 0 ? -1 : 0));
    }
    snprintf(path, sizeof path, "/proc/%d/fd", target);
    TRY(open(path, O_RDONLY | O_DIRECTORY));
    char bytes[16];
    struct iovec mine = {bytes, sizeof bytes}, theirs = {(void *)secret, sizeof secret};
    SHOW(process_vm_readv(target, &mine, 1, &theirs, 1, 0));
    SHOW(process_vm_writev(target, &mine, 1, &theirs, 1, 0));
    SHOW(ptrace(PTRACE_SEIZE, target, 0, 0));
    SHOW(ptrace(PTRACE_ATTACH, target, 0, 0));
    SHOW(kill(target, 0));
}

static void looks_at(uid_t user, int dumpable)
{
    target = waiter(user, dumpable);
    run("look", look);
    MUST(kill(target, SIGKILL));
    MUST(waitpid(target, NULL, 0));
}

static void same_user(void) { looks_at(NOBODY, 1); }
static void not_dumpable(void) { looks_at(NOBODY, 0); }
static void other_user(void) { looks_at(OTHER, 1); }
static void roots(void) { looks_at(0, 1); }

static void at_itself(void)
{
    become(NOBODY);
    MUST(prctl(PR_SET_DUMPABLE, 0));
    open_of(getpid(), "environ", O_RDONLY);
    open_of(getpid(), "maps", O_RDONLY);
    open_of(getpid(), "status", O_RDONLY);
    open_of(getpid(), "mem", O_RDWR);
    TRY(open("/proc/self/fd", O_RDONLY | O_DIRECTORY));
    SHOW(prctl(PR_SET_DUMPABLE, 2));
    SHOW(prctl(PR_SET_DUMPABLE, 3));
    MUST(prctl(PR_SET_DUMPABLE, 1));
    open_of(getpid(), "mem", O_RDWR);
}

static void not_dumpable_itself(void) { run("itself", at_itself); }

/* Giving up rights makes a process undumpable: its memory may still hold what root has read. */
static void changes(void)
{
    SHOW(prctl(PR_GET_DUMPABLE));
    MUST(setresgid(NOBODY, NOBODY, NOBODY));
    SHOW(prctl(PR_GET_DUMPABLE));
    MUST(prctl(PR_SET_DUMPABLE, 1));
    MUST(setresuid(NOBODY, NOBODY, NOBODY));
    SHOW(prctl(PR_GET_DUMPABLE));
    MUST(prctl(PR_SET_DUMPABLE, 1));
    MUST(setresuid(NOBODY, NOBODY, NOBODY));
    SHOW(prctl(PR_GET_DUMPABLE));
}

static void changes_back(void)
{
    MUST(setresuid(NOBODY, NOBODY, 0));
    SHOW(prctl(PR_GET_DUMPABLE));
    MUST(prctl(PR_SET_DUMPABLE, 1));
    MUST(seteuid(0));
    SHOW(prctl(PR_GET_DUMPABLE));
    MUST(prctl(PR_SET_DUMPABLE, 1));
    MUST(setgid(0));
    SHOW(prctl(PR_GET_DUMPABLE));
    MUST(setgid(7));
    SHOW(prctl(PR_GET_DUMPABLE));
}

static void dumpability(void)
{
    run("down", changes);
    run("up", changes_back);
}

/* The memory of a process, opened before it executes a program with more rights, is not that program's. */
static void hands_over(void)
{
    int status;
    become(NOBODY);
    MUST(prctl(PR_SET_DUMPABLE, 1));
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        int memory = MUST(open("/proc/self/mem", O_RDWR));
        MUST(lseek(memory, (off_t)(uintptr_t)secret, SEEK_SET));
        MUST(dup2(memory, 7));
        execl(copy, "copy", "over", NULL);
        _exit(1);
    }
    MUST(waitpid(child, &status, 0));
    say_status("over", status);
}

/* What a copy does that was given its caller's memory. */
static void over(void)
{
    SHOW(write(7, "public", 7));
    printf("secret is %s\n", (const char *)secret);
}

static void memory_before(void)
{
    prepare();
    run("hands over", hands_over);
    clean();
}

/* A root child of a user must not give itself to its parent. */
static void gives_itself(void)
{
    int ready[2], status;
    char byte;
    MUST(pipe(ready));
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        MUST(read(ready[0], &byte, 1));
        SHOW(ptrace(PTRACE_TRACEME, 0, 0, 0));
        fflush(stdout);
        _exit(0);
    }
    become(NOBODY);
    MUST(write(ready[1], "", 1));
    MUST(waitpid(child, &status, 0));
    say_status("root child", status);
}

static void traced_root(void) { run("parent", gives_itself); }

#define T(name) {#name, name}
static const struct test tests[] = {
    T(sets_ids),     T(traced_by_user), T(shared_folders),      T(same_user),   T(not_dumpable),
    T(other_user),   T(roots),          T(not_dumpable_itself), T(dumpability), T(traced_root), T(memory_before),
};

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "tell") == 0) {
        tell();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "over") == 0) {
        over();
        return 0;
    }
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
