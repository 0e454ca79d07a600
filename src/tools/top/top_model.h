/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What `prcb top` knows: threads, their processes, and a history of intervals. An interval
 * (struct top_frame) holds what changed in it; a thread that slept through it has no part of it,
 * and the wait that it is in describes it. The modules that measure (top_source.h) or read a
 * file (top_file.h) add intervals, the module that shows (top_rows.h) reads them. There is no
 * session, no clock and no output.
 *
 * Memory is bounded: the oldest intervals are dropped if there are more than max_frames or their
 * bytes exceed max_bytes, and threads that ended before the oldest are dropped with them.
 *
 * One thread. Errors: 0 or -errno.
 */
#ifndef PRCB_TOP_MODEL_H
#define PRCB_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/prcb.h>

#include "figures.h"
#include "table.h"

#define TOP_NONE UINT32_MAX /* no thread, no process, no interval */

enum top_state { TOP_UNKNOWN, TOP_RUN, TOP_READY, TOP_WAIT, TOP_ENDED };

/* What a thread is in, and since when (CLOCK_MONOTONIC). */
struct top_now {
    uint8_t state; /* enum top_state */
    uint8_t cause; /* enum prcb_cause */
    uint64_t since_ns;
};

/* Time in one cause of waiting, closed and open, and how many switches out there were for it.
 * Causes of kind READY have a count alone. */
struct top_part {
    uint32_t cause, count;
    uint64_t ns;
};

/* One thread in one interval. run + ready + the parts' time is wall, where the tier knows causes.
 */
struct top_delta {
    uint32_t thread; /* index of threads */
    uint32_t part_at;
    uint16_t part_count;
    uint32_t switches;
    uint64_t wall_ns, run_ns, ready_ns, wait_ns;
    struct top_now now; /* at the end */
};

/* The processors in one interval, summed; parts as in processor_figures.def. */
struct top_processors {
    bool known;
    uint32_t online;
    uint64_t parts[PROCESSOR_PARTS];
    uint64_t switches;
    bool exact; /* not of the kernel's tick */
};

struct top_frame {
    uint64_t end_ns, wall_ns; /* CLOCK_MONOTONIC, and its length */
    int64_t clock_ns;         /* the end, since 1970 */
    uint64_t present;         /* enum prcb_member bits that its threads have */
    struct top_delta *deltas; /* ascending by thread */
    struct top_part *parts;
    uint32_t count, part_count;
    struct top_processors processors;
    uint64_t run_ns, ready_ns, held_ns; /* of all threads; held: waiting and not idle */
};

struct top_thread {
    uint64_t key; /* 0: this place is free */
    pid_t tid, pid;
    char comm[16];
    bool kernel;
    uint32_t process;          /* index */
    uint64_t start_ns, end_ns; /* when it was first seen; end 0: it lives */
    struct top_now base;       /* before the oldest interval */
    struct top_now shown;      /* at the end of the one that is shown: top_model_show */
    /* The begins of two waits: the one whose stack was asked for, and the one that, as the stack
     * says, is for a lock or the like. 0: none. The code that reads stacks sets them. */
    uint64_t asked_ns, blocked_ns;
    uint32_t next; /* private: next free place */
};

struct top_process {
    pid_t pid;     /* 0 and no threads: this place is free */
    char *command; /* as /proc has it, blanks between words; NULL: not known, or a kernel thread */
    char *cgroup;  /* path; NULL: not known */
    char *container;  /* what the path says: "container 3f4e5d6c7b8a, pod 1b4e28ba"; NULL: none */
    char *user;       /* name; NULL: not known */
    uint32_t threads; /* that refer to it */
    uint32_t mark;    /* counted already: top_model.mark */
    uint32_t next;    /* private */
};

struct top_model {
    struct top_thread *threads;
    struct top_process *processes;
    uint32_t thread_count, process_count; /* places in use and free */
    uint32_t thread_room, process_room;
    struct top_frame *frames; /* a ring */
    uint32_t first, frame_count, frame_room;
    size_t bytes;        /* of frames */
    uint32_t max_frames; /* set by the owner after top_model_init */
    size_t max_bytes;
    uint32_t shown;   /* index of the interval that threads' `shown` is of; TOP_NONE */
    uint64_t dropped; /* intervals that went */
    /* private */
    struct table thread_places, process_places; /* by key, and by pid: indexes from 1 */
    uint32_t free_thread, free_process;
    struct top_frame making; /* the one that is being added */
    uint32_t delta_room, part_room;
    uint32_t mark;
    uint64_t swept; /* dropped, when threads were last swept */
};

void top_model_init(struct top_model *m);
void top_model_deinit(struct top_model *m);

/* ---- adding ---- */

/* Gets the thread's place, which is made if it is new. Names may change. -ENOMEM */
int top_model_thread(struct top_model *m, uint64_t key, pid_t pid, pid_t tid, const char *comm,
                     uint64_t seen_ns, uint32_t *ret);
uint32_t top_model_find(const struct top_model *m, uint64_t key); /* TOP_NONE */
uint32_t top_model_find_process(const struct top_model *m, pid_t pid);
/* Replaces a text that the model owns. NULL: not known. */
int top_model_set_text(char **text, const char *value);
/* Sets the path of a process's cgroup, and the container that it names. */
int top_model_set_cgroup(struct top_process *process, const char *path);

/* Add the deltas of one interval, each thread at most once; then the interval itself. An
 * interval that is not ended is dropped by the next begin. */
void top_model_begin(struct top_model *m);
int top_model_add(struct top_model *m, const struct top_delta *delta, const struct top_part *parts);
/* Takes everything but deltas, parts and sums from *frame. */
int top_model_end(struct top_model *m, const struct top_frame *frame);
/* Makes what was added the threads' state before the first interval, and no interval. */
void top_model_set_base(struct top_model *m);
/* Forgets all intervals, and threads with them. */
void top_model_clear(struct top_model *m);

/* ---- looking ---- */

/* Intervals are numbered from 0, the oldest. */
struct top_frame *top_model_frame(const struct top_model *m, uint32_t index);
/* Sets the threads' `shown` to their state at the end of an interval. */
void top_model_show(struct top_model *m, uint32_t index);
/* Returns the last interval that ended at or before a moment of the wall clock; the first if
 * none did. */
uint32_t top_model_at(const struct top_model *m, int64_t clock_ns);
/* Returns a thread's part of an interval; NULL: it slept through it, or did not live. */
const struct top_delta *top_frame_delta(const struct top_frame *frame, uint32_t thread);
bool top_thread_lived(const struct top_thread *thread, const struct top_frame *frame);

/* Returns CAUSE_HELD of a thread's wait, which was or is in a state; its stack may say so, too. */
bool top_thread_held(const struct top_thread *thread, struct top_now now);
/* Returns a thread of the last interval whose stack decides whether it is held, from place *at
 * on; *at is then the place behind it. NULL: there are no more. */
struct top_thread *top_model_next_unknown(struct top_model *m, uint32_t *at);

#endif
