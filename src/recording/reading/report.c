/* SPDX-License-Identifier: BSD-2-Clause */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/causes.h>
#include <sqlite3.h>

#include "array.h"
#include "error.h"
#include "stretches.h"

#define CPU_MAX 65536 /* no machine has a processor of a higher number */

struct making {
    struct report *report;
    const struct recording *recording;
    size_t *seen; /* of functions: the sample stack that counted it last, plus one */
    size_t pass;
    size_t unknown; /* index of the function of stacks that have none */
};

/* ---- functions and threads --------------------------------------------------- */

static size_t function_of(const struct making *making, size_t stack)
{
    size_t function = stack == SIZE_MAX ? SIZE_MAX : making->recording->stacks[stack].function;

    return function == SIZE_MAX ? making->unknown : function;
}

/* Adds a stack with all samples that have it. */
static int count_stack(sqlite3_stmt *row, void *ctx)
{
    struct making *making = ctx;
    struct report *report = making->report;
    size_t stack = recording_stack(making->recording, sqlite3_column_int64(row, 0));
    uint64_t samples = (uint64_t)sqlite3_column_int64(row, 1);
    uint64_t weight = (uint64_t)sqlite3_column_int64(row, 2);
    struct report_function *leaf = &report->functions[function_of(making, stack)];

    report->samples += samples;
    report->weight += weight;
    leaf->samples += samples;
    leaf->self += weight;
    if (stack != SIZE_MAX)
        leaf->kernel = making->recording->stacks[stack].kernel;
    making->pass++;
    for (; stack != SIZE_MAX; stack = making->recording->stacks[stack].caller_index) {
        size_t function = function_of(making, stack);

        /* A function that calls itself counts once. */
        if (making->seen[function] == making->pass)
            continue;
        making->seen[function] = making->pass;
        report->functions[function].total += weight;
        if (making->recording->stacks[stack].caller_index != SIZE_MAX)
            report->has_stacks = true;
    }
    return 0;
}

static int by_self(const void *left, const void *right)
{
    const struct report_function *a = left, *b = right;

    if (a->self != b->self)
        return a->self > b->self ? -1 : 1;
    if (a->total != b->total)
        return a->total > b->total ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int count_functions(struct making *making, struct prcb_error *err)
{
    const struct recording *r = making->recording;
    struct report *report = making->report;
    size_t kept = 0;
    int result;

    making->unknown = r->function_count;
    report->functions = calloc(r->function_count + 1, sizeof(*report->functions));
    making->seen = calloc(r->function_count + 1, sizeof(*making->seen));
    if (!report->functions || !making->seen)
        return prcb_fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i <= r->function_count; i++) {
        report->functions[i].name = i < r->function_count ? r->functions[i].name : "[unknown]";
        report->functions[i].file = i < r->function_count ? r->functions[i].file : "";
    }
    result = recording_query(r, "SELECT stack, count(*), sum(weight) FROM samples GROUP BY stack",
                             count_stack, making, err);
    for (size_t i = 0; i <= r->function_count; i++) {
        if (report->functions[i].total || report->functions[i].samples)
            report->functions[kept++] = report->functions[i];
    }
    report->function_count = kept;
    array_sort(report->functions, kept, by_self);
    return result;
}

static int count_thread(sqlite3_stmt *row, void *ctx)
{
    struct making *making = ctx;
    size_t thread = recording_thread(making->recording, sqlite3_column_int64(row, 0));

    if (thread == SIZE_MAX)
        return 0;
    making->report->threads[thread].samples = (uint64_t)sqlite3_column_int64(row, 1);
    making->report->threads[thread].weight = (uint64_t)sqlite3_column_int64(row, 2);
    return 0;
}

static int by_weight(const void *left, const void *right)
{
    const struct report_thread *a = left, *b = right;

    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    if (a->run_ns != b->run_ns)
        return a->run_ns > b->run_ns ? -1 : 1;
    return a->thread < b->thread ? -1 : 1;
}

/* ---- processors ---------------------------------------------------------------- */

/* Returns the processor's row, made if there is none; NULL: no memory, or no processor has this
 * number. */
static struct report_processor *processor(struct report *report, uint64_t cpu)
{
    struct report_processor *made;

