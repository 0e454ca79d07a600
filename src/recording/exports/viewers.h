/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A recording for other people's viewers, in their JSON. Each writes all of it; what could not be
 * written shows in the stream. 0 or -errno, words in *err.
 */
#ifndef PRCB_PAGE_VIEWERS_H
#define PRCB_PAGE_VIEWERS_H

#include <stdio.h>

#include "recording.h"

/* speedscope: of each thread its samples, and its time off the processor by cause and stack. */
int export_speedscope(const struct recording *recording, FILE *out, struct prcb_error *err);
/* The Firefox Profiler's processed profile: threads with samples, and a marker for each time that
 * they were ready or waited, with its stack where one is known. */
int export_firefox(const struct recording *recording, FILE *out, struct prcb_error *err);

#endif
