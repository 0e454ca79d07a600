/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb: samples as a processor's Debug Store (DS) leaves them, and switch records that say which
 * sample belongs to which thread.
 *
 * A control area belongs to a processor and holds the fields of Intel's 64-bit DS save area. The
 * caller points them at a buffer that it has from here and starts an event on the processor; then
 * records in a PEBS format appear in the buffer by the rules of DS: each is written at pebs_index,
 * which then moves on; reaching pebs_threshold makes a file descriptor readable; nothing is written
 * past pebs_maximum, and each record that found no room is counted. What plays the processor's part
 * is an eBPF program at the event's interrupt, so it works on processors that have no DS too;
 * prcb_sample_source says where the values of the records come from. docs/ds-areas.md has the rules
 * in full; <prcb/pebs.h> reads the records.
 *
 * Needs eBPF and the right to sample (root, or CAP_BPF and CAP_PERFMON): there is no other tier.
 *
 * Threads    A sampler may be used by several threads at once, one sample or switch stream of it
 *            by one at a time. The fields of an area are the caller's; see prcb_sample_drain for
 *            the one that both sides write.
 * Ownership  prcb_sampler_close ends all that the sampler gave out: areas, buffers, samples and
 *            streams. Everything goes with the process, also when it is killed.
 * Fork       Areas and buffers stay visible to a child, but only the parent may call.
 * Errors     As in prcb.h.
 */
#ifndef PRCB_SAMPLE_H
#define PRCB_SAMPLE_H

#include <prcb/prcb.h>

