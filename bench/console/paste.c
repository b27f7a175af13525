/* Cost of text that comes to a terminal: time-stamp counts a byte, which under --icount are instructions.
 *
 *   paste [BYTES [PIECE [cat|sink|quiet|keys]]]
 *
 * The parent pastes lines of 60 bytes into a pseudo terminal, PIECE bytes a write, and takes what the terminal shows. The
 * child reads lines there and writes them again (cat), or only reads (sink), without echo (quiet), without lines either (keys). "arriving" is what passes
 * inside the writes alone: the line editor and its echo. PIECE 1 is typing.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { LINE = 60, MOST = 1 << 20 };

static char text[MOST], shown[1 << 16];

static void run_child(int master, const char *name, int echoes)
{
	/* A session of its own, with the terminal as its own: then lines may be read in code. */
	int tty = setsid() < 0 ? -1 : open(name, O_RDWR);
	ssize_t bytes;

	close(master);
	ioctl(tty, TIOCSCTTY, 0);
	while ((bytes = read(tty, shown, 4096)) > 0)
		if (echoes && write(tty, shown, bytes) != bytes)
			exit(1);
	exit(0);
}

int main(int count, char **words)
{
	long bytes = count > 1 ? atol(words[1]) : 1 << 16;
	long piece = count > 2 ? atol(words[2]) : 1024;
	const char *who = count > 3 ? words[3] : "cat";
	int cat = !strcmp(who, "cat"), keys = !strcmp(who, "keys"), quiet = keys || !strcmp(who, "quiet");
	int master = open("/dev/ptmx", O_RDWR);
	unsigned long long inside = 0, start, before;
	struct termios settings;

	bytes = bytes > MOST ? MOST : bytes / LINE * LINE;
	if (master < 0 || grantpt(master) || unlockpt(master) || tcgetattr(master, &settings))
		return perror("/dev/ptmx"), 1;
	for (long at = 0; at < bytes; at++)
		text[at] = at % LINE == LINE - 1 ? '\n' : " abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ"[at % 54];
	if (quiet) {
		settings.c_lflag &= ~(keys ? ECHO | ICANON : ECHO);
		tcsetattr(master, TCSANOW, &settings);
	}
	if (fork() == 0)
		run_child(master, ptsname(master), cat);

	start = __builtin_ia32_rdtsc();
	for (long at = 0, expected = 0, seen = 0; at < bytes; at += piece) {
		long now = bytes - at < piece ? bytes - at : piece, lines = (at + now) / LINE;

		before = __builtin_ia32_rdtsc();
		if (write(master, text + at, now) != now)
			return perror("write"), 1;
		inside += __builtin_ia32_rdtsc() - before;
		expected = (quiet ? 0 : at + now + lines) + (cat ? lines * (LINE + 1) : 0);
		while (seen < expected) {
			ssize_t came = read(master, shown, sizeof shown);
			if (came <= 0)
				return perror("read"), 1;
			seen += came;
		}
	}
	start = __builtin_ia32_rdtsc() - start;
	printf("%ld bytes, %ld a write, %s: %.1f a byte, %.1f of them arriving\n", bytes, piece, who, (double)start / bytes,
	       (double)inside / bytes);
	close(master);
	wait(NULL);
	return 0;
}
