/* The Sound-IO device server, from a program.
 *
 * usage: sound raise ROUNDS COUNT      raises the interrupt COUNT times for each maker and activity, ROUNDS times in turn;
 *                                      prints a line each: maker, channels, handler bytes, picoseconds an interrupt in the
 *                                      fastest and in the median round
 *        sound call ROUNDS COUNT       the same, calling the handler as a procedure, where the machine can do so
 *        sound inserts COUNT           the same for the A/D converter with one insert, with eight (a buffered queue) and with those
 *                                      that the kernel takes by itself; picoseconds an interrupt, a line for each set of channels
 *        sound live FRAMES             reads so many frames of the CD at full rate, while other channels open and close and
 *                                      the handler is replaced; counts what is missing
 *        sound elements FRAMES         the same for the A/D converter, whose frames come in elements of eight (a buffered queue)
 *        sound busy MEGABYTES BYTES    the same while so many bytes are typed at the terminal, a to z in turn, which it reads, too
 *        sound busy MEGABYTES          reads the CD while another program forks, executes and copies so much; counts the
 *                                      interrupts that the clock sent and the handler never saw
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { MAKERS = 3, ACTIVITIES = 5, ROUNDS_MAX = 101 };
static const char *const makers[MAKERS] = {"synthesized", "assembler", "compiled"};
static const char *const activities[ACTIVITIES] = {"none", "cd", "cd+da", "cd+ad", "cd+ad.ulaw"};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int control(void)
{
    int fd = open("/dev/sound", O_RDWR);
    if (fd < 0)
        fail("/dev/sound");
    return fd;
}

static void order(int fd, const char *words)
{
    if (write(fd, words, strlen(words)) != (ssize_t)strlen(words))
        fail(words);
}

/* The number behind `key` in what the server tells; -1 if it tells no such thing. */
static long long told(int fd, const char *key)
{
    char text[1024];
    ssize_t bytes = read(fd, text, sizeof text - 1);
    if (bytes < 0)
        fail("read /dev/sound");
    text[bytes] = 0;
    const char *at = strstr(text, key);
    return at ? atoll(at + strlen(key)) : -1;
}

static int by_size(const void *a, const void *b)
{
    long long x = *(const long long *)a, y = *(const long long *)b;
    return (x > y) - (x < y);
}

static long long once(const char *how, const char *activity, int count)
{
    char words[64];
    int fd = control();
    snprintf(words, sizeof words, "%s %s %d", how, activity, count);
    order(fd, words);
    long long ns = told(fd, " ns ");
    close(fd);
    return ns * 1000 / count;
}

static int measure(const char *how, int rounds, int count)
{
    static long long found[MAKERS][ACTIVITIES][ROUNDS_MAX];
    if (rounds < 1 || rounds > ROUNDS_MAX)
        return 2;
    for (int round = 0; round < rounds; round++)
        for (int maker = 0; maker < MAKERS; maker++) {
            char words[64];
            int fd = control();
            snprintf(words, sizeof words, "handler %s", makers[maker]);
            order(fd, words);
            close(fd);
            for (int activity = 0; activity < ACTIVITIES; activity++)
                found[maker][activity][round] = once(how, activities[activity], count);
        }
    for (int maker = 0; maker < MAKERS; maker++)
        for (int activity = 0; activity < ACTIVITIES; activity++) {
            long long *of = found[maker][activity];
            qsort(of, rounds, sizeof *of, by_size);
            printf("%s %s %lld %lld\n", makers[maker], activities[activity], of[0], of[rounds / 2]);
        }
    return 0;
}

static int compare_inserts(int count)
{
    static const char *const channels[] = {"ad", "ad.ulaw", "ad.stereo", "cd+ad", "cd+ad.ulaw", "cd+ad.stereo"};
    static const char *const inserts[] = {"one", "eight", "cheapest"};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++) {
        printf("%s", channels[i]);
        for (int j = 0; j < 3; j++) {
            char words[64];
            int fd = control();
            snprintf(words, sizeof words, "inserts %s", inserts[j]);
            order(fd, words);
            close(fd);
            printf(" %lld", once("raise", channels[i], count));
        }
        putchar('\n');
    }
    return 0;
}

