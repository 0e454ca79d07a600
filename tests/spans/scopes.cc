// SPDX-License-Identifier: BSD-2-Clause
// prcb_span_scope: spans end with their scope, also by an exception, and once.
#include <prcb/span.h>

#include <cstdio>
#include <cstring>
#include <ctime>

extern "C" __thread const unsigned char *volatile otel_thread_ctx_v1;

static int failed;
static void check(bool good, const char *what)
{
    if (!good) {
        std::printf("not so: %s\n", what);
        failed = 1;
    }
}

static prcb_span_id span_of(unsigned char number)
{
    prcb_span_id id = {};

    std::memset(id.trace_id, number, sizeof(id.trace_id));
    std::memset(id.span_id, number, sizeof(id.span_id));
    return id;
}

static bool current_is(unsigned char number)
{
    const unsigned char *record = otel_thread_ctx_v1;

    return number ? record[24] == 1 && record[0] == number && record[23] == number
                  : record[24] == 0;
}

static void leave_by_exception()
{
    prcb_span_scope inner(span_of(2));

    check(current_is(2), "the inner one is current");
    throw 1;
}

int main()
{
    const timespec pause = {0, 20000000};
    prcb_options how = {};
    prcb_account did = {};
    prcb_thread *self;
    prcb *session;

    how.size = sizeof(how);
    how.tier = PRCB_TIER_PERF;
    did.size = sizeof(did);
    if (prcb_open(&how, &session, 0) || prcb_thread_open_self(session, &self, 0))
        return 2;
    {
        prcb_span_scope outer(span_of(1), self);

        try {
            leave_by_exception();
        } catch (int) {
        }
        check(current_is(1), "the outer one is current again after an exception");
        nanosleep(&pause, 0);
        check(!outer.end(&did), "it has figures");
        check(current_is(0), "none is current after end()");
        check(outer.end(&did) == -1, "it ends once");
    }
    check(did.wall_ns >= 20000000 && did.wall_ns < 20000000000, "what it slept");
    check(current_is(0), "none is current");
    prcb_thread_close(self);
    prcb_close(session);
    return failed;
}
