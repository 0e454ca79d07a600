/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Spends a thread's time in a function whose symbol is a C++ compiler's, without one.
 *
 *   record_mangled SECONDS
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) void spin(int turns) __asm__("_ZN4demo4spinEi");

static volatile uint64_t sink;

void spin(int turns)
{
    for (int i = 0; i < turns; i++)
        sink = sink * 3 + 1;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    struct timespec used;

    do {
        spin(100000);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    } while ((double)used.tv_sec + (double)used.tv_nsec / 1e9 < seconds);
    return 0;
}
