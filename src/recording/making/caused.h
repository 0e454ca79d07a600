/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A switch that eBPF recorded, as rows of a recording.
 *
 * Threads  One at a time.
 * Errors   0 or -errno; writer_error has the words.
 */
#ifndef PRCB_RECORD_CAUSED_H
#define PRCB_RECORD_CAUSED_H

#include <stdbool.h>

#include <prcb/sample.h>

#include "wakers.h"
#include "world.h"
#include "writer.h"

struct caused {
    struct writer *writer;
    struct world *world;
    struct wakers *wakers; /* NULL: they are not recorded */
    bool all;              /* every thread; else those that the world knows */
    uint64_t switches;     /* rows that were written */
};

/* Writes the switch, if one of its threads is recorded. */
int caused_write(struct caused *caused, const struct prcb_switch *record);

#endif
