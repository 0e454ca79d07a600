/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tails: how long each wait, and each time a thread could have run and had no processor, took, of
 * all threads of a session together: a histogram for each cause, and the longest.
 *
 * A session keeps tails when it is opened with PRCB_OPEN_TAILS (bpf and daemon tier).
 */
#ifndef PRCB_TAILS_H
#define PRCB_TAILS_H

#include <prcb/prcb.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stretches that are over, of threads that live and of those that have ended. */
struct prcb_tail {
    size_t size;    /* sizeof(struct prcb_tail), set by the caller */
    uint64_t count; /* of all buckets */
    uint64_t ns; /* sum of all: what the accounts have for them in ready_ns, or waits[].ns but for
                    the one that is open, exactly */
    uint64_t max_ns;                     /* the longest */
    uint64_t buckets[PRCB_TAIL_BUCKETS]; /* stretches; bounds: prcb_tail_bound */
};

/* Of a cause that is a wait: time that it took, without the ready time at its end. PRCB_CAUSE_NONE:
 * ready time, one stretch for each time that a thread got a processor, those of no time included.
 * No system call. Members are as of the call, up to a stretch each that ends during it.
 * -EOPNOTSUPP there are no tails: *err says why
 * -ESTALE     a processor was added since the session began: what ended on it is missing
 * -EINVAL     the cause is none, or no wait */
PRCB_API int prcb_tail_read(struct prcb *p, uint32_t cause, struct prcb_tail *ret,
                            struct prcb_error *err);

/* Longest stretch of a bucket, in nanoseconds; shorter ones than the bound of the bucket before and
 * that bound itself are not in it. UINT64_MAX: of the last, which has none. */
PRCB_API uint64_t prcb_tail_bound(uint32_t bucket);

/* Between which bounds a quantile lies (0.5: the median): *ret_low < it <= *ret_high. The upper one
 * is the longest stretch where that is lower. false: there are no stretches. */
PRCB_API bool prcb_tail_quantile(const struct prcb_tail *tail, double quantile, uint64_t *ret_low,
                                 uint64_t *ret_high);

#ifdef __cplusplus
}
#endif
#endif
