/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Says in words which events the kernel did not run eBPF programs for: for people, after a
 * report.
 */
#ifndef PRCB_REPORTS_MISSES_H
#define PRCB_REPORTS_MISSES_H

#include <stdio.h>

#include <prcb/prcb.h>

/* Writes a line for each program that missed events. next: as prcb_session_program; effect: what
 * that may have cost. */
typedef int (*misses_next)(void *from, uint32_t i, struct prcb_program *ret);
void misses_write(FILE *out, const char *prefix, misses_next next, void *from, const char *effect);

#endif
