/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes a critical path for people and for programs.
 */
#include "array.h"
#include "critical.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "format.h"
#include "json_doc.h"
#include "json_stream.h"
#include "text.h"

#define NAME     80
#define SENTENCE 3 /* sums in a sentence */

static const char *const kinds[] = {
    [CRITICAL_RUNS] = "runs",
    [CRITICAL_READY] = "ready",
    [CRITICAL_WAITS] = "waits",
    [CRITICAL_UNKNOWN] = "unknown",
};

/* The sum of steps of one thread that are alike. */
struct sum {
    const struct critical_step *step; /* the longest of them */
    uint64_t ns, count;
    bool mixed; /* behind several, or ended by several */
};

static bool is_same_end(const struct critical_step *a, const struct critical_step *b)
{
    return a->other == b->other && a->waker == b->waker;
}

static int compare_steps(const void *left, const void *right)
{
    const struct critical_step *a = ((const struct sum *)left)->step,
                               *b = ((const struct sum *)right)->step;

    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return strcmp(a->cause, b->cause);
}

static int compare_ends(const void *left, const void *right)
{
    const struct critical_step *a = ((const struct sum *)left)->step,
                               *b = ((const struct sum *)right)->step;
    int order = compare_steps(left, right);

    if (order)
        return order;
    if (a->other != b->other)
        return a->other < b->other ? -1 : 1;
    return a->waker < b->waker ? -1 : a->waker > b->waker;
}

static int by_time(const void *left, const void *right)
{
    const struct sum *a = left, *b = right;

    return a->ns > b->ns ? -1 : a->ns < b->ns;
}

/* Sums the steps that compare as equal, the most time first; NULL: no memory. */
static struct sum *sums_of(const struct critical *c, int (*compare)(const void *, const void *),
                           size_t *ret_count)
{
    struct sum *sums = calloc(c->count + 1, sizeof(*sums));
    size_t count = 0;

    if (!sums)
        return NULL;
    for (size_t i = 0; i < c->count; i++)
        sums[i] = (struct sum){&c->steps[i], c->steps[i].end_ns - c->steps[i].start_ns, 1, false};
    array_sort(sums, c->count, compare);
    for (size_t i = 0; i < c->count; i++) {
        if (count && !compare(&sums[count - 1], &sums[i])) {
            const struct critical_step *longest = sums[count - 1].step;

            sums[count - 1].mixed |= !is_same_end(longest, sums[i].step);
            if (longest->end_ns - longest->start_ns < sums[i].ns)
                sums[count - 1].step = sums[i].step;
            sums[count - 1].ns += sums[i].ns;
            sums[count - 1].count++;
        } else {
            sums[count++] = sums[i];
        }
    }
    array_sort(sums, count, by_time);
    *ret_count = count;
    return sums;
}

/* Writes "ready (quantum), behind make (17)"; "waits for disk, until interrupt 45 (nvme0q1)". */
static void describe(const struct critical *c, const struct critical_step *step, bool mixed,
                     char *ret, size_t size)
{
    const char *mostly = mixed ? "mostly " : "";
    const struct recorded_thread *other =
        step->other == SIZE_MAX ? NULL : &c->recording->threads[step->other];
    bool known = *step->cause;
    char by[NAME] = "";

    if (step->waker != SIZE_MAX)
        recording_waker_name(c->recording, step->waker, by, sizeof(by));
    if (step->kind == CRITICAL_WAITS)
        snprintf(ret, size, "waits%s%s%s%s%s%s", known ? " for " : "", step->cause, *by ? ", " : "",
                 *by ? mostly : "", *by ? "until " : "", by);
    else if (step->kind == CRITICAL_READY && other)
        snprintf(ret, size, "ready%s%s%s, %sbehind %s (%" PRId64 ")", known ? " (" : "",
                 step->cause, known ? ")" : "", mostly, other->name, other->tid);
    else if (step->kind == CRITICAL_READY)
        snprintf(ret, size, "ready%s%s%s", known ? " (" : "", step->cause, known ? ")" : "");
    else
        snprintf(ret, size, "%s", step->kind == CRITICAL_RUNS ? "runs" : "is not recorded");
}

static void print_line(const struct critical *c, const struct critical_step *step, FILE *out)
{
    const struct recorded_thread *thread = &c->recording->threads[step->thread];
    char what[3 * NAME], name[NAME];

    describe(c, step, false, what, sizeof(what));
    snprintf(name, sizeof(name), "%s (%" PRId64 ")", thread->name, thread->tid);
    format_cut(name, 24);
    text_print(out, TEXT_MARKS, name);
    fprintf(out, "%*s  ", (int)(24 - format_width(name)), "");
    text_print(out, TEXT_MARKS, what);
    fputc('\n', out);
}

