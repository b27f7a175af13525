/* Files in any order of calls: what each call gives, and what the files hold then, is the same on every system.
 *
 *   shuffle list                    the cases
 *   shuffle CASE                    a short run of it
 *   shuffle CASE SEED N             N calls from this seed
 *   shuffle CASE SEED N FROM TO     the same, and the steps from FROM to TO are told: call, results so far, what the files hold
 *
 * Every thousand calls a hash of all results so far is printed, so that two systems that differ show where; the steps around it
 * then show what.
 */
#include "check.h"

#include <sys/sendfile.h>
#include <sys/uio.h>

#define FILES 3
#define OPENS 7
#define MAPS 3
#define PAGE 4096
#define BUFFER (24 * PAGE)
#define PLACES (40 * PAGE)

/* What goes from hand to hand where two processes take turns. */
static struct turn {
    uint64_t state, hash;
    unsigned long calls, steps;
} now;
static unsigned long wanted = 6000, told_from, told_to;
static uint64_t seed = 1;
static char *buffer;
static int opens[OPENS];
/* Signals come: calls that may then end early, on Linux too, are left out. */
static int is_disturbed;
/* Storage behind the end: file systems differ in whether the limit of size forbids it. */
static int kept_size = FALLOC_FL_KEEP_SIZE;
static char *maps[MAPS];
static int mapped[MAPS];

static unsigned any(unsigned below)
{
    now.state ^= now.state << 13, now.state ^= now.state >> 7, now.state ^= now.state << 17;
    return (unsigned)(now.state >> 20) % below;
}

static void fold(const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++)
        now.hash = (now.hash ^ at[i]) * 0x100000001b3;
}

static long note(long result)
{
    long told = result == -1 ? -errno : result;
    fold(&told, sizeof told);
    if (++now.calls % 1000 == 0)
        printf("%lu: %016llx\n", now.calls, (unsigned long long)now.hash), fflush(stdout);
    return result;
}

static const char *name_of(unsigned file)
{
    static const char *names[FILES] = {"a", "b", "c"};
    return names[file];
}

static void open_one(unsigned which)
{
    static const int flags[] = {O_RDWR, O_RDWR, O_RDWR, O_RDONLY, O_WRONLY, O_RDWR | O_APPEND, O_RDWR | O_TRUNC};
    if (opens[which] >= 0)
        close(opens[which]);
    opens[which] = (int)note(open(name_of(any(FILES)), flags[any(sizeof flags / sizeof *flags)] | O_CREAT, 0644));
}

static off_t a_place(void)
{
    switch (any(6)) {
    case 0: return 0;
    case 1: return (off_t)any(40) * PAGE;
    case 2: return (off_t)any(40) * PAGE + (off_t)any(20) - (any(2) ? 10 : 0);
    case 3: return any(3 * PAGE);
    default: return any(PLACES);
    }
}

/* Mostly little, sometimes over many pages; sometimes the buffer ends in pages that are not there. */
static size_t a_length(void)
{
    switch (any(10)) {
    case 0: return 1;
    case 1: return PAGE;
    case 2: return any(BUFFER);
    case 3: return 0;
    case 4: return 16 * PAGE;
    case 5: return PAGE - any(3);
    default: return any(2000);
    }
}

/* A place in a map of another file than `file`, where a copy goes well or ends with the file's last page. (What a file holds that is
 * read into itself is for no system to say; and the next map may be one of it.) */
static char *a_mapped_buffer(int file, size_t bytes)
{
    unsigned which = any(MAPS);
    struct stat about, own;
    if (!maps[which] || fstat(mapped[which], &about) || fstat(file, &own) || about.st_ino == own.st_ino || about.st_size == 0)
        return buffer;
    size_t size = about.st_size < PLACES ? (size_t)about.st_size : PLACES, at = any((unsigned)size);
    return at + bytes <= size || (at + bytes <= PLACES && size % PAGE == 0) ? maps[which] + at : buffer;
}

static char *a_buffer(int file, size_t bytes)
{
    if (any(25) == 0)
        return a_mapped_buffer(file, bytes);
    return any(50) ? buffer + any(BUFFER) : buffer + 2 * BUFFER - any(3 * PAGE);
}

