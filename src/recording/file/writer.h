/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writing a recording: an SQLite file whose tables docs/record-file.md describes.
 * Rows go into a transaction that is committed now and then; what is committed
 * survives the end of the program, however it comes. The first failure sticks:
 * later calls return it and write nothing.
 *
 * Threads  One at a time.
 * Errors   0 or -errno; writer_error has the words.
 */
#ifndef PRCB_RECORD_WRITER_H
#define PRCB_RECORD_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include <prcb/prcb.h>

#include "figures.h"

#define RECORD_APPLICATION_ID 0x50524342 /* "PRCB" */
#define RECORD_VERSION        1

struct writer; /* opaque */

/* Creates a new file. An existing recording is replaced; any other existing file is left alone:
 * -EEXIST. */
int writer_create(const char *path, struct writer **ret, struct prcb_error *err);
/* Commits, ends and frees; NULL is allowed. Rows that a failure left out are not tried again. */
int writer_close(struct writer *w, struct prcb_error *err);

/* Returns what failed first; its code is 0 if nothing failed. */
const struct prcb_error *writer_error(const struct writer *w);

/* Commits everything so far. */
int writer_commit(struct writer *w);
/* From now on another thread waits for the disk, and rows are written meanwhile: until
 * writer_sync_here, or the end. Where that cannot be had, nothing changes. Committed rows survive
 * the program as before; a machine that loses power may lose the whole file. */
void writer_sync_apart(struct writer *w);
void writer_sync_here(struct writer *w);
/* Moves what was committed from the log into the file, except what a reader still holds in the
 * log. */
void writer_checkpoint(struct writer *w);
/* Returns the size of the file as it would be now, in bytes, including the log, which may hold
 * pages twice. */
uint64_t writer_bytes(const struct writer *w);

int writer_fact(struct writer *w, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An id of 0 and a text of NULL are stored as NULL. Times are CLOCK_MONOTONIC in ns. */

int writer_thread(struct writer *w, int64_t id, int64_t pid, int64_t tid, int64_t parent_pid,
                  const char *name, uint64_t start_ns, const char *start_state);
/* What the thread did when it began, or when the recording began. */
struct writer_state {
    const char *state; /* "running", "ready", "waiting" */
    const char *cause; /* NULL: not known */
    int64_t reason;    /* KWAIT_REASON; negative: not known */
};
int writer_thread_state(struct writer *w, int64_t id, const struct writer_state *state);
int writer_thread_name(struct writer *w, int64_t id, const char *name);
int writer_thread_end(struct writer *w, int64_t id, uint64_t end_ns);

struct writer_map {
    int64_t id, pid;
    uint64_t time_ns, start, length, file_offset;
    const char *file;
    const char *build_id;   /* hexadecimal digits */
    int64_t uid;            /* negative: not known */
    int64_t here_ns;        /* time_ns by the wall clock, if its process sees our files; else 0 */
    uint64_t device, inode; /* of the file, as the kernel says of the mapping; inode 0: not known */
};
int writer_map(struct writer *w, const struct writer_map *map);
/* Adds what became known of its file: the build id, or the numbers. */
int writer_map_file(struct writer *w, const struct writer_map *map);

/* A frame of a stack; caller 0: the outermost. Its function's name is known (name) or its address.
 */
int writer_stack(struct writer *w, int64_t id, int64_t caller, bool kernel, int64_t map,
                 uint64_t address, const char *name, const char *file, uint64_t line);
/* missing: why the stack is not complete; NULL: it is, or nobody knows. */
int writer_sample(struct writer *w, uint64_t time_ns, uint32_t cpu, int64_t thread, int64_t stack,
                  uint64_t weight, const char *missing);

struct writer_switch {
    uint64_t time_ns;
    uint32_t cpu;
    int64_t old_thread, new_thread; /* 0: not known, or not recorded */
    const char *state;              /* of the old thread: "ready", "waiting", "ended"; or NULL */
    const char *cause;              /* NULL: not known */
    int64_t reason;                 /* KWAIT_REASON; negative: not known */
    int64_t ready_ns;   /* of the time the new thread was off, it was ready; negative: not known */
    int64_t pebs_index; /* negative: none */
    int64_t waker;      /* who woke the new thread; 0: not known, or it did not wait */
    uint64_t woken_ns;  /* when, */
    int64_t woken_cpu;  /* and on which processor the waker was; negative: not known */
};
int writer_switch(struct writer *w, const struct writer_switch *s);

/* Somebody who wakes threads. */
struct writer_waker {
    int64_t id;
    const char *by;           /* enum prcb_edge_by in words */
    int64_t thread, pid, tid; /* of a thread; thread 0: it is not recorded */
    const char *name;         /* the thread's, the softirq's, the interrupt's; NULL: none */
    int64_t number;           /* of an interrupt or softirq; negative: none */
};
int writer_waker(struct writer *w, const struct writer_waker *waker);

/* What is known of where a thread waits. */
struct writer_wait {
    uint64_t time_ns;
    int64_t thread, stack; /* stack 0: none */
    const char *missing;   /* why; NULL: there is one */
    const char *kind, *word;
    uint64_t one_in;
    const char *trace_id, *span_id; /* in hexadecimal digits; NULL: not known, or none */
};
int writer_wait(struct writer *w, const struct writer_wait *wait);

/* The times of one processor at one moment; negative: not known. */
struct writer_times {
    uint64_t time_ns;
    uint32_t cpu;
    int64_t parts[PROCESSOR_PARTS];
};
int writer_times(struct writer *w, const struct writer_times *times);

int writer_loss(struct writer *w, uint64_t time_ns, uint32_t cpu, const char *what, uint64_t count);

/* Returns the SQLite connection, for code that writes tables of its own. */
struct sqlite3 *writer_handle(struct writer *w);

#endif