/* Returns the stack of the longest of the steps that have one, among those that compare as equal to
 * this; SIZE_MAX: none has. */
static size_t stack_of(const struct critical *c, const struct sum *sum)
{
    size_t stack = SIZE_MAX;
    uint64_t most = 0;

    for (size_t i = 0; i < c->count; i++) {
        const struct critical_step *step = &c->steps[i];
        const struct sum one = {.step = step};
        const struct recorded_wait *wait;

        if (step->kind != CRITICAL_WAITS || step->end_ns - step->start_ns <= most ||
            compare_steps(sum, &one))
            continue;
        wait = recording_wait(c->recording, step->thread, step->start_ns, step->end_ns);
        if (!wait || wait->stack == SIZE_MAX)
            continue;
        stack = wait->stack;
        most = step->end_ns - step->start_ns;
    }
    return stack;
}

/* ", in Shop.save": where the thread waited then. */
static void print_place(const struct critical *c, const struct sum *sum, FILE *out)
{
    char name[NAME];

    snprintf(name, sizeof(name), "%s", recording_place(c->recording, stack_of(c, sum)));
    if (*name)
        fputs(", in ", out);
    text_print(out, TEXT_MARKS, name);
}

void critical_print_sentence(const struct critical *c, FILE *out)
{
    char what[3 * NAME], time[FORMAT_CELL];
    size_t count = 0;
    struct sum *sums = sums_of(c, compare_steps, &count);

    for (size_t i = 0; sums && i < count && i < SENTENCE && sums[i].ns * 20 >= sums[0].ns; i++) {
        const struct recorded_thread *thread = &c->recording->threads[sums[i].step->thread];

        describe(c, sums[i].step, sums[i].mixed, what, sizeof(what));
        format_time(sums[i].ns, time, sizeof(time));
        fprintf(out, "%s%s ", i ? "; " : "", time);
        text_print(out, TEXT_MARKS, thread->name);
        fprintf(out, " (%" PRId64 ") ", thread->tid);
        text_print(out, TEXT_MARKS, what);
        print_place(c, &sums[i], out);
    }
    free(sums);
}

static void print_sums(const struct critical *c, size_t top, FILE *out)
{
    size_t count = 0, shown;
    struct sum *sums = sums_of(c, compare_ends, &count);
    char time[FORMAT_CELL], share[FORMAT_CELL];
    uint64_t left = 0;

    shown = top && count > top ? top : count;
    fprintf(out, "%10s  %11s  %8s  %-24s\n", "TIME", "SHARE", "TIMES", "THREAD");
    for (size_t i = 0; sums && i < count; i++) {
        if (i >= shown) {
            left += sums[i].ns;
            continue;
        }
        format_time(sums[i].ns, time, sizeof(time));
        format_share(sums[i].ns, c->to_ns - c->from_ns, share, sizeof(share));
        fprintf(out, "%10s  %11s  %8" PRIu64 "  ", time, share, sums[i].count);
        print_line(c, sums[i].step, out);
    }
    if (left) {
        format_time(left, time, sizeof(time));
        format_share(left, c->to_ns - c->from_ns, share, sizeof(share));
        fprintf(out, "%10s  %11s  %8s  %zu more row%s: --top 0\n", time, share, "", count - shown,
                count - shown == 1 ? "" : "s");
    }
    free(sums);
}

static int by_length(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return a > b ? -1 : a < b;
}

/* Returns how long a step must be to be among the `top` longest; 0: each is. */
static uint64_t least_of(const struct critical *c, size_t top)
{
    uint64_t *lengths, least;

    if (!top || c->count <= top)
        return 0;
    lengths = malloc(c->count * sizeof(*lengths));
    if (!lengths)
        return 0;
    for (size_t i = 0; i < c->count; i++)
        lengths[i] = c->steps[i].end_ns - c->steps[i].start_ns;
    array_sort(lengths, c->count, by_length);
    least = lengths[top - 1];
    free(lengths);
    return least;
}

