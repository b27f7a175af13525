/* Mounted volumes: which is which, and what their flags forbid. All needs root and, on Linux, a name space of its own. */
#include "check.h"

#include <sched.h>
#include <setjmp.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

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

/* Changes the flags of a mount. */
static int remounted(const char *at, unsigned long flags) { return mount("things", at, NULL, MS_REMOUNT | flags, NULL); }

/* Prints of the line of a mount in /proc/mounts the flags that it knows, and those of statfs. */
static void flags_of(const char *at)
{
    static const char *const known[] = {"ro",      "rw",         "sync",     "dirsync",     "lazytime", "nosuid",    "nodev",  "noexec",
                                        "noatime", "nodiratime", "relatime", "nosymfollow", "size=64k", "size=128k", "mode=700", "uid=7", "gid=8", "nr_inodes=50"};
    char line[512], path[64], *words[6];
    FILE *mounts = fopen("/proc/mounts", "r");
    snprintf(path, sizeof path, "%s/%s", home, at);
    printf("%s:", at);
    while (fgets(line, sizeof line, mounts)) {
        char *rest = line;
        for (int i = 0; i < 6; i++)
            words[i] = strsep(&rest, " \n");
        if (strcmp(words[1], path) != 0)
            continue;
        printf(" %s %s", words[0], words[2]);
        for (char *word; (word = strsep(&words[3], ",")) != NULL;)
            for (size_t i = 0; i < sizeof known / sizeof *known; i++)
                if (strcmp(word, known[i]) == 0)
                    printf(" %s", word);
    }
    fclose(mounts);
    struct statfs s;
    MUST(statfs(at, &s));
    printf(", %lx\n", s.f_flags & ~0x20ul);
}

static void shown(void)
{
    begin();
    static const unsigned long flags[] = {0, MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_NOATIME, MS_NODIRATIME, MS_STRICTATIME, MS_RELATIME,
                                          MS_SYNCHRONOUS, MS_DIRSYNC, 256 /* MS_NOSYMFOLLOW */, MS_LAZYTIME,
                                          MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME, MS_NOATIME | MS_STRICTATIME};
    MUST(mkdir("a", 0755));
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        TRY(mount("things", "a", "tmpfs", flags[i], NULL));
        flags_of("a");
        TRY(umount("a"));
    }
    MUST(rmdir("a"));
    end();
}

static void remounts(void)
{
    begin();
    MUST(mounted("a", 0, NULL));
    TRY(remounted("a", MS_RDONLY));
    flags_of("a");
    TRY(mkdir("a/d", 0755));
    TRY(remounted("a", 0));
    flags_of("a");
    TRY(mkdir("a/d", 0755));
    TRY(remounted("a", MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOATIME));
    flags_of("a");
    TRY(mkdir("a/e", 0755));
    /* Access times stay unless something is said of them. */
    TRY(remounted("a", MS_BIND | MS_NOEXEC));
    flags_of("a");
    TRY(remounted("a", MS_RELATIME));
    flags_of("a");
    TRY(remounted("a", MS_STRICTATIME));
    flags_of("a");
    /* The volume and its mount are read-only each for itself. */
    TRY(remounted("a", MS_RDONLY));
    TRY(remounted("a", MS_BIND));
    flags_of("a");
    TRY(mkdir("a/e", 0755));
    TRY(remounted("a", 0));
    TRY(mkdir("a/e", 0755));
    TRY(remounted("a/e", MS_RDONLY));
    TRY(remounted("nothing", MS_RDONLY));
    TRY(mount(NULL, "a", NULL, MS_PRIVATE, NULL));
    TRY(mount(NULL, "a", NULL, MS_PRIVATE | MS_SLAVE, NULL));
    TRY(mount(NULL, "a", NULL, MS_PRIVATE | MS_RDONLY, NULL));
    TRY(mount(NULL, "a/e", NULL, MS_PRIVATE, NULL));
    gone("a");
    end();
}