#ifdef __cplusplus
extern "C" {
#endif

struct prcb_sampler; /* memory both sides map, and the programs: opaque */

struct prcb_processors;

struct prcb_sampler_options {
    size_t size;   /* sizeof(struct prcb_sampler_options) */
    size_t memory; /* bytes for areas and buffers together, rounded up to 1 MiB; 0: 16 MiB. The
                      kernel allocates all of it at once and cannot page it out */
    const struct prcb_processors *wakers; /* a view (prcb/processors.h) that stays open as long as
                      the sampler: switch records say who woke the new thread, interrupts told from
                      threads by the view's programs, or, where it has none, by programs of the
                      sampler's own. Costs a program at each wakeup while a stream is open. NULL:
                      they do not */
    uint32_t flags;                       /* enum prcb_sampler_flag */
    uint32_t pad;
};

enum prcb_sampler_flag {
    PRCB_SAMPLER_CHOSEN = 1 << 0, /* samples and switch records are of the threads that
                                     prcb_sampler_choose is told, and of those that these start */
};

/* Loads the programs and allocates the memory; nothing runs yet. opts may be NULL.
 * -EINVAL, -E2BIG  size of the options
 * -EOPNOTSUPP the library was built without eBPF, or the kernel cannot run the programs
 * -EPERM      not permitted
 * -ENOMEM     the memory is not available */
PRCB_API int prcb_sampler_open(const struct prcb_sampler_options *opts, struct prcb_sampler **ret,
                               struct prcb_error *err);
/* Stops what runs. NULL is allowed. */
PRCB_API void prcb_sampler_close(struct prcb_sampler *s);
/* As prcb_session_program, of the sampler's programs. The kernel does not count what it misses of
 * those that write samples: UINT64_MAX. */
PRCB_API int prcb_sampler_program(const struct prcb_sampler *s, uint32_t i,
                                  struct prcb_program *ret);

/* Of a sampler with PRCB_SAMPLER_CHOSEN: chooses the threads that a process has, or (pid 0) one
 * thread, and those that they start from now on, processes included. Events of every thread
 * (tid 0) then cost the other threads a look at a timer's interrupt, and no thread anything at its
 * switches, as events of threads do. Numbers are those of the first pid namespace. With events of
 * the clocks (cpu-clock) only. -ESRCH there is none. -EINVAL, -ENOMEM */
PRCB_API int prcb_sampler_choose(struct prcb_sampler *s, pid_t pid, pid_t tid,
                                 struct prcb_error *err);
/* A program for other events of the clocks (PERF_EVENT_IOC_SET_BPF): only samples of chosen threads
 * are made. Borrowed. */
PRCB_API int prcb_sampler_filter(const struct prcb_sampler *s);
/* From now on that program goes on with this one for samples of chosen threads: prcb_ran_program of
 * a session. It has to let them be made. -EINVAL the sampler chooses no threads */
PRCB_API int prcb_sampler_filter_then(struct prcb_sampler *s, int program, struct prcb_error *err);

/* Whether cpu-clock can sample on a processor: 0, or as prcb_sample_open. */
PRCB_API int prcb_sampler_check(struct prcb_sampler *s, int cpu, struct prcb_error *err);

/* ---- control areas ------------------------------------------------------ */

/* Intel's 64-bit DS save area as processors of PEBS format 4 have it, which is also NT's
 * PROCESSOR_PROFILE_CONTROL_AREA from Windows 10 1903 on; those of formats 5 and 6 have more reset
 * values. Whatever the records' format, the area is this one. Addresses are of this process. */
struct prcb_ds_area {
    uint64_t bts_base, bts_index, bts_maximum, bts_threshold;
    uint64_t pebs_base;      /* first byte of the buffer, a multiple of 8 */
    uint64_t pebs_index;     /* where the next record goes */
    uint64_t pebs_maximum;   /* first byte past the buffer */
    uint64_t pebs_threshold; /* reaching it makes the descriptor readable */
    uint64_t gp_reset[8];    /* [0]: minus the period in 48 bits, if the options name none */
    uint64_t fixed_reset[4]; /* not used */
};

/* Installs a zeroed area, aligned to 64 bytes, for a processor (its Linux number).
 * -EEXIST it has one: *ret is that (and belongs to whoever installed it)
 * -ENODEV no such processor, or offline
 * -ENOSPC the sampler's memory is used up */
PRCB_API int prcb_ds_area_alloc(struct prcb_sampler *s, int cpu, struct prcb_ds_area **ret,
                                struct prcb_error *err);
/* Stops the sample that runs on it as prcb_sample_close does, so its handle is gone too, and frees
 * the area. So does a free by class 0x81. -ENOENT: the processor has none. */
PRCB_API int prcb_ds_area_free(struct prcb_sampler *s, int cpu, struct prcb_error *err);

/* Memory for records, zeroed, aligned to a page and mapped by both sides.
 * -ENOSPC the sampler's memory is used up. */
PRCB_API int prcb_sample_buffer_alloc(struct prcb_sampler *s, size_t bytes, void **ret,
                                      struct prcb_error *err);
/* -EINVAL: not a buffer of this sampler. -EBUSY: a sample writes to it. */
PRCB_API int prcb_sample_buffer_free(struct prcb_sampler *s, void *buffer, struct prcb_error *err);

/* ---- samples ------------------------------------------------------------ */

/* Groups of adaptive records (formats 4 to 6): the bits of PEBS_DATA_CFG. */
enum prcb_sample_group {
    PRCB_SAMPLE_MEMORY = 1 << 0,
    PRCB_SAMPLE_GPR = 1 << 1,
};

enum prcb_sample_flag {
    PRCB_SAMPLE_FREQUENCY = 1 << 0, /* rate is samples a second, which the kernel keeps by changing
                                       the period; else a period in events */
    PRCB_SAMPLE_THREAD = 1 << 1,    /* a struct prcb_sample_tail behind each record */
    PRCB_SAMPLE_STACK = 1 << 2,     /* and frame-pointer stacks in it; needs PRCB_SAMPLE_THREAD */
    PRCB_SAMPLE_INHERIT = 1 << 3,   /* tid: and whatever threads and processes it creates */
    PRCB_SAMPLE_NO_KERNEL = 1 << 4, /* no samples of the kernel's own work */
    PRCB_SAMPLE_ON_EXEC = 1 << 5,   /* tid: from its next exec on */
};

struct prcb_sample_options {
    size_t size;       /* sizeof(struct prcb_sample_options) */
    const char *event; /* a name of prcb_counters_open; NULL: "cpu-clock", of which a period is in
                          nanoseconds */
    uint64_t rate;     /* samples a second, or events between two samples: PRCB_SAMPLE_FREQUENCY.
                          0: the period that gp_reset[0] of the area says */
    uint32_t flags;    /* enum prcb_sample_flag */
    uint32_t format;   /* PEBS format of the records: 0 to 6 */
    uint32_t groups;   /* formats 4 to 6: enum prcb_sample_group */
    uint32_t depth;    /* PRCB_SAMPLE_STACK: most frames of a stack, 1 to 127; 0: 64 */
    pid_t tid;         /* sample this thread only, while it runs on the processor; 0: all that runs
                          there. prcb_sample_add adds more */
};

/* Behind each record with PRCB_SAMPLE_THREAD, not part of any PEBS format. With PRCB_SAMPLE_STACK
 * room for depth frames of 8 bytes follows: addresses, innermost first. */
struct prcb_sample_tail {
    uint64_t time_ns;       /* CLOCK_MONOTONIC */
    uint32_t tid, pid;      /* in the initial pid namespace; 0: idle */
    uint32_t flags;         /* PRCB_TAIL_* */
    uint16_t kernel_frames; /* how many of the frames are the kernel's: the first ones */
    uint16_t user_frames;   /* and the program's: after them */
};
#define PRCB_TAIL_KERNEL 1u /* the interrupt came in kernel mode */

enum prcb_sample_source {
    PRCB_SOURCE_CLOCK = 1,   /* the cpu-clock timer: registers of the interrupted work, ip exact;
                                eventing ip is ip, no data address, latency 0 */
    PRCB_SOURCE_COUNTER = 2, /* another event that is not precise: registers where its interrupt
                                came, which is after the event */
    PRCB_SOURCE_PRECISE = 3, /* a precise hardware event: ip, data address, data source and latency
                                are the processor's */
};

struct prcb_sample; /* an event that writes to a processor's area: opaque */

/* Starts an event on a processor that has an area. From pebs_base to pebs_maximum must lie in one
 * buffer of the sampler and hold a record at least, pebs_index between them at a whole record from
 * the base; all are looked at once now, and index, maximum and threshold again at each record: a
 * value that has become wrong costs records, which are counted, and nothing else.
 * -EINVAL     a field of the area, or an option, as the words say
 * -EBUSY      a sample runs on this processor
 * -ENOENT     the processor has no area
 * -EOPNOTSUPP the event cannot sample here, or a group has no source here
 * -E2BIG (size of opts), -EACCES, -EPERM, -ESRCH (tid), -ENODEV */
PRCB_API int prcb_sample_open(struct prcb_sampler *s, int cpu,
                              const struct prcb_sample_options *opts, struct prcb_sample **ret,
                              struct prcb_error *err);
/* Samples one more thread into the same area. Only if the sample was started with a tid. */
PRCB_API int prcb_sample_add(struct prcb_sample *p, pid_t tid, struct prcb_error *err);
/* No record is written after it returns; the area and the records stay, the handle is gone. NULL is
 * allowed. */
PRCB_API void prcb_sample_close(struct prcb_sample *p);

PRCB_API enum prcb_sample_source prcb_sample_source(const struct prcb_sample *p);
/* Bytes from one record to the next, tail included; and of these, the PEBS record's. */
PRCB_API size_t prcb_sample_stride(const struct prcb_sample *p);
PRCB_API size_t prcb_sample_record_size(const struct prcb_sample *p);
/* The stride that a start with these options would have; 0: they are not valid. */
PRCB_API size_t prcb_sample_stride_of(const struct prcb_sample_options *opts);

/* A descriptor for poll and epoll: readable (POLLIN) once a record has reached the threshold, until
 * prcb_sample_drain or prcb_sample_acknowledge. Borrowed; not to be read or closed. */
PRCB_API int prcb_sample_fd(const struct prcb_sample *p);
PRCB_API void prcb_sample_acknowledge(struct prcb_sample *p);

typedef int (*prcb_sample_drain_fn)(const void *records, size_t bytes, void *ctx);
/* Hands the records out, oldest first, and sets pebs_index back to pebs_base: no record is lost or
 * seen twice by that, also while others are written. (A plain store to pebs_index while the event
 * runs may meet a record that is being written: that one is then written again at the new place, or
 * lost and counted.) records is valid during the call; fn's first non-zero return stops the
 * draining, leaves the index as it is and is the result. -EINVAL: the index is not at a record of
 * the buffer. */
PRCB_API int prcb_sample_drain(struct prcb_sample *p, prcb_sample_drain_fn fn, void *ctx);

struct prcb_sample_counts {
    size_t size;         /* sizeof(struct prcb_sample_counts), set by the caller */
    uint64_t interrupts; /* of the event: written + lost */
    uint64_t written;    /* records */
    uint64_t lost_full;  /* not written: no room below the maximum */
    uint64_t lost_index; /* not written: the index was outside the buffer, or no multiple of 8 */
    uint64_t lost_moved; /* not written: the index was moved each time they were tried */
    uint64_t thresholds; /* how often the threshold was reached */
    uint64_t throttled;  /* times the kernel stopped the event for a while (perf's throttling):
                            events that did not interrupt are in no other figure */
};
/* -EINVAL: ret->size is not set. */
PRCB_API int prcb_sample_count(const struct prcb_sample *p, struct prcb_sample_counts *ret);

/* Branch Trace Store on a processor: needs the PMU intel_bts, -EOPNOTSUPP where it is not there. As
 * prcb_sample_open, with the bts members of the area and records of 0x18 bytes; of opts count the
 * flag PRCB_SAMPLE_NO_KERNEL and tid. prcb_sample_drain moves branches from the kernel's ring to
 * the buffer and hands them out; the descriptor is readable when half that ring is full. */
PRCB_API int prcb_bts_open(struct prcb_sampler *s, int cpu, const struct prcb_sample_options *opts,
                           struct prcb_sample **ret, struct prcb_error *err);

/* ---- switch records ----------------------------------------------------- */

enum prcb_switch_flag {
    PRCB_SWITCH_INDEX = 1 << 0,     /* an area was active on the processor: pebs_index */
    PRCB_SWITCH_USER_MODE = 1 << 1, /* the old thread waits for its own program's sake: it is in a
                                       system call or was interrupted in user mode. Not set: a
                                       kernel thread */
    PRCB_SWITCH_READY = 1 << 2,     /* ready_ns is known */
};

/* A context switch, as the processor made it. */
struct prcb_switch {
    uint64_t time_ns;    /* CLOCK_MONOTONIC */
    uint64_t pebs_index; /* of the processor's area at this moment: samples below it (and not below
                            the one of the switch before) are the old thread's */
    uint32_t cpu;
    uint32_t flags;            /* enum prcb_switch_flag */
    uint32_t old_tid, old_pid; /* in the initial pid namespace; 0: idle */
    uint32_t new_tid, new_pid;
    uint32_t old_state;         /* the kernel's: 0 running (it could have gone on), 1 interruptible,
                                   2 uninterruptible, ... */
    int32_t old_syscall;        /* number of the system call it is in; -1: none */
    int16_t old_prio, new_prio; /* the kernel's: 0..99 real-time (0 highest), 100..139 nice */
    uint8_t cause;              /* enum prcb_cause; NONE for the idle thread */
    uint8_t reason;             /* KWAIT_REASON of that cause */
    uint8_t waker_by;           /* who ended the new thread's wait: enum prcb_edge_by of
                                   prcb/edges.h. 0: it did not wait, it has just been created, or it
                                   is not known: so are the members below */
    uint8_t pad;
    uint64_t ready_ns;     /* how long the new thread was ready since it left a processor, as
                              accounts count it: moved or not, and not while a quota held it
                              back; without PRCB_SWITCH_READY 0 */
    uint64_t samples;      /* records written to the area before this switch, since the sample was
                              started: the old thread's are those from the number in the switch before
                              to below this one. Unlike pebs_index it is not set back by draining */
    uint64_t woken_ns;     /* CLOCK_MONOTONIC; with waker_by: when that was, */
    uint32_t woken_cpu;    /* on which processor the waker was, */
    uint32_t waker_vector; /* the interrupt's or softirq's number, PRCB_INTERRUPT_UNKNOWN: none, */
    uint32_t waker_tid, waker_pid; /* and the thread, in the initial pid namespace, */
    char waker_comm[16];           /* with its name then */
    /* These are empty in records of prcb_switches_read, and of an earlier prcbd: */
    char old_comm[16], new_comm[16]; /* the threads' names then */
    uint64_t wait_ns;                /* what the new thread was off for beside ready_ns, */
    uint32_t new_cause; /* and what it was: enum prcb_cause, PRCB_CAUSE_NONE: not known */
    uint32_t pad1;
};

struct prcb_switches; /* a stream of switch records: opaque */

/* Starts recording every switch of every processor. bytes of room between two reads, 0: 8 MiB; each
 * processor has its part, of 512 KiB at least if bytes are as many, rounded up to a power of two. A
 * record takes 80, with wakers 120. One stream a sampler.
 * -EBUSY there is one already. -EOPNOTSUPP, -EPERM, -ENOMEM */
PRCB_API int prcb_switches_open(struct prcb_sampler *s, size_t bytes, struct prcb_switches **ret,
                                struct prcb_error *err);
PRCB_API void prcb_switches_close(struct prcb_switches *w);
/* Readable when a quarter of a processor's room is in use (POLLIN). With few switches that may take
 * long: read by a clock too. Borrowed. */
PRCB_API int prcb_switches_fd(const struct prcb_switches *w);
typedef int (*prcb_switch_fn)(const struct prcb_switch *record, void *ctx);
/* Calls fn for each record there is, in the order they were made on each processor, one processor
 * after the other; stops at the first non-zero return and returns it, else 0. The record on
 * which it stopped counts as read. *ret_lost: how many found no room since the stream was opened;
 * may be NULL. */
PRCB_API int prcb_switches_read(struct prcb_switches *w, prcb_switch_fn fn, void *ctx,
                                uint64_t *ret_lost);

/* ---- of a session ---- */

struct prcb_switch_room {
    size_t size;   /* sizeof(struct prcb_switch_room), set by the caller */
    uint64_t lost; /* records that were overwritten before they were read, since the session was
                      opened */
    uint32_t
        full; /* percent of the fullest processor's room that was in use: at 100 some are lost */
    uint32_t pad;
    uint64_t from_ns; /* CLOCK_MONOTONIC: from here on this call handed out all that there were;
                         0: all since the call before, or the beginning */
};

/* Switch records of the threads that a session with PRCB_OPEN_SWITCHES profiles. As
 * prcb_switches_read, but: numbers are of the caller's pid namespace; a side of the switch that is
 * none of the session's threads is 0 like the idle thread, its part of the record empty; there are
 * no samples' members; a waker that /proc would not show to this user is PRCB_BY_OTHERS, and
 * woken_cpu then UINT32_MAX. The records of each processor come in order, one processor after the
 * other. On the bpf tier each has room for eight a kibibyte of its part of
 * prcb_options.switch_bytes; on the daemon tier for 256 to 16,384, two for a switch between two of
 * the threads: what is not read in time is overwritten and counted. So who never
 * reads pays for no reading, and has the last ones when he does. A switch that
 * the kernel does not report has no record; the account has its time all the same. To be called by
 * one thread at a time. ret: may be NULL. -EOPNOTSUPP the session keeps none: *err says why.
 * -EINVAL: ret->size is not set */
PRCB_API int prcb_session_switches(struct prcb *p, prcb_switch_fn fn, void *ctx,
                                   struct prcb_switch_room *ret, struct prcb_error *err);
/* The next prcb_session_switches hands out every record that is still there, read before or not:
 * the last moments of a session whose records are read when something has happened, and not
 * before. By the one that reads them. -EOPNOTSUPP as above */
PRCB_API int prcb_session_switches_rewind(struct prcb *p, struct prcb_error *err);

#ifdef __cplusplus
}
#endif
#endif
