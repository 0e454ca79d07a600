/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The critical path among pieces of threads' time, wherever these come from: what a thread's time
 * was spent on, its own work or that of whoever it waited for. It is found backwards: from a piece
 * in which the thread waits the path goes to the one that ended that, as of that moment, and comes
 * back where the wait began. No session, no file, no output. One thread.
 */
#ifndef PRCB_ANALYSIS_PATH_H
#define PRCB_ANALYSIS_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATH_NONE   SIZE_MAX
#define PATH_NO_CPU UINT32_MAX

enum path_kind {
    PATH_RUNS,
    PATH_READY,
    PATH_WAITS,   /* as a step: for no thread whose pieces are known */
    PATH_UNKNOWN, /* as a step: there is no piece */
};

struct path_piece {
    uint64_t start_ns, end_ns;
    uint64_t woken_ns; /* WAITS: when it was ended */
    size_t thread;     /* a number of the caller's, of whose time it is */
    size_t waker;      /* WAITS: the thread that ended it; PATH_NONE: none of these */
    size_t by;         /* the caller's: who ended it, */
    const void *what;  /* and what it was */
    uint32_t cpu;      /* RUNS: where; PATH_NO_CPU: not known */
    uint8_t kind;      /* enum path_kind */
    uint8_t cause;     /* the caller's number */
    bool idle;         /* WAITS: for work, by design: whoever waits for its thread waits for
                          something else, and that time stays the one's that waits */
};

struct path_step {
    uint64_t start_ns, end_ns;
    enum path_kind kind;
    size_t thread;
    size_t
        other; /* READY: who ran on its processor then, for the most part; PATH_NONE: not known */
    const struct path_piece *piece; /* NULL: UNKNOWN */
    unsigned depth; /* how many waits lie between the thread of the path and this one */
};

struct path;

/* Takes the pieces over, also when it fails, and puts them in order. Pieces of a thread do not
 * overlap. 0 or -ENOMEM. */
int path_open(struct path_piece *pieces, size_t count, struct path **ret);
void path_close(struct path *path); /* NULL is allowed */

/* Finds the steps that fill a window, which are the caller's to free; their pieces are the path's.
 * 0 or -ENOMEM. */
int path_find(const struct path *path, size_t thread, uint64_t from_ns, uint64_t to_ns,
              struct path_step **ret, size_t *ret_count);

#endif
