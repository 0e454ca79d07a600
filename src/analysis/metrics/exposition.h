/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Families and their samples as Prometheus reads them: the text format 0.0.4 and OpenMetrics 1.0.
 * No timestamps: the figures are of the last look.
 */
#ifndef PRCB_METRICS_EXPOSITION_H
#define PRCB_METRICS_EXPOSITION_H

#include <stdio.h>

#include "metrics.h"

enum exposition { EXPOSITION_TEXT, EXPOSITION_OPENMETRICS };

/* The value of a Content-Type header. version: of OpenMetrics, as was asked for; NULL: 1.0.0. */
const char *exposition_type(enum exposition format, const char *version);
/* m NULL: prcb_up 0 and what is known without figures. Write errors are left to the stream. */
void exposition_write(FILE *out, enum exposition format, const struct metrics *m);

/* Into a file, written beside and renamed, so that nobody sees half of it. A file that was there
 * stays as it was if this fails. 0 or -errno. */
int exposition_write_file(const char *path, enum exposition format, const struct metrics *m);

#endif
