/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A recording of what has just happened: the switches that a session keeps in its rings
 * (PRCB_OPEN_SWITCHES), from some seconds ago until now, and what its threads did meanwhile.
 *
 * Threads  One at a time, the session's only reader of switches.
 * Errors   0 or -errno, words in *err.
 */
#ifndef PRCB_RECORD_MOMENT_H
#define PRCB_RECORD_MOMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/prcb.h>

/* Why it is kept. */
struct moment_reason {
    char text[128]; /* "ready>5ms", "signal": as it was asked for */
    /* By a rule: the thread whose stretch it was, what it was, when it ended and how long it was.
     * tid 0: nothing of that */
    pid_t pid, tid;
    char comm[16];
    uint32_t cause; /* enum prcb_cause; PRCB_CAUSE_NONE: ready */
    uint64_t time_ns, ns;
};

struct kept;

struct moment_options {
    const char *path;  /* of the file, which is there once it is whole, in place of any other */
    uint64_t last_ns;  /* how far back */
    uint64_t began_ns; /* CLOCK_MONOTONIC: but not before this, when the session began; 0: as far
                          back as its oldest thread's account */
    bool all;          /* the session's threads are all there are */
    struct kept *kept; /* stacks of waits; NULL: there are none */
    struct moment_reason reason;
};

struct moment {
    uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC: what the file tells of */
    uint64_t switches;
};

/* Writes the file by another name and gives it its own at the end: whoever ends this process leaves
 * it whole, or not at all. The rings are not changed. */
#define MOMENT_PART ".part" /* what that other name ends with */
int moment_write(struct prcb *session, const struct moment_options *options, struct moment *ret,
                 struct prcb_error *err);

#endif
