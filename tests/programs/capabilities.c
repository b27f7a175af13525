/* What root's power consists of, and how it is given up, kept and got back: capabilities(7). Each case begins with the few
 * capabilities that any container's root has, and does all in children. */
#include "check.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

enum { NOBODY = 65534, OTHER = 1234 };

#define B(capability) (1ull << (capability))
#define BASE                                                                                                           \
    (B(CAP_CHOWN) | B(CAP_DAC_OVERRIDE) | B(CAP_FOWNER) | B(CAP_FSETID) | B(CAP_KILL) | B(CAP_SETGID) |                \
     B(CAP_SETUID) | B(CAP_SETPCAP) | B(CAP_SYS_CHROOT))

struct sets {
    uint64_t effective, permitted, inheritable;
};

static int get(struct sets *sets)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &head, data) == -1)
        return -1;
    sets->effective = data[0].effective | (uint64_t)data[1].effective << 32;
    sets->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
    sets->inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
    return 0;
}

static int set(uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{effective, permitted, inheritable},
                                             {effective >> 32, permitted >> 32, inheritable >> 32}};
    return syscall(SYS_capset, &head, data);
}

static void show(const char *when)
{
    char line[128];
    FILE *status = fopen("/proc/self/status", "r");
    printf("%s:", when);
    while (fgets(line, sizeof line, status))
        if (strncmp(line, "Cap", 3) == 0) {
            line[strcspn(line, "\n")] = 0;
            printf(" %.3s %llx", line + 3, strtoull(line + 8, NULL, 16));
        }
    fclose(status);
    struct sets sets;
    MUST(get(&sets));
    printf(" | %llx %llx %llx bits %x keep %d\n", (unsigned long long)sets.effective, (unsigned long long)sets.permitted,
           (unsigned long long)sets.inheritable, prctl(PR_GET_SECUREBITS), prctl(PR_GET_KEEPCAPS));
}

/* The base and nothing else, whatever this root has. */
static void begin(void)
{
    for (int capability = 0; capability < 64; capability++)
        if (prctl(PR_CAPBSET_READ, capability) == 1 && !(BASE & B(capability)))
            MUST(prctl(PR_CAPBSET_DROP, capability));
    MUST(set(BASE, BASE, 0));
    show("begin");
}

/* Executes this program again, to see what it has then. */
static void again(const char *path)
{
    fflush(stdout);
    execl(path, "again", "--again", NULL);
    printf("execl: %s\n", failing(-1));
}

static void setting_users(void)
{
    begin();
    TRY(setresuid(0, OTHER, 0));
    show("effective user changed");
    TRY(setuid(NOBODY));
    TRY(setresuid(-1, 0, -1));
    show("and back");
    TRY(setresuid(OTHER, OTHER, 0));
    show("only saved");
    TRY(setresuid(0, 0, 0));
    show("back again");
    TRY(setuid(OTHER));
    show("gone");
    TRY(setuid(0));
    TRY(setresuid(-1, 0, -1));
    again("/proc/self/exe");
}

static void keeping(void)
{
    begin();
    SHOW(prctl(PR_SET_KEEPCAPS, 2));
    SHOW(prctl(PR_SET_KEEPCAPS, 1));
    MUST(setuid(OTHER));
    show("kept");
    TRY(setuid(0));
    TRY(set(B(CAP_SETUID), B(CAP_SETUID) | B(CAP_CHOWN), B(CAP_CHOWN)));
    show("raised");
    TRY(set(B(CAP_SETGID), B(CAP_SETUID) | B(CAP_SETGID), 0));
    TRY(setuid(0));
    show("root again");
    TRY(set(B(CAP_KILL), B(CAP_SETUID) | B(CAP_CHOWN), 0));
    again("/proc/self/exe");
}

static void file_users(void)
{
    begin();
    SHOW(setfsuid(OTHER));
    show("reaching files as another");
    SHOW(setfsuid(0));
    show("as root again");
    MUST(set(B(CAP_SETUID) | B(CAP_CHOWN), B(CAP_SETUID) | B(CAP_CHOWN), 0));
    SHOW(setfsuid(OTHER));
    MUST(set(B(CAP_SETUID) | B(CAP_CHOWN), B(CAP_SETUID) | B(CAP_CHOWN), 0));
    SHOW(setfsuid(0));
    show("as root with less");
}

