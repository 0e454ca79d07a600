/* SPDX-License-Identifier: BSD-2-Clause
 *
 * To whom processes have sent something that was not answered yet: connections that they made, over
 * which they sent later than they received, by the kernel's own times (sock_diag). An event loop
 * that waits for such an answer looks as one does that waits for work.
 *
 * TCP of this process's network namespace. What a process accepted is left out: a server has sent
 * last whenever it has answered. One thread.
 */
#ifndef PRCB_OBJECTS_UNANSWERED_H
#define PRCB_OBJECTS_UNANSWERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define UNANSWERED_MOST 8 /* other ends; more are not counted */

struct unanswered {
    struct unanswered_row {
        char remote[64];      /* "127.0.0.1:80" */
        unsigned connections; /* the most at one look */
        unsigned looks;       /* at which there were any */
        unsigned last_look;   /* number of the last of these */
        uint32_t longest_ms;  /* since something was sent */
        unsigned now;         /* at the last of these */
    } rows[UNANSWERED_MOST];
    size_t count;
    unsigned looks;
    uint64_t again_ns; /* no look before (CLOCK_MONOTONIC): looking takes a hundredth of the time */
};

bool unanswered_is_due(const struct unanswered *u);
/* Looks at the connections of some processes, if it is time for it. What may not be read has none.
 * It never waits for another process. */
void unanswered_look(struct unanswered *u, const pid_t *pids, size_t count);

/* Takes messages of sock_diag, for tests; inodes are the processes' sockets, in rising order. 0;
 * -ENODATA: there are no more, or it is no such message; -ENOMEM. */
struct unanswered_found {
    struct unanswered_end {
        char remote[64];
        uint16_t local_port;
        uint32_t sent_ms;
    } * ends;
    size_t count;
    uint8_t listens[65536 / 8];
};
int unanswered_parse(struct unanswered_found *found, const uint64_t *inodes, size_t inode_count,
                     const void *answer, size_t length);

#endif