/* What comes from a map is what is there. */
static void fill(char *at, size_t bytes)
{
    size_t room = at >= buffer && at < buffer + 2 * BUFFER ? (size_t)(buffer + 2 * BUFFER - at) : 0;
    for (size_t i = 0; i < bytes && i < room; i += 1 + any(60))
        at[i] = (char)any(256);
}

static void check_all(void)
{
    for (unsigned file = 0; file < FILES; file++) {
        struct stat about;
        int seen = open(name_of(file), O_RDONLY);
        fold(&file, sizeof file);
        if (seen == -1)
            continue;
        MUST(fstat(seen, &about));
        fold(&about.st_size, sizeof about.st_size);
        for (ssize_t got; (got = read(seen, buffer, BUFFER)) > 0;)
            fold(buffer, (size_t)got);
        close(seen);
    }
}

/* A byte of a map that is there, of whatever the file's name was when it was made. */
static void touch_map(void)
{
    unsigned which = any(MAPS);
    struct stat about;
    if (!maps[which] || any(20) == 0) {
        if (maps[which])
            MUST(munmap(maps[which], PLACES)), MUST(close(mapped[which]));
        mapped[which] = MUST(open(name_of(any(FILES)), O_RDWR | O_CREAT, 0644));
        maps[which] = mmap(NULL, PLACES, PROT_READ | PROT_WRITE, which ? MAP_SHARED : MAP_PRIVATE, mapped[which], 0);
    }
    MUST(fstat(mapped[which], &about));
    if (about.st_size == 0)
        return;
    char *at = maps[which] + any(about.st_size < PLACES ? (unsigned)about.st_size : PLACES);
    if (any(2))
        *at = (char)any(256);
    fold(at, 1);
}

/* What the program says of its maps. Private pages that are given up show the file again. */
static void advise(void)
{
    unsigned which = any(MAPS);
    size_t from = any(40) * PAGE, bytes = any(8) * PAGE;
    if (maps[which] && from + bytes <= PLACES)
        note(any(3) ? madvise(maps[which] + from, bytes, MADV_DONTNEED) : msync(maps[which] + from, bytes, MS_SYNC));
}

/* What a file gets that is sent to itself depends on how much is on its way at once. */
static void send_one(int to, int from, unsigned bytes)
{
    struct stat source, target;
    if (is_disturbed)
        return;
    if (fstat(to, &target) == 0 && fstat(from, &source) == 0 && source.st_ino != target.st_ino)
        note(any(2) ? sendfile(to, from, NULL, bytes) : copy_file_range(from, NULL, to, NULL, bytes, 0));
}

static void tell(unsigned kind, unsigned which, const char *at, size_t bytes)
{
    if (now.steps < told_from || now.steps > told_to)
        return;
    printf("step %lu: kind %u, open %u at %ld, buffer %ld, bytes %zu; calls %lu, hash %016llx;", now.steps, kind, which,
           (long)lseek(opens[which], 0, SEEK_CUR), (long)(at - buffer), bytes, now.calls, (unsigned long long)now.hash);
    for (unsigned file = 0; file < FILES; file++) {
        static unsigned char bytes_of_file[BUFFER];
        uint64_t held = 1, size = 0;
        int seen = open(name_of(file), O_RDONLY);
        for (ssize_t got; (got = read(seen, bytes_of_file, BUFFER)) > 0; size += (uint64_t)got)
            for (ssize_t i = 0; i < got; i++)
                held = (held ^ bytes_of_file[i]) * 0x100000001b3;
        close(seen);
        printf(" %s %s %llu %016llx", name_of(file), seen == -1 ? "not there" : "holds", (unsigned long long)size, (unsigned long long)held);
    }
    printf("\n"), fflush(stdout);
}

