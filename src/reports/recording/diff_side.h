/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Recordings as runs of a benchmark (bench.h), so that several of one side are compared with
 * several of another as prcb bench compares runs. Those of a command are runs as they are; others
 * were ended when somebody wanted them to end, and count by second. One thread.
 */
#ifndef PRCB_RECORD_DIFF_SIDE_H
#define PRCB_RECORD_DIFF_SIDE_H

#include "bench.h"
#include "recording.h"

/* Adds a recording to a side. -EINVAL: it has no switches, or no time; or -errno, in words. */
int diff_side_add(const struct recording *recording, struct bench_side *side,
                  struct prcb_error *err);

/* Whether it is of a command, from its start to its end. */
bool diff_side_is_command(const struct recording *recording);

#endif
