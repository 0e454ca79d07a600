/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The pid namespace that the machine began with: eBPF programs know threads by their numbers there.
 */
#ifndef PRCB_BASE_PID_NS_H
#define PRCB_BASE_PID_NS_H

#include <stdbool.h>

/* Whether this process is in it. */
bool in_first_pid_ns(void);

#endif
