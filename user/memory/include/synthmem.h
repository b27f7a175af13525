/* Memory with the papers' methods, for any Linux program: a fast-fit heap whose tree of free blocks can be code, and copies and
 * comparisons that are written for one length or one text. See synthmem(3). Link with -lsynthmem.
 *
 * Nothing here has a lock: one thread at a time may use a heap or a room for routines. */
#ifndef SYNTHMEM_H
#define SYNTHMEM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#define SMEM_NOTHROW noexcept
#else
#define SMEM_NOTHROW
#endif

typedef struct smem_heap smem_heap;

/* How the tree of free blocks is kept. */
enum smem_nodes { SMEM_WORDS, SMEM_CODE };

/* How full a heap is, in bytes. */
struct smem_measure {
	size_t used;	/* blocks that are given out, with their headers */
	size_t free;	/* blocks in the tree */
	size_t largest; /* the largest of them */
	size_t depth;	/* how deep the tree is */
	size_t spread;	/* up to the end of the last block */
};

/* A heap of at most `bytes`. NULL and errno: the system has no memory, or refuses code. */
smem_heap *smem_heap_new(size_t bytes, enum smem_nodes nodes) SMEM_NOTHROW;
/* Its blocks are gone, too. */
void smem_heap_delete(smem_heap *heap) SMEM_NOTHROW;
/* NULL and ENOMEM: there is no room. */
void *smem_alloc(smem_heap *heap, size_t bytes) SMEM_NOTHROW;
/* The same, aligned for `align`, a power of two; EINVAL if it is none. */
void *smem_alloc_aligned(smem_heap *heap, size_t align, size_t bytes) SMEM_NOTHROW;
/* 0, or -1 and EINVAL: this is no block that was given. */
int smem_free(smem_heap *heap, void *block) SMEM_NOTHROW;
/* Larger or smaller where it is: 0, or -1 and ENOMEM: it is as it was. */
int smem_resize(smem_heap *heap, void *block, size_t bytes) SMEM_NOTHROW;
/* Bytes that fit in a block; 0: it is none. */
size_t smem_usable(smem_heap *heap, const void *block) SMEM_NOTHROW;
void smem_measure(smem_heap *heap, struct smem_measure *into) SMEM_NOTHROW;

typedef struct smem_routines smem_routines;
/* Copies as many bytes as it was written for; the two places do not overlap. */
typedef void smem_copy(void *to, const void *from);
/* 1: the bytes are the text it was written for; 0: they are not. */
typedef int smem_same(const void *bytes, size_t count);

/* Room for code of so many bytes, in the low 2 GB. NULL and errno: as smem_heap_new. */
smem_routines *smem_routines_new(size_t bytes) SMEM_NOTHROW;
/* Its routines are gone, too. */
void smem_routines_delete(smem_routines *routines) SMEM_NOTHROW;
/* Writes a routine; `aligned`: both places will be multiples of 16. NULL and ENOMEM: the room is full. */
smem_copy *smem_copier(smem_routines *routines, size_t bytes, int aligned) SMEM_NOTHROW;
smem_same *smem_comparer(smem_routines *routines, const void *text, size_t bytes) SMEM_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif
