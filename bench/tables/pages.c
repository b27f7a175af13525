/*
 * Thesis, table 7.4: what faults and pages cost, one operation per row:
 *     pages OPERATION ITERATIONS [time]
 * See ../paper/measure.h for what "time" prints. Only what the row is about is inside the readings of the counter; the pages are
 * got and given back between them, some at a time.
 */
#define _GNU_SOURCE
#include "../paper/measure.h"
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE 4096
/* The idle thread keeps 256 pages zeroed at most: fewer are taken at a time, many more where none shall be left. */
#define FEW 200
#define MANY 4096

static int count;
static uint64_t ticks, begun;

static void start(void)
{
	begun = __builtin_ia32_rdtsc();
}

static void stop(void)
{
	ticks += __builtin_ia32_rdtsc() - begun;
}

static char *map(long pages, int file)
{
	int flags = MAP_PRIVATE | (file < 0 ? MAP_ANONYMOUS : 0);
	char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags, file, 0);

	expect(at != MAP_FAILED, "mmap");
	/* One page at a time, on Linux too. */
	IGNORE(madvise(at, pages * PAGE, MADV_NOHUGEPAGE));
	return at;
}

static void read_all(const volatile char *at, long pages)
{
	for (; pages--; at += PAGE)
		(void)*at;
}

static void write_all(volatile char *at, long pages)
{
	for (; pages--; at += PAGE)
		*at = 1;
}

static void unmap(char *at, long pages)
{
	expect(munmap(at, pages * PAGE) == 0, "munmap");
}

/* The page of zeros that all share is mapped: a fault with the least to do behind it. */
static void op_fault(long pages)
{
	char *at = map(pages, -1);

	start();
	read_all(at, pages);
	stop();
	unmap(at, pages);
}

/* After a while in which the machine had nothing to do. */
static void op_zeroed(long pages)
{
	struct timespec while_idle = { 0, 3000000 };
	char *at = map(pages, -1);

	nanosleep(&while_idle, NULL);
	start();
	write_all(at, pages);
	stop();
	unmap(at, pages);
}

/* What was zeroed ahead has been used up before. */
static void op_zeroing(long pages)
{
	char *first = map(FEW * 2, -1), *at = map(pages, -1);

	write_all(first, FEW * 2);
	start();
	write_all(at, pages);
	stop();
	unmap(at, pages);
	unmap(first, FEW * 2);
}

/* A page that another shows is written: the fault and the copy. */
static void op_copy(long pages)
{
	static int file = -1;
	char *at;

	if (file < 0) {
		char page[PAGE];

		memset(page, 1, PAGE);
		file = memfd_create("pages", 0);
		for (int i = 0; i < MANY; i++)
			expect(write(file, page, PAGE) == PAGE, "write");
	}
	at = map(pages, file);
	read_all(at, pages);
	start();
	write_all(at, pages);
	stop();
	expect(at[1] == 1 && at[pages * PAGE - 1] == 1, "copied");
	unmap(at, pages);
}

static void op_free(long pages)
{
	char *at = map(pages, -1);

	write_all(at, pages);
	start();
	unmap(at, pages);
	stop();
}

static const struct {
	const char *name;
	void (*run)(long pages);
	long at_once;
} operations[] = {
	{ "fault", op_fault, MANY },
	{ "zeroed", op_zeroed, FEW },
	{ "zeroing", op_zeroing, MANY },
	{ "copy", op_copy, MANY },
	{ "free", op_free, MANY },
};

int main(int argc, char **argv)
{
	char line[60];

	count = argc > 2 ? atoi(argv[2]) : 1;
	for (size_t i = 0; argc > 2 && i < sizeof operations / sizeof operations[0]; i++) {
		if (strcmp(argv[1], operations[i].name) != 0)
			continue;
		for (long left = count, part; left > 0; left -= part) {
			part = left < operations[i].at_once ? left : operations[i].at_once;
			operations[i].run(part);
		}
		if (argc > 3 && strcmp(argv[3], "time") == 0)
			IGNORE(write(2, line, snprintf(line, sizeof line, "ticks %llu\n", (unsigned long long)ticks)));
		return 0;
	}
	fprintf(stderr, "usage: pages fault|zeroed|zeroing|copy|free ITERATIONS [time]\n");
	return 2;
}
