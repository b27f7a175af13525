/* Crashes in the way that its argument names. */
#include "check.h"

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    volatile int hundred = 100, zero = 0;

    if (!strcmp(how, "segv"))
        *(volatile int *)(uintptr_t)8 = 1;
    if (!strcmp(how, "ill"))
        __asm__ volatile("ud2");
    if (!strcmp(how, "fpe"))
        hundred = hundred / zero;
    if (!strcmp(how, "abort"))
        abort();
    return 0;
}
