/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the table of causes (prcb/causes.h) does not say of them.
 */
#ifndef PRCB_BASE_CAUSE_H
#define PRCB_BASE_CAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include <prcb/causes.h>

/* Waits for one of the kernel's own locks. */
static inline bool cause_is_kernel_lock(uint32_t cause)
{
    return cause == PRCB_CAUSE_MUTEX || cause == PRCB_CAUSE_RWSEM ||
           cause == PRCB_CAUSE_MMAP_LOCK || cause == PRCB_CAUSE_KLOCK;
}

#endif
