/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program that spends known shares of its time in known functions: rounds of one, then
 * the other, each for so much of the thread's own clock. Prints a line a function: its
 * name and the nanoseconds of the thread's clock that were spent in it.
 *
 *   record_shares SECONDS
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOT_INLINE __attribute__((noinline))

static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The same work under names of their own. */
#define BURN(name)                                                                                 \
    NOT_INLINE void name(uint64_t turns);                                                          \
    void name(uint64_t turns)                                                                      \
    {                                                                                              \
        for (uint64_t i = 0; i < turns; i++)                                                       \
            sink = sink * 3 + i;                                                                   \
    }
BURN(burn_half)
BURN(burn_third)
BURN(burn_sixth)

static const struct {
    const char *name;
    void (*burn)(uint64_t turns);
    uint64_t turns;
} parts[] = {
    {"burn_half", burn_half, 900000},
    {"burn_third", burn_third, 600000},
    {"burn_sixth", burn_sixth, 300000},
};

NOT_INLINE void round_of_all(uint64_t *spent);
void round_of_all(uint64_t *spent)
{
    for (size_t i = 0; i < 3; i++) {
        uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

        parts[i].burn(parts[i].turns);
        spent[i] += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
    }
}

int main(int argc, char **argv)
{
    uint64_t spent[3] = {0}, end;
    double seconds = argc > 1 ? atof(argv[1]) : 1;

    end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)(seconds * 1e9);
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        round_of_all(spent);
    for (size_t i = 0; i < 3; i++)
        printf("%s %" PRIu64 "\n", parts[i].name, spent[i]);
    return 0;
}
