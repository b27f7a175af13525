/*
 * A copy between two buffers as the routines of pipes, files and terminals can make it (S-88, ADR 31), one way and length per
 * operation:
 *     copy WAY_LENGTH ITERATIONS [time]
 * See ../paper/measure.h for what "time" prints. Ways:
 *     rep       rep movsq, then rep movsb for what is left (MoveMany)
 *     unrolled  blocks of 128 bytes without a loop inside, entered by a computed jump (the paper's); then single bytes
 *     sorted    by the class of the length: moves that overlap in the middle up to 32 bytes, then rep movsq (MoveSorted)
 *     pipe      a write into a pipe and a read of the same
 * Two buffers take turns, so that a load does not wait for the store before it.
 */
#define _GNU_SOURCE
#include "../paper/measure.h"

#define LENGTH_MAX 4096

static char from[2][LENGTH_MAX + 64], to[2][LENGTH_MAX + 64];

/* In: rdi = to, rsi = from, rdx = bytes. */
void copy_rep(void *to, const void *from, unsigned long bytes);
void copy_unrolled(void *to, const void *from, unsigned long bytes);
void copy_sorted(void *to, const void *from, unsigned long bytes);

__asm__(".text\n"
	".balign 64\n"
	"copy_rep:\n"
	"	mov %edx, %ecx\n"
	"	shr $3, %ecx\n"
	"	rep movsq\n"
	"	test $7, %dl\n"
	"	jz 1f\n"
	"	mov %edx, %ecx\n"
	"	and $7, %ecx\n"
	"	rep movsb\n"
	"1:	ret\n"

	".balign 64\n"
	"copy_unrolled:\n"
	"	mov %edx, %ecx\n"
	"	shr $7, %ecx\n"
	"	inc %ecx\n"
	"	mov %edx, %r8d\n"
	"	and $0x78, %r8d\n"
	"	add %r8, %rsi\n"
	"	add %r8, %rdi\n"
	"	lea 2f(%rip), %r9\n"
	"	sub %r8, %r9\n"
	"	jmp *%r9\n"
	"1:	sub $-128, %rsi\n"
	"	sub $-128, %rdi\n"
	".set at, -128\n"
	".rept 16\n"
	"	mov at(%rsi), %rax\n"
	"	mov %rax, at(%rdi)\n"
	".set at, at + 8\n"
	".endr\n"
	"2:	dec %ecx\n"
	"	jnz 1b\n"
	"	and $7, %edx\n"
	"	jz 4f\n"
	"3:	movzbl -1(%rsi, %rdx), %eax\n"
	"	mov %al, -1(%rdi, %rdx)\n"
	"	dec %edx\n"
	"	jnz 3b\n"
	"4:	ret\n"

	".balign 64\n"
	"copy_sorted:\n"
	"	lea -40(%rdx), %ecx\n"
	"	ror $3, %ecx\n"
	"	cmp $8187, %ecx\n"
	"	jbe 7f\n"
	"	cmp $32, %edx\n"
	"	ja 6f\n"
	"	cmp $8, %edx\n"
	"	jb 5f\n"
	"	mov (%rsi), %rcx\n"
	"	mov %rcx, (%rdi)\n"
	"	cmp $16, %edx\n"
	"	jbe 4f\n"
	"	mov 8(%rsi), %rcx\n"
	"	mov %rcx, 8(%rdi)\n"
	"	mov -16(%rsi, %rdx), %rcx\n"
	"	mov %rcx, -16(%rdi, %rdx)\n"
	"4:	mov -8(%rsi, %rdx), %rcx\n"
	"	mov %rcx, -8(%rdi, %rdx)\n"
	"	jmp 9f\n"
	"5:	mov %edx, %ecx\n"
	"	rep movsb\n"
	"	jmp 9f\n"
	"6:	mov -8(%rsi, %rdx), %rcx\n"
	"	mov %rcx, -8(%rdi, %rdx)\n"
	"	mov %edx, %ecx\n"
	"	shr $3, %ecx\n"
	"	jmp 8f\n"
	"7:	add $5, %ecx\n"
	"8:	rep movsq\n"
	"9:	ret\n");

static int count;

static void through_pipe(void *to, const void *from, unsigned long bytes)
{
	static int ends[2];

	if (!ends[0])
		expect(pipe(ends) == 0, "pipe");
	IGNORE(write(ends[1], from, bytes));
	IGNORE(read(ends[0], to, bytes));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*copy)(void *, const void *, unsigned long);
	} ways[] = { { "rep_", copy_rep }, { "unrolled_", copy_unrolled }, { "sorted_", copy_sorted }, { "pipe_", through_pipe } };

	expect(argc > 2, "usage: copy WAY_LENGTH ITERATIONS [time]");
	count = atoi(argv[2]);
	for (unsigned way = 0; way < sizeof(ways) / sizeof(*ways); way++) {
		size_t name = strlen(ways[way].name);
		unsigned long length;

		if (strncmp(argv[1], ways[way].name, name))
			continue;
		length = atoi(argv[1] + name);
		expect(length >= 1 && length <= LENGTH_MAX, "length");
		for (int at = 0; at < LENGTH_MAX + 64; at++)
			from[0][at] = from[1][at] = (char)(at * 7 + 1);
		ways[way].copy(to[0], from[0], length);
		start_ticks();
		for (int i = count; i--;)
			ways[way].copy(to[i & 1], from[i & 1], length);
		stop_ticks(argc - 1, argv + 1);
		expect(!memcmp(to[0], from[0], length) && !to[0][length], "the copy");
		return 0;
	}
	fprintf(stderr, "error: no operation %s\n", argv[1]);
	return 2;
}
