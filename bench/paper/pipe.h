/* Tests 2 to 4 of the SOSP'89 paper, "R/W pipe N": one process writes N bytes and reads them back. */
#include "measure.h"

char x[N];

/* One pass whose results are looked at: the counts, and that the bytes come back. */
static void checked_pass(int fd[2], int seed)
{
	char back[N];
	int i;

	for (i = 0; i < N; i++)
		x[i] = (char)(i * 7 + seed);
	expect(write(fd[1], x, N) == N, "write to the pipe");
	expect(read(fd[0], back, N) == N, "read from the pipe");
	expect(memcmp(x, back, N) == 0, "bytes from the pipe");
}

int main(int argc, char **argv)
{
	int fd[2], i = iterations(argc, argv, 10000);

	expect(pipe(fd) == 0, "pipe");
	checked_pass(fd, 1);
	start_ticks();
	for (; i--; ) {
		IGNORE(write(fd[1], x, N));
		IGNORE(read(fd[0], x, N));
	}
	stop_ticks(argc, argv);
	checked_pass(fd, 2);
	return 0;
}
