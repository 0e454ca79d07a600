/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Event counters of a thread: instructions, cycles, page faults and whatever else
 * the kernel's perf events or the processor count. Independent of sessions.
 *
 * A counter on the calling thread is read in user mode (no system call) where the
 * kernel allows it; else counters are read by the system call, software events all
 * by one. A counter that could not be had is absent, never 0, and says why.
 *
 * Threads  A set belongs to one thread at a time. A set opened on the calling
 *          thread is read in user mode by that thread only; another that reads it
 *          gets the same figures by the system call.
 * Errors   As in prcb.h.
 */
#ifndef PRCB_COUNTERS_H
#define PRCB_COUNTERS_H

#include <prcb/prcb.h>

#ifdef __cplusplus
extern "C" {
#endif

struct prcb_counters; /* a set of counters on one thread: opaque */

/* What counts. */
enum prcb_counter_source {
    PRCB_COUNTER_NONE = 0,
    PRCB_COUNTER_SOFTWARE = 1, /* the kernel */
    PRCB_COUNTER_HARDWARE = 2, /* the processor */
};

enum prcb_counter_flag {
    PRCB_COUNTER_PRESENT = 1 << 0,   /* value holds a count */
    PRCB_COUNTER_SCALED = 1 << 1,    /* it counted part of the time only (multiplexed): value is
                                        raw * enabled_ns / running_ns, an estimate */
    PRCB_COUNTER_USER_ONLY = 1 << 2, /* the kernel's own work was not counted: not permitted */
    PRCB_COUNTER_READ_USER = 1 << 3, /* this read made no system call */
};

/* One counter at one moment. */
struct prcb_counter {
    const char *name;    /* as it was asked for */
    const char *reason;  /* why it is absent; NULL when it is present */
    uint64_t value;      /* events since the set was opened */
    uint64_t raw;        /* of these, counted */
    uint64_t enabled_ns; /* time that it should have counted: the thread's run time */
    uint64_t running_ns; /* time that it did. Read in user mode on machines whose kernel lends
                            no clock (cap_user_time), both are as of the last switch */
    uint32_t flags;      /* enum prcb_counter_flag */
    uint32_t source;     /* enum prcb_counter_source */
    uint64_t reserved[2];
};

enum prcb_counters_flag {
    PRCB_COUNTERS_INHERIT = 1 << 0, /* threads and processes that the thread creates count in */
    PRCB_COUNTERS_ON_EXEC = 1 << 1, /* start with the thread's next exec */
};

#define PRCB_COUNTERS_MAX 64

/* Opens counters on a thread (0: the calling one) by a list of names with commas
 * between them: perf's ("instructions", "page-faults", "L1-dcache-loads"), raw codes
 * ("r01c2"), libpfm4's where the library was built with it, each with perf's ":u" or
 * ":k" behind it if only user or kernel mode shall count. They start at once.
 * Counters that are not available are in the set and absent.
 * -EINVAL     an unknown name, or more than PRCB_COUNTERS_MAX names
 * -EOPNOTSUPP none of them can count here
 * -EACCES     none may be counted (kernel.perf_event_paranoid)
 * -ESRCH      no such thread
 * -EMFILE, -ENOMEM */
PRCB_API int prcb_counters_open(const char *names, pid_t tid, unsigned flags,
                                struct prcb_counters **ret, struct prcb_error *err);
PRCB_API void prcb_counters_close(struct prcb_counters *counters); /* NULL is allowed */

/* How many counters the set has, those that are absent included. */
PRCB_API size_t prcb_counters_count(const struct prcb_counters *counters);
/* Reads the first count of them, in the order of the list. Strings are borrowed until
 * the set is closed. A counter that fails is absent with a reason. */
PRCB_API int prcb_counters_read(struct prcb_counters *counters, size_t count,
                                struct prcb_counter *ret);

/* ---- a command and all it starts ---- */

/* Counters of a child and of every thread and process that it starts, none missed
 * however short: each one's at its end, and the sum at any time. */
struct prcb_family;

/* As prcb_counters_open. child is a process that has not called exec yet
 * (prcb_spawn_hooked): it is counted from its exec on. */
PRCB_API int prcb_family_open(const char *names, pid_t child, struct prcb_family **ret,
                              struct prcb_error *err);
PRCB_API void prcb_family_close(struct prcb_family *family); /* NULL is allowed */

PRCB_API size_t prcb_family_count(const struct prcb_family *family);
/* The sums, ended threads' and living ones', as prcb_counters_read. */
PRCB_API int prcb_family_read(struct prcb_family *family, size_t count, struct prcb_counter *ret);

/* Whether threads that end leave their parts. Kernels from 5.13 on did not, until it was
 * fixed (6.1 does not, 6.18 does): there a family has sums only. */
PRCB_API bool prcb_family_has_parts(const struct prcb_family *family);

/* Calls fn with what ended threads have left since the last call: for each thread and
 * counter one part per processor, to be put together: value and running_ns add up,
 * enabled_ns is the largest. A thread's parts are all there once its account has
 * PRCB_ACCOUNT_EXITED. Call it ten times a second: the buffers hold some ten thousand
 * parts. *ret_lost grows by the parts that found no room. Stops at the first non-zero
 * return and returns it. */
struct prcb_family_part {
    pid_t pid, tid; /* in the caller's pid namespace */
    uint32_t index; /* of the counter */
    uint32_t pad;
    uint64_t value, enabled_ns, running_ns;
};
typedef int (*prcb_family_part_fn)(const struct prcb_family_part *part, void *ctx);
PRCB_API int prcb_family_collect(struct prcb_family *family, prcb_family_part_fn fn, void *ctx,
                                 uint64_t *ret_lost);

/* Whether a name means anything and whether it can count here, on a thread of the
 * caller's: as prcb_counters_open, and the same errors. *ret_source may be NULL. */
PRCB_API int prcb_counter_check(const char *name, uint32_t *ret_source, struct prcb_error *err);

/* What an event is to the kernel: members of its struct perf_event_attr, for those who open
 * events themselves. */
enum prcb_counter_event_flag {
    PRCB_COUNTER_EVENT_NO_USER = 1 << 0,   /* exclude_user */
    PRCB_COUNTER_EVENT_NO_KERNEL = 1 << 1, /* exclude_kernel */
};
struct prcb_counter_event {
    uint32_t type;
    uint32_t flags; /* enum prcb_counter_event_flag */
    uint64_t config, config1, config2;
    uint64_t reserved[2]; /* for what the kernel's structure has grown by */
};
/* The event of one name, without opening it. -EINVAL: the name is unknown. -EOPNOTSUPP: known,
 * and nothing backs it on this processor. */
PRCB_API int prcb_counter_event(const char *name, struct prcb_counter_event *ret,
                                struct prcb_error *err);

/* The events that have names of their own here, in the order of `prcb list`. */
struct prcb_counter_name {
    const char *name;
    const char *alias; /* NULL: none */
    uint32_t source;   /* enum prcb_counter_source */
};
/* Row i, static; NULL beyond the last. */
PRCB_API const struct prcb_counter_name *prcb_counter_name(size_t i);
typedef int (*prcb_counter_pfm_fn)(const char *name, const char *words, void *ctx);
/* Calls fn for each name that libpfm4 knows on this processor; 0 when there is no
 * libpfm4; stops at the first non-zero return and returns it. */
PRCB_API int prcb_counter_pfm_walk(prcb_counter_pfm_fn fn, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
