/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who woke threads: each waker that is met gets a row of the table wakers.
 */
#ifndef PRCB_RECORD_WAKERS_H
#define PRCB_RECORD_WAKERS_H

#include <stdint.h>

#include <prcb/sample.h>

#include "writer.h"

struct wakers;

struct wakers *wakers_open(struct writer *writer); /* NULL: no memory */
void wakers_close(struct wakers *wakers);          /* NULL is allowed */

/* Returns the row of who woke the new thread of a switch; 0: nobody is known. thread: its row of
 * threads; 0: it is no thread, or one that is not recorded. 0 or -errno. */
int wakers_row(struct wakers *wakers, const struct prcb_switch *record, int64_t thread,
               int64_t *ret);

#endif
