/* /dev/dsp and /dev/audio (the Open Sound System) on a machine with a sound device. What is played is a pattern of frames of which no
 * sample is zero, each another; the suite `audio` looks for it in what the machine's device has recorded, and at what is printed here.
 */
#include "check.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/soundcard.h>

enum { RATE = 44100, FRAME = 4, UNKNOWN = 0x50ff };

static int rate = RATE;

/* The next frame of the pattern. */
static uint32_t next_frame;

static void fill(uint32_t *frames, size_t count)
{
    for (size_t i = 0; i < count; i++)
        frames[i] = ++next_frame * 0x9e3779b9 | 0x00010001;
}

static int ask(int fd, unsigned long request, int value)
{
    int answer = value;
    errno = 0;
    return ioctl(fd, request, &answer) == -1 ? -errno : answer;
}

/* Prints a request, what was asked for, and what came back. */
#define ASK(fd, request, value) printf("%s %#x -> %#x\n", #request, value, ask(fd, request, value))

static int open_dsp(int flags)
{
    int fd = MUST(open("/dev/dsp", O_WRONLY | flags));
    if (ask(fd, SNDCTL_DSP_SETFMT, AFMT_S16_LE) != AFMT_S16_LE || ask(fd, SNDCTL_DSP_CHANNELS, 2) != 2 ||
        ask(fd, SNDCTL_DSP_SPEED, rate) != rate)
        printf("not 16 bits, two channels and %d\n", rate);
    return fd;
}

/* Writes so many frames of the pattern, in pieces of uneven sizes. */
static void play(int fd, size_t frames)
{
    static uint32_t piece[3001];
    for (size_t done = 0, count; done < frames; done += count) {
        count = done % 5 == 0 ? 3001 : done % 3 == 0 ? 17 : 1024;
        if (count > frames - done)
            count = frames - done;
        fill(piece, count);
        const char *bytes = (const char *)piece;
        /* A frame may be cut in two. */
        size_t first = count * FRAME / 2 - 1;
        if (write(fd, bytes, first) != (ssize_t)first ||
            write(fd, bytes + first, count * FRAME - first) != (ssize_t)(count * FRAME - first)) {
            printf("write: %s\n", strerror(errno));
            return;
        }
    }
}

/* The same for a device that takes whole frames, as many as it likes. */
static void play_whole(int fd, size_t frames)
{
    static uint32_t piece[1000];
    for (size_t done = 0; done < frames; done += 1000) {
        size_t bytes = (frames - done < 1000 ? frames - done : 1000) * FRAME;
        fill(piece, bytes / FRAME);
        for (size_t written = 0; written < bytes;)
            written += MUST(write(fd, (char *)piece + written, bytes - written));
    }
}

static audio_buf_info space(int fd)
{
    audio_buf_info info = {0};
    MUST(ioctl(fd, SNDCTL_DSP_GETOSPACE, &info));
    return info;
}

static count_info pointer(int fd)
{
    count_info info = {0};
    MUST(ioctl(fd, SNDCTL_DSP_GETOPTR, &info));
    return info;
}

