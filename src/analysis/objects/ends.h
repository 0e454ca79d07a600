/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Finds which processes have pipes, FIFOs and sockets open, in one walk over /proc. No state.
 */
#ifndef PRCB_OBJECTS_ENDS_H
#define PRCB_OBJECTS_ENDS_H

#include <stdint.h>
#include <sys/types.h>

/* Somebody asks who else has a file open. */
struct end_wanted {
    char link[64];   /* "pipe:[123]", "socket:[123]" */
    uint32_t object; /* the caller's */
    pid_t not_by;    /* whose process this is */
    mode_t mode;     /* S_IRUSR, S_IWUSR: who may read it, or write; 0: either */
    pid_t pid;       /* out: the first other one; its own if there is none but it; 0: nobody seen */
    char comm[16];   /* out */
    unsigned more;   /* out: how many others */
};

/* Changes their order. */
void ends_find(struct end_wanted *wanted, size_t count);

#endif
