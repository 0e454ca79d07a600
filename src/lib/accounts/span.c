/* SPDX-License-Identifier: BSD-2-Clause */
#include <prcb/span.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "session.h"
#include "sized.h"

/* This is OTEP 4947's Thread-Local Context Record: packed, in the byte order of the machine. */
struct record {
    unsigned char trace_id[16], span_id[8];
    unsigned char valid, flags;
    uint16_t attributes; /* bytes of these, which follow */
} __attribute__((packed, aligned(2)));

_Static_assert(sizeof(struct record) == 28, "as the specification has it");

/* The pointer by which readers find the record; its name and type are the specification's. Of the
 * two ways of publishing it has, this is the second: the pointer is set once, and the record is
 * changed in place under its `valid`. No reader ever follows a pointer to a span that has ended. */
PRCB_API extern __thread const void *volatile otel_thread_ctx_v1;
__thread const void *volatile otel_thread_ctx_v1;
static __thread volatile struct record current;

/* A reader looks while this thread does not run: it sees stores in the order in which the compiler
 * makes them, as a signal handler would. The fences keep that order; no processor has to. */
static void publish(const struct prcb_span_id *id)
{
    current.valid = 0; /* first: from here on the record is nobody's */
    atomic_signal_fence(memory_order_seq_cst);
    for (size_t i = 0; i < sizeof(current.trace_id); i++)
        current.trace_id[i] = id ? id->trace_id[i] : 0;
    for (size_t i = 0; i < sizeof(current.span_id); i++)
        current.span_id[i] = id ? id->span_id[i] : 0;
    current.flags = id ? id->flags : 0;
    atomic_signal_fence(memory_order_seq_cst);
    current.valid = id != NULL; /* last: now all of it is this span's */
    if (!otel_thread_ctx_v1)
        otel_thread_ctx_v1 = (const void *)&current;
}

static bool is_zero(const unsigned char *bytes, size_t size)
{
    while (size && !bytes[size - 1])
        size--;
    return !size;
}

int prcb_span_publish(const struct prcb_span_id *id)
{
    if (id &&
        (is_zero(id->trace_id, sizeof(id->trace_id)) || is_zero(id->span_id, sizeof(id->span_id))))
        return -EINVAL;
    if (otel_thread_ctx_v1 && otel_thread_ctx_v1 != (const void *)&current)
        return -EBUSY;
    publish(id);
    return 0;
}

static void keep_current(struct prcb_span_id *ret)
{
    *ret = (struct prcb_span_id){.flags = 0};
    if (!current.valid)
        return;
    memcpy(ret->trace_id, (const void *)current.trace_id, sizeof(ret->trace_id));
    memcpy(ret->span_id, (const void *)current.span_id, sizeof(ret->span_id));
    ret->flags = current.flags;
}

int prcb_span_begin(struct prcb_thread *t, const struct prcb_span_id *id, struct prcb_span *ret)
{
    int result;

    if (ret->size != sizeof(*ret))
        return -EINVAL;
    ret->thread = t;
    ret->begin.size = sizeof(ret->begin);
    keep_current(&ret->outer);
    result = t ? prcb_thread_read(t, &ret->begin) : 0;
    if (!result && id)
        result = prcb_span_publish(id);
    return result == -EBUSY ? 0 : result;
}

int prcb_span_end(struct prcb_span *span, struct prcb_account *ret)
{
    bool outer = !is_zero(span->outer.span_id, sizeof(span->outer.span_id));
    struct prcb_account now;
    int result;

    now.size = sizeof(now);
    result = !ret ? 0 : span->thread ? prcb_thread_read(span->thread, &now) : -EINVAL;

    prcb_span_publish(outer ? &span->outer : NULL);
    if (!result && ret) {
        account_sub(&now, &span->begin);
        result = sized_hand_out(&now, sizeof(now), ret);
    }
    return result;
}
