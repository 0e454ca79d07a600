/* SPDX-License-Identifier: BSD-2-Clause */
#include "stat_tails.h"

#include <inttypes.h>
#include <stdlib.h>

#include <prcb/tails.h>

#include "format.h"

struct named_tail {
    const char *name;
    struct prcb_tail tail;
};

static const char *name_of(uint32_t cause)
{
    return cause == PRCB_CAUSE_NONE ? "ready" : prcb_cause_info(cause)->name;
}

/* Those with stretches, ready time first; *ret_count of them. NULL: no memory. */
static struct named_tail *read_all(struct prcb *session, size_t *ret_count)
{
    struct named_tail *tails = calloc(PRCB_CAUSE_MAX, sizeof(*tails));

    *ret_count = 0;
    for (uint32_t cause = 0; tails && cause < PRCB_CAUSE_MAX; cause++) {
        struct named_tail *at = &tails[*ret_count];

        at->tail.size = sizeof(at->tail);
        if (prcb_tail_read(session, cause, &at->tail, NULL) || !at->tail.count)
            continue;
        at->name = name_of(cause);
        ++*ret_count;
    }
    return tails;
}

static int by_time(const void *left, const void *right)
{
    const struct named_tail *a = left, *b = right;

    return (a->tail.ns < b->tail.ns) - (a->tail.ns > b->tail.ns);
}

/* "160us to 192us" */
static void format_bounds(const struct prcb_tail *tail, double quantile, char *ret, size_t size)
{
    char low[FORMAT_CELL], high[FORMAT_CELL];
    uint64_t from = 0, to = 0;

    prcb_tail_quantile(tail, quantile, &from, &to);
    format_time(from, low, sizeof(low));
    format_time(to, high, sizeof(high));
    snprintf(ret, size, "%.20s to %.20s", low, high);
}

void stat_tails_write(FILE *out, struct prcb *session)
{
    size_t count;
    struct named_tail *tails = read_all(session, &count);

    if (!tails)
        return;
    qsort(tails, count, sizeof(*tails), by_time);
    fprintf(out, "\n  %-10s %10s %20s %20s %10s\n", "EACH TIME", "TIMES", "MEDIAN", "P99",
            "LONGEST");
    for (size_t i = 0; i < count; i++) {
        char median[FORMAT_CELL], p99[FORMAT_CELL], longest[FORMAT_CELL];

        format_bounds(&tails[i].tail, 0.5, median, sizeof(median));
        format_bounds(&tails[i].tail, 0.99, p99, sizeof(p99));
        format_time(tails[i].tail.max_ns, longest, sizeof(longest));
        fprintf(out, "  %-10s %10" PRIu64 " %20s %20s %10s\n", tails[i].name, tails[i].tail.count,
                median, p99, longest);
    }
    free(tails);
}

static json_object *make_bounds(struct json_doc *json, const struct prcb_tail *tail,
                                double quantile)
{
    json_object *object = json_object_new_object();
    uint64_t from = 0, to = 0;

    prcb_tail_quantile(tail, quantile, &from, &to);
    json_doc_put_number(json, object, "above_ns", from);
    json_doc_put_number(json, object, "up_to_ns", to);
    return object;
}

static json_object *make_tail(struct json_doc *json, const struct prcb_tail *tail)
{
    json_object *object = json_object_new_object(), *buckets = json_object_new_array();

    json_doc_put_number(json, object, "count", tail->count);
    json_doc_put_number(json, object, "ns", tail->ns);
    json_doc_put_number(json, object, "max_ns", tail->max_ns);
    json_doc_put(json, object, "p50", make_bounds(json, tail, 0.5));
    json_doc_put(json, object, "p99", make_bounds(json, tail, 0.99));
    for (uint32_t i = 0; i < PRCB_TAIL_BUCKETS; i++) {
        json_object *bucket = tail->buckets[i] ? json_object_new_object() : NULL;
        uint64_t bound = prcb_tail_bound(i);

        if (!tail->buckets[i])
            continue;
        json_doc_put_member(json, bucket, "up_to_ns", bound, bound != UINT64_MAX);
        json_doc_put_number(json, bucket, "count", tail->buckets[i]);
        json_doc_append(json, buckets, bucket);
    }
    json_doc_put(json, object, "buckets", buckets);
    return object;
}

json_object *stat_tails_json(struct json_doc *json, struct prcb *session)
{
    json_object *object = json_object_new_object();
    size_t count;
    struct named_tail *tails = read_all(session, &count);

    json->failed |= !tails;
    for (size_t i = 0; i < count; i++)
        json_doc_put(json, object, tails[i].name, make_tail(json, &tails[i].tail));
    free(tails);
    return object;
}
