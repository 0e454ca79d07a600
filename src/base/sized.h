/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Public structures that start with their own size (prcb.h, "Sizes"): taken from and handed to
 * programs of another age than the library's. No state, no allocation.
 */
#ifndef PRCB_BASE_SIZED_H
#define PRCB_BASE_SIZED_H

#include <prcb/prcb.h>

/* Takes a caller's options: what they lack is zero, what they have beyond ours must be. name: of
 * the structure, for words. from may be NULL: all zero. -EINVAL: its size is not set. -E2BIG. */
int sized_take_options(const char *name, const void *from, void *ret, size_t size,
                       struct prcb_error *err);

/* Takes a caller's record: what it lacks is zero, what it has beyond ours is left out. */
void sized_take_record(const void *from, void *ret, size_t size);

/* Copies as much of a result as the caller's structure has room for; its size stays, what it has
 * beyond ours is zeroed. -EINVAL: its size is not set. */
int sized_hand_out(const void *from, size_t size, void *ret);

#endif
