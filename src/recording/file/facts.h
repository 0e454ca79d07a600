/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a recording says about the machine, and the times of its processors while it is made.
 */
#ifndef PRCB_RECORD_FACTS_H
#define PRCB_RECORD_FACTS_H

#include <prcb/processors.h>

#include "writer.h"

/* Writes name and version of the kernel, the processors, the boot. */
int facts_write_machine(struct writer *writer);
/* Writes each processor's times as of now. */
int facts_write_times(struct writer *writer, struct prcb_processors *processors, uint64_t time_ns);
/* Writes the wall clock's time as YYYY-MM-DDTHH:MM:SSZ. */
int facts_write_clock(struct writer *writer, const char *name);

#endif