static void requests(void)
{
    TRY(open("/dev/dsp", O_RDONLY));
    int fd = MUST(open("/dev/dsp", O_RDWR));
    ASK(fd, SOUND_PCM_READ_RATE, 0);
    ASK(fd, SOUND_PCM_READ_BITS, 0);
    ASK(fd, SOUND_PCM_READ_CHANNELS, 0);
    ASK(fd, SNDCTL_DSP_GETFMTS, 0);
    ASK(fd, SNDCTL_DSP_GETCAPS, 0);
    ASK(fd, OSS_GETVERSION, 0);
    ASK(fd, SNDCTL_DSP_SETFMT, AFMT_QUERY);
    ASK(fd, SNDCTL_DSP_SETFMT, AFMT_S16_BE);
    ASK(fd, SNDCTL_DSP_SETFMT, AFMT_MPEG);
    ASK(fd, SNDCTL_DSP_STEREO, 1);
    ASK(fd, SNDCTL_DSP_CHANNELS, 6);
    ASK(fd, SNDCTL_DSP_CHANNELS, 0);
    ASK(fd, SNDCTL_DSP_STEREO, 0);
    ASK(fd, SNDCTL_DSP_CHANNELS, 2);
    static const int rates[] = {0, 4000, 8000, 11025, 22050, 44056, 44100, 48000, 96000, 1 << 30};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        printf("rate %d -> %d\n", rates[i], ask(fd, SNDCTL_DSP_SPEED, rates[i]));
    ask(fd, SNDCTL_DSP_SPEED, RATE);
    ASK(fd, SNDCTL_DSP_GETBLKSIZE, 0);
    ASK(fd, SNDCTL_DSP_SETFRAGMENT, 0x0004000a);
    ASK(fd, SNDCTL_DSP_GETBLKSIZE, 0);
    ASK(fd, SNDCTL_DSP_SETFRAGMENT, 0x7fff0000);
    printf("%d fragments of %d\n", space(fd).fragstotal, space(fd).fragsize);
    ASK(fd, SNDCTL_DSP_SETFRAGMENT, 0x7fff001f);
    printf("%d fragments of %d\n", space(fd).fragstotal, space(fd).fragsize);
    ASK(fd, SNDCTL_DSP_SETFRAGMENT, 0x0000000a);
    ASK(fd, UNKNOWN, 0);
    ASK(fd, SNDCTL_DSP_GETISPACE, 0);
    ASK(fd, SNDCTL_DSP_SETDUPLEX, 0);
    TRY(ioctl(fd, SNDCTL_DSP_SPEED, NULL));
    TRY(ioctl(fd, SNDCTL_DSP_GETOSPACE, 8));
    TRY(ioctl(fd, TIOCGWINSZ, &fd));
    char byte;
    TRY(read(fd, &byte, 1));
    TRY(lseek(fd, 0, SEEK_SET));
    TRY(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
    SHOW(write(fd, &byte, 0));
    close(fd);
    fd = MUST(open("/dev/dsp", O_WRONLY));
    TRY(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
    close(fd);
    fd = MUST(open("/dev/audio", O_WRONLY));
    ASK(fd, SOUND_PCM_READ_RATE, 0);
    ASK(fd, SNDCTL_DSP_SETFMT, AFMT_QUERY);
    ASK(fd, SOUND_PCM_READ_CHANNELS, 0);
    ASK(fd, SNDCTL_DSP_GETBLKSIZE, 0);
    close(fd);
}

/* A second, and what is told of it on its way. */
static void second(void)
{
    int fd = open_dsp(0);
    int most = 0, before = 0, falls = 0;
    for (int i = 0; i < 9; i++) {
        play(fd, 4900);
        int delay = ask(fd, SNDCTL_DSP_GETODELAY, 0);
        count_info info = pointer(fd);
        if (delay > most)
            most = delay;
        falls += info.bytes < before;
        before = info.bytes;
        if (info.bytes + delay != (i + 1) * 4900 * FRAME)
            printf("%d bytes played and %d to come\n", info.bytes, delay);
    }
    printf("at most %d bytes to come, %d falls\n", most, falls);
    TRY(ioctl(fd, SNDCTL_DSP_SYNC, 0));
    count_info info = pointer(fd);
    printf("%d bytes in the end, %d at the place, %d to come\n", info.bytes, info.ptr, ask(fd, SNDCTL_DSP_GETODELAY, 0));
    TRY(close(fd));
}

static void second_at_48000(void)
{
    rate = 48000;
    second();
}

/* The same, closed by nobody. */
static void left_open(void)
{
    play(open_dsp(0), RATE);
}

static void left_open_by_a_child(void)
{
    in_child("child", left_open);
    int fd = open_dsp(0);
    next_frame = RATE;
    play(fd, 100);
    close(fd);
}

/* The figure of this name among the kernel's gauges; -1: there is none. */
static long gauge(const char *name)
{
    static char text[4096];
    int fd = MUST(open("/proc/synthesis/gauges", O_RDONLY));
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    char *found = strstr(text, name);
    return found ? atol(found + strlen(name)) : -1;
}

/* Silence where nothing was written. */
static void be_late(int fd)
{
    for (int i = 0; i < 4; i++) {
        play(fd, 1024 * 3);
        sleep_ms(i == 2 ? 600 : 150);
    }
    TRY(close(fd));
    printf("%ld underruns\n", gauge("\nunderruns "));
}

static void late(void)
{
    be_late(open_dsp(0));
}

/* The device comes round before it is stopped: what it played before must not be heard again. */
static void late_in_a_small_ring(void)
{
    int fd = open_dsp(0);
    MUST(ask(fd, SNDCTL_DSP_SETFRAGMENT, 0x0004000a));
    be_late(fd);
}

static void two(void)
{
    int fd = open_dsp(0);
    TRY(open("/dev/dsp", O_WRONLY));
    TRY(open("/dev/audio", O_WRONLY | O_NONBLOCK));
    int copy = dup(fd);
    play(fd, 2000);
    close(fd);
    TRY(open("/dev/dsp", O_WRONLY));
    TRY(close(copy));
    fd = open_dsp(0);
    play(fd, 2000);
    TRY(close(fd));
}

static int can_write(int fd, int ms)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT | POLLIN};
    return poll(&ready, 1, ms) == 1 && ready.revents == POLLOUT;
}

