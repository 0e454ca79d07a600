/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A thread that waits in three functions in turn, for 60, 30 and 10 hundredths of its time, by a
 * futex with a timeout, and prints at the end how many nanoseconds it measured in each, and the
 * rounds. Built with -O2 -fomit-frame-pointer. Arguments: seconds; milliseconds of a
 * round, which may be fractions.
 */
#include <inttypes.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define HARD __attribute__((noinline))
#else
#define HARD __attribute__((noinline, noclone))
#endif

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t word;
volatile uint64_t spent[3];

HARD static uint64_t wait_for(uint64_t ns)
{
    struct timespec timeout = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    uint64_t before = now();

    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL, 0);
    return now() - before;
}

/* Each does something after the call, so that none is a tail call. */
HARD static void long_wait(uint64_t ns)
{
    spent[0] += wait_for(ns);
}

HARD static void middle_wait(uint64_t ns)
{
    spent[1] += wait_for(ns);
}

HARD static void short_wait(uint64_t ns)
{
    spent[2] += wait_for(ns);
}

int main(int argc, char **argv)
{
    uint64_t round = (uint64_t)((argc > 2 ? strtod(argv[2], NULL) : 100) * 1e6);
    uint64_t end = now() + (argc > 1 ? strtoull(argv[1], NULL, 10) : 2) * 1000000000u;
    unsigned rounds = 0;

    prctl(PR_SET_TIMERSLACK, 1);
    for (; now() < end; rounds++) {
        long_wait(round * 60 / 100);
        middle_wait(round * 30 / 100);
        short_wait(round * 10 / 100);
    }
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %u\n", spent[0], spent[1], spent[2], rounds);
    return 0;
}
