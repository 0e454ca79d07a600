/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Makes columns of unsigned numbers as a page has them: seven bits a byte, the low ones first,
 * the eighth set in all but the last. Also makes the timeline coarser: one state for each cell
 * of time.
 */
#ifndef PRCB_PAGE_COLUMNS_H
#define PRCB_PAGE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page_column {
    const char *name;
    uint8_t *bytes;
    size_t length, room, count;
};

/* Appends a number. On -ENOMEM the column is as before. */
int page_column_put(struct page_column *column, uint64_t number);

struct page_stretch;
/* Passes the stretches of one thread, which are in the order of time, to fn, with one state for
 * each cell: the one that had most of it. Unknown time is state 0. */
int page_fold(const struct page_stretch *rows, size_t count, uint64_t cell_ns,
              int (*fn)(const struct page_stretch *row, void *ctx), void *ctx);

#endif