    for (size_t i = 0; i < report->processor_count; i++) {
        if (report->processors[i].cpu == cpu)
            return &report->processors[i];
    }
    if (cpu >= CPU_MAX)
        return NULL;
    if (array_append(report->processors, report->processor_count,
                     (struct report_processor){.cpu = (uint32_t)cpu}))
        return NULL;
    made = &report->processors[report->processor_count - 1];
    for (int i = 0; i < PROCESSOR_PARTS; i++)
        made->parts[i] = -1;
    for (size_t i = 0; i < REPORT_CELLS; i++)
        made->cells[i].thread = SIZE_MAX;
    return made;
}

static int count_processor(sqlite3_stmt *row, void *ctx)
{
    struct making *making = ctx;
    struct report_processor *p = processor(making->report, (uint64_t)sqlite3_column_int64(row, 0));

    if (p)
        p->samples = (uint64_t)sqlite3_column_int64(row, 1);
    return 0;
}

static int64_t grown(sqlite3_stmt *row, int column)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL ? -1 : sqlite3_column_int64(row, column);
}

/* clang-format off */
#define PART(name, ...) ", max(" #name ")-min(" #name ")"
static const char sum_times[] = "SELECT cpu"
#include "processor_figures.def"
    " FROM processor_times GROUP BY cpu";
/* clang-format on */

static int add_times(sqlite3_stmt *row, void *ctx)
{
    struct making *making = ctx;
    struct report_processor *p = processor(making->report, (uint64_t)sqlite3_column_int64(row, 0));

    if (!p)
        return 0;
    for (int i = 0; i < PROCESSOR_PARTS; i++)
        p->parts[i] = grown(row, 1 + i);
    return 0;
}

/* ---- stretches ------------------------------------------------------------------ */

/* Adds a thread's time on a processor to the parts of the line of time. */
static void fill_cells(const struct making *making, struct report_processor *p,
                       const struct stretch *stretch)
{
    const struct recording *r = making->recording;
    size_t cells = making->report->cells;
    uint64_t span = r->end_ns - r->start_ns;
    uint64_t start = stretch->start_ns - r->start_ns, end = stretch->end_ns - r->start_ns;

    if (!span || stretch->start_ns < r->start_ns || end > span)
        return;
    for (size_t i = (size_t)(start * cells / span); i < cells; i++) {
        uint64_t from = span * i / cells;
        uint64_t to = span * (i + 1) / cells;
        struct report_cell *cell = &p->cells[i];
        uint64_t ns;

        if (from >= end)
            break;
        ns = (end < to ? end : to) - (start > from ? start : from);
        cell->busy_ns += ns;
        /* The thread with the longest single stretch stands for the cell. */
        if (ns > cell->most_ns) {
            cell->most_ns = ns;
            cell->thread = stretch->thread;
        }
    }
}

static int add_wait(struct report *report, const struct stretch *stretch)
{
    bool ready = stretch->kind == STRETCH_READY;
    struct report_wait made = {.reason = stretch->reason,
                               .ready = ready,
                               .count = 1,
                               .ns = stretch->end_ns - stretch->start_ns};

    for (size_t i = 0; i < report->wait_count; i++) {
        struct report_wait *wait = &report->waits[i];

        if (wait->ready == ready && wait->reason == stretch->reason &&
            !strcmp(wait->cause, stretch->cause)) {
            wait->count++;
            wait->ns += stretch->end_ns - stretch->start_ns;
            return 0;
        }
    }
    /* There are no more than there are causes, or the file is damaged. */
    if (report->wait_count >= 4 * PRCB_CAUSE_MAX)
        return 0;
    strncpy(made.cause, stretch->cause, sizeof(made.cause) - 1);
    return array_append(report->waits, report->wait_count, made);
}

static int add_stretch(const struct stretch *stretch, void *ctx)
{
    struct making *making = ctx;
    struct report_thread *thread = &making->report->threads[stretch->thread];
    uint64_t ns = stretch->end_ns - stretch->start_ns;
    struct report_processor *p;

    switch (stretch->kind) {
    case STRETCH_RUNNING:
        thread->run_ns += ns;
        p = processor(making->report, stretch->cpu);
        if (p) {
            p->run_ns += ns;
            fill_cells(making, p, stretch);
        }
        return 0;
    case STRETCH_READY:
        thread->ready_ns += ns;
        return add_wait(making->report, stretch);
    case STRETCH_WAITING:
        thread->wait_ns += ns;
        return add_wait(making->report, stretch);
    }
    return 0;
}

