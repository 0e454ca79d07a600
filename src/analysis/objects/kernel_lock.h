/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of the kernel's locks that lie in static memory. No state.
 */
#ifndef PRCB_OBJECTS_KERNEL_LOCK_H
#define PRCB_OBJECTS_KERNEL_LOCK_H

#include <stddef.h>
#include <stdint.h>

#define KERNEL_SYMBOLS "/proc/kallsyms"

/* "cgroup_mutex", "table+0x40"; "": it is in memory that was allocated, or the list hides addresses
 * or has no data (a kernel without CONFIG_KALLSYMS_ALL). list: KERNEL_SYMBOLS, or a test's. */
void kernel_lock_name(const char *list, uint64_t address, char *ret, size_t size);

#endif
