// What calls on files cost: the fastest of 100 batches of 50 calls, in nanoseconds. usage: files FOLDER
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 100, CALLS = 50 };

static char buffer[1 << 16] __attribute__((aligned(4096)));
static const char deep[] = "a/b/c/d/f";
static int fd;
static struct stat status;

static void read_one(void) { (void)!pread(fd, buffer, 1, 0); }
static void read_page(void) { (void)!pread(fd, buffer, 4096, 0); }
static void read_64k(void) { (void)!pread(fd, buffer, 65536, 0); }
static void write_page(void) { (void)!pwrite(fd, buffer, 4096, 0); }
static void seek_read(void) { lseek(fd, 0, SEEK_SET); (void)!read(fd, buffer, 4096); }
static void seek_write(void) { lseek(fd, 0, SEEK_SET); (void)!write(fd, buffer, 4096); }
static void stat_open(void) { fstat(fd, &status); }
static void stat_name(void) { stat("f", &status); }
static void stat_deep(void) { stat(deep, &status); }
static void stat_missing(void) { stat("missing", &status); }
static void open_name(void) { close(open("f", O_RDONLY)); }
static void open_deep(void) { close(open(deep, O_RDONLY)); }

static const struct {
    const char *name;
    void (*call)(void);
} cases[] = {
    {"pread-1", read_one},          {"pread-4096", read_page},      {"pread-65536", read_64k},
    {"pwrite-4096", write_page},    {"lseek+read-4096", seek_read}, {"lseek+write-4096", seek_write},
    {"fstat", stat_open},           {"stat", stat_name},            {"stat-5-names", stat_deep},
    {"stat-missing", stat_missing}, {"open+close", open_name},      {"open+close-5-names", open_deep},
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int count, char **words)
{
    if (count < 2 || chdir(words[1]) != 0 || (fd = open("f", O_RDWR | O_CREAT, 0644)) < 0)
        return 1;
    memset(buffer, 1, sizeof buffer);
    if (pwrite(fd, buffer, sizeof buffer, 0) != sizeof buffer)
        return 1;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        double best = 1e18;
        for (int batch = 0; batch < BATCHES; batch++) {
            double start = now();
            for (int call = 0; call < CALLS; call++)
                cases[i].call();
            double each = (now() - start) / CALLS;
            best = each < best ? each : best;
        }
        printf("%s %.0f\n", cases[i].name, best);
    }
    return 0;
}
