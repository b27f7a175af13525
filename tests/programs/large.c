/* Uses as many MiB of memory as it is told: writes into every page and reads all back. */
#include "check.h"

int main(int count, char **arguments)
{
    size_t bytes = count == 2 ? strtoul(arguments[1], NULL, 10) << 20 : 0, wrong = 0;
    char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        puts(failing(-1));
        return 1;
    }
    for (size_t at = 0; at < bytes; at += 4096)
        *(volatile size_t *)(pages + at) = at ^ 0x5a5a5a5a;
    for (size_t at = 0; at < bytes; at += 4096)
        wrong += *(volatile size_t *)(pages + at) != (at ^ 0x5a5a5a5a);
    printf("%zu MiB, %zu pages wrong\n", bytes >> 20, wrong);
    return wrong != 0;
}
