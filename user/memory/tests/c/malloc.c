/* What a program may expect of malloc and its kin, with threads that free each other's blocks and forks among them.
 * The first argument is the seed. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

enum { THREADS = 6, SHARED = 64, STEPS = 8000 };

static uint64_t seed;
/* Any thread may take or put a block here. A block begins with its size and a byte that fills the rest. */
static unsigned char *shared[SHARED];

static size_t next(uint64_t *state, size_t limit)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(*state >> 33) % limit;
}

static unsigned char *make(uint64_t *state)
{
	size_t bytes = 16 + next(state, (size_t)1 << next(state, 13)), i;
	unsigned char fill = (unsigned char)next(state, 256), *block;

	if (next(state, 1000) == 0)
		bytes += 2000000;
	switch (next(state, 4)) {
	case 0:
		block = calloc(1, bytes);
		for (i = 0; i < bytes; i++)
			CHECK(block[i] == 0);
		break;
	case 1:
		block = memalign((size_t)32 << next(state, 8), bytes);
		break;
	default:
		block = malloc(bytes);
	}
	CHECK(block != NULL && (uintptr_t)block % 16 == 0 && malloc_usable_size(block) >= bytes);
	memset(block, fill, bytes);
	memcpy(block, &bytes, sizeof bytes);
	return block;
}

static void prove(const unsigned char *block)
{
	size_t bytes, i;

	memcpy(&bytes, block, sizeof bytes);
	for (i = 9; i < bytes; i++)
		CHECK(block[i] == block[8]);
}

static unsigned char *resize(unsigned char *block, uint64_t *state)
{
	size_t old, bytes = 16 + next(state, 20000);

	memcpy(&old, block, sizeof old);
	block = realloc(block, bytes);
	CHECK(block != NULL);
	if (bytes > old)
		memset(block + old, block[8], bytes - old);
	memcpy(block, &bytes, sizeof bytes);
	return block;
}

static void *work(void *argument)
{
	uint64_t state = seed * 31 + (uint64_t)(uintptr_t)argument;
	unsigned char *block;
	int step;

	for (step = 0; step < STEPS; step++) {
		unsigned char **place = &shared[next(&state, SHARED)];
		block = __atomic_exchange_n(place, NULL, __ATOMIC_ACQ_REL);
		if (block && next(&state, 3) == 0) {
			prove(block);
			block = resize(block, &state);
		} else if (block) {
			prove(block);
			free(block);
			block = NULL;
		}
		if (!block)
			block = make(&state);
		free(__atomic_exchange_n(place, block, __ATOMIC_ACQ_REL));
	}
	return NULL;
}

static void forks(void)
{
	int i, status;

	for (i = 0; i < 30; i++) {
		pid_t child = fork();
		if (child == 0) {
			uint64_t state = (uint64_t)i;
			int step;
			alarm(60);
			for (step = 0; step < 300; step++)
				free(make(&state));
			_exit(0);
		}
		CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	}
}

static void limits(void)
{
	volatile size_t most = SIZE_MAX;
	void *block = NULL, *other;

	CHECK(malloc(most) == NULL && errno == ENOMEM);
	CHECK(malloc(most / 2) == NULL && calloc(most / 2, 3) == NULL && realloc(NULL, most - 4096) == NULL);
	CHECK(posix_memalign(&block, 24, 100) == EINVAL && posix_memalign(&block, 4, 100) == EINVAL && block == NULL);
	CHECK(posix_memalign(&block, 1 << 21, 100) == 0 && (uintptr_t)block % (1 << 21) == 0);
	free(block);
	CHECK((block = aligned_alloc(64, 640)) && (uintptr_t)block % 64 == 0);
	free(block);
	CHECK((block = malloc(0)) && (other = malloc(0)) && block != other);
	errno = 77;
	free(block);
	free(other);
	free(malloc(5000000));
	CHECK(errno == 77 && malloc_usable_size(NULL) == 0);
	free(NULL);
	CHECK((block = valloc(1)) && (uintptr_t)block % 4096 == 0);
	free(block);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	uintptr_t i;

	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	limits();
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	forks();
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	for (i = 0; i < SHARED; i++)
		free(shared[i]);
	puts("all as documented");
	return 0;
}
