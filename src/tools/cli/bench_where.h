/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where in the code the waits are in which two commands differ: a few more runs of each, whose
 * stacks are read. What was measured before has none of this cost. One thread.
 */
#ifndef PRCB_CLI_BENCH_WHERE_H
#define PRCB_CLI_BENCH_WHERE_H

#include "bench_report.h"
#include "bench_run.h"

/* Puts the places of the causes that the comparison found different into *ret, the greatest
 * difference first; none is no failure, and a tier that has no stacks has none. 0 or -errno. */
int bench_where(const struct bench_runner *runner, char **const commands[2],
                const struct bench_comparison *comparison, struct bench_place **ret,
                size_t *ret_count, struct prcb_error *err);

#endif
