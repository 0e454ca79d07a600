/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Prints how many kHz this processor's time stamp counter has. An emulated x86-64 processor has the
 * same counter, and its kernel would compare it with an emulated clock as it boots: while the
 * emulator had no processor it came to a 25th, and all of the guest's clocks were wrong.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

struct moment {
    uint64_t ns, ticks;
};

static uint64_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Of many tries the one with the least time around the counter: nobody else ran in it. */
static struct moment look(void)
{
    struct moment ret = {0};
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 1000; i++) {
        uint64_t before = now(), ticks = __rdtsc(), took = now() - before;

        if (took < least) {
            least = took;
            ret = (struct moment){before + took / 2, ticks};
        }
    }
    return ret;
}

int main(void)
{
    struct moment first = look(), last;

    do
        last = look();
    while (last.ns - first.ns < 100000000);
    printf("%.0f\n", (double)(last.ticks - first.ticks) * 1e6 / (double)(last.ns - first.ns));
    return 0;
}
