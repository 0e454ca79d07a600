/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Switches as rows: one for each time that a thread got a processor, with what it had waited
 * for, who woke it, who had the processor before, and how long it kept it.
 */
#ifndef PRCB_RECORD_SWITCH_ROWS_H
#define PRCB_RECORD_SWITCH_ROWS_H

#include <stdio.h>

#include "recording.h"

enum switch_names {
    SWITCH_NAMES_OWN, /* times in nanoseconds since the recording began */
    SWITCH_NAMES_WPA, /* columns and units of Windows Performance Analyzer's "CPU Usage (Precise)"
                       */
};

/* Writes lines of values, the names first, in the order in which the threads left the processors
 * again. top: at most so many; 0: all. */
int switch_rows_print_csv(const struct recording *recording, enum switch_names names, size_t top,
                          const char *separator, FILE *out, struct prcb_error *err);

#endif
