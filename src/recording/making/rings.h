/* SPDX-License-Identifier: BSD-2-Clause
 *
 * perf events that sample, and the rings they write to, one a processor: opened,
 * read, and handed on in the order of time, whatever processor a record came from.
 *
 * Threads  One at a time.
 * Errors   0 or -errno, words in *err.
 */
#ifndef PRCB_RECORD_RINGS_H
#define PRCB_RECORD_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/counters.h>
#include <prcb/prcb.h>
#include <prcb/sample.h>
#include <prcb/span.h>
#include <prcb/stack.h>

struct rings_options {
    const char *event; /* as prcb_counters_open names it */
    bool frequency;    /* rate is per second; else one sample in so many events */
    uint64_t rate;
    bool samples;         /* false: switches, threads and maps only */
    bool stacks;          /* chains of frame pointers */
    uint32_t stack_bytes; /* with them: registers and this much of the user's stack; 0: neither */
    bool switches;        /* a record when a thread leaves or gets a processor */
    bool on_exec;         /* begin with the next exec of the thread */
};

enum ring_kind {
    RING_SAMPLE,
    RING_SWITCH,
    RING_MAP,
    RING_NAME,
    RING_FORK,
    RING_EXIT,
    RING_LOST,
    RING_CAUSED, /* a switch as eBPF records it */
    RING_WAIT,   /* where a thread waits */
    RING_RAN,    /* what an interpreter's thread executes, for the sample that follows */
};

/* One record. Pointers last until the function it was handed to returns. */
struct ring_event {
    enum ring_kind kind;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint32_t cpu;
    int32_t pid, tid; /* -1: already gone */
    /* RING_SAMPLE */
    uint64_t ip, weight;
    bool kernel;
    const uint64_t *chain; /* as the kernel wrote it, with its marks; NULL: none */
    size_t chain_count;
    bool kernel_only;          /* a thread of the kernel: it has no user's stack */
    const uint64_t *registers; /* as the kernel numbers them (rings_registers); NULL: none */
    const uint8_t *stack;
    size_t stack_bytes;
    /* RING_SWITCH */
    bool out, preempted;
    bool both; /* the whole processor is watched: other_* are set */
    int32_t other_pid, other_tid;
    /* RING_MAP */
    uint64_t start, length, file_offset;
    const char *file;
    const uint8_t *build_id; /* NULL: not told */
    size_t build_id_size;
    uint64_t device, inode; /* of the file, told by another record of the mapping; inode 0: not
                             * told */
    /* RING_NAME */
    const char *name;
    bool exec;
    /* RING_FORK */
    int32_t parent_pid, parent_tid;
    /* RING_LOST */
    uint64_t lost;
    /* RING_CAUSED */
    const struct prcb_switch *caused;
    /* RING_RAN: for the sample of this thread and ip that is RINGS_RAN_NS away at most; it is
     * handed on before, that long before its time. */
    const struct prcb_node *nodes;
    uint32_t node_count, whole;
    /* RING_WAIT: chain is of user mode, innermost first, of ring_of_frame; texts and frames last as
     * long as the recording */
    const char *const *kernel_names; /* the kernel's functions above it, innermost first */
    size_t kernel_count;
    const char *missing;          /* why there is no chain; NULL: there is */
    const char *wait_kind, *word; /* word NULL: none */
    uint64_t one_in;              /* waits that it stands for */
    bool has_span;                /* its thread was in this span of a trace */
    struct prcb_span_id span;
};

#define RINGS_RAN_NS 200000ull
#define RINGS_FRAMES 256 /* of RING_WAIT, at most, of either mode */

#define RING_SOURCE      (1ull << 63)
#define RING_SOURCE_MASK (0xffull << 56)

/* A frame as one word: its address, or where it has none, as an interpreter's, its place here. What
 * a thread has on its stack are addresses of any kind: those that look like such a place, which no
 * processor takes, lose the mark. */
static inline uint64_t ring_of_frame(const struct prcb_frame *frame)
{
    if (!frame->address && frame->function) /* who calls NULL is at no address either */
        return (uint64_t)(uintptr_t)frame | RING_SOURCE;
    return (frame->address & RING_SOURCE_MASK) == RING_SOURCE ? frame->address & ~RING_SOURCE
                                                              : frame->address;
}

/* Returns the frame whose place the word is; NULL: it is an address. */
static inline const struct prcb_frame *ring_frame(uint64_t word)
{
    return (word & RING_SOURCE_MASK) == RING_SOURCE
               ? (const struct prcb_frame *)(uintptr_t)(word & ~RING_SOURCE)
               : NULL;
}

#if defined(__x86_64__)
#define RINGS_SP 7 /* the stack pointer, by its number in DWARF */
#else
#define RINGS_SP 31
#endif
/* Puts the registers of a sample by their numbers in DWARF; 32 at most. Returns the address of the
 * next instruction. */
uint64_t rings_registers(const uint64_t *registers, uint64_t ret[32]);

struct rings; /* opaque */

/* Makes rings for every processor; no event is in them yet. */
int rings_open(const struct rings_options *options, struct rings **ret, struct prcb_error *err);
/* Call it before the first thread is added: switches come from elsewhere. */
void rings_leave_switches(struct rings *rings);
void rings_close(struct rings *rings); /* NULL is allowed */

/* Samples a thread and all that it starts. -ESRCH: it has ended. */
int rings_add_thread(struct rings *rings, pid_t tid, struct prcb_error *err);
/* From now on events sample the threads alone that a program (PERF_EVENT_IOC_SET_BPF) lets through:
 * the descriptor stays open as long as the rings. */
void rings_filter(struct rings *rings, int program);
/* Samples every thread of the system. */
int rings_add_all(struct rings *rings, struct prcb_error *err);

/* After the first event was added: whether only user mode is sampled, as nothing else is
 * allowed. */
bool rings_user_only(const struct rings *rings);
/* These start what was not opened with on_exec, and stop everything. */
void rings_start(struct rings *rings);
void rings_stop(struct rings *rings);

/* These put a record from elsewhere among those of the rings, to be handed on when its time
 * comes. 0 or -ENOMEM. */
int rings_put_sample(struct rings *rings, const struct ring_event *event);
int rings_put_switch(struct rings *rings, const struct prcb_switch *record);
int rings_put_wait(struct rings *rings, const struct ring_event *event);
int rings_put_ran(struct rings *rings, const struct prcb_ran *ran);

/* Takes what the rings hold and calls fn for each record that is old enough that nothing older
 * can come; last: for all. *ret_full is how full the fullest ring was, in percent, or more if it
 * was more before. Returns fn's first value that is not 0, or -ENOMEM. */
int rings_drain(struct rings *rings, bool last, int (*fn)(const struct ring_event *, void *),
                void *ctx, unsigned *ret_full);

#endif