static void refused_sets(void)
{
    begin();
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    TRY(set(BASE | B(CAP_SYS_ADMIN), BASE, 0));
    TRY(set(BASE | B(CAP_SYS_ADMIN), BASE | B(CAP_SYS_ADMIN), 0));
    TRY(set(BASE, BASE, B(CAP_SYS_ADMIN)));
    TRY(set(BASE, BASE & ~B(CAP_CHOWN), 0));
    TRY(set(BASE & ~B(CAP_CHOWN), BASE, B(CAP_CHOWN) | B(60)));
    show("one less");
    TRY(set(0, BASE, 0));
    TRY(set(BASE, BASE, 0));
    TRY(prctl(PR_CAPBSET_DROP, CAP_KILL));
    TRY(set(BASE, BASE, B(CAP_KILL)));
    TRY(set(BASE & ~B(CAP_SETPCAP), BASE, 0));
    TRY(set(0, BASE, B(CAP_CHOWN)));
    TRY(set(0, BASE & ~B(CAP_CHOWN), B(CAP_CHOWN)));
    TRY(set(0, BASE & ~B(CAP_CHOWN), B(CAP_CHOWN) | B(CAP_FOWNER)));
    head.pid = getpid();
    TRY(syscall(SYS_capset, &head, data));
    show("nothing");
    head.pid = getppid();
    TRY(syscall(SYS_capset, &head, data));
    TRY(syscall(SYS_capget, &head, data));
    head.pid = -1;
    TRY(syscall(SYS_capget, &head, data));
    TRY(syscall(SYS_capget, &head, NULL));
    head.pid = 4194304;
    TRY(syscall(SYS_capget, &head, data));
    head = (struct __user_cap_header_struct){1, 0};
    TRY(syscall(SYS_capget, &head, NULL));
    printf("%x\n", head.version);
    head.version = 7;
    TRY(syscall(SYS_capget, &head, data));
    printf("%x\n", head.version);
    head.version = 7;
    TRY(syscall(SYS_capset, &head, data));
    head.version = _LINUX_CAPABILITY_VERSION_1;
    data[1].effective = 77;
    TRY(syscall(SYS_capget, &head, data));
    printf("second record untouched: %d\n", data[1].effective == 77);
    TRY(syscall(SYS_capset, &head, data));
    TRY(syscall(SYS_capget, 8, data));
    TRY(syscall(SYS_capget, &head, 8));
    TRY(syscall(SYS_capset, &head, 8));
}

static void bounding(void)
{
    begin();
    SHOW(prctl(PR_CAPBSET_READ, CAP_CHOWN));
    SHOW(prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN));
    SHOW(prctl(PR_CAPBSET_READ, 63));
    SHOW(prctl(PR_CAPBSET_DROP, CAP_CHOWN));
    SHOW(prctl(PR_CAPBSET_READ, CAP_CHOWN));
    SHOW(prctl(PR_CAPBSET_DROP, 64));
    show("dropped");
    MUST(set(BASE & ~B(CAP_SETPCAP), BASE, 0));
    SHOW(prctl(PR_CAPBSET_DROP, CAP_KILL));
    SHOW(prctl(PR_CAPBSET_DROP, 64));
    MUST(set(0, 0, 0));
    show("all given up");
    again("/proc/self/exe");
}

static void inherited_beyond_bounds(void)
{
    begin();
    MUST(set(BASE, BASE, B(CAP_CHOWN) | B(CAP_KILL)));
    MUST(prctl(PR_CAPBSET_DROP, CAP_CHOWN));
    MUST(prctl(PR_CAPBSET_DROP, CAP_SETUID));
    again("/proc/self/exe");
}