/* Who has a file open for writing, or mapped so, keeps a volume from becoming read-only; a file without a name, too. */
static void writers(void)
{
    begin();
    MUST(mounted("a", 0, NULL));
    int file = MUST(open("a/f", O_CREAT | O_RDWR, 0644)), reader = MUST(open("a/f", O_RDONLY));
    MUST(write(file, "some text", 9));
    TRY(remounted("a", MS_RDONLY));
    TRY(remounted("a", MS_RDONLY | MS_BIND));
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    TRY(remounted("a", MS_RDONLY | MS_BIND));
    map[0] = 'S';
    munmap(map, 4096);
    TRY(remounted("a", MS_RDONLY | MS_BIND));
    TRY(remounted("a", 0));
    map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, reader, 0);
    TRY(remounted("a", MS_RDONLY));
    printf("%.9s\n", map);
    munmap(map, 4096);
    TRY(remounted("a", 0));
    TRY(unlink("a/f"));
    TRY(remounted("a", MS_RDONLY));
    TRY(remounted("a", MS_RDONLY | MS_BIND));
    TRY(remounted("a", MS_BIND));
    close(reader);
    TRY(remounted("a", MS_RDONLY));
    TRY(remounted("a", 0));
    file = MUST(open("a", O_TMPFILE | O_RDWR, 0600));
    TRY(remounted("a", MS_RDONLY));
    close(file);
    TRY(remounted("a", MS_RDONLY));
    gone("a");
    end();
}

/* Every call that would change something of a read-only volume. */
static void read_only(void)
{
    begin();
    MUST(mounted("a", 0, NULL));
    MUST(mkdir("a/d", 0755));
    put(AT_FDCWD, "a/f", "text");
    MUST(symlink("f", "a/l"));
    MUST(mkfifo("a/p", 0644));
    put(AT_FDCWD, "outside", "text");
    TRY(remounted("a", MS_RDONLY));
    tell(AT_FDCWD, "a/f");
    TRY(open("a/f", O_WRONLY));
    TRY(open("a/f", O_RDWR));
    TRY(open("a/f", O_RDONLY | O_TRUNC));
    TRY(open("a/f", O_RDONLY | O_CREAT, 0644));
    TRY(open("a/f", O_WRONLY | O_CREAT, 0644));
    TRY(open("a/f", O_RDONLY | O_CREAT | O_EXCL, 0644));
    TRY(open("a/new", O_RDONLY | O_CREAT, 0644));
    TRY(open("a/new", O_RDONLY));
    TRY(open("a", O_TMPFILE | O_RDWR, 0644));
    TRY(open("a/p", O_RDWR | O_NONBLOCK));
    TRY(mkdir("a/new", 0755));
    TRY(mkdir("a/d", 0755));
    TRY(rmdir("a/d"));
    TRY(rmdir("a/none"));
    TRY(rmdir("a/d/."));
    TRY(unlink("a/f"));
    TRY(unlink("a/none"));
    TRY(unlink("a/d"));
    TRY(rename("a/f", "a/g"));
    TRY(rename("a/none", "a/g"));
    TRY(rename("a/f", "g"));
    TRY(rename("outside", "a/g"));
    TRY(link("a/f", "a/g"));
    TRY(link("a/f", "g"));
    TRY(link("outside", "a/g"));
    TRY(link("a/none", "a/g"));
    TRY(link("a/f", "a/d"));
    TRY(symlink("f", "a/g"));
    TRY(symlink("f", "a/l"));
    TRY(mknod("a/g", S_IFREG | 0644, 0));
    TRY(mknod("a/g", S_IFCHR | 0644, 0x103));
    TRY(mkfifo("a/g", 0644));
    TRY(chmod("a/f", 0600));
    TRY(chmod("a/none", 0600));
    TRY(chmod("a/p", 0600));
    TRY(chown("a/f", 1, 1));
    TRY(lchown("a/l", 1, 1));
    TRY(truncate("a/f", 0));
    TRY(truncate("a/d", 0));
    TRY(utimensat(AT_FDCWD, "a/f", NULL, 0));
    struct timespec omit[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
    TRY(utimensat(AT_FDCWD, "a/f", omit, 0));
    TRY(access("a/f", W_OK));
    TRY(access("a/f", R_OK));
    TRY(access("a/d", W_OK));
    TRY(access("a/p", W_OK));
    TRY(faccessat(AT_FDCWD, "a/l", W_OK, AT_SYMLINK_NOFOLLOW));
    TRY(setxattr("a/f", "user.a", "b", 1, 0));
    TRY(removexattr("a/f", "user.a"));
    int file = MUST(open("a/f", O_RDONLY));
    TRY(fchmod(file, 0600));
    TRY(fchown(file, 1, 1));
    TRY(futimens(file, NULL));
    TRY(fsetxattr(file, "user.a", "b", 1, 0));
    TRY(fallocate(file, 0, 0, 10));
    TRY(ftruncate(file, 0));
    close(file);
    struct stat before = about(AT_FDCWD, "a/f"), after;
    tell(AT_FDCWD, "a/f");
    after = about(AT_FDCWD, "a/f");
    printf("access time %s\n", memcmp(&before.st_atim, &after.st_atim, sizeof after.st_atim) ? "moved" : "kept");
    gone("a");
    MUST(unlink("outside"));
    end();
}

static void copy_to(const char *path, const char *from, mode_t mode)
{
    char buffer[65536];
    ssize_t bytes;
    int in = MUST(open(from, O_RDONLY)), out = MUST(open(path, O_CREAT | O_TRUNC | O_WRONLY, 0755));
    while ((bytes = MUST(read(in, buffer, sizeof buffer))) > 0)
        MUST(write(out, buffer, bytes));
    close(in);
    close(out);
    MUST(chmod(path, mode));
}

static void run_it(void)
{
    execl("a/program", "program", "ids", NULL);
    printf("not executed: %s\n", failing(-1));
}

static void run_script(void)
{
    execl("a/script", "script", NULL);
    printf("not executed: %s\n", failing(-1));
}

static void no_execution(void)
{
    begin();
    MUST(mounted("a", 0, NULL));
    copy_to("a/program", "/proc/self/exe", 0755);
    put(AT_FDCWD, "a/script", "#!/proc/self/exe ids\n");
    MUST(chmod("a/script", 0755));
    in_child("executed", run_it);
    int file = MUST(open("a/program", O_RDONLY));
    void *early = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    TRY(remounted("a", MS_NOEXEC));
    in_child("not executed", run_it);
    in_child("not executed", run_script);
    TRY(access("a/program", X_OK));
    TRY(access("a/program", R_OK));
    TRY(access("a", X_OK));
    TRY(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0));
    TRY(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0));
    void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    TRY(mprotect(map, 4096, PROT_READ | PROT_EXEC));
    TRY(mprotect(early, 4096, PROT_READ | PROT_EXEC));
    munmap(map, 4096);
    munmap(early, 4096);
    TRY(syscall(SYS_execveat, file, "", (char *[]){"x", NULL}, (char *[]){NULL}, AT_EMPTY_PATH));
    close(file);
    TRY(remounted("a", 0));
    in_child("executed", run_it);
    gone("a");
    end();
}

