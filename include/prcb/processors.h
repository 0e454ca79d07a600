/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb: the processors themselves: exact idle, interrupt and softirq time, user and kernel time,
 * interrupts, switches, idle states, frequency.
 *
 * A view (struct prcb_processors) keeps the kernel side alive: eBPF programs that write one small
 * block per possible processor whenever it changes what it does. Reading a processor copies its
 * block and adds the stretch that is going on; on the bpf tier that makes no system call. Where
 * eBPF may not be used the same calls work from procfs and sysfs (the perf tier), at the precision
 * of the kernel's tick; each record says which members it holds.
 *
 * At any moment a processor is in one state: hard interrupt over softirq over idle or task. The
 * parts of a record of the bpf tier therefore sum to its wall time. Every counter only grows, also
 * where Linux's own goes backwards.
 *
 * Units, errors, sizes: as in prcb.h. A view may be used by several threads at once but for
 * prcb_processors_refresh, which one of them calls at a time. docs/processors.md defines each
 * figure.
 */
#ifndef PRCB_PROCESSORS_H
#define PRCB_PROCESSORS_H

#include <prcb/prcb.h>

#ifdef __cplusplus
extern "C" {
#endif

struct prcb_processors; /* a view of all processors: opaque */

struct prcb_processors_options {
    size_t size;         /* sizeof(struct prcb_processors_options) */
    enum prcb_tier tier; /* PRCB_TIER_AUTO, or force one */
    uint32_t flags;      /* 0 */
    const char *root;    /* a folder that holds `proc` and `sys`: a recorded machine. Only on the
                            perf tier, which AUTO then means. NULL: this machine */
};

/* Opens a view; opts may be NULL. Every figure counts from here. Errors as prcb_open. */
PRCB_API int prcb_processors_open(const struct prcb_processors_options *opts,
                                  struct prcb_processors **ret, struct prcb_error *err);
PRCB_API void prcb_processors_close(struct prcb_processors *v);

/* As of a session: the tier in use, and why not a better one (borrowed; NULL: it is the best, or
 * was forced). */
PRCB_API enum prcb_tier prcb_processors_tier(const struct prcb_processors *v);
PRCB_API const char *prcb_processors_tier_reason(const struct prcb_processors *v);

/* How many the machine may ever have: their numbers are 0 .. count - 1. */
PRCB_API uint32_t prcb_processors_count(const struct prcb_processors *v);

/* As prcb_session_program, of the programs that write the view's blocks. */
PRCB_API int prcb_processors_program(const struct prcb_processors *v, uint32_t i,
                                     struct prcb_program *ret);

/* Looks again at what is not kept current in memory: which processors are online, frequency,
 * performance and thermal figures, on the perf tier everything. Makes system calls. */
PRCB_API int prcb_processors_refresh(struct prcb_processors *v, struct prcb_error *err);

/* Which members of a record hold a value. */
enum prcb_processor_member {
    PRCB_CPU_HAS_TIMES = 1 << 0,        /* wall, idle, user, kernel */
    PRCB_CPU_HAS_DPC = 1 << 1,          /* dpc_ns */
    PRCB_CPU_HAS_INTERRUPT = 1 << 2,    /* interrupt_ns */
    PRCB_CPU_HAS_STEAL = 1 << 3,        /* steal_ns */
    PRCB_CPU_HAS_INTERRUPTS = 1 << 4,   /* interrupts */
    PRCB_CPU_HAS_DPCS = 1 << 5,         /* dpcs */
    PRCB_CPU_HAS_SWITCHES = 1 << 6,     /* switches */
    PRCB_CPU_HAS_MISSED = 1 << 7,       /* missed_switches */
    PRCB_CPU_HAS_IDLE_ENTRIES = 1 << 8, /* idle_entries */
    PRCB_CPU_HAS_IDLE_STATES = 1 << 9,  /* idle_states[] */
    PRCB_CPU_HAS_MHZ = 1 << 10,         /* mhz */
    PRCB_CPU_HAS_MAX_MHZ = 1 << 11,     /* max_mhz */
    PRCB_CPU_HAS_LIMIT_MHZ = 1 << 12,   /* limit_mhz */
    PRCB_CPU_HAS_MIN_MHZ = 1 << 13,     /* min_mhz */
    PRCB_CPU_HAS_NOMINAL_MHZ = 1 << 14, /* nominal_mhz */
    PRCB_CPU_HAS_PERFORMANCE = 1 << 15, /* performance_permille */
    PRCB_CPU_HAS_THROTTLES = 1 << 16,   /* throttles */
    PRCB_CPU_HAS_THREAD = 1 << 17,      /* tid */
    PRCB_CPU_HAS_IDLE_STATE = 1 << 18,  /* idle_state */
    PRCB_CPU_HAS_RUNNING = 1 << 19,     /* running_ns */
};

enum prcb_processor_flag {
    PRCB_CPU_ONLINE = 1 << 0,
    PRCB_CPU_IDLE = 1 << 1,   /* it was idle at the moment of the read */
    PRCB_CPU_ORPHAN = 1 << 2, /* daemon tier: the programs were removed (prcbd --cleanup) or
                                 replaced by those of another version. The record keeps its last
                                 values and names no thread; open the view again to continue */
    PRCB_CPU_ABSENT = 1 << 3, /* a place for a processor that may be plugged in, and no processor:
                                 possible, not present; never with PRCB_CPU_ONLINE */
};

#define PRCB_IDLE_STATES_MAX 16

struct prcb_idle_state {
    char name[16];    /* as cpuidle names it ("POLL", "C1E"); "idle" where there is no cpuidle */
    uint64_t entries; /* times it was entered */
    uint64_t residency_ns; /* time spent in it; interrupts that did not end it are left out */
};

/* One processor at one moment; totals since the view was opened. What a view has returned for a
 * processor never goes backwards. */
struct prcb_processor {
    size_t size;              /* sizeof(struct prcb_processor), set by the caller */
    uint64_t present;         /* enum prcb_processor_member bits */
    uint32_t number;          /* Linux's number of the processor */
    uint32_t flags;           /* enum prcb_processor_flag bits */
    uint32_t tier;            /* enum prcb_tier that filled the record */
    uint32_t retries;         /* passes beyond the first that this read needed */
    uint64_t wall_ns;         /* since the view was opened, less the time it was offline */
    uint64_t idle_ns;         /* idle, waiting for disk or not, interrupts left out */
    uint64_t user_ns;         /* tasks in user mode */
    uint64_t kernel_ns;       /* tasks in the kernel, without idle, dpc and interrupt time */
    uint64_t dpc_ns;          /* softirqs */
    uint64_t interrupt_ns;    /* hard interrupts */
    uint64_t steal_ns;        /* taken by the hypervisor */
    uint64_t interrupts;      /* hard interrupts, as /proc/interrupts counts them */
    uint64_t dpcs;            /* softirqs run */
    uint64_t switches;        /* context switches, by the kernel's own count */
    uint64_t missed_switches; /* of these, not reported to the programs */
    uint64_t idle_entries;    /* times it went idle */
    uint32_t mhz;             /* present frequency */
    uint32_t max_mhz;         /* highest the hardware offers */
    uint32_t limit_mhz;       /* highest that policy allows now */
    uint32_t min_mhz;         /* lowest that policy allows */
    uint32_t nominal_mhz;     /* base frequency */
    uint32_t
        performance_permille;  /* delivered while not idle, of nominal, since the last refresh */
    uint64_t throttles;        /* times the hardware was throttled for heat */
    uint32_t tid;              /* thread running (0: idle), in the caller's pid namespace */
    uint32_t idle_state;       /* index of the state it is in, while PRCB_CPU_IDLE */
    uint64_t running_ns;       /* since when that thread, or idleness, has had the processor */
    uint32_t idle_state_count; /* elements of idle_states that are used */
    uint32_t pad;
    struct prcb_idle_state idle_states[PRCB_IDLE_STATES_MAX];
};

/* Reads processor number. -ENXIO: no such number, the machine can never have it. A possible
 * processor that is offline reads with its totals and without PRCB_CPU_ONLINE.
 * -EAGAIN: the block stayed inconsistent for 20 ms. */
PRCB_API int prcb_processor_read(struct prcb_processors *v, uint32_t number,
                                 struct prcb_processor *ret);

/* The times alone, of all processors at one moment: what a screen wants every second, at the cost
 * of a fraction of the records. On the bpf tier without a system call. */
struct prcb_processor_times {
    uint64_t present; /* enum prcb_processor_member bits of those that are, of the ones below */
    uint64_t wall_ns; /* members as in struct prcb_processor */
    uint64_t idle_ns;
    uint64_t user_ns;
    uint64_t kernel_ns;
    uint64_t dpc_ns;
    uint64_t interrupt_ns;
    uint64_t steal_ns;
    uint64_t flags; /* enum prcb_processor_flag bits */
};

/* Fills ret[0 .. count - 1] for the processors of these numbers; count may be less than there are,
 * not more (-ENXIO). size: of one, sizeof(struct prcb_processor_times); each is filled as far as it
 * goes. -EAGAIN: a block stayed inconsistent for 20 ms. */
PRCB_API int prcb_processors_times(struct prcb_processors *v, struct prcb_processor_times *ret,
                                   size_t size, uint32_t count);

/* *ret = later - earlier for two records of one processor, as prcb_account_sub does: earlier may
 * be NULL. */
PRCB_API void prcb_processor_sub(const struct prcb_processor *later,
                                 const struct prcb_processor *earlier, struct prcb_processor *ret);

/* Why records lack a member (one enum prcb_processor_member bit): one line, borrowed until close;
 * NULL if it is not lacking. */
PRCB_API const char *prcb_processor_absent_reason(const struct prcb_processors *v, uint64_t member);

#ifdef __cplusplus
}
#endif
#endif
