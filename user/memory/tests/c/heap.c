/* The functions of synthmem.h: C, and C++. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <synthmem.h>
#include "check.h"

static uint64_t state = 1;

static size_t below(size_t limit)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(state >> 33) % limit;
}

static void heap(enum smem_nodes nodes)
{
	enum { LIVE = 200 };
	static unsigned char *blocks[LIVE];
	static size_t sizes[LIVE];
	smem_heap *heap = smem_heap_new(4 << 20, nodes);
	struct smem_measure measure;
	size_t step, at, i;

	CHECK(heap != NULL);
	for (step = 0; step < 20000; step++) {
		at = below(LIVE);
		for (i = 0; blocks[at] && i < sizes[at]; i++)
			CHECK(blocks[at][i] == (unsigned char)at);
		CHECK(smem_free(heap, blocks[at]) == 0);
		sizes[at] = below(1500);
		if (step % 7 == 0) {
			blocks[at] = (unsigned char *)smem_alloc_aligned(heap, 256, sizes[at]);
			CHECK((uintptr_t)blocks[at] % 256 == 0);
		} else {
			blocks[at] = (unsigned char *)smem_alloc(heap, sizes[at]);
			CHECK((uintptr_t)blocks[at] % 16 == 0);
		}
		CHECK(blocks[at] != NULL && smem_usable(heap, blocks[at]) >= sizes[at]);
		if (step % 5 == 0 && smem_resize(heap, blocks[at], sizes[at] + 100) == 0)
			sizes[at] += 100;
		memset(blocks[at], (int)at, sizes[at]);
	}
	CHECK(smem_alloc(heap, 5 << 20) == NULL && errno == ENOMEM);
	CHECK(smem_alloc_aligned(heap, 48, 1) == NULL && errno == EINVAL);
	CHECK(smem_free(heap, blocks[0] + 16) == -1 && errno == EINVAL);
	CHECK(smem_free(heap, &measure) == -1);
	smem_measure(heap, &measure);
	CHECK(measure.used > 0 && measure.used + measure.free == measure.spread && measure.largest <= measure.free);
	for (at = 0; at < LIVE; at++) {
		CHECK(smem_free(heap, blocks[at]) == 0);
		CHECK(smem_free(heap, blocks[at]) == (blocks[at] ? -1 : 0)); /* twice */
		blocks[at] = NULL;
	}
	smem_measure(heap, &measure);
	CHECK(measure.used == 0 && measure.spread == 0);
	smem_heap_delete(heap);
}

static void routines(void)
{
	smem_routines *routines = smem_routines_new(1 << 16);
	unsigned char from[300], to[300];
	size_t bytes, i;

	CHECK(routines != NULL);
	for (i = 0; i < sizeof from; i++)
		from[i] = (unsigned char)(i * 7 + 1);
	for (bytes = 0; bytes < 300; bytes += 1 + bytes / 4) {
		smem_copy *copy = smem_copier(routines, bytes, 0);
		smem_same *same = smem_comparer(routines, from, bytes);
		CHECK(copy != NULL && same != NULL);
		memset(to, 0, sizeof to);
		copy(to, from);
		CHECK(memcmp(to, from, bytes) == 0 && (bytes == sizeof to || to[bytes] == 0));
		CHECK(same(to, bytes) == 1 && same(to, bytes + 1) == 0);
		for (i = 0; i < bytes; i++) {
			to[i] ^= 0x20;
			CHECK(same(to, bytes) == 0);
			to[i] ^= 0x20;
		}
	}
	while (smem_copier(routines, 500, 0) != NULL)
		;
	CHECK(errno == ENOMEM);
	smem_routines_delete(routines);
}

int main(void)
{
	heap(SMEM_WORDS);
	heap(SMEM_CODE);
	routines();
	smem_heap_delete(NULL);
	puts("all as documented");
	return 0;
}
