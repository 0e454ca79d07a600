/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of interrupts, which drivers choose.
 */
#ifndef PRCB_BASE_INTERRUPT_NAME_H
#define PRCB_BASE_INTERRUPT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The last word of an interrupt's line in /proc/interrupts. False: there is none; *ret is then
 * empty. */
bool interrupt_name(uint32_t number, char *ret, size_t size);

#endif
