/* Random writes to descriptor 1, through write, writev and a fork's copy, with settings that change in between if it is a
   terminal. What comes out must be the same with and without synthesized code: usage: console SEED CALLS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

static unsigned long long state;

static unsigned below(unsigned limit) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(state >> 33) % limit;
}

static char byte(void) {
    static const char specials[] = "\n\n\n\r\t\t\b\033\001\x7f\xc3\xa9\x80\xff";
    unsigned kind = below(40);
    if (kind < sizeof specials - 1) return specials[kind];
    return (char)(32 + below(95));
}

static void change_settings(const struct termios *usual) {
    struct termios t = *usual;
    switch (below(6)) {
    case 0: t.c_oflag |= XTABS; break;
    case 1: t.c_oflag &= ~OPOST; break;
    case 2: t.c_oflag |= OLCUC; break;
    case 3: t.c_iflag ^= IUTF8; break;
    case 4: t.c_lflag |= TOSTOP; break;
    }
    tcsetattr(1, TCSANOW, &t);
}

int main(int argc, char **argv) {
    state = argc > 1 ? strtoull(argv[1], 0, 0) : 1;
    int calls = argc > 2 ? atoi(argv[2]) : 500;
    struct termios usual;
    int is_terminal = tcgetattr(1, &usual) == 0;
    long page = 4096;
    /* The last bytes in front of a page that is not there. */
    char *area = mmap(0, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(area + 3 * page, page);
    for (int i = 0; i < calls; i++) {
        unsigned count = below(4) ? below(100) : below(below(8) ? 2200 : 4400);
        char *from = below(3) ? area + below(5000) : area + 3 * page - count;
        for (unsigned at = 0; at < count; at++) from[at] = below(8) ? (char)('a' + at % 26) : byte();
        if (is_terminal && below(10) == 0) change_settings(&usual);
        if (below(12) == 0) {
            struct iovec parts[2] = {{from, count / 2}, {from + count / 2, count - count / 2}};
            writev(1, parts, 2);
        } else if (below(30) == 0) {
            /* Only Linux's answer to a range that leaves the memory is not the same everywhere; what is sent is. */
            char reply[32];
            long done = write(1, area + 3 * page - 5, 5 + below(20));
            write(1, reply, snprintf(reply, sizeof reply, "[%ld]", done));
        } else {
            for (unsigned done = 0; done < count;) {
                long part = write(1, from + done, count - done);
                if (part <= 0) return 1;
                done += part;
            }
        }
    }
    if (is_terminal) tcsetattr(1, TCSANOW, &usual);
    write(1, "\tend\n", 5);
    return 0;
}