static void ambient(void)
{
    begin();
    SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0));
    MUST(set(BASE, BASE, B(CAP_KILL) | B(CAP_CHOWN)));
    SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0));
    SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0));
    SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
    SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_KILL, 0, 0));
    SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_SETUID, 0, 0));
    SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 63, 0, 0));
    SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_KILL, 1, 0));
    SHOW(prctl(PR_CAP_AMBIENT, 9, CAP_KILL, 0, 0));
    SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 1, 0, 0));
    show("raised");
    SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, CAP_CHOWN, 0, 0));
    show("lowered");
    MUST(set(BASE, BASE, B(CAP_CHOWN)));
    show("not inheritable");
    MUST(set(BASE, BASE, B(CAP_CHOWN) | B(CAP_KILL)));
    MUST(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0));
    MUST(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0));
    MUST(prctl(PR_SET_KEEPCAPS, 1));
    MUST(setuid(OTHER));
    show("as another");
    MUST(set(B(CAP_KILL) | B(CAP_SETUID), B(CAP_KILL) | B(CAP_SETUID), B(CAP_KILL)));
    SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0));
    show("as another with ambient");
    again("/proc/self/exe");
}

static void bits(void)
{
    begin();
    SHOW(prctl(PR_SET_SECUREBITS, 0x40000000));
    SHOW(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP));
    MUST(setresuid(OTHER, OTHER, OTHER));
    show("users without fixup");
    SHOW(setfsuid(0));
    show("files without fixup");
    MUST(setresuid(0, 0, 0));
    SHOW(prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS | SECBIT_KEEP_CAPS_LOCKED));
    SHOW(prctl(PR_SET_KEEPCAPS, 0));
    SHOW(prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS));
    SHOW(prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS_LOCKED));
    SHOW(prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NOROOT | SECBIT_NO_CAP_AMBIENT_RAISE));
    MUST(set(BASE, BASE, B(CAP_KILL)));
    SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0));
    MUST(set(BASE & ~B(CAP_SETPCAP), BASE, B(CAP_KILL)));
    SHOW(prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS | SECBIT_KEEP_CAPS_LOCKED));
    show("no root");
    again("/proc/self/exe");
}

static void without_new_privileges(void)
{
    begin();
    MUST(set(B(CAP_KILL), B(CAP_KILL), 0));
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    again("/proc/self/exe");
}

static void powers(void)
{
    begin();
    MUST(close(MUST(open("theirs", O_CREAT | O_RDWR, 0600))));
    MUST(chown("theirs", OTHER, OTHER));
    MUST(mkdir("sticky", 0777));
    MUST(chmod("sticky", 01777));
    MUST(chown("sticky", OTHER, OTHER));
    MUST(close(MUST(open("sticky/f", O_CREAT | O_RDWR, 0600))));
    MUST(chown("sticky/f", OTHER, OTHER));
    MUST(mkdir("shut", 0700));
    MUST(chown("shut", OTHER, OTHER));
    int ends[2];
    MUST(pipe(ends));
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        MUST(setuid(OTHER));
        MUST(write(ends[1], "x", 1));
        for (;;)
            pause();
    }
    char byte;
    MUST(read(ends[0], &byte, 1));
    TRY(chroot("."));
    TRY(setgroups(0, NULL));
    MUST(set(0, BASE, 0));
    TRY(open("theirs", O_RDONLY));
    TRY(access("theirs", R_OK));
    TRY(chmod("theirs", 0644));
    TRY(chown("theirs", 0, 0));
    TRY(unlink("sticky/f"));
    TRY(open("shut/none", O_RDONLY));
    TRY(open("shut", O_RDONLY));
    TRY(kill(child, 0));
    TRY(setuid(OTHER));
    TRY(setresuid(0, OTHER, 0));
    TRY(setgid(OTHER));
    TRY(setgroups(0, NULL));
    TRY(chroot("."));
    TRY(setpriority(PRIO_PROCESS, 0, -5));
    TRY(mknod("zero", S_IFCHR | 0666, 1 << 8 | 5));
    TRY(setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 64}));
    TRY(setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 65}));
    TRY(ptrace(PTRACE_ATTACH, child, 0, 0));
    MUST(set(BASE, BASE, 0));
    TRY(open("theirs", O_RDONLY));
    TRY(open("shut/none", O_RDONLY));
    TRY(chmod("theirs", 0644));
    TRY(chown("theirs", 0, 0));
    TRY(unlink("sticky/f"));
    TRY(kill(child, 0));
    TRY(setpriority(PRIO_PROCESS, 0, -5));
    MUST(kill(child, SIGKILL));
    MUST(waitpid(child, NULL, 0));
}

