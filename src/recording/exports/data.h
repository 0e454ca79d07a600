/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A recording's data as a page has them: a JSON head and columns of numbers (docs/page.md).
 * The stretches are collected once and written as often as a size has to be tried.
 */
#ifndef PRCB_PAGE_DATA_H
#define PRCB_PAGE_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "page_names.h"
#include "recording.h"
#include "report.h"

#define PAGE_NO_CPU UINT16_MAX

struct page_stretch {
    uint64_t start_ns, ns; /* from the recording's start */
    uint32_t thread;       /* index */
    uint16_t state;        /* index */
    uint16_t cpu;          /* running: where; PAGE_NO_CPU: not known */
    uint32_t place;        /* waiting: where, a node twice, plus one of those that idle by design */
    uint32_t waker;        /* waiting: who ended it, an index plus one; 0: not known */
};

struct page_sample {
    uint64_t time_ns, count, weight;
    uint32_t thread, node;
};

/* What a thread does: kind, cause and NT's reason. */
struct page_state {
    char kind; /* 'r' running, 'q' ready, 'w' waiting, '?' not known */
    int reason;
    char cause[24];
};

#define PAGE_STATES 512 /* of a damaged recording; others have as many as there are causes */

struct page_data {
    const struct recording *recording;
    const struct page_names *names;
    struct report report;
    struct page_state states[PAGE_STATES];
    size_t state_count;
    struct page_stretch *stretches; /* by thread and time */
    size_t stretch_count;
    uint32_t *run_order; /* threads of the running stretches, as these ended */
    size_t run_count;
    struct page_sample *samples; /* by time */
    size_t sample_count;
    uint32_t *node_of_stack; /* of each stack: its node in the tree of functions */
    uint32_t *nodes;         /* pairs: caller, function */
    size_t node_count;
};

int page_data_open(const struct recording *recording, const struct page_names *names,
                   struct page_data *ret, struct prcb_error *err);
void page_data_close(struct page_data *data); /* zeroed is allowed */

#define PAGE_WHOLE UINT64_MAX /* one cell: no timeline */

/* Makes the data with a timeline of cells of fold_ns; 0: as it was recorded. *ret is the
 * caller's. */
int page_data_write(const struct page_data *data, uint64_t fold_ns, uint8_t **ret, size_t *ret_size,
                    struct prcb_error *err);

#endif
