/* SPDX-License-Identifier: BSD-2-Clause
 *
 * For test_record.py: a program whose time is spent in a function that is put into another that is
 * put into a third.
 */
#include <stdint.h>

static volatile uint64_t sink;

__attribute__((always_inline)) static inline uint64_t inner(uint64_t x)
{
    for (int i = 0; i < 100; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

__attribute__((always_inline)) static inline uint64_t middle(uint64_t x)
{
    return inner(x) ^ 1;
}

__attribute__((noinline)) static void outer(void)
{
    for (int i = 0; i < 3000000; i++)
        sink = middle(sink);
}

int main(void)
{
    outer();
    return 0;
}
