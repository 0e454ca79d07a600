/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Finds which of the waits that go on at the end of a measurement are idling by design, as their
 * stacks tell: pools and event loops should not be what a report begins with.
 */
#ifndef PRCB_REPORTS_STAT_IDLE_H
#define PRCB_REPORTS_STAT_IDLE_H

#include <stdint.h>

#include "account_rows.h"
#include "held_words.h"

#define STAT_IDLE_WORDS 16

struct stat_idle {
    /* Ways of idling, and of waiting that may be idling; those that find no place are left out. */
    struct stat_idle_word {
        const char *word; /* static */
        uint64_t threads, ns;
    } idle[STAT_IDLE_WORDS], either[STAT_IDLE_WORDS];
    uint64_t refused, refused_ns; /* threads whose stack may not be read, and their waits */
    struct held_threads held;     /* stopped, traced or frozen */
};

/* Sets idle_ns in the cells of rows: the time of the wait that goes on, if its stack shows that
 * it idles. Nothing is known, and nothing claimed, of waits that were over before. It looks
 * at the longest waits first, of each user and process in turn, for a fraction of a second. If
 * stacks cannot be read at all nothing is set. */
void stat_idle_find(struct prcb *session, struct account_rows *rows, struct stat_idle *ret);

#endif