static void unblocking(void)
{
    int fd = open_dsp(O_NONBLOCK);
    static uint32_t frames[RATE];
    fill(frames, RATE);
    audio_buf_info all = space(fd);
    printf("%d of %d fragments of %d, %d bytes\n", all.fragments, all.fragstotal, all.fragsize, all.bytes);
    printf("ready %d\n", can_write(fd, 0));
    SHOW(write(fd, frames, sizeof frames));
    TRY(write(fd, frames, 4));
    printf("ready %d, %d bytes\n", can_write(fd, 0), space(fd).bytes);
    int events = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLOUT | EPOLLET, .data.fd = fd};
    MUST(epoll_ctl(events, EPOLL_CTL_ADD, fd, &event));
    size_t done = all.bytes;
    for (int turn = 0; done < sizeof frames; turn++) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(fd, &set);
        int ready = turn % 3 == 0   ? can_write(fd, 1000)
                    : turn % 3 == 1 ? select(fd + 1, NULL, &set, NULL, &(struct timeval){.tv_sec = 1})
                                    : epoll_wait(events, &event, 1, 1000);
        if (ready != 1)
            printf("turn %d: %d\n", turn, ready);
        if (space(fd).bytes < all.fragsize)
            printf("turn %d: ready for %d bytes\n", turn, space(fd).bytes);
        ssize_t count = write(fd, (char *)frames + done, sizeof frames - done);
        if (count < all.fragsize && done + count < sizeof frames)
            printf("turn %d: %zd\n", turn, count);
        done += count > 0 ? count : 0;
    }
    TRY(ioctl(fd, SNDCTL_DSP_SYNC, 0));
    close(fd);
    fd = open_dsp(0);
    TRY(ioctl(fd, SNDCTL_DSP_NONBLOCK, 0));
    printf("flag %d\n", (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    close(fd);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

/* A signal ends a write that waits; what it has taken counts. */
static void interrupted(void)
{
    int fd = open_dsp(0);
    static uint32_t frames[2 * RATE];
    fill(frames, 2 * RATE);
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval once = {.it_value.tv_usec = 500000};
    setitimer(ITIMER_REAL, &once, NULL);
    ssize_t count = write(fd, frames, sizeof frames);
    printf("%s, %d alarm\n", count > RATE && count < 2 * RATE * FRAME ? "a part" : "not a part", alarms);
    SHOW(write(fd, (char *)frames + count, sizeof frames - count) - (ssize_t)sizeof frames + count);
    TRY(close(fd));
}

/* Killed in the midst of a write: the device is free at once, and nothing is left behind. */
static void killed(void)
{
    long blocks = 0;
    for (int round = 0; round < 60; round++) {
        int tell[2];
        MUST(pipe(tell));
        pid_t child = MUST(fork());
        if (child == 0) {
            int fd = open_dsp(0);
            static uint32_t silence[RATE * 10];
            write(tell[1], "", 1);
            write(fd, silence, sizeof silence);
            _exit(1);
        }
        char byte;
        MUST(read(tell[0], &byte, 1));
        close(tell[0]);
        close(tell[1]);
        sleep_ms(round % 7 * 20);
        kill(child, SIGKILL);
        int status;
        MUST(waitpid(child, &status, 0));
        close(MUST(open("/dev/dsp", O_WRONLY)));
        long now = gauge("\nheap_blocks ");
        if (round == 10)
            blocks = now;
        if (round == 59)
            printf("blocks of the heap: %s\n", blocks > 0 && now <= blocks + 4 ? "as before" : "more than before");
    }
    int fd = open_dsp(0);
    play(fd, RATE / 4);
    TRY(close(fd));
}

static void resets(void)
{
    int fd = open_dsp(0);
    static uint32_t silence[16384];
    MUST(write(fd, silence, sizeof silence));
    TRY(ioctl(fd, SNDCTL_DSP_RESET, 0));
    printf("%d to come, %d bytes of room\n", ask(fd, SNDCTL_DSP_GETODELAY, 0), space(fd).bytes);
    ASK(fd, SNDCTL_DSP_GETTRIGGER, 0);
    ASK(fd, SNDCTL_DSP_SETTRIGGER, 0);
    ASK(fd, SNDCTL_DSP_GETTRIGGER, 0);
    play(fd, 10000);
    sleep_ms(300);
    printf("held back: %d to come\n", ask(fd, SNDCTL_DSP_GETODELAY, 0));
    ASK(fd, SNDCTL_DSP_SETFRAGMENT, 0x0004000a);
    ASK(fd, SNDCTL_DSP_SETTRIGGER, PCM_ENABLE_OUTPUT);
    while (ask(fd, SNDCTL_DSP_GETODELAY, 0) > 0)
        sleep_ms(10);
    printf("%d bytes played\n", pointer(fd).bytes);
    TRY(ioctl(fd, SNDCTL_DSP_SYNC, 0));
    play(fd, 100);
    sleep_ms(300);
    printf("less than a fragment: %d to come\n", ask(fd, SNDCTL_DSP_GETODELAY, 0));
    TRY(ioctl(fd, SNDCTL_DSP_POST, 0));
    sleep_ms(300);
    printf("posted: %d to come\n", ask(fd, SNDCTL_DSP_GETODELAY, 0));
    TRY(close(fd));
}

/* 8,000 codes of µ-law, the same mono in 8 bits at 16,000, and 16 bits mono with the high byte first. */
static void formats(void)
{
    static unsigned char codes[8000];
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = (i * 97 + 1) % 251;
    int fd = MUST(open("/dev/audio", O_WRONLY));
    SHOW(write(fd, codes, sizeof codes));
    /* What was written means what it meant when it was. */
    printf("%d %d\n", ask(fd, SNDCTL_DSP_SETFMT, AFMT_U8), ask(fd, SNDCTL_DSP_SPEED, 16000));
    SHOW(write(fd, codes, sizeof codes));
    printf("%d\n", ask(fd, SNDCTL_DSP_SETFMT, AFMT_S16_BE));
    SHOW(write(fd, codes, sizeof codes));
    TRY(close(fd));
}

/* What is written to the papers' D/A converter is heard, too. */
static void converter(void)
{
    int fd = MUST(open("/dev/da", O_WRONLY));
    TRY(open("/dev/dsp", O_WRONLY));
    play_whole(fd, RATE);
    TRY(close(fd));
    fd = open_dsp(0);
    TRY(open("/dev/da", O_WRONLY));
    close(fd);
}

static const struct test tests[] = {
    {"requests", requests},
    {"second", second},
    {"second_at_48000", second_at_48000},
    {"left_open", left_open},
    {"left_open_by_a_child", left_open_by_a_child},
    {"late", late},
    {"late_in_a_small_ring", late_in_a_small_ring},
    {"two", two},
    {"unblocking", unblocking},
    {"interrupted", interrupted},
    {"killed", killed},
    {"resets", resets},
    {"formats", formats},
    {"converter", converter},
};

CHECK_MAIN(tests)
