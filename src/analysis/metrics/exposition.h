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

/* Returns the value of a Content-Type header. version: the version of OpenMetrics that was asked
 * for; NULL: 1.0.0. */
const char *exposition_type(enum exposition format, const char *version);
/* With m NULL it writes prcb_up 0 and what is known without figures. Write errors are left to
 * the stream. */
void exposition_write(FILE *out, enum exposition format, const struct metrics *m);

/* Writes into a temporary file beside it and renames that, so that nobody sees half of it. If
 * this fails, a file that was there stays as it was. 0 or -errno. */
int exposition_write_file(const char *path, enum exposition format, const struct metrics *m);

#endif