/* A program of root's with its bits set, for a user. */
static void as_user(void)
{
    MUST(setresgid(1234, 1234, 1234));
    MUST(setresuid(1234, 1234, 1234));
    run_it();
}

static void no_set_id(void)
{
    begin();
    MUST(mounted("a", 0, NULL));
    copy_to("a/program", "/proc/self/exe", 06755);
    in_child("with its bits", as_user);
    TRY(remounted("a", MS_NOSUID));
    in_child("without them", as_user);
    gone("a");
    end();
}

static void no_devices(void)
{
    begin();
    MUST(mounted("a", 0, NULL));
    TRY(mknod("a/null", S_IFCHR | 0666, 0x103));
    for (int i = 0; i < 6; i++)
        close(TRY(open("a/null", O_RDWR)));
    TRY(remounted("a", MS_NODEV));
    for (int i = 0; i < 3; i++)
        TRY(open("a/null", O_RDWR));
    int place = TRY(open("a/null", O_PATH));
    close(place);
    TRY(access("a/null", R_OK | W_OK));
    TRY(mknod("a/zero", S_IFCHR | 0666, 0x105));
    gone("a");
    end();
}

static void read_again(const char *what, const char *path, time_t access, time_t change)
{
    struct timespec old[2] = {{access, 0}, {change, 0}};
    char byte;
    MUST(utimensat(AT_FDCWD, path, old, 0));
    int file = MUST(open(path, O_RDONLY));
    struct stat s;
    for (int i = 0; i < 6; i++) {
        lseek(file, 0, SEEK_SET);
        if (read(file, &byte, 1) < 0) {
            char names[512];
            syscall(SYS_getdents64, file, names, sizeof names);
        }
        MUST(fstat(file, &s));
        printf("%s %s: %s\n", what, path, s.st_atime > 5000 ? "now" : "then");
    }
    close(file);
}

