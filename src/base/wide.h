/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Products of 128 bits; computed by hand if the compiler has none (32-bit processors). Pure
 * arithmetic; bits of the result beyond 64 are cut off.
 */
#ifndef PRCB_BASE_WIDE_H
#define PRCB_BASE_WIDE_H

#include <stdint.h>

#ifdef __SIZEOF_INT128__

__extension__ typedef unsigned __int128 wide_number;

/* a * b / divisor */
static inline uint64_t wide_scale(uint64_t a, uint64_t b, uint64_t divisor)
{
    return (uint64_t)((wide_number)a * b / divisor);
}

/* a * b / 2^shift, shift from 1 to 63 */
static inline uint64_t wide_shift(uint64_t a, uint64_t b, unsigned shift)
{
    return (uint64_t)(((wide_number)a * b) >> shift);
}

#else

struct wide_product {
    uint64_t high, low;
};

static inline struct wide_product wide_multiply(uint64_t a, uint64_t b)
{
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX);
    uint64_t one = (a >> 32) * (b & UINT32_MAX) + (low >> 32);
    uint64_t other = (a & UINT32_MAX) * (b >> 32) + (one & UINT32_MAX);

    return (struct wide_product){(a >> 32) * (b >> 32) + (one >> 32) + (other >> 32),
                                 other << 32 | (low & UINT32_MAX)};
}

static inline uint64_t wide_scale(uint64_t a, uint64_t b, uint64_t divisor)
{
    struct wide_product p = wide_multiply(a, b);
    uint64_t rest = 0, result = 0;

    for (int bit = 127; bit >= 0; bit--) {
        uint64_t carry = rest >> 63;

        rest = rest << 1 | ((bit < 64 ? p.low >> bit : p.high >> (bit - 64)) & 1);
        result <<= 1;
        if (carry || rest >= divisor) {
            rest -= divisor;
            result |= 1;
        }
    }
    return result;
}

static inline uint64_t wide_shift(uint64_t a, uint64_t b, unsigned shift)
{
    struct wide_product p = wide_multiply(a, b);

    return p.high << (64 - shift) | p.low >> shift;
}

#endif

#endif
