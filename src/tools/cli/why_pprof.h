/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The report of `prcb why` as a profile for pprof: exact nanoseconds by stack, with what divides
 * them as labels. What has no stack has a frame that says why, so that the sum of the samples is
 * the time that the accounts have.
 */
#ifndef PRCB_CLI_WHY_PPROF_H
#define PRCB_CLI_WHY_PPROF_H

#include <stdio.h>

#include "why.h"

enum why_profile {
    WHY_PROFILE_WAIT, /* waiting and being ready: wall time without running */
    WHY_PROFILE_LOCK, /* of that, waits for locks, without what idles by design */
    WHY_PROFILE_RUN,  /* running; no stacks */
};

struct why_pprof {
    const struct why_report *report; /* made with why_source.by_name */
    enum why_profile profile;
    uint64_t wall_ns; /* it took so long, up to now */
    const char *note; /* a second comment; NULL: none */
    bool plain;       /* not in gzip */
    bool spans;       /* why_source.by_span: each wait with the span it was in */
};

/* Write errors stay in the stream. 0 or -errno; -EOPNOTSUPP: this build has no protobuf-c. */
int why_write_pprof(FILE *out, const struct why_pprof *output);
bool why_has_pprof(void);

#endif
