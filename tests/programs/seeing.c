/* Something to look at, for the suite `seeing`.
 *
 *   seeing calls N     N times getppid, then the end
 *   seeing wait        a pipe with 300 bytes in it (descriptors 3 and 4), a child that reads from an empty one, and a
 *                      parent that asks for its parent's number again and again; prints `ready` and runs until it is ended
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void ask(int times)
{
    for (int i = 0; i < times; i++)
        syscall(SYS_getppid);
}

static int wait_to_be_seen(void)
{
    int full[2], empty[2];
    char bytes[100];
    memset(bytes, 'x', sizeof bytes);
    if (pipe(full) || pipe(empty))
        return 1;
    for (int i = 0; i < 3; i++)
        if (write(full[1], bytes, sizeof bytes) != sizeof bytes)
            return 1;
    pid_t child = fork();
    if (child == 0) {
        close(full[0]);
        close(full[1]);
        close(empty[1]);
        _exit(read(empty[0], bytes, 1) != 1);
    }
    if (child < 0 || write(1, "ready\n", 6) != 6)
        return 1;
    for (;;) {
        ask(10);
        usleep(2000);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "calls")) {
        ask(atoi(argv[2]));
        return 0;
    }
    if (argc == 2 && !strcmp(argv[1], "wait"))
        return wait_to_be_seen();
    fprintf(stderr, "usage: seeing calls N | wait\n");
    return 2;
}
