/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Edges: which threads and interrupts held threads up and woke them. They divide the counts and
 * times of an account exactly. Their kinds are in numbers.h.
 *
 * A session keeps edges when it is opened with PRCB_OPEN_EDGES (bpf and daemon tier). That attaches
 * programs to every wakeup and every interrupt of the machine; accounts of other sessions stay as
 * they are.
 */
#ifndef PRCB_EDGES_H
#define PRCB_EDGES_H

#include <prcb/prcb.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRCB_INTERRUPT_UNKNOWN UINT32_MAX /* one of the processors' own, which has no number */

struct prcb_edge {
    uint32_t kind;   /* enum prcb_edge_kind */
    uint32_t cause;  /* enum prcb_cause of the stretches */
    uint32_t by;     /* enum prcb_edge_by */
    uint32_t vector; /* of interrupts and softirqs */
    pid_t tid, pid;  /* of a thread, in the caller's pid namespace; 0: not visible there */
    uint64_t count;  /* stretches */
    uint64_t ns;
    char comm[16];   /* the thread's name when it was first met here; empty: none */
    uint64_t cgroup; /* of version 2: number of its directory */
};

/* Calls fn for each edge of the account with this key, in no particular order; stops at the first
 * non-zero return and returns it. All edges are of one moment. With the rest, an edge of each cause
 * that has any and one of ready time (kind BEHIND), they sum to what the account held then,
 * exactly:
 *
 *   woken-by edges of a cause        waits[cause].count and .ns
 *   preempted-by edges of a cause    waits[cause].count
 *   preempted-by and behind edges    ready_ns
 *   held-by edges of a cause         waits[cause].count and .ns (PRCB_OPEN_OWNERS)
 *   meanwhile edges                  ready_ns (PRCB_OPEN_MEANWHILE)
 *
 * account: NULL, or gets the record of that moment (set its size). fn is called without the
 * session's lock; the edge is valid during the call only.
 *
 * -EOPNOTSUPP  there are no edges: *err says why
 * -ESTALE      the account was released
 * -EAGAIN      as prcb_thread_read */
typedef int (*prcb_edge_fn)(const struct prcb_edge *edge, void *ctx);
PRCB_API int prcb_edges_walk(struct prcb *p, uint64_t key, struct prcb_account *account,
                             prcb_edge_fn fn, void *ctx, struct prcb_error *err);

/* In words, static: "woken by"; "timer"; Linux's name of a softirq, "net_rx". NULL: there is none.
 */
PRCB_API const char *prcb_edge_kind_name(uint32_t kind);
PRCB_API const char *prcb_edge_by_name(uint32_t by);
PRCB_API const char *prcb_softirq_name(uint32_t vector);

#ifdef __cplusplus
}
#endif
#endif