static void access_times(void)
{
    begin();
    MUST(mounted("a", MS_NOATIME, NULL));
    put(AT_FDCWD, "a/f", "text");
    MUST(mkdir("a/d", 0755));
    read_again("noatime", "a/f", 1000, 2000);
    read_again("noatime", "a/d", 1000, 2000);
    TRY(remounted("a", MS_NODIRATIME));
    read_again("nodiratime", "a/f", 1000, 2000);
    read_again("nodiratime", "a/d", 1000, 2000);
    TRY(remounted("a", MS_STRICTATIME));
    /* A time in the future is not old by any rule but this one. */
    struct timespec future[2] = {{20000000000, 0}, {1000, 0}};
    char byte;
    struct stat s;
    int file = MUST(open("a/f", O_RDONLY));
    for (int i = 0; i < 6; i++) {
        MUST(futimens(file, future));
        MUST(pread(file, &byte, 1, 0));
        MUST(fstat(file, &s));
        printf("strictatime: %s\n", s.st_atime == 20000000000 ? "future" : "now");
        MUST(futimens(file, future));
        MUST(lseek(file, 0, SEEK_SET));
        MUST(read(file, &byte, 1));
        MUST(fstat(file, &s));
        printf("strictatime: %s\n", s.st_atime == 20000000000 ? "future" : "now");
    }
    TRY(remounted("a", MS_RELATIME));
    MUST(futimens(file, future));
    MUST(pread(file, &byte, 1, 0));
    MUST(fstat(file, &s));
    printf("relatime: %s\n", s.st_atime == 20000000000 ? "future" : "now");
    close(file);
    gone("a");
    end();
}

static void no_links(void)
{
    begin();
    MUST(mounted("a", 0, NULL));
    put(AT_FDCWD, "a/f", "text");
    MUST(mkdir("a/d", 0755));
    MUST(symlink("f", "a/l"));
    MUST(symlink("d", "a/to"));
    tell(AT_FDCWD, "a/l");
    TRY(remounted("a", 256));
    tell(AT_FDCWD, "a/l");
    TRY(open("a/to/x", O_RDONLY));
    char text[8];
    SHOW(readlink("a/l", text, sizeof text));
    struct stat s;
    TRY(lstat("a/l", &s));
    TRY(stat("a/l", &s));
    MUST(symlink("a/f", "outside"));
    tell(AT_FDCWD, "outside");
    MUST(unlink("outside"));
    gone("a");
    end();
}

/* What tmpfs can be told, and what it holds then. */
static void options(void)
{
    begin();
    TRY(mounted("a", 0, "size=64k,mode=700,uid=7,gid=8,nr_inodes=50"));
    flags_of("a");
    struct stat s = about(AT_FDCWD, "a");
    printf("mode %o, owner %d, group %d\n", s.st_mode, s.st_uid, s.st_gid);
    struct statfs v;
    MUST(statfs("a", &v));
    printf("%ld blocks, %ld nodes\n", (long)v.f_blocks, (long)v.f_files);
    static char data[70000];
    int file = MUST(open("a/f", O_CREAT | O_RDWR, 0644));
    SHOW(write(file, data, sizeof data));
    SHOW(write(file, data, 1));
    TRY(mount("things", "a", NULL, MS_REMOUNT, "size=32k"));
    TRY(mount("things", "a", NULL, MS_REMOUNT, "size=128k"));
    flags_of("a");
    SHOW(write(file, data, 1000));
    close(file);
    int made = 0;
    for (; made < 100; made++) {
        char name[32];
        snprintf(name, sizeof name, "a/n%d", made);
        int next = open(name, O_CREAT | O_WRONLY, 0644);
        if (next < 0)
            break;
        close(next);
    }
    printf("%d more: %s\n", made, failing(-1));
    gone("a");
    MUST(mkdir("a", 0755));
    TRY(mount("things", "a", "tmpfs", 0, "color=red"));
    TRY(mount("things", "a", "tmpfs", 0, "size=much"));
    TRY(mount("things", "a", "tmpfs", 0, "mode=9"));
    TRY(mount("things", "a", "tmpfs", 0, "size"));
    TRY(mount("things", "a", "tmpfs", 0, ""));
    TRY(umount("a"));
    TRY(mount("things", "a", "ramfs", 0, "mode=750"));
    printf("mode %o\n", about(AT_FDCWD, "a").st_mode);
    TRY(umount("a"));
    MUST(rmdir("a"));
    end();
}

