/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Makes frames of a session for a live page: what each thread did in an interval, with the
 * stacks of its waits, as one line of JSON (docs/page.md). A frame names the threads that did
 * something; the others go on with the wait that they were in. Key frames name all, so that a
 * reader may begin with one.
 *
 * One thread. Errors: 0 or -errno, words in *err.
 */
#ifndef PRCB_SERVE_FRAMES_H
#define PRCB_SERVE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/processors.h>

struct frames; /* opaque */

struct frames_options {
    bool stacks;             /* of waits */
    bool all, own;           /* every thread is profiled; only those of the user */
    unsigned key_every;      /* frames */
    uint64_t history_frames; /* how many the page keeps */
};

/* view may be NULL. Both are borrowed. */
int frames_open(struct prcb *session, struct prcb_processors *view,
                const struct frames_options *options, struct frames **ret, struct prcb_error *err);
void frames_close(struct frames *f); /* NULL is allowed */

/* Returns when a look at the stacks of waits is due, on CLOCK_MONOTONIC; UINT64_MAX: never. */
uint64_t frames_next_look(const struct frames *f);
int frames_look(struct frames *f, struct prcb_error *err);

struct frame {
    char *text; /* the caller's to free; NULL: this interval was the first, and has no beginning */
    size_t size;
    bool key;
};
/* Ends an interval. */
int frames_take(struct frames *f, struct frame *ret, struct prcb_error *err);

#endif
