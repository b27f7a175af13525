/*
 * The first and only program of the Linux guest: runs what /runs names, reports on the serial
 * line, powers off. One line of /runs is one program with its arguments, separated by spaces.
 *
 * Report of one run, bytes unchanged:  @run STATUS OUT_BYTES ERR_BYTES\n <stdout> <stderr>
 * after the last one:                  @end\n
 * STATUS is the exit status, or 128 + the signal that ended the program.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define ARGUMENTS_MAX 16

static int serial;

static void send(const char *bytes, size_t count)
{
	while (count > 0) {
		ssize_t sent = write(serial, bytes, count);
		if (sent <= 0)
			return;
		bytes += sent;
		count -= sent;
	}
}

static void send_file(const char *path)
{
	char block[4096];
	ssize_t got;
	int f = open(path, O_RDONLY);

	while ((got = read(f, block, sizeof block)) > 0)
		send(block, got);
	close(f);
}

static long size_of(const char *path)
{
	struct stat about;

	return stat(path, &about) == 0 ? (long)about.st_size : 0;
}

/* The serial line, raw, as the controlling terminal: test 7 opens /dev/tty. */
static void take_terminal(void)
{
	struct termios raw;

	setsid();
	serial = open("/dev/ttyS0", O_RDWR);
	ioctl(serial, TIOCSCTTY, 1);
	if (tcgetattr(serial, &raw) == 0) {
		cfmakeraw(&raw);
		tcsetattr(serial, TCSANOW, &raw);
	}
}

static void become(char *line)
{
	char *arguments[ARGUMENTS_MAX + 1];
	int n = 0;

	for (char *word = strtok(line, " "); word && n < ARGUMENTS_MAX; word = strtok(NULL, " "))
		arguments[n++] = word;
	arguments[n] = NULL;
	dup2(open("/dev/null", O_RDONLY), 0);
	dup2(open("/out", O_WRONLY | O_CREAT | O_TRUNC, 0666), 1);
	dup2(open("/err", O_WRONLY | O_CREAT | O_TRUNC, 0666), 2);
	for (int f = 3; f < 16; f++)
		close(f);
	if (n > 0)
		execv(arguments[0], arguments);
	perror("exec");
	_exit(127);
}

static void run(char *line)
{
	char head[80];
	int status = 0;
	pid_t child;

	/* Lets the kernel finish what boot and the last run left for later; under sleep=off this takes no time. */
	usleep(200000);
	child = fork();
	if (child == 0)
		become(line);
	waitpid(child, &status, 0);
	status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	send(head, snprintf(head, sizeof head, "@run %d %ld %ld\n", status, size_of("/out"), size_of("/err")));
	send_file("/out");
	send_file("/err");
}

int main(void)
{
	char line[4096];
	FILE *runs;

	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
	take_terminal();
	runs = fopen("/runs", "re");
	if (chdir("/tmp") == 0 && runs)
		while (fgets(line, sizeof line, runs)) {
			line[strcspn(line, "\n")] = '\0';
			run(line);
		}
	send("@end\n", 5);
	tcdrain(serial);
	reboot(RB_POWER_OFF);
	return 0;
}