static sigjmp_buf back;
static void on_bus(int number) { siglongjmp(back, number); }

/* Pages of a map that a full volume has no room for: SIGBUS, whether read or written. (Whether one that is written privately needs
 * room in the volume depends on the file system.) */
static void full_maps(void)
{
    begin();
    TRY(mounted("a", 0, "size=64k"));
    MUST(signal(SIGBUS, on_bus) == SIG_ERR ? -1 : 0);
    int file = MUST(open("a/f", O_CREAT | O_RDWR, 0644));
    for (int way = 0; way < 3; way++) {
        MUST(ftruncate(file, 0)), MUST(ftruncate(file, 1 << 20));
        char *map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, way == 0 ? MAP_PRIVATE : MAP_SHARED, file, 0);
        volatile int page = 0;
        int number = sigsetjmp(back, 1);
        for (; number == 0 && page < 256; page++) {
            volatile char *at = map + page * 4096;
            if (way == 2)
                *at = 'x';
            (void)*at;
        }
        struct stat s;
        MUST(fstat(file, &s));
        printf("way %d: signal %d at page %d, %ld blocks\n", way, number, page, (long)s.st_blocks);
        MUST(munmap(map, 1 << 20));
    }
    MUST(close(file));
    gone("a");
    end();
}

static void as_nobody(void)
{
    MUST(setresuid(1234, 1234, 1234));
    TRY(mount("things", "a", "tmpfs", 0, NULL));
    TRY(remounted("a", 0));
    TRY(umount("a"));
    TRY(umount("none"));
}

static void refused(void)
{
    begin();
    MUST(mounted("a", 0, NULL));
    put(AT_FDCWD, "a/f", "text");
    MUST(mkdir("a/d", 0755));
    TRY(mount("things", "a/f", "tmpfs", 0, NULL));
    TRY(mount("things", "a/none", "tmpfs", 0, NULL));
    TRY(mount("things", "a/d", "nosuchfs", 0, NULL));
    TRY(mount("things", "a/d", NULL, 0, NULL));
    TRY(mount("things", "a/d", (char *)1, 0, NULL));
    TRY(umount("a/d"));
    TRY(umount("a/none"));
    TRY(umount2("a", 64));
    in_child("nobody", as_nobody);
    /* In use. */
    int file = MUST(open("a/f", O_RDONLY));
    TRY(umount("a"));
    void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    TRY(umount("a"));
    munmap(map, 4096);
    MUST(chdir("a/d"));
    TRY(umount("../../a"));
    MUST(chdir(home));
    MUST(symlink("a", "link"));
    TRY(umount2("link", 8));
    file = MUST(open("a/f", O_RDONLY));
    TRY(mount("others", "a/d", "tmpfs", 0, NULL));
    TRY(umount("a"));
    TRY(umount("a/d"));
    TRY(umount2("link", MNT_DETACH));
    char text[8];
    SHOW(read(file, text, sizeof text));
    close(file);
    TRY(umount("a"));
    MUST(unlink("link"));
    MUST(rmdir("a"));
    end();
}

#define T(name) {#name, name}
static const struct test tests[] = {
    T(numbers),      T(many_numbers), T(times),      T(shown),        T(remounts), T(writers), T(read_only),
    T(no_execution), T(no_set_id),    T(no_devices), T(access_times), T(no_links), T(options), T(full_maps), T(refused),
};

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "ids") == 0) {
        printf("users %d %d, groups %d %d\n", getuid(), geteuid(), getgid(), getegid());
        return 0;
    }
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
