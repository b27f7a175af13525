/* Reads a byte of each of N megabytes' pages that nobody has written; then writes to some, and reads those. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
    size_t bytes = (size_t)atoi(argc > 1 ? argv[1] : "1") << 20;
    volatile char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    long sum = 0, written = 0;
    for (size_t at = 0; at < bytes; at += 4096)
        sum += memory[at];
    for (size_t at = 0; at < bytes; at += 64 * 4096)
        memory[at] = 1;
    for (size_t at = 0; at < bytes; at += 4096)
        written += memory[at];
    printf("%ld %d\n", sum, written == (long)(bytes / (64 * 4096)));
    return 0;
}
