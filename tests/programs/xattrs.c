/* Extended attributes of files. Needs root, for attributes that only root may see. */
#include "check.h"

#include <sys/xattr.h>

static char folder[64];
/* The compiler must not know that nothing is there. */
static char *volatile nowhere = (char *)1;
static volatile size_t too_much = 65537;

/* A folder whose file system keeps users' attributes: not every host's /tmp does. */
static void begin(void)
{
    static const char *const places[] = {".", "/tmp", "/var/tmp", "/root"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(folder, sizeof folder, "%s/xattrs.XXXXXX", places[i]);
        if (mkdtemp(folder) == NULL)
            continue;
        if (setxattr(folder, "user.try", "", 0, 0) == 0)
            break;
        rmdir(folder);
    }
    MUST(chdir(folder));
    MUST(removexattr(".", "user.try"));
    MUST(chmod(".", 0755));
    int file = MUST(open("f", O_CREAT | O_RDWR, 0644));
    close(file);
    MUST(mkdir("d", 0755));
    MUST(symlink("f", "l"));
    MUST(mkfifo("p", 0666));
}

static void end(void)
{
    unlink("f");
    unlink("l");
    unlink("p");
    rmdir("d");
    MUST(chdir("/"));
}

static void value(const char *path, const char *name)
{
    char text[300];
    errno = 0;
    ssize_t got = lgetxattr(path, name, text, sizeof text);
    if (got < 0)
        printf("%s of %s: %s\n", name, path, failing(-1));
    else
        printf("%s of %s: %zd \"%.*s\"\n", name, path, got, (int)got, text);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void names(const char *path)
{
    char text[4096], *sorted[64];
    int count = 0;
    ssize_t bytes = llistxattr(path, text, sizeof text);
    printf("%s has %zd bytes of names:", path, bytes);
    for (char *name = text; name < text + bytes; name += strlen(name) + 1)
        if (strncmp(name, "security.selinux", 16) != 0)
            sorted[count++] = name;
    qsort(sorted, count, sizeof *sorted, by_text);
    for (int i = 0; i < count; i++)
        printf(" %s", sorted[i]);
    puts("");
}

static void kept(void)
{
    begin();
    names("f");
    value("f", "user.a");
    TRY(setxattr("f", "user.a", "one", 3, 0));
    TRY(setxattr("f", "user.b", "", 0, 0));
    TRY(setxattr("f", "user.c", NULL, 0, 0));
    names("f");
    value("f", "user.a");
    value("f", "user.b");
    value("f", "user.c");
    TRY(setxattr("f", "user.a", "another", 7, 0));
    value("f", "user.a");
    TRY(setxattr("f", "user.a", "x", 1, XATTR_CREATE));
    TRY(setxattr("f", "user.d", "x", 1, XATTR_CREATE));
    TRY(setxattr("f", "user.a", "y", 1, XATTR_REPLACE));
    TRY(setxattr("f", "user.e", "y", 1, XATTR_REPLACE));
    TRY(setxattr("f", "user.a", "z", 1, XATTR_CREATE | XATTR_REPLACE));
    TRY(setxattr("f", "user.e", "z", 1, XATTR_CREATE | XATTR_REPLACE));
    names("f");
    value("f", "user.a");
    TRY(removexattr("f", "user.b"));
    TRY(removexattr("f", "user.b"));
    value("f", "user.b");
    names("f");
    /* A name stays with its file. */
    TRY(rename("f", "g"));
    value("g", "user.a");
    TRY(link("g", "f"));
    TRY(setxattr("f", "user.a", "by another name", 15, 0));
    value("g", "user.a");
    TRY(unlink("g"));
    value("f", "user.a");
    end();
}

static void rooms(void)
{
    begin();
    char text[16] = "untouched";
    MUST(setxattr("f", "user.name", "value", 5, 0));
    SHOW(getxattr("f", "user.name", NULL, 0));
    SHOW(getxattr("f", "user.name", text, 4));
    SHOW(getxattr("f", "user.name", text, 5));
    SHOW(getxattr("f", "user.name", text, 0));
    SHOW(listxattr("f", NULL, 0));
    SHOW(listxattr("f", text, 9));
    SHOW(listxattr("f", text, 10));
    SHOW(getxattr("f", "user.name", nowhere, 5));
    SHOW(listxattr("f", nowhere, 10));
    SHOW(setxattr("f", "user.other", nowhere, 5, 0));
    SHOW(setxattr("f", nowhere, "value", 5, 0));
    SHOW(getxattr(nowhere, "user.name", text, 5));
    end();
}

static void words(void)
{
    begin();
    char name[300];
    TRY(setxattr("f", "", "v", 1, 0));
    TRY(setxattr("f", "user.", "v", 1, 0));
    TRY(setxattr("f", "user", "v", 1, 0));
    TRY(setxattr("f", "usera.b", "v", 1, 0));
    TRY(setxattr("f", "nothing.known", "v", 1, 0));
    TRY(setxattr("f", "system.unknown", "v", 1, 0));
    TRY(getxattr("f", "", name, 1));
    TRY(getxattr("f", "user.", name, 1));
    TRY(getxattr("f", "nothing.known", name, 1));
    TRY(getxattr("f", "system.unknown", name, 1));
    TRY(removexattr("f", ""));
    TRY(removexattr("f", "nothing.known"));
    memset(name, 'n', sizeof name);
    memcpy(name, "user.", 5);
    name[255] = 0;
    TRY(setxattr("f", name, "v", 1, 0));
    SHOW(getxattr("f", name, NULL, 0));
    name[255] = 'n';
    name[256] = 0;
    TRY(setxattr("f", name, "v", 1, 0));
    TRY(setxattr("f", "user.a", "v", too_much, 0));
    TRY(setxattr("f", "user.a", "v", 1, 4));
    TRY(setxattr("none", "user.a", "v", 1, 0));
    TRY(setxattr("none", "", "v", 1, 0));
    TRY(setxattr("f", "user.bytes", "a\0b\xff", 4, 0));
    SHOW(getxattr("f", "user.bytes", name, 4));
    printf("%02x %02x %02x %02x\n", name[0], name[1], name[2], (unsigned char)name[3]);
    end();
}

static void forms(void)
{
    begin();
    char text[16];
    TRY(setxattr("l", "user.a", "file's", 6, 0));
    value("f", "user.a");
    TRY(lsetxattr("l", "user.a", "link's", 6, 0));
    SHOW(lgetxattr("l", "user.a", text, sizeof text));
    SHOW(getxattr("l", "user.a", text, sizeof text));
    TRY(lremovexattr("l", "user.a"));
    TRY(lsetxattr("l", "trusted.a", "link's", 6, 0));
    value("l", "trusted.a");
    names("l");
    names("f");
    TRY(lremovexattr("l", "trusted.a"));
    int file = MUST(open("f", O_RDONLY)), path = MUST(open("f", O_PATH)), folder = MUST(open("d", O_DIRECTORY));
    TRY(fsetxattr(file, "user.b", "by descriptor", 13, 0));
    SHOW(fgetxattr(file, "user.b", text, sizeof text));
    SHOW(flistxattr(file, NULL, 0));
    TRY(fremovexattr(file, "user.b"));
    TRY(fsetxattr(folder, "user.b", "folder's", 8, 0));
    value("d", "user.b");
    TRY(fsetxattr(path, "user.b", "v", 1, 0));
    TRY(fgetxattr(path, "user.b", text, 1));
    TRY(flistxattr(path, text, 1));
    TRY(fsetxattr(99, "user.b", "v", 1, 0));
    int ends[2];
    MUST(pipe(ends));
    TRY(fsetxattr(ends[0], "user.b", "v", 1, 0));
    TRY(fgetxattr(ends[0], "user.b", text, 1));
    TRY(fgetxattr(ends[0], "trusted.b", text, 1));
    TRY(fremovexattr(ends[0], "user.b"));
    SHOW(flistxattr(ends[0], text, 1));
    end();
}

static void kinds(void)
{
    begin();
    char text[16];
    TRY(setxattr("d", "user.a", "v", 1, 0));
    TRY(setxattr("p", "user.a", "v", 1, 0));
    TRY(getxattr("p", "user.a", text, 1));
    TRY(removexattr("p", "user.a"));
    TRY(setxattr("p", "trusted.a", "v", 1, 0));
    value("p", "trusted.a");
    TRY(setxattr("/proc/self/status", "user.a", "v", 1, 0));
    TRY(getxattr("/proc/self/status", "user.a", text, 1));
    TRY(getxattr("/proc/self/status", "trusted.a", text, 1));
    TRY(setxattr("/dev/null", "user.a", "v", 1, 0));
    TRY(getxattr("/dev/null", "user.a", text, 1));
    end();
}

static void user(void)
{
    char text[16];
    MUST(setresgid(1234, 1234, 1234));
    MUST(setresuid(1234, 1234, 1234));
    TRY(getxattr("f", "user.a", text, 4));
    TRY(setxattr("f", "user.a", "v", 1, 0));
    TRY(removexattr("f", "user.a"));
    TRY(getxattr("f", "trusted.a", text, 4));
    TRY(setxattr("f", "trusted.a", "v", 1, 0));
    TRY(removexattr("f", "trusted.none"));
    TRY(setxattr("f", "security.thing", "v", 1, 0));
    names("f");
    TRY(setxattr("d", "user.a", "v", 1, 0));
    TRY(getxattr("secret", "user.a", text, 4));
    TRY(listxattr("secret", text, 0));
    TRY(setxattr("mine", "user.a", "v", 1, 0));
    value("mine", "user.a");
}

static void users(void)
{
    begin();
    MUST(setxattr("f", "user.a", "root", 4, 0));
    MUST(setxattr("f", "trusted.a", "root", 4, 0));
    names("f");
    MUST(chmod("d", 01777));
    int file = MUST(open("secret", O_CREAT | O_RDWR, 0600));
    close(file);
    file = MUST(open("mine", O_CREAT | O_RDWR, 0600));
    MUST(fchown(file, 1234, 1234));
    close(file);
    in_child("user", user);
    MUST(unlink("secret"));
    MUST(unlink("mine"));
    end();
}

/* A change moves the time of change and no other. */
static void times(void)
{
    begin();
    struct timespec old[2] = {{1000, 0}, {2000, 0}};
    struct stat before, after;
    MUST(utimensat(AT_FDCWD, "f", old, 0));
    MUST(stat("f", &before));
    do
        MUST(setxattr("f", "user.a", "v", 1, 0));
    while (stat("f", &after) == 0 && memcmp(&before.st_ctim, &after.st_ctim, sizeof after.st_ctim) == 0);
    printf("accessed %ld, modified %ld\n", (long)after.st_atime, (long)after.st_mtime);
    end();
}

/* Thousands of changes leave only the last. */
static void often(void)
{
    begin();
    static char big[2000];
    for (int i = 0; i < 3000; i++) {
        char name[32];
        snprintf(name, sizeof name, "user.%d", i % 7);
        memset(big, 'a' + i % 26, sizeof big);
        MUST(setxattr("f", name, big, i % 300, 0));
        if (i % 11 == 0)
            MUST(removexattr("f", name));
    }
    names("f");
    value("f", "user.0");
    value("f", "user.6");
    end();
}

#define T(name) {#name, name}
static const struct test tests[] = {T(kept), T(rooms), T(words), T(forms), T(kinds), T(users), T(times), T(often)};
CHECK_MAIN(tests)
