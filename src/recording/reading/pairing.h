/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Threads of two recordings that do the same, found by their names without the digits, since
 * numbers of workers, processors and connections change from run to run.
 */
#ifndef PRCB_RECORD_PAIRING_H
#define PRCB_RECORD_PAIRING_H

/* Returns the name without digits: "worker-12" and "worker-3" are "worker-#". The caller frees
 * it; NULL: no memory. */
char *pairing_name(const char *name);

#endif
