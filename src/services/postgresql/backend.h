/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the process that calls has done so far, in the parts of a query's time. The session behind
 * it is opened by the first call in each process, and again where prcbd came or went; whatever goes
 * wrong with it is told as "not known", never as an error: no query fails because of prcb.
 */
#ifndef PG_STAT_PRCB_BACKEND_H
#define PG_STAT_PRCB_BACKEND_H

#include <c.h>

enum part {
#define PART(NAME, ...) PART_##NAME,
#include "parts.def"
    PARTS
};

struct figures {
    int64 ns[PARTS];
    int64 switches;
};

enum backend_tier { TIER_OFF, TIER_PERF, TIER_DAEMON };
extern int backend_tier;     /* enum backend_tier: what is wanted */
extern bool backend_patient; /* prcbd has ten seconds for an answer, not a fifth of one */

/* False: nothing is known now. Two that are to be subtracted are of one session (session). */
bool backend_read(struct figures *ret, unsigned *session);
/* *sum += later - earlier */
void figures_add(struct figures *sum, const struct figures *later, const struct figures *earlier);
int64 figures_wall(const struct figures *f);

/* The tier in use, or "none"; why there is none, or NULL. */
const char *backend_tier_name(void);
const char *backend_reason(void);

#endif
