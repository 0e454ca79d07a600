/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reading switch records from the rings of a session (block_abi.h): memory that is mapped
 * read-only, and that its writers go round in without waiting for the reader. No system call.
 *
 * Threads    one reader at a time.
 * Ownership  the memory is the caller's, and stays mapped until switch_rings_close.
 */
#ifndef PRCB_ACCOUNTS_SWITCH_RINGS_H
#define PRCB_ACCOUNTS_SWITCH_RINGS_H

#include <stdbool.h>

#include <prcb/sample.h>

struct switch_rings; /* opaque */

/* Opens the rings. memory: `processors` rings of 1 + elements elements. has_ready: records tell of
 * ready time. -EPROTONOSUPPORT: there are no such rings. */
int switch_rings_open(const void *memory, uint32_t processors, uint32_t elements, bool has_ready,
                      struct switch_rings **ret);
void switch_rings_close(struct switch_rings *r); /* NULL is allowed */

/* Does what prcb_session_switches_rewind says. */
void switch_rings_rewind(struct switch_rings *r);
/* Does what prcb_session_switches says. */
int switch_rings_read(struct switch_rings *r, prcb_switch_fn fn, void *ctx,
                      struct prcb_switch_room *ret);

#endif
