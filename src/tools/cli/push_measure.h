/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Measures for a while, as `prcb why` does, and makes profiles of it: each time with a session of
 * its own, so that targets are looked for anew and nothing grows. What passes between two is in
 * neither; each has its own beginning and end.
 */
#ifndef PRCB_CLI_PUSH_MEASURE_H
#define PRCB_CLI_PUSH_MEASURE_H

#include "stat_targets.h"
#include "stat_wait.h"
#include "why_pprof.h"

struct push_profile {
    char *bytes; /* owned; NULL: there is none, for it has no sample */
    size_t size;
};

struct push_measure {
    const struct stat_options *targets;
    struct stat_wait *wait;
    uint64_t budget, min_us; /* as of prcb why */
    uint64_t for_ns;
    bool plain;       /* profiles are not in gzip */
    bool spans;       /* each wait with the span it was in */
    bool lines;       /* frames with their lines of source */
    const char *note; /* NULL: none */
};

struct push_measured {
    struct push_profile wait, run;
    uint64_t from_ns, until_ns; /* since 1970 */
    bool signalled;             /* it was ended by one */
    enum prcb_tier tier;
};

/* 0 or -errno. The caller frees the profiles' bytes. */
int push_measure(const struct push_measure *how, struct push_measured *ret, struct prcb_error *err);

#endif
