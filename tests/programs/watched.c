/* For gdb: a word that one of two threads writes, while the other one sleeps. */
#include <pthread.h>
#include <stdio.h>

volatile long watched, other;

static void *second(void *nothing)
{
    for (int i = 0; i < 5; i++) {
        other += i;
        watched = i + 1;
        other++;
    }
    return nothing;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, second, NULL);
    pthread_join(thread, NULL);
    printf("end %ld\n", watched);
    return 0;
}
