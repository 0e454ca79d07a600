/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The span of a trace that a waiting thread is in: OpenTelemetry's thread context (OTEP 4947, as of
 * commit 009fafa5), a record that the thread's variable `otel_thread_ctx_v1` points to. The
 * specification wants the thread stopped while it is read; a thread whose switch count is the same
 * before and after has not run, which the caller proves.
 *
 * Where a thread's variables are is found without its registers: glibc's list of robust locks is a
 * member of the thread's descriptor, whose first and third words point to itself (x86-64), or which
 * ends where the thread pointer points (arm64). musl keeps no such list; its descriptor lies above
 * the thread's stack, and all are in one ring.
 *
 * Memory and files are somebody else's and hostile, as for runtimes.h: each loop has a bound.
 */
#ifndef PRCB_RUNTIMES_SPANS_H
#define PRCB_RUNTIMES_SPANS_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory.h"

#define SPAN_PLACES 4 /* files of a process that have the variable */

enum span_state {
    SPAN_UNPUBLISHED, /* nothing in the process publishes spans */
    SPAN_UNREAD,      /* the thread's variable could not be found */
    SPAN_NONE,        /* the thread is in none */
    SPAN_THERE,
};

struct span_answer {
    uint32_t state; /* enum span_state */
    uint32_t flags; /* trace-flags */
    unsigned char trace_id[16], span_id[8];
    uint64_t variable; /* the thread's, as long as it is in this program; 0: there may be others */
};

#define SPAN_RECORD 28 /* bytes before the attributes */

/* How a file's code gets to the variable. */
enum span_way {
    SPAN_OFFSET,    /* `at` behind the thread pointer */
    SPAN_OFFSET_AT, /* that offset stands at the address `at` */
    SPAN_MODULE_AT, /* the number of the thread's block stands there; `value` is the offset in it */
    SPAN_DESC_AT,   /* a descriptor (TLSDESC): the second word is one or leads to the other */
};

struct span_place {
    enum span_way way;
    uint64_t at, value;
};

struct span_places {
    struct span_place rows[SPAN_PLACES];
    uint32_t count;
};

struct span_thread {
    uint64_t robust; /* its list of robust locks; 0: it has none */
    uint64_t sp;
    int32_t tid; /* as its own process counts */
};

/* Looks at a file that the process has mapped. bias: of addresses to its own. */
void spans_add(struct span_places *places, Elf *elf, uint64_t bias);

/* Says what a record is that a thread's variable led to, but for answer->variable. */
void spans_decode(const unsigned char record[SPAN_RECORD], struct span_answer *ret);

/* memory: within a question (memory_begin). */
void spans_read(const struct span_places *places, struct memory *memory,
                const struct span_thread *thread, struct span_answer *ret);

#endif
