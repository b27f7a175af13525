/* Calls that Synthesis answers in the program: whatever changes the answer is seen by the next call. On Linux, which has no
 * such functions, the C library's stand for them. */
#include "check.h"
#include "../../bench/tables/vdso.h"
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

static int (*own_pid)(void), (*own_uid)(void), (*own_euid)(void), (*own_gid)(void), (*own_egid)(void);

static void find(void)
{
    struct {
        const char *name;
        int (**function)(void);
        int (*library)(void);
    } calls[] = {
        {"__synthesis_getpid", &own_pid, getpid},
        {"__synthesis_getuid", &own_uid, (int (*)(void))getuid},
        {"__synthesis_geteuid", &own_euid, (int (*)(void))geteuid},
        {"__synthesis_getgid", &own_gid, (int (*)(void))getgid},
        {"__synthesis_getegid", &own_egid, (int (*)(void))getegid},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        *calls[i].function = (int (*)(void))vdso_function(calls[i].name);
        if (*calls[i].function == NULL)
            *calls[i].function = calls[i].library;
    }
}

static void say(const char *who)
{
    for (int i = 0; i < 3; i++)
        printf("%s: %d %d %d %d %d\n", who, own_pid() == getpid(), own_uid(), own_euid(), own_gid(), own_egid());
}

static void in_children(void)
{
    find();
    say("maker");
    pid_t maker = own_pid(), child = MUST(fork());
    if (child == 0) {
        say("child");
        printf("another: %d\n", own_pid() != maker);
        pid_t grandchild = MUST(fork());
        if (grandchild == 0) {
            say("grandchild");
            exit(0);
        }
        MUST(waitpid(grandchild, NULL, 0));
        say("child after");
        exit(0);
    }
    MUST(waitpid(child, NULL, 0));
    say("maker after");
}

static volatile int same, different;

static void after_vfork(void)
{
    find();
    say("maker");
    pid_t maker = own_pid();
    for (int i = 0; i < 3; i++) {
        pid_t child = vfork();
        if (child == 0) {
            same = own_pid() == getpid();
            different = own_pid() != maker;
            _exit(0);
        }
        MUST(child);
        MUST(waitpid(child, NULL, 0));
        printf("child: %d %d, maker: %d\n", same, different, own_pid() == maker);
    }
    say("maker after");
}

static void *speak(void *who)
{
    say(who);
    return NULL;
}

static void in_threads(void)
{
    find();
    pthread_t thread;
    say("first");
    if (pthread_create(&thread, NULL, speak, "second") != 0)
        exit(9);
    pthread_join(thread, NULL);
    say("first after");
}

static void after_setuid(void)
{
    find();
    if (getuid() != 0) {
        printf("needs root\n");
        return;
    }
    say("root");
    MUST(setresgid(7, 8, 9));
    say("group");
    MUST(setresuid(10, 0, 12));
    say("user");
    MUST(setresuid(20, 21, 22));
    say("for good");
}

/* The page with the answers is the program's own: its rights may change. */
static void after_mprotect(void)
{
    find();
    say("maker");
    char *page = (char *)((uintptr_t)vdso_function("__vdso_clock_gettime") & -4096L);
    (void)mprotect(page, 4096, PROT_NONE); /* new Linuxes refuse it */
    pid_t child = MUST(fork());
    if (child == 0) {
        (void)mprotect(page, 4096, PROT_READ | PROT_EXEC);
        say("child");
        exit(0);
    }
    MUST(waitpid(child, NULL, 0));
    if (getuid() == 0)
        MUST(setresgid(7, 8, 9));
    (void)mprotect(page, 4096, PROT_READ | PROT_EXEC);
    say("as before");
    child = MUST(fork());
    if (child == 0) {
        say("child");
        exit(0);
    }
    MUST(waitpid(child, NULL, 0));
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(in_children),
    T(after_vfork),
    T(in_threads),
    T(after_setuid),
    T(after_mprotect),
};
CHECK_MAIN(tests)
