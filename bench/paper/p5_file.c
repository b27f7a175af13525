/* Test 5 of the SOSP'89 paper, "R/W file": writes and reads ten blocks of 1 KB, again and again. */
#include "measure.h"
#include <fcntl.h>

#define N 1024

char x[N];

/* One pass whose results are looked at: counts, positions, and the bytes of each block. */
static void checked_pass(int f, int seed)
{
	char back[N];
	int i;

	expect(lseek(f, 0L, SEEK_SET) == 0, "lseek to the start");
	for (i = 0; i < 10; i++) {
		memset(x, seed + i, N);
		expect(write(f, x, N) == N, "write to the file");
	}
	expect(lseek(f, 0L, SEEK_SET) == 0, "lseek to the start");
	for (i = 0; i < 10; i++) {
		memset(x, seed + i, N);
		expect(read(f, back, N) == N, "read from the file");
		expect(memcmp(x, back, N) == 0, "bytes from the file");
	}
	expect(read(f, back, N) == 0, "end of the file");
}

int main(int argc, char **argv)
{
	int f, i, j = iterations(argc, argv, 1000);

	f = open("file", O_RDWR | O_CREAT | O_TRUNC, 0666);
	expect(f >= 0, "open file");
	checked_pass(f, 1);
	start_ticks();
	for (; j--; ) {
		lseek(f, 0L, SEEK_SET);
		for (i = 10; i--; )
			IGNORE(write(f, x, N));
		lseek(f, 0L, SEEK_SET);
		for (i = 10; i--; )
			IGNORE(read(f, x, N));
	}
	stop_ticks(argc, argv);
	checked_pass(f, 20);
	expect(close(f) == 0, "close");
	return 0;
}
