/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Traces of several hosts for Perfetto as one file: a tar archive of the traces and a manifest that
 * says which machine each is of. By the wall clocks, which all have, Perfetto (58.2 or newer) shows
 * them on one timeline.
 *
 * Threads  One at a time.
 */
#ifndef PRCB_RECORD_ARCHIVE_H
#define PRCB_RECORD_ARCHIVE_H

#include <stdio.h>

#include "recording.h"

struct archived {
    char path[RECORDING_ID + sizeof(".pftrace")];
    char *host;
};

struct archive {
    FILE *out;
    struct archived *rows; /* owned */
    size_t count, room;
};

/* Write errors stay in the stream. 0 or -errno: -EEXIST: the recording is in it; -ENODATA: it does
 * not tell the wall clock; as export_perfetto. */
int archive_add(struct archive *a, const struct recording *recording, struct prcb_error *err);
/* Writes the manifest and the end; 0 or -ENOMEM. */
int archive_end(struct archive *a);
void archive_free(struct archive *a);

#endif
