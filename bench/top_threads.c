/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Threads for bench_top.py and bench_where.py: top_threads COUNT BUSY. BUSY of them wake up a
 * hundred times a second, the others sleep. Prints a line when all are there, and ends when its
 * standard input does.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *wait_for_ever(void *ctx)
{
    (void)ctx;
    for (;;)
        pause();
    return NULL;
}

static void *wake_often(void *ctx)
{
    const struct timespec rest = {.tv_nsec = 10000000};

    (void)ctx;
    for (;;)
        nanosleep(&rest, NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 10000, busy = argc > 2 ? atol(argv[2]) : 100;
    pthread_attr_t small;
    pthread_t thread;
    char byte;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (long i = 0; i < count; i++) {
        if (pthread_create(&thread, &small, i < busy ? wake_often : wait_for_ever, NULL))
            return perror("pthread_create"), 1;
    }
    printf("%ld\n", count);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return 0;
}
