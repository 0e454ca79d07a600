/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whether the kernel is PREEMPT_RT. Apart from other facts of the kernel, for prcbd asks this
 * alone.
 */
#ifndef PRCB_HOST_REALTIME_H
#define PRCB_HOST_REALTIME_H

#include <stdbool.h>

/* By /sys/kernel/realtime, which the patches for it bring, and by what uname -v says: since it is
 * in the kernel itself there is no such file. root: "" for this machine, else a recorded one. */
bool kernel_is_realtime(const char *root);

#endif
