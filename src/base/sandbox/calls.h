/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A filter of system calls (seccomp): what no row allows fails with ENOSYS, as if the kernel did
 * not know it. Not a signal, and not EPERM: a C library newer than the rows tries calls of its
 * kernel's first and goes on with older ones where they are missing, as on an old kernel.
 */
#ifndef PRCB_SANDBOX_CALLS_H
#define PRCB_SANDBOX_CALLS_H

#include <stdint.h>

/* A call that is allowed if (argument & mask) == value, of the argument's low word; without a mask
 * always. Rows of one call: in one case or another. */
struct call_row {
    int call; /* SYS_...; -1 ends the table */
    unsigned argument;
    uint32_t mask, value;
};
#define CALL_ROWS_END                                                                              \
    {                                                                                              \
        -1, 0, 0, 0                                                                                \
    }

/* Allows the calls of both tables (more: NULL, none), and no others, for good; flags: as of
 * seccomp(2). The process must have no_new_privs. -EOPNOTSUPP: the kernel has no filters, or this
 * processor's calls are not known here; -errno. */
int calls_allow(const struct call_row *rows, const struct call_row *more, unsigned flags);

#endif
