/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Branch Trace Store by the PMU intel_bts: the kernel has the processor write branches
 * into a buffer of perf's, from where they are copied on by the rules of the area.
 */
#ifndef PRCB_SAMPLE_BTS_H
#define PRCB_SAMPLE_BTS_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/sample.h>

#define BTS_RECORD 0x18 /* from, to, flags */

struct bts {
    int fd;
    struct perf_event_mmap_page *page; /* and a page of notes */
    uint8_t *aux;                      /* branches, a ring */
    size_t aux_bytes;
    struct prcb_ds_area *area;
    uint64_t base, end; /* addresses: the buffer as it was at the start */
    struct prcb_sample_counts counts;
};

/* The calls of prcb/sample.h for a sample that is a branch trace; bts_close as
 * sample_stop_locked. */
void bts_close(struct prcb_sample *p);
int bts_fd(const struct bts *bts);
int bts_drain(struct prcb_sample *p, prcb_sample_drain_fn fn, void *ctx);
const struct prcb_sample_counts *bts_counts(const struct bts *bts); /* borrowed */

/* Moves what perf's ring has to the area's buffer, as far as there is room; the rest is counted. */
void bts_take(struct bts *bts);

#endif