static int by_time(const void *left, const void *right)
{
    const struct report_wait *a = left, *b = right;

    return a->ns == b->ns ? strcmp(a->cause, b->cause) : a->ns > b->ns ? -1 : 1;
}

static int by_number(const void *left, const void *right)
{
    const struct report_processor *a = left, *b = right;

    return a->cpu < b->cpu ? -1 : 1;
}

/* ---- all of it ------------------------------------------------------------------- */

static int take_number(sqlite3_stmt *row, void *ctx)
{
    *(uint64_t *)ctx = (uint64_t)sqlite3_column_int64(row, 0);
    return 0;
}

/* Returns the part of a thread's life within the recording that its switches do not tell. */
static uint64_t unknown_time(const struct recording *r, const struct report_thread *thread)
{
    uint64_t life = recording_life(r, thread->thread);
    uint64_t known = thread->run_ns + thread->ready_ns + thread->wait_ns;

    return life > known ? life - known : 0;
}

/* One row: reason, samples. Of a damaged recording there may be more reasons than there are. */
static int count_gap(sqlite3_stmt *row, void *ctx)
{
    struct report *report = ctx;
    const char *missing = (const char *)sqlite3_column_text(row, 0);
    uint64_t samples = (uint64_t)sqlite3_column_int64(row, 1);
    struct report_gap *gap = &report->gaps[report->gap_count];

    if (!missing) {
        report->complete = samples;
    } else if (report->gap_count < REPORT_GAPS) {
        snprintf(gap->missing, sizeof(gap->missing), "%s", missing);
        gap->samples = samples;
        report->gap_count++;
    }
    return 0;
}

static int make(struct making *making, struct prcb_error *err)
{
    const struct recording *r = making->recording;
    struct report *report = making->report;
    int result = count_functions(making, err);

    report->threads = calloc(r->thread_count + 1, sizeof(*report->threads));
    if (!result && !report->threads)
        result = prcb_fail(err, -ENOMEM, "out of memory");
    if (result)
        return result;
    report->thread_count = r->thread_count;
    for (size_t i = 0; i < r->thread_count; i++)
        report->threads[i].thread = i;
    result = recording_query(r, "SELECT thread, count(*), sum(weight) FROM samples GROUP BY thread",
                             count_thread, making, err);
    if (!result)
        result = recording_query(r, "SELECT cpu, count(*) FROM samples GROUP BY cpu",
                                 count_processor, making, err);
    if (!result && r->has_copies)
        result = recording_query(r,
                                 "SELECT missing, count(*) FROM samples GROUP BY missing "
                                 "ORDER BY 2 DESC, 1",
                                 count_gap, report, err);
    if (!result)
        result = recording_query(r, sum_times, add_times, making, err);
    if (!result)
        result = recording_query(r, "SELECT ifnull(sum(count),0) FROM losses", take_number,
                                 &report->lost, err);
    report->has_switches = r->has_switches;
    if (!result)
        result = stretches_walk_counting(r, add_stretch, making, &report->missed, err);
    if (!result && r->has_wait_stacks)
        result = offcpu_make(r, &report->offcpu, err);
    if (!result)
        result = spanned_make(r, &report->spanned, err);
    for (size_t i = 0; i < r->thread_count; i++)
        report->threads[i].unknown_ns = unknown_time(r, &report->threads[i]);
    return result;
}

int report_make(const struct recording *recording, size_t cells, struct report *ret,
                struct prcb_error *err)
{
    struct report report = {
        .recording = recording,
        .cells = cells,
        .weight_is_ns = recording_counts_ns(recording),
        .span_ns = recording->end_ns - recording->start_ns,
    };
    struct making making = {.report = &report, .recording = recording};
    int result = make(&making, err);

    free(making.seen);
    if (result) {
        report_free(&report);
        return result;
    }
    array_sort(report.waits, report.wait_count, by_time);
    array_sort(report.processors, report.processor_count, by_number);
    array_sort(report.threads, report.thread_count, by_weight);
    *ret = report;
    return 0;
}

void report_free(struct report *report)
{
    free(report->functions);
    free(report->threads);
    free(report->waits);
    free(report->processors);
    offcpu_free(&report->offcpu);
    spanned_free(&report->spanned);
    memset(report, 0, sizeof(*report));
}