static void one_call(void)
{
    unsigned which = any(OPENS);
    int file = opens[which];
    size_t bytes = a_length();
    char *at = a_buffer(file, bytes);
    ssize_t got;
    unsigned kind = any(42);
    now.steps++;
    tell(kind, which, at, bytes);
    switch (kind) {
    case 0: open_one(which); break;
    case 1: note(truncate(name_of(any(FILES)), a_place())); break;
    case 2: note(ftruncate(file, a_place())); break;
    case 3: note(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, a_place(), 1 + any(5 * PAGE))); break;
    case 4: if (!is_disturbed) note(fallocate(file, any(2) ? kept_size : 0, a_place(), 1 + any(5 * PAGE))); break;
    case 5: note(rename(name_of(any(FILES)), name_of(any(FILES)))); break;
    case 6: if (any(10) == 0) note(unlink(name_of(any(FILES)))); break;
    case 7: case 33: touch_map(); break;
    case 8: note(lseek(file, -(off_t)any(5000), SEEK_END)); break;
    case 9: note(lseek(file, (off_t)any(5000) - 2500, SEEK_CUR)); break;
    case 10: case 11: case 12: case 13: note(lseek(file, a_place(), SEEK_SET)); break;
    case 14: {
        struct iovec parts[3] = {{at, bytes % 3000}, {buffer, any(3000)}, {buffer + PAGE, any(5000)}};
        note(any(2) ? readv(file, parts, 3) : writev(file, parts, 3));
        break;
    }
    case 15: send_one(file, opens[any(OPENS)], any(9000)); break;
    case 16: note(chmod(name_of(any(FILES)), any(4) ? 0644 : 04755)); break;
    case 17: {
        struct stat about;
        if (note(fstat(file, &about)) == 0)
            fold(&about.st_size, sizeof about.st_size), fold(&about.st_mode, sizeof about.st_mode);
        break;
    }
    case 40: advise(); break;
    case 41: at = a_mapped_buffer(file, bytes); /* fall through */
    case 18: case 19: case 20: case 21:
        got = note(pread(file, at, bytes, a_place()));
        if (got > 0)
            fold(at, (size_t)got);
        break;
    case 22: case 23: case 24: case 25:
        fill(at, bytes);
        note(pwrite(file, at, bytes, a_place()));
        break;
    case 26: case 27: case 28: case 29: case 30: case 31: case 32:
        got = note(read(file, at, bytes));
        if (got > 0)
            fold(at, (size_t)got);
        break;
    default:
        fill(at, bytes);
        note(write(file, at, bytes));
    }
}

static void prepare(void)
{
    now = (struct turn){seed * 0x9E3779B97F4A7C15 + 1, 0xcbf29ce484222325, 0, 0};
    /* Behind the buffer nothing is mapped. */
    buffer = mmap(NULL, 2 * BUFFER + 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(munmap(buffer + 2 * BUFFER, 4 * PAGE));
    for (unsigned i = 0; i < OPENS; i++)
        opens[i] = -1, open_one(i);
}

static void steps(unsigned long until)
{
    while (now.steps < until) {
        one_call();
        if (any(400) == 0)
            check_all();
    }
}

static void end(void)
{
    check_all();
    printf("end: %016llx\n", (unsigned long long)now.hash);
}

static void shuffle(void)
{
    prepare();
    steps(wanted);
    end();
}

static void count_in(int number) { (void)number, now.hash += 0x9E3779B97F4A7C15; }

/* Writes end at a limit, with a signal each time. */
static void limited(void)
{
    struct rlimit most = {20 * PAGE + 100, RLIM_INFINITY};
    kept_size = 0;
    MUST(signal(SIGXFSZ, count_in) == SIG_ERR ? -1 : 0);
    MUST(setrlimit(RLIMIT_FSIZE, &most));
    shuffle();
}


static int ticking;
static unsigned char *ticks;

/* In the midst of any call: another file is read, and written through its map. */
static void tick(int number)
{
    int before = errno;
    unsigned char byte = 0;
    (void)number;
    if (pread(ticking, &byte, 1, ticks[0] % 100) != 1 || byte != (ticks[0] % 100 == 0 ? ticks[0] : 'x'))
        ticks[1] = 'w';
    ticks[0]++, errno = before;
}

/* Signals come at any time, and what the calls give is the same. */
static void signalled(void)
{
    struct itimerval often = {{0, 1000}, {0, 1000}};
    struct sigaction action = {.sa_handler = tick};
    ticking = (int)MUST(open("ticks", O_RDWR | O_CREAT, 0644));
    for (int i = 0; i < PAGE; i++)
        MUST(write(ticking, "x", 1));
    ticks = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ticking, 0);
    ticks[0] = 0, is_disturbed = 1;
    MUST(sigaction(SIGALRM, &action, NULL));
    MUST(setitimer(ITIMER_REAL, &often, NULL));
    shuffle();
    while (ticks[0] == 0)
        pause();
    MUST(signal(SIGALRM, SIG_IGN) == SIG_ERR ? -1 : 0);
    printf("the handler saw %s\n", ticks[1] == 'w' ? "something else" : "its file");
}

