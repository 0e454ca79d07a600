/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a recording says of the machine, and its processors' times while it is made.
 */
#ifndef PRCB_RECORD_FACTS_H
#define PRCB_RECORD_FACTS_H

#include <prcb/processors.h>

#include "writer.h"

/* Name and version of the kernel, processors, boot. */
int facts_write_machine(struct writer *writer);
/* Each processor's times as of now. */
int facts_write_times(struct writer *writer, struct prcb_processors *processors, uint64_t time_ns);
/* The wall clock's time as YYYY-MM-DDTHH:MM:SSZ. */
int facts_write_clock(struct writer *writer, const char *name);

#endif
