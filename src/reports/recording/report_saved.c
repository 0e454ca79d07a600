/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Why a file of `prcb flight` was kept, in sentences: the first says what happened to the thread
 * whose rule it was, and what its time went to, whoever's it was.
 */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "critical.h"
#include "format.h"
#include "text.h"

struct saved {
    char *by, *name, *cause;
    int64_t tid; /* 0: no thread */
    uint64_t at_ns, ns;
};

uint64_t report_number_fact(const struct recording *r, const char *name)
{
    char *text = recording_fact(r, name);
    uint64_t number = text ? strtoull(text, NULL, 10) : 0;

    free(text);
    return number;
}

static struct saved saved_of(const struct recording *r)
{
    return (struct saved){
        .by = recording_fact(r, "saved_by"),
        .name = recording_fact(r, "saved_name"),
        .cause = recording_fact(r, "saved_cause"),
        .tid = (int64_t)report_number_fact(r, "saved_thread"),
        .at_ns = report_number_fact(r, "saved_at_ns"),
        .ns = report_number_fact(r, "saved_for_ns"),
    };
}

static void free_saved(struct saved *s)
{
    free(s->by);
    free(s->name);
    free(s->cause);
}

static void print_text(FILE *out, const char *text)
{
    text_print(out, TEXT_MARKS, text ? text : "?");
}

static void print_time(uint64_t ns, FILE *out)
{
    char text[FORMAT_CELL];

    format_time(ns, text, sizeof(text));
    fputs(text, out);
}

/* "victim (2444) waited for futex for 300ms". */
static void print_stretch(const struct saved *s, FILE *out)
{
    const char *cause = s->cause ? s->cause : "?";

    print_text(out, s->name);
    fprintf(out, " (%" PRId64 ") ", s->tid);
    if (!strcmp(cause, "ready")) {
        fputs("was ready and had no processor", out);
    } else if (!strcmp(cause, "throttled")) {
        fputs("was held back by a CPU quota", out);
    } else {
        fputs("waited for ", out);
        print_text(out, cause);
    }
    fputs(" for ", out);
    print_time(s->ns, out);
}

static void print_what_happened(const struct recording *r, const struct saved *s, FILE *out)
{
    uint64_t from_ns = s->ns < s->at_ns ? s->at_ns - s->ns : 0;
    struct critical critical;

    from_ns = from_ns > r->start_ns ? from_ns : r->start_ns;
    print_stretch(s, out);
    if (s->at_ns > from_ns && !critical_make(r, s->tid, from_ns, s->at_ns, &critical, NULL)) {
        fputs(": of that time ", out);
        critical_print_sentence(&critical, out);
        critical_free(&critical);
    }
    fputc('\n', out);
}

bool report_print_saved(const struct report *report, FILE *out)
{
    const struct recording *r = report->recording;
    struct saved s = saved_of(r);
    bool is = s.by != NULL;

    if (is && s.tid)
        print_what_happened(r, &s, out);
    if (is) {
        fputs("saved by ", out);
        print_text(out, s.by);
        fputs(": the last ", out);
        print_time(report->span_ns, out);
        if (s.at_ns > r->start_ns) {
            fputs(s.tid ? "; that was until " : "; that was called for ", out);
            print_time(s.at_ns - r->start_ns, out);
            fputs(" after the beginning", out);
        }
        fputc('\n', out);
    }
    free_saved(&s);
    return is && !s.tid;
}
