/*
 * Tables 3.1 and 3.2 of the thesis: one character into a buffer.   stdio OPERATION ITERATIONS [time]
 *
 * All operations put their characters into 8,192 bytes that go to /dev/null when they are full.
 */
#define _GNU_SOURCE
#include "../paper/measure.h"
#include <fcntl.h>
#include <synthio.h>

#define BUFFER_BYTES 8192

/* Figure 3.1: pointer and end are words in memory. */
unsigned char plain_buffer[BUFFER_BYTES];
unsigned char *plain_next = plain_buffer, *plain_end = plain_buffer + BUFFER_BYTES;

static __attribute__((noinline, used)) void plain_flush(void)
{
	IGNORE(write(1, plain_buffer, (size_t)(plain_next - plain_buffer)));
	plain_next = plain_buffer;
}

int plain_put(int character);
__asm__(".text\n"
	".globl plain_put\n"
	"plain_put:\n"
	"	mov plain_next(%rip), %rax\n"
	"	mov %dil, (%rax)\n"
	"	inc %rax\n"
	"	mov %rax, plain_next(%rip)\n"
	"	cmp plain_end(%rip), %rax\n"
	"	je 1f\n"
	"	movzbl %dil, %eax\n"
	"	ret\n"
	"1:	push %rdi\n"
	"	call plain_flush\n"
	"	pop %rdi\n"
	"	movzbl %dil, %eax\n"
	"	ret\n");

/* The same in C. */
static __attribute__((noinline)) int compiled_put(int character)
{
	*plain_next++ = (unsigned char)character;
	if (plain_next == plain_end)
		plain_flush();
	return (unsigned char)character;
}

/* The same in Rust: generic.rs. */
struct generic_stream;
extern struct generic_stream GENERIC_STREAM;
int generic_put(int character, struct generic_stream *stream);
size_t generic_write(const char *bytes, size_t count, struct generic_stream *stream);

void generic_flush(const unsigned char *bytes, size_t count)
{
	IGNORE(write(1, bytes, count));
}

static __attribute__((noinline)) int empty(int character)
{
	__asm__ volatile("");
	return character;
}

static int count;

#define LOOP(body)                       \
	do {                             \
		int i = count;           \
		start_ticks();           \
		for (; i--; ) {          \
			body;            \
		}                        \
	} while (0)

/* Volatile, so that the compiler calls what it cannot see, as it does with a stream's code. */
static int (*volatile put)(int);

static void call_put(int (*function)(int))
{
	int (*called)(int);

	put = function;
	called = put;
	LOOP(called('x'));
}

static void run(const char *operation)
{
	int c = 0;

	if (!strcmp(operation, "empty")) {
		call_put(empty);
	} else if (!strcmp(operation, "put_synthesized")) {
		int (*called)(int, SIO *) = sio_stdout->put;
		LOOP(called('x', sio_stdout));
	} else if (!strcmp(operation, "put_assembly")) {
		call_put(plain_put);
	} else if (!strcmp(operation, "put_compiled")) {
		call_put(compiled_put);
	} else if (!strcmp(operation, "put_generic")) {
		int (*volatile function)(int, struct generic_stream *) = generic_put;
		int (*called)(int, struct generic_stream *) = function;
		LOOP(called('x', &GENERIC_STREAM));
	} else if (!strcmp(operation, "generic_fwrite_16")) {
		LOOP(IGNORE(generic_write("0123456789abcdef", 16, &GENERIC_STREAM)));
	} else if (!strcmp(operation, "libc_putchar_unlocked")) {
		LOOP(putchar_unlocked('x'));
	} else if (!strcmp(operation, "libc_putchar")) {
		LOOP(putchar('x'));
	} else if (!strcmp(operation, "synthio_putchar")) {
		LOOP(sio_putchar('x'));
	} else if (!strcmp(operation, "synthio_fputc")) {
		LOOP(sio_fputc('x', sio_stdout));
	} else if (!strcmp(operation, "libc_getchar_unlocked")) {
		LOOP(c |= getchar_unlocked());
	} else if (!strcmp(operation, "libc_getchar")) {
		LOOP(c |= getchar());
	} else if (!strcmp(operation, "synthio_getchar")) {
		LOOP(c |= sio_getchar());
	} else if (!strcmp(operation, "synthio_fgetc")) {
		LOOP(c |= sio_fgetc(sio_stdin));
	} else if (!strcmp(operation, "libc_fwrite_16")) {
		LOOP(IGNORE(fwrite_unlocked("0123456789abcdef", 1, 16, stdout)));
	} else if (!strcmp(operation, "synthio_fwrite_16")) {
		LOOP(IGNORE(sio_fwrite("0123456789abcdef", 1, 16, sio_stdout)));
	} else {
		fprintf(stderr, "error: no operation %s\n", operation);
		exit(2);
	}
	expect(c == 0, "characters of /dev/zero");
}

int main(int argc, char **argv)
{
	int null = open("/dev/null", O_WRONLY), zero = open("/dev/zero", O_RDONLY);

	expect(argc > 2 && null >= 0 && zero >= 0, "usage: stdio OPERATION ITERATIONS [time]");
	count = atoi(argv[2]);
	expect(dup2(null, 1) == 1 && dup2(zero, 0) == 0, "dup2");
	setvbuf(stdout, NULL, _IOFBF, BUFFER_BYTES);
	setvbuf(stdin, NULL, _IOFBF, BUFFER_BYTES);
	expect(sio_setvbuf(sio_stdout, SIO_FULL, BUFFER_BYTES) == 0, "sio_setvbuf");
	run(argv[1]);
	stop_ticks(argc - 1, argv + 1);
	return 0;
}
