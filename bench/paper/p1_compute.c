/* Test 1 of the SOSP'89 paper, "compute": Hofstadter's Q sequence, to calibrate the comparison. */
#include "measure.h"

#define N 500000

int x[N];

void g(void)
{
	int i;

	x[0] = x[1] = 1;
	for (i = 2; i < N; i++)
		x[i] = x[i - x[i - 1]] + x[i - x[i - 2]];
}

int main(int argc, char **argv)
{
	int i = iterations(argc, argv, 5);

	start_ticks();
	for (; i--; )
		g();
	stop_ticks(argc, argv);
	printf("%d\n%d\n", x[N - 2], x[N - 1]);
	return 0;
}
