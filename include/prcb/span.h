/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb: what did this request wait for? A span of a trace, as OpenTelemetry names it by a trace's
 * and a span's number, from its beginning to its end on one thread: what the thread's account grew
 * by, in ns by cause. Meanwhile the numbers stand where readers outside of the process find them:
 * `prcb why --spans`, and others that read OpenTelemetry's thread context (OTEP 4947, as of
 * commit 009fafa5 of open-telemetry/opentelemetry-specification).
 *
 * This is no tracer: it makes no numbers and sends nothing. Where a tracer publishes the same
 * thread's context in the same variable, that one's stays.
 *
 * Threads  A span begins and ends on one thread, and one that began within it ends before it.
 *          Errors, sizes and units are as in prcb.h.
 */
#ifndef PRCB_SPAN_H
#define PRCB_SPAN_H

#include <prcb/prcb.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Who a span is: numbers as in a W3C traceparent header. Neither is all zero. */
struct prcb_span_id {
    unsigned char trace_id[16];
    unsigned char span_id[8];
    unsigned char flags; /* trace-flags; 1: sampled */
    unsigned char pad[7];
};

/* Makes it the calling thread's current span for readers outside; NULL: it has none. -EINVAL: a
 * number is zero. -EBUSY: a tracer publishes this thread's. */
PRCB_API int prcb_span_publish(const struct prcb_span_id *id);

/* A span that has begun. The caller keeps it until its end; members are the library's. */
struct prcb_span {
    size_t size; /* sizeof(struct prcb_span), set by the caller */
    struct prcb_thread *thread;
    struct prcb_span_id outer; /* all zero: there was none */
    struct prcb_account begin;
};

/* Begins a span and publishes it. t: the calling thread's own handle; NULL: there are no figures.
 * id NULL: nothing is published. That a tracer publishes is no error here. -EINVAL: a number is
 * zero; else as prcb_thread_read. */
PRCB_API int prcb_span_begin(struct prcb_thread *t, const struct prcb_span_id *id,
                             struct prcb_span *ret);
/* Ends it: the span around it is current again. *ret: what the account grew by meanwhile, as of
 * prcb_account_sub; NULL: nobody asks. Errors as of prcb_thread_read; -EINVAL: it has no figures.
 * The span has ended then, too. */
PRCB_API int prcb_span_end(struct prcb_span *span, struct prcb_account *ret);

#ifdef __cplusplus
}

/* A span for as long as a scope. Figures so far: end(), which ends it before. */
class prcb_span_scope
{
  public:
    explicit prcb_span_scope(const prcb_span_id &id, prcb_thread *t = 0) : state_(), open_(false)
    {
        state_.size = sizeof(state_);
        open_ = !prcb_span_begin(t, &id, &state_);
    }
    ~prcb_span_scope()
    {
        end(0);
    }
    /* As prcb_span_end; -1: it did not begin, or has ended. */
    int end(prcb_account *ret)
    {
        bool open = open_;

        open_ = false;
        return open ? prcb_span_end(&state_, ret) : -1;
    }

  private:
    prcb_span_scope(const prcb_span_scope &);
    prcb_span_scope &operator=(const prcb_span_scope &);
    prcb_span state_;
    bool open_;
};
#endif
#endif
