/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Numbers in texts that people wrote. No state.
 */
#ifndef PRCB_BASE_NUMBER_H
#define PRCB_BASE_NUMBER_H

#include <stdint.h>

/* Reads a number: the whole text must be one within the bounds, decimal or 0x. 0 or -EINVAL /
 * -ERANGE, *ret unchanged on failure. */
int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

#endif
