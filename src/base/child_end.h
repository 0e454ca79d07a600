/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The end of a child process, without waiting for ever: one that was killed while the kernel waits
 * for a file or a page for it ends when that wait does. Nobody's signal changes that.
 *
 * Threads  Any number.
 */
#ifndef PRCB_BASE_CHILD_END_H
#define PRCB_BASE_CHILD_END_H

#include <stdbool.h>
#include <sys/types.h>

#define CHILDREN_LEFT 16 /* that are remembered */

/* Waits for a child's end for at most so long, and reaps it. False: it goes on, and is reaped when
 * children_left is called after its end. ret_status: of waitpid, that of exit(1) if another has
 * reaped it; NULL: nobody asks. */
bool child_end(pid_t pid, unsigned ms, int *ret_status);

/* Returns how many children go on that were not waited for longer. Who starts children starts none
 * when these are CHILDREN_LEFT. */
unsigned children_left(void);

#endif
