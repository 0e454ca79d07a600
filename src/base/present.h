/* SPDX-License-Identifier: BSD-2-Clause
 *
 * For how many processors memory is needed: of those that could come (the possible ones, hundreds
 * in a virtual machine) most never do. Their numbers may have holes.
 */
#ifndef PRCB_BASE_PRESENT_H
#define PRCB_BASE_PRESENT_H

#include <stdint.h>

/* The highest number of a processor that is there, online or not, plus one, at most `possible`;
 * that where the kernel does not tell. */
uint32_t present_processors(uint32_t possible);
/* The same of a list as in sysfs, "0-3,8-11". */
uint32_t present_by_list(const char *list, uint32_t possible);
/* The same, at least 1; where the kernel does not tell, how many the C library knows of. */
uint32_t numbered_processors(void);

#endif
