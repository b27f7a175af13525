/* Mounted volumes: which is which, and what their flags forbid. All needs root and, on Linux, a name space of its own. */
#include "check.h"

#include <sched.h>
#include <sys/mount.h>

static char home[32] = "/tmp/mounts.XXXXXX";

/* A folder of its own to mount in, which nobody else sees where there are name spaces. */
static void begin(void)
{
    if (unshare(CLONE_NEWNS) == 0)
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    if (mkdtemp(home) == NULL)
        exit(9);
    MUST(chmod(home, 0755));
    MUST(chdir(home));
    umask(022);
}

static void end(void)
{
    MUST(chdir("/"));
    MUST(rmdir(home));
}

static int mounted(const char *at, unsigned long flags, const char *options)
{
    MUST(mkdir(at, 0755));
    return mount("things", at, "tmpfs", flags, options);
}

static void gone(const char *at)
{
    MUST(umount2(at, MNT_DETACH));
    MUST(rmdir(at));
}

static void put(int folder, const char *name, const char *text)
{
    int file = MUST(openat(folder, name, O_CREAT | O_WRONLY, 0644));
    MUST(write(file, text, strlen(text)));
    close(file);
}

static void tell(int folder, const char *name)
{
    char text[64];
    int file = openat(folder, name, O_RDONLY);
    if (file < 0) {
        printf("%s: %s\n", name, failing(-1));
        return;
    }
    ssize_t got = read(file, text, sizeof text - 1);
    text[got > 0 ? got : 0] = 0;
    printf("%s: %s\n", name, text);
    close(file);
}

static struct stat about(int folder, const char *name)
{
    struct stat s;
    MUST(fstatat(folder, name, &s, 0));
    return s;
}

/* A volume that comes after another has gone must not be taken for one that is still there. */
static void numbers(void)
{
    begin();
    MUST(mounted("a", 0, NULL));
    MUST(mounted("b", 0, NULL));
    int b = MUST(open("b", O_DIRECTORY));
    MUST(umount("a"));
    MUST(mounted("c", 0, NULL));
    int c = MUST(open("c", O_DIRECTORY));
    put(b, "x", "what belongs to b");
    for (int i = 0; i < 3; i++)
        tell(b, "x");
    tell(c, "x");
    put(c, "x", "what belongs to c");
    tell(b, "x");
    tell(c, "x");
    struct stat in_b = about(b, "x"), in_c = about(c, "x"), above = about(AT_FDCWD, ".");
    printf("devices %s, %s\n", in_b.st_dev == in_c.st_dev ? "equal" : "different",
           in_b.st_dev == above.st_dev || in_c.st_dev == above.st_dev ? "one is the folder's" : "neither the folder's");
    close(b);
    close(c);
    MUST(rmdir("a"));
    gone("b");
    gone("c");
    end();
}

/* Device numbers of volumes that are mounted at once are all different, whichever went before. */
static void many_numbers(void)
{
    enum { COUNT = 8 };
    char name[COUNT][8];
    begin();
    for (int i = 0; i < COUNT; i++) {
        snprintf(name[i], sizeof name[i], "v%d", i);
        MUST(mounted(name[i], 0, NULL));
    }
    for (int round = 0; round < 20; round++) {
        int old = round * 3 % COUNT, equal = 0;
        MUST(umount(name[old]));
        MUST(mount("things", name[old], "tmpfs", 0, NULL));
        for (int i = 0; i < COUNT; i++)
            for (int j = 0; j < i; j++)
                equal += about(AT_FDCWD, name[i]).st_dev == about(AT_FDCWD, name[j]).st_dev;
        if (equal != 0)
            printf("round %d: %d equal\n", round, equal);
    }
    for (int i = 0; i < COUNT; i++)
        gone(name[i]);
    end();
    puts("all different");
}

/* Writing moves the time of a file in a volume that was mounted, also when it is done often. */
static void times(void)
{
    begin();
    MUST(mounted("a", 0, NULL));
    int a = MUST(open("a", O_DIRECTORY)), file = MUST(openat(a, "x", O_CREAT | O_RDWR, 0644));
    for (int round = 0; round < 4; round++) {
        struct timespec old[2] = {{1000, 0}, {1000, 0}};
        MUST(pwrite(file, "ab", 2, 0));
        MUST(futimens(file, old));
        MUST(lseek(file, 0, SEEK_SET));
        MUST(write(file, "c", 1));
        struct stat s = about(a, "x");
        printf("written: %s\n", s.st_mtime > 1000 ? "now" : "then");
    }
    close(file);
    close(a);
    gone("a");
    end();
}

#define T(name) {#name, name}
static const struct test tests[] = {T(numbers), T(many_numbers), T(times)};
CHECK_MAIN(tests)
