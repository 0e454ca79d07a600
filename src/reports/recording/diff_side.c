/* SPDX-License-Identifier: BSD-2-Clause */
#include "diff_side.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "error.h"
#include "report.h"

#define SECOND 1e9

bool diff_side_is_command(const struct recording *recording)
{
    char *scope = recording_fact(recording, "scope");
    bool is = scope && !strcmp(scope, "command");

    free(scope);
    return is;
}

static void add_wait(const struct report_wait *wait, double *value)
{
    int part = wait->ready ? -1 : bench_part_find(*wait->cause ? wait->cause : "wait");

    if (part < 0)
        return;
    value[part] += (double)wait->ns;
    if (part >= BENCH_FIXED)
        value[part + PRCB_CAUSE_MAX] += (double)wait->count;
}

static struct bench_run run_of(const struct report *report, bool command)
{
    double scale = command ? 1 : SECOND / (double)report->span_ns;
    struct bench_run run;

    for (unsigned part = 0; part < BENCH_PARTS; part++)
        run.value[part] = part < BENCH_FIXED ? NAN : 0;
    run.value[BENCH_RUN] = run.value[BENCH_READY] = run.value[BENCH_THROTTLED] = 0;
    run.value[BENCH_WAIT] = 0; /* of no known cause */
    run.value[BENCH_THREADS] = (double)report->thread_count / scale;
    for (size_t i = 0; i < report->thread_count; i++) {
        run.value[BENCH_RUN] += (double)report->threads[i].run_ns;
        run.value[BENCH_READY] += (double)report->threads[i].ready_ns;
    }
    for (size_t i = 0; i < report->wait_count; i++)
        add_wait(&report->waits[i], run.value);
    run.value[BENCH_WALL] = (double)report->span_ns;
    for (unsigned part = 0; part < BENCH_PARTS; part++)
        run.value[part] *= scale;
    return run;
}

int diff_side_add(const struct recording *recording, struct bench_side *side,
                  struct prcb_error *err)
{
    struct report report;
    int result;

    if (!recording->has_switches)
        return prcb_fail(err, -EINVAL, "a recording has no context switches: nothing to compare");
    if (recording->end_ns <= recording->start_ns)
        return prcb_fail(err, -EINVAL, "a recording is empty");
    result = report_make(recording, REPORT_CELLS, &report, err);
    if (result)
        return result;
    if (array_append(side->runs, side->count, run_of(&report, diff_side_is_command(recording))))
        result = prcb_fail(err, -ENOMEM, "out of memory");
    report_free(&report);
    return result;
}
