/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Brings the log of a database to its file, and waits for the disk, in a thread of its own: who
 * writes rows does not wait. Errors are those of the writer, which meets them as well.
 */
#ifndef PRCB_RECORD_SYNCER_H
#define PRCB_RECORD_SYNCER_H

struct sqlite3;
struct syncer; /* opaque */

/* db: whose commits are to be followed; it syncs nothing from then on. -errno; on failure db is as
 * it was. */
int syncer_start(const char *path, struct sqlite3 *db, struct syncer **ret);
/* Ends the thread, when what it is at is done; db syncs by itself again. NULL is allowed. */
void syncer_stop(struct syncer *s);

#endif
