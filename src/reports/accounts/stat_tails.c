/* SPDX-License-Identifier: BSD-2-Clause */
#include "stat_tails.h"

#include <inttypes.h>
#include <stdlib.h>

#include <prcb/tails.h>

#include "format.h"

static const char *name_of(uint32_t cause)
{
    return cause == PRCB_CAUSE_NONE ? "ready" : prcb_cause_info(cause)->name;
}

struct stat_tails *stat_tails_read(struct prcb *session)
{
    struct stat_tails *ret = calloc(1, sizeof(*ret));

    for (uint32_t cause = 0; ret && cause < PRCB_CAUSE_MAX; cause++) {
        ret->tail[cause].size = sizeof(ret->tail[cause]);
        ret->longest_known[cause] = true;
        prcb_tail_read(session, cause, &ret->tail[cause], NULL); /* not a wait: stays empty */
    }
    return ret;
}

void stat_tails_since(struct stat_tails *now, const struct stat_tails *before)
{
    for (uint32_t cause = 0; cause < PRCB_CAUSE_MAX; cause++) {
        struct prcb_tail *tail = &now->tail[cause];
        const struct prcb_tail *earlier = &before->tail[cause];

        now->longest_known[cause] = tail->max_ns > earlier->max_ns;
        tail->ns -= earlier->ns;
        tail->count -= earlier->count;
        for (uint32_t i = 0; i < PRCB_TAIL_BUCKETS; i++)
            tail->buckets[i] -= earlier->buckets[i];
    }
}

/* Sorts those that have stretches, by their time. */
static size_t sort(const struct stat_tails *tails, uint32_t ret[PRCB_CAUSE_MAX])
{
    size_t count = 0;

    for (uint32_t cause = 0; cause < PRCB_CAUSE_MAX; cause++) {
        size_t at = count;

        if (!tails->tail[cause].count)
            continue;
        for (; at && tails->tail[ret[at - 1]].ns < tails->tail[cause].ns; at--)
            ret[at] = ret[at - 1];
        ret[at] = cause;
        count++;
    }
    return count;
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

/* For an interval it may only be known that it is not above a bound. */
static void format_longest(const struct stat_tails *tails, uint32_t cause, char *ret, size_t size)
{
    const struct prcb_tail *tail = &tails->tail[cause];
    char longest[FORMAT_CELL];
    uint64_t from, to = tail->max_ns;

    if (!tails->longest_known[cause])
        prcb_tail_quantile(tail, 1, &from, &to);
    format_time(to, longest, sizeof(longest));
    snprintf(ret, size, "%s%.20s", tails->longest_known[cause] ? "" : "up to ", longest);
}

void stat_tails_write(FILE *out, const struct stat_tails *tails)
{
    uint32_t causes[PRCB_CAUSE_MAX];
    size_t count = sort(tails, causes);

    fprintf(out, "\n  %-10s %10s %20s %20s %10s\n", "EACH TIME", "TIMES", "MEDIAN", "P99",
            "LONGEST");
    for (size_t i = 0; i < count; i++) {
        const struct prcb_tail *tail = &tails->tail[causes[i]];
        char median[FORMAT_CELL], p99[FORMAT_CELL], longest[FORMAT_CELL];

        format_bounds(tail, 0.5, median, sizeof(median));
        format_bounds(tail, 0.99, p99, sizeof(p99));
        format_longest(tails, causes[i], longest, sizeof(longest));
        fprintf(out, "  %-10s %10" PRIu64 " %20s %20s %10s\n", name_of(causes[i]), tail->count,
                median, p99, longest);
    }
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

static json_object *make_tail(struct json_doc *json, const struct prcb_tail *tail, bool longest)
{
    json_object *object = json_object_new_object(), *buckets = json_object_new_array();

    json_doc_put_number(json, object, "count", tail->count);
    json_doc_put_number(json, object, "ns", tail->ns);
    json_doc_put_member(json, object, "max_ns", tail->max_ns, longest);
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

json_object *stat_tails_json(struct json_doc *json, const struct stat_tails *tails)
{
    json_object *object = json_object_new_object();

    for (uint32_t cause = 0; cause < PRCB_CAUSE_MAX; cause++) {
        if (tails->tail[cause].count)
            json_doc_put(json, object, name_of(cause),
                         make_tail(json, &tails->tail[cause], tails->longest_known[cause]));
    }
    return object;
}
