/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Inside of a session: what the tiers share. A tier is a row of functions; the
 * public calls in session.c check arguments, take the lock where the table says
 * so, and hand on. Not public.
 */
#ifndef PRCB_ACCOUNTS_SESSION_H
#define PRCB_ACCOUNTS_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include <prcb/prcb.h>

#include "clock.h"
#include "error.h"
#include "mapped.h"

struct bpf_state;
struct daemon_state;
struct perf_state;

struct prcb {
    const struct tier *tier;
    char reason[sizeof(
        ((struct prcb_error *)0)->text)]; /* why not a better tier; empty: none better, or forced */
    uint32_t max_threads;
    uint32_t max_asked;      /* by the caller; 0: the tier's default */
    uint32_t flags;          /* enum prcb_open_flag */
    size_t switch_bytes;     /* as asked for */
    uint32_t pid_ns;         /* inode of the caller's pid namespace */
    struct clock_base clock; /* taken at open; constant */
    pthread_mutex_t lock;    /* over everything below, and one caller at a time in a tier's
                                functions marked L */
    struct mapped mapped;    /* bpf, daemon: the accounts */
    union {
        struct bpf_state *bpf;
        struct daemon_state *daemon;
        struct perf_state *perf;
    };
};

#define KERNEL_STACK_BYTES 4096 /* of names: more than any has */

#define HOT_LINE 64 /* bytes: the part of an account that every switch writes */

struct prcb_thread {
    struct prcb *session;
    struct clock clock;
    pid_t tid;
    uint64_t key;
    const void *block;      /* bpf, daemon: the account in mapped memory */
    uint64_t base_switches; /* the same: the kernel's switch count when profiling started */
    uint64_t last_now;      /* latest moment a read has answered for */
    uint64_t last_run;      /* from prcb_thread_times */
    uint64_t last_interrupted;
    struct prcb_account last; /* what prcb_thread_read returned last; size 0: nothing yet */
    bool hot_holds;           /* bpf, daemon: `last` can be gone on from while hot is the same */
    char hot[HOT_LINE];       /* the account's hot line as of `last` */
};

/* L: called under session->lock. Records are whole (struct prcb_account of this
 * library); session.c fits them to the caller's size. */
struct tier {
    enum prcb_tier number;
    const char *name;
    int (*open)(struct prcb *p, struct prcb_error *err);
    void (*close)(struct prcb *p); /* takes half-opened sessions */
    int (*profile_thread)(struct prcb *p, pid_t tid, unsigned follow,
                          struct prcb_error *err); /* L */
    int (*profile_process)(struct prcb *p, pid_t pid, unsigned follow,
                           struct prcb_error *err);                                  /* L */
    int (*profile_cgroup)(struct prcb *p, const char *path, struct prcb_error *err); /* L */
    int (*profile_all)(struct prcb *p, struct prcb_error *err);                      /* L */
    int (*refresh)(struct prcb *p, struct prcb_error *err);                          /* L */
    /* Fills key, block and base_switches of a handle whose tid is set. */
    int (*thread_open)(struct prcb *p, struct prcb_thread *t, struct prcb_error *err); /* L */
    int (*read)(struct prcb_thread *t); /* brings t->last up to now; failed: it stays */
    int (*read_times)(struct prcb_thread *t, struct prcb_times *ret);
    /* since_ns: as of prcb_walk_active; 0: all */
    int (*walk)(struct prcb *p, uint64_t since_ns, prcb_walk_fn fn, void *ctx,
                struct prcb_error *err);                                  /* L */
    int (*release)(struct prcb *p, uint64_t key, struct prcb_error *err); /* L */
    int (*release_exited)(struct prcb *p, struct prcb_error *err);        /* L */
    void (*status)(struct prcb *p, struct prcb_status *ret);              /* L */
    const char *(*absent_reason)(const struct prcb *p, uint64_t member);
    int (*program)(struct prcb *p, uint32_t i, struct prcb_program *ret); /* L; NULL: it has none */
    const char *(*limit)(const struct prcb *p, size_t i);                 /* NULL: never any */
    /* NULL: it chooses no waits */
    int (*chosen_read)(struct prcb *p, prcb_chosen_fn fn, void *ctx, uint64_t *ret_lost,
                       struct prcb_error *err);
    int (*chosen_chain)(struct prcb *p, uint64_t key, const struct prcb_chain *chain,
                        struct prcb_error *err);
    int (*ran_program)(const struct prcb *p);
    int (*ran_read)(struct prcb *p, prcb_ran_fn fn, void *ctx, struct prcb_error *err);
    /* NULL: it has none */
    int (*kernel_stack)(struct prcb *p, uint64_t key, pid_t tid, char ret[KERNEL_STACK_BYTES],
                        struct prcb_error *err); /* L */
};

/* later -= earlier, of records of this build's own size: as prcb_account_sub. */
void account_sub(struct prcb_account *later, const struct prcb_account *earlier);

extern const struct tier tier_bpf; /* only in builds with the bpf tier */
extern const struct tier tier_daemon;
extern const struct tier tier_perf;

#endif