/* access(2) asks as the real user. */
static void real_users(void)
{
    begin();
    MUST(close(MUST(open("own", O_CREAT | O_RDWR, 0600))));
    MUST(setresuid(0, OTHER, 0));
    TRY(open("own", O_RDONLY));
    TRY(access("own", R_OK));
    MUST(setresuid(-1, 0, -1));
    MUST(setresuid(OTHER, 0, 0));
    TRY(open("own", O_RDONLY));
    TRY(access("own", R_OK));
}

static char copy[64];

static void put_copy(void)
{
    char folder[32] = "/tmp/capabilities.XXXXXX", buffer[65536];
    if (mkdtemp(folder) == NULL)
        exit(9);
    MUST(chmod(folder, 0755));
    snprintf(copy, sizeof copy, "%s/root", folder);
    int from = MUST(open("/proc/self/exe", O_RDONLY)), into = MUST(open(copy, O_CREAT | O_WRONLY, 0600));
    ssize_t bytes;
    while ((bytes = MUST(read(from, buffer, sizeof buffer))) > 0)
        MUST(write(into, buffer, bytes));
    close(from), close(into);
    MUST(chmod(copy, 04755));
}

static void remove_copy(void)
{
    MUST(unlink(copy));
    *strrchr(copy, '/') = 0;
    MUST(rmdir(copy));
}

static void as_other(void)
{
    begin();
    MUST(setuid(OTHER));
    show("before");
    again(copy);
}

static void as_other_with_ambient(void)
{
    begin();
    MUST(set(BASE, BASE, B(CAP_KILL)));
    MUST(prctl(PR_CAPBSET_DROP, CAP_CHOWN));
    MUST(prctl(PR_SET_KEEPCAPS, 1));
    MUST(setuid(OTHER));
    MUST(set(B(CAP_KILL), B(CAP_KILL), B(CAP_KILL)));
    MUST(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0));
    show("before");
    again(copy);
}

static void as_other_without_root(void)
{
    begin();
    MUST(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT));
    MUST(setuid(OTHER));
    again(copy);
}

static void set_user_programs(void)
{
    put_copy();
    in_child("another", as_other);
    in_child("another with ambient", as_other_with_ambient);
    in_child("another without root", as_other_without_root);
    remove_copy();
}

/* The same user with fewer capabilities may not look into one with more. */
static void who_traces(void)
{
    begin();
    int ends[2];
    MUST(pipe(ends));
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        MUST(write(ends[1], "x", 1));
        for (;;)
            pause();
    }
    char byte;
    MUST(read(ends[0], &byte, 1));
    MUST(set(B(CAP_KILL), B(CAP_KILL), 0));
    TRY(ptrace(PTRACE_SEIZE, child, 0, 0));
    MUST(kill(child, SIGKILL));
    MUST(waitpid(child, NULL, 0));
}

#define IN_CHILD(name)                                                                                                 \
    static void name##_in_child(void) { in_child(#name, name); }
IN_CHILD(setting_users)
IN_CHILD(keeping)
IN_CHILD(file_users)
IN_CHILD(refused_sets)
IN_CHILD(bounding)
IN_CHILD(inherited_beyond_bounds)
IN_CHILD(ambient)
IN_CHILD(bits)
IN_CHILD(without_new_privileges)
IN_CHILD(powers)
IN_CHILD(real_users)
IN_CHILD(who_traces)

#define T(name) {#name, name##_in_child}
static const struct test tests[] = {
    T(setting_users), T(keeping), T(file_users), T(refused_sets), T(bounding), T(inherited_beyond_bounds), T(ambient),
    T(bits), T(without_new_privileges), T(powers), T(real_users), T(who_traces),
    {"set_user_programs", set_user_programs},
};

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--again") == 0) {
        show("after execve");
        printf("users %d %d\n", getuid(), geteuid());
        return 0;
    }
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