void critical_print_text(const struct critical *c, size_t top, FILE *out)
{
    const struct recorded_thread *thread = &c->recording->threads[c->thread];
    uint64_t least = least_of(c, top), zero = c->recording->start_ns;
    size_t shown = 0;

    fputs("What the time of ", out);
    text_print(out, TEXT_MARKS, thread->name);
    fprintf(out, " (%" PRId64 ") was spent on, from %.6f s to %.6f s of the recording:\n\n",
            thread->tid, (double)(c->from_ns - zero) / 1e9, (double)(c->to_ns - zero) / 1e9);
    print_sums(c, top, out);
    fprintf(out, "\nThe path%s:\n\n%12s  %10s  %-24s\n", least ? ", its longest steps" : "", "AT",
            "TIME", "THREAD");
    for (size_t i = 0; i < c->count; i++) {
        const struct critical_step *step = &c->steps[i];
        uint64_t ns = step->end_ns - step->start_ns;
        char time[FORMAT_CELL];

        if (ns < least || (top && shown == top))
            continue;
        shown++;
        format_time(ns, time, sizeof(time));
        fprintf(out, "%10.6f s  %10s  ", (double)(step->start_ns - zero) / 1e9, time);
        print_line(c, step, out);
    }
}

void critical_print_csv(const struct critical *c, const char *separator, FILE *out)
{
    static const char *const names[] = {"start_ns", "ns",         "pid",   "tid",
                                        "name",     "state",      "cause", "waker",
                                        "behind",   "behind_tid", "depth", NULL};
    struct csv csv = {.out = out, .separator = separator};

    csv_names(&csv, names);
    for (size_t i = 0; i < c->count; i++) {
        const struct critical_step *step = &c->steps[i];
        const struct recorded_thread *thread = &c->recording->threads[step->thread];
        const struct recorded_thread *other =
            step->other == SIZE_MAX ? NULL : &c->recording->threads[step->other];
        char by[NAME] = "";

        if (step->waker != SIZE_MAX)
            recording_waker_name(c->recording, step->waker, by, sizeof(by));
        csv_number(&csv, true, step->start_ns - c->recording->start_ns);
        csv_number(&csv, true, step->end_ns - step->start_ns);
        csv_signed(&csv, true, thread->pid);
        csv_signed(&csv, true, thread->tid);
        csv_text(&csv, thread->name);
        csv_text(&csv, kinds[step->kind]);
        csv_text(&csv, step->cause);
        csv_text(&csv, by);
        csv_text(&csv, other ? other->name : "");
        csv_signed(&csv, other, other ? other->tid : 0);
        csv_number(&csv, true, step->depth);
        csv_end(&csv);
    }
}

static void put_step(struct json_stream *s, const struct critical *c,
                     const struct critical_step *step)
{
    const struct recorded_thread *thread = &c->recording->threads[step->thread];
    const struct recorded_thread *other =
        step->other == SIZE_MAX ? NULL : &c->recording->threads[step->other];
    char by[NAME] = "";

    if (step->waker != SIZE_MAX)
        recording_waker_name(c->recording, step->waker, by, sizeof(by));
    json_stream_open(s, NULL, '{');
    json_stream_number(s, "start_ns", step->start_ns - c->recording->start_ns);
    json_stream_number(s, "ns", step->end_ns - step->start_ns);
    json_stream_signed(s, "pid", thread->pid);
    json_stream_signed(s, "tid", thread->tid);
    json_stream_text(s, "name", *thread->name ? thread->name : NULL);
    json_stream_text(s, "state", kinds[step->kind]);
    json_stream_text(s, "cause", *step->cause ? step->cause : NULL);
    json_stream_text(s, "waker", *by ? by : NULL);
    json_stream_text(s, "behind", other ? other->name : NULL);
    if (other)
        json_stream_signed(s, "behind_tid", other->tid);
    else
        json_stream_null(s, "behind_tid");
    json_stream_number(s, "depth", step->depth);
    json_stream_close(s, '}');
}

/* There may be as many steps as switches, so they are not kept as a document. */
void critical_print_json(const struct critical *c, FILE *out)
{
    const struct recorded_thread *thread = &c->recording->threads[c->thread];
    struct json_stream s = {.out = out, .dense = true};

    json_stream_open(&s, NULL, '{');
    json_stream_text(&s, "format", json_formats[JSON_CRITICAL].name);
    json_stream_number(&s, "format_version", json_formats[JSON_CRITICAL].version);
    json_stream_signed(&s, "pid", thread->pid);
    json_stream_signed(&s, "tid", thread->tid);
    json_stream_text(&s, "name", *thread->name ? thread->name : NULL);
    json_stream_number(&s, "start_ns", c->from_ns - c->recording->start_ns);
    json_stream_number(&s, "ns", c->to_ns - c->from_ns);
    json_stream_open(&s, "steps", '[');
    for (size_t i = 0; i < c->count; i++)
        put_step(&s, c, &c->steps[i]);
    json_stream_close(&s, ']');
    json_stream_close(&s, '}');
    fputc('\n', out);
}
