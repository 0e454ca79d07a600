/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PRCB_FIGURES_REST_H
#define PRCB_FIGURES_REST_H

#include <stdint.h>

/* Returns what a part lacks to the whole; 0 where it exceeds it, for the two may be of different
 * moments. */
static inline uint64_t rest_of(uint64_t whole, uint64_t part)
{
    return whole > part ? whole - part : 0;
}

#endif
