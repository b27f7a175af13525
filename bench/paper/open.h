/* Tests 6 and 7 of the SOSP'89 paper, "open D/close". (The paper's loop names /dev/null where it means D.) */
#include "measure.h"
#include <fcntl.h>

/* One pass whose results are looked at: the lowest descriptor, and gone after close. */
static void checked_pass(void)
{
	int f = open(D, O_RDONLY);

	expect(f >= 0, "open " D);
	expect(close(f) == 0, "close " D);
	expect(close(f) == -1 && errno == EBADF, "close what is closed");
	expect(open(D, O_RDONLY) == f, "the lowest free descriptor");
	expect(close(f) == 0, "close " D);
}

int main(int argc, char **argv)
{
	int f, i = iterations(argc, argv, 10000);

	checked_pass();
	start_ticks();
	for (; i--; ) {
		f = open(D, O_RDONLY);
		close(f);
	}
	stop_ticks(argc, argv);
	checked_pass();
	return 0;
}
