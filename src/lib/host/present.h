/* SPDX-License-Identifier: BSD-2-Clause
 *
 * For how many processors memory is needed: of those that could come (the possible ones, hundreds
 * in a virtual machine) most never do.
 */
#ifndef PRCB_HOST_PRESENT_H
#define PRCB_HOST_PRESENT_H

#include <stdint.h>

/* The highest number of a processor that is there, online or not, plus one, at most `possible`;
 * that where the kernel does not tell. */
uint32_t present_processors(uint32_t possible);

#endif
