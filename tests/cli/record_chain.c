/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Runs at the end of a known chain of calls, which leads through the C library, and now and then
 * sleeps in another one; compiled without frame pointers.
 *
 *   record_chain SECONDS
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A function that is called as it stands there. */
#ifdef __clang__
#define OF_ITS_OWN __attribute__((noinline, optnone))
#else
#define OF_ITS_OWN __attribute__((noipa))
#endif

static volatile uint64_t sink;

OF_ITS_OWN static uint64_t leaf_spins(uint64_t from)
{
    for (int i = 0; i < 20000; i++)
        from = from * 6364136223846793005u + (uint64_t)i;
    sink = from;
    return from;
}

OF_ITS_OWN static uint64_t middle_handles(uint64_t from)
{
    char bytes[300];
    uint64_t sum = 0;

    memset(bytes, (int)from, sizeof(bytes));
    for (int i = 0; i < 10; i++)
        sum += leaf_spins(from + (uint64_t)bytes[i * 20]);
    return sum + (uint64_t)bytes[3];
}

OF_ITS_OWN static int compare_serves(const void *left, const void *right)
{
    return (int)((middle_handles(*(const uint64_t *)left) & 1) -
                 (middle_handles(*(const uint64_t *)right) & 1));
}

OF_ITS_OWN static void rests_between(void)
{
    const struct timespec rest = {0, 20000000};

    nanosleep(&rest, NULL);
    sink++;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    struct timespec used;

    do {
        uint64_t numbers[] = {5, 3, 1, 4, 2, 6, 8, 7};

        for (int i = 0; i < 10; i++)
            qsort(numbers, 8, sizeof(*numbers), compare_serves);
        rests_between();
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    } while ((double)used.tv_sec + (double)used.tv_nsec / 1e9 < seconds);
    return 0;
}