/* Two processes take turns. What was open before is open in both, with one position; what is opened later is each one's own, and so
 * are private maps. */
static void turns(void)
{
    int there[2], back[2];
    prepare();
    for (int i = 0; i < 20; i++)
        touch_map();
    MUST(pipe(there)), MUST(pipe(back));
    pid_t child = MUST(fork());
    MUST(close(child ? there[0] : there[1])), MUST(close(child ? back[1] : back[0]));
    int in = child ? back[0] : there[0], out = child ? there[1] : back[1];
    for (int is_mine = child != 0; now.steps < wanted; is_mine = 1) {
        if (is_mine) {
            steps(now.steps + 1 + any(30));
            MUST(write(out, &now, sizeof now) == sizeof now ? 0 : -1);
        }
        if (read(in, &now, sizeof now) != sizeof now)
            break;
    }
    close(out);
    if (!child)
        _exit(0);
    MUST(waitpid(child, NULL, 0));
    end();
}

/* Two processes append to one file: nothing is lost, nothing torn. */
static void appending(void)
{
    enum { LINES = 20000 };
    char line[65];
    static char seen[2][LINES];
    pid_t children[2];
    for (int who = 0; who < 2; who++) {
        children[who] = MUST(fork());
        if (children[who] == 0) {
            int file = MUST(open("log", O_WRONLY | O_CREAT | O_APPEND, 0644));
            for (int i = 0; i < LINES; i++) {
                int bytes = snprintf(line, sizeof line, "%d %d %.*s\n", who, i, i % 40, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
                MUST(write(file, line, (size_t)bytes) == bytes ? 0 : -1);
            }
            _exit(0);
        }
    }
    for (int who = 0; who < 2; who++)
        MUST(waitpid(children[who], NULL, 0));
    FILE *log = fopen("log", "r");
    int torn = 0, who, number, length;
    while (fgets(line, sizeof line, log)) {
        char rest[64] = "";
        int parts = sscanf(line, "%d %d %40s", &who, &number, rest);
        length = (int)strlen(rest);
        if (parts < 2 || who > 1 || number >= LINES || length != number % 40 || seen[who][number]++)
            torn++;
    }
    int missing = 0;
    for (int i = 0; i < 2 * LINES; i++)
        missing += seen[i % 2][i / 2] == 0;
    printf("torn %d, missing %d\n", torn, missing);
}

#define T(name) {#name, name}
static const struct test tests[] = {T(shuffle), T(limited), T(signalled), T(turns), T(appending)};

int main(int argc, char **argv)
{
    /* Numbers of descriptors count; what was inherited does not. */
    MUST(close_range(3, ~0U, 0));
    const char *what = argc > 1 ? argv[1] : "";
    if (argc > 3)
        seed = strtoull(argv[2], NULL, 0), wanted = strtoul(argv[3], NULL, 0);
    if (argc > 5)
        told_from = strtoul(argv[4], NULL, 0), told_to = strtoul(argv[5], NULL, 0);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (strcmp(what, "list") == 0)
            puts(tests[i].name);
        else if (strcmp(what, tests[i].name) == 0)
            return tests[i].run(), 0;
    }
    return strcmp(what, "list") == 0 ? 0 : 2;
}
