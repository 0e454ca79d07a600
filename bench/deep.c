/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Computes in the innermost of twelve functions, without frame pointers, until it is killed:
 * bench_where's program whose stacks samplers take.
 */
#include <stdio.h>

static volatile unsigned long sum;
static volatile int goes_on = 1;

__attribute__((noinline)) static unsigned long deep(unsigned left)
{
    unsigned long own = sum;

    if (left) {
        own += deep(left - 1);
        return own + sum; /* no tail call: the function stays on the stack */
    }
    while (goes_on)
        sum += own++;
    return own;
}

int main(void)
{
    puts("ready");
    fflush(stdout);
    return (int)deep(11);
}