/* Reads some frames and looks whether each follows the one before. Returns how many came. */
static long read_frames(int cd, uint32_t *next, long *missing)
{
    uint32_t frames[512];
    ssize_t bytes = read(cd, frames, sizeof frames);
    if (bytes < 0 && errno == EAGAIN)
        return 0;
    if (bytes < 0)
        fail("read /dev/cd");
    for (ssize_t i = 0; i < bytes / 4; i++) {
        if (*next != 0 && frames[i] != *next)
            *missing += (long)(frames[i] - *next);
        *next = frames[i] + 1;
    }
    return bytes / 4;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Opens and closes the other channels in turn, so that each frame may be served by another handler. */
static void replace(long turn, const char *const names[2])
{
    static int open_now = -1;
    if (open_now >= 0)
        close(open_now);
    int kind = turn % 3;
    const char *name = kind == 0 ? "/dev/da" : names[kind - 1];
    open_now = open(name, kind == 0 ? O_WRONLY : O_RDONLY);
    if (open_now < 0)
        fail(name);
    static const uint32_t silence[64];
    if (kind == 0 && write(open_now, silence, sizeof silence) != sizeof silence)
        fail("write /dev/da");
}

static int live(long wanted, const char *input, const char *const others[2])
{
    int cd = open(input, O_RDONLY);
    if (cd < 0)
        fail(input);
    int fd = control();
    long long millihertz = told(fd, "millihertz ");
    close(fd);
    uint32_t next = 0;
    long missing = 0, frames = 0, turns = 0;
    frames += read_frames(cd, &next, &missing);
    int64_t start = now_ns();
    uint32_t first = next;
    while (frames < wanted) {
        replace(turns++, others);
        frames += read_frames(cd, &next, &missing);
    }
    int64_t ns = now_ns() - start;
    long long due = ns / 1000 * millihertz / 1000000000LL, came = next - first;
    fd = control();
    long long made = told(fd, "handlers_made ");
    close(fd);
    printf("%ld frames, %ld missing, %ld channels opened, %lld handlers made\n", frames, missing, turns, made);
    printf("%lld frames due by the clock, %lld came\n", due, came);
    /* A frame may be read just before or just after the clock. */
    return missing != 0 || made < turns || came + 8 < due || came > due + 600;
}

/* Makes the kernel busy for long: copies of a megabyte, forks of a process with as much memory, programs executed. */
static void make_busy(long megabytes)
{
    enum { PIECE = 1 << 20 };
    char *from = malloc(PIECE), *to = malloc(PIECE);
    int file = memfd_create("busy", 0);
    if (from == NULL || to == NULL || file < 0)
        fail("memfd_create");
    memset(from, 1, PIECE);
    for (long i = 0; i < megabytes; i++) {
        if (pwrite(file, from, PIECE, 0) != PIECE || pread(file, to, PIECE, 0) != PIECE)
            fail("copy");
        if (i % 10 != 0)
            continue;
        pid_t child = fork();
        if (child == 0) {
            to[0] = (char)i;
            execl("/proc/self/exe", "sound", "nothing", (char *)NULL);
            _exit(127);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            fail("fork");
        char *fresh = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (fresh == MAP_FAILED || munmap(fresh, PIECE) != 0)
            fail("mmap");
    }
}

/* The terminal gives bytes as they are typed, if there are some. */
static void listen(void)
{
    struct termios raw;
    if (tcgetattr(0, &raw) != 0)
        fail("tcgetattr");
    cfmakeraw(&raw);
    raw.c_cc[VMIN] = 0;
    if (tcsetattr(0, TCSANOW, &raw) != 0)
        fail("tcsetattr");
    puts("listening");
    fflush(stdout);
}

/* Reads what was typed; returns how many bytes came so far. */
static long hear(long heard)
{
    char bytes[4096];
    ssize_t count = read(0, bytes, sizeof bytes);
    if (count < 0)
        fail("read");
    for (ssize_t i = 0; i < count; i++, heard++)
        if (bytes[i] != 'a' + heard % 26) {
            printf("byte %ld is %d\n", heard, bytes[i]);
            exit(1);
        }
    return heard;
}

static int busy(long megabytes, long typed)
{
    struct termios before;
    tcgetattr(0, &before);
    if (typed > 0)
        listen();
    long heard = 0;
    int cd = open("/dev/cd", O_RDONLY);
    if (cd < 0)
        fail("/dev/cd");
    int fd = control();
    long long millihertz = told(fd, "millihertz ");
    close(fd);
    uint32_t next = 0;
    long missing = 0, frames = read_frames(cd, &next, &missing);
    int64_t start = now_ns();
    uint32_t first = next;
    pid_t worker = fork();
    if (worker < 0)
        fail("fork");
    if (worker == 0) {
        close(cd);
        make_busy(megabytes);
        _exit(0);
    }
    int status = 0;
    while (waitpid(worker, &status, WNOHANG) == 0 || heard < typed) {
        if (typed > 0)
            heard = hear(heard);
        frames += read_frames(cd, &next, &missing);
    }
    if (typed > 0)
        tcsetattr(0, TCSANOW, &before);
    /* What came until now is in the ring; the clock and the ring are read as near to each other as a program can. A reader that may
     * sleep is never done: at each call it waits for the next 512. */
    if (fcntl(cd, F_SETFL, O_NONBLOCK) != 0)
        fail("F_SETFL");
    for (long got = 512; got == 512; frames += got)
        got = read_frames(cd, &next, &missing);
    int64_t ns = now_ns() - start;
    long long due = ns / 1000 * millihertz / 1000000000LL, came = next - first;
    printf("%ld frames, %ld missing, %lld due by the clock, %lld came: %lld lost\n", frames, missing, due, came,
           due > came ? due - came : 0);
    if (typed > 0)
        printf("%ld bytes typed, in order\n", heard);
    return status != 0 || missing != 0 || came + 16 < due;
}

int main(int argc, char **argv)
{
    if (argc == 4 && (!strcmp(argv[1], "raise") || !strcmp(argv[1], "call")))
        return measure(argv[1], atoi(argv[2]), atoi(argv[3]));
    if (argc == 3 && !strcmp(argv[1], "inserts"))
        return compare_inserts(atoi(argv[2]));
    if (argc == 3 && !strcmp(argv[1], "live"))
        return live(atol(argv[2]), "/dev/cd", (const char *const[]){"/dev/ad", "/dev/ad.ulaw"});
    if (argc == 3 && !strcmp(argv[1], "elements"))
        return live(atol(argv[2]), "/dev/ad.stereo", (const char *const[]){"/dev/cd", "/dev/cd"});
    if (argc == 3 && !strcmp(argv[1], "busy"))
        return busy(atol(argv[2]), 0);
    if (argc == 4 && !strcmp(argv[1], "busy"))
        return busy(atol(argv[2]), atol(argv[3]));
    if (argc == 2 && !strcmp(argv[1], "nothing"))
        return 0;
    fputs("usage: sound raise|call ROUNDS COUNT | sound inserts COUNT | sound live|elements FRAMES | sound busy MEGABYTES [BYTES]\n", stderr);
    return 2;
}
