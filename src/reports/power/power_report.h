/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What `prcb power` prints: the power state of each processor since the first look, as a table or
 * JSON, and the same in the layout of a version of Windows. Writers change nothing and leave write
 * errors to the stream's error flag.
 */
#ifndef PRCB_REPORTS_POWER_REPORT_H
#define PRCB_REPORTS_POWER_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include <prcb/layout.h>

#include "cpu_looks.h"

void power_table_write(FILE *out, const struct cpu_samples *samples);
/* Writes a document: with a layout the members and bytes of its structure, without (NULL) Linux's
 * own figures. 0 or -ENOMEM. */
int power_json_write(FILE *out, const struct cpu_samples *samples,
                     const struct prcb_layout *layout);
/* Writes the structure of each processor: its members or, raw, its bytes alone. 0 or -ENOMEM. */
int power_images_write(FILE *out, const struct cpu_samples *samples,
                       const struct prcb_layout *layout, bool raw);

#endif
