/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A small library with call frame information of several kinds: what fuzz_stack begins with.
 */
#define HARD __attribute__((noinline, noclone, visibility("default")))

volatile int sink;

HARD int by_pointer(int a);
HARD int by_register(int a);
HARD int outer(int a);

HARD int by_pointer(int a)
{
    return sink + a;
}

HARD int by_register(int a)
{
    volatile char *room = __builtin_alloca((unsigned)sink + 16u);

    room[sink] = 1;
    return by_pointer(a) + room[sink];
}

HARD int outer(int a)
{
    return by_register(a) + by_pointer(sink) + a;
}
