/*
 * One byte is handed to and fro.
 *
 *     handing WAY PAGES TURNS      WAY: pipe, eventfd, socket or threads (a pipe between two of them); each side touches PAGES pages
 *                                  of its own beside each turn
 *
 *     handing spawn COUNT PROGRAM  starts PROGRAM so often, by fork and exec, and waits for it
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

static int to[2], fro[2]; /* each: where to read, where to write */
static int bytes = 1, pages, turns;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static char *room(void)
{
	char *at = mmap(NULL, (pages + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("mmap");
	return at;
}

static void touch(volatile char *at)
{
	for (int page = 0; page < pages; page++)
		at[page * PAGE + page % 64 * 64]++;
}

static void give(const int *way)
{
	unsigned long one = 1;

	if (write(way[1], &one, bytes) != bytes)
		die("write");
}

static void take(const int *way)
{
	unsigned long got;

	if (read(way[0], &got, bytes) != bytes)
		die("read");
}

static void *answer(void *unused)
{
	char *own = room();

	(void)unused;
	for (int turn = 0; turn < turns; turn++) {
		take(to);
		touch(own);
		give(fro);
	}
	return NULL;
}

static void ask(void)
{
	char *own = room();

	for (int turn = 0; turn < turns; turn++) {
		touch(own);
		give(to);
		take(fro);
	}
}

static void open_ways(const char *way)
{
	int pair[2];

	if (strcmp(way, "eventfd") == 0) {
		bytes = 8;
		to[0] = to[1] = eventfd(0, 0);
		fro[0] = fro[1] = eventfd(0, 0);
	} else if (strcmp(way, "socket") == 0) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == -1)
			die("socketpair");
		to[1] = fro[0] = pair[0];
		to[0] = fro[1] = pair[1];
	} else if (pipe(to) == -1 || pipe(fro) == -1) {
		die("pipe");
	}
}

static int spawn(int count, char *program)
{
	for (int i = 0; i < count; i++) {
		int status;
		pid_t child = fork();

		if (child == -1)
			die("fork");
		if (child == 0) {
			execl(program, program, NULL);
			_exit(127);
		}
		waitpid(child, &status, 0);
		if (status != 0)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	if (strcmp(argv[1], "spawn") == 0)
		return spawn(atoi(argv[2]), argv[3]);
	pages = atoi(argv[2]);
	turns = atoi(argv[3]);
	open_ways(argv[1]);
	if (strcmp(argv[1], "threads") == 0) {
		pthread_t other;
		if (pthread_create(&other, NULL, answer, NULL) != 0)
			die("pthread_create");
		ask();
		pthread_join(other, NULL);
		return 0;
	}
	pid_t child = fork();
	if (child == -1)
		die("fork");
	if (child == 0) {
		answer(NULL);
		_exit(0);
	}
	ask();
	waitpid(child, NULL, 0);
	return 0;
}
