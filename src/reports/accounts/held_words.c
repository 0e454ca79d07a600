/* SPDX-License-Identifier: BSD-2-Clause */
#include "held_words.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "cause.h"
#include "format.h"
#include "comm.h"
#include "quota.h"
#include "reach.h"
#include "text.h"

bool held_cause(uint32_t cause, const char *word)
{
    return cause_traits(cause)->class == CAUSE_CLASS_STOPPED ||
           (word &&
            (!strcmp(word, "stopped") || !strcmp(word, "traced") || !strcmp(word, "frozen")));
}

/* Threads of a process that are held in the same way have one line. */
static struct held_row *row_of(struct held_threads *threads, pid_t pid, const struct held *held)
{
    struct held_row *row = threads->rows;

    for (size_t i = 0; i < threads->count; i++, row++) {
        if (row->pid == pid && row->held.frozen == held->frozen && row->held.state == held->state &&
            row->held.tracer == held->tracer && !strcmp(row->held.group, held->group))
            return row;
    }
    if (threads->count == HELD_MOST)
        return NULL;
    threads->count++;
    *row = (struct held_row){.pid = pid, .held = *held};
    return row;
}

int held_threads_off(pid_t pid, pid_t tid, uint64_t *ret)
{
    char path[64], stat[1024];
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    length = reach_read(pid, path, stat, sizeof(stat) - 1);
    stat[length > 0 ? length : 0] = '\0';
    return length < 0 ? (int)length : held_off_ns(pid, tid, stat, ret);
}

void held_threads_add(struct held_threads *threads, pid_t pid, pid_t tid, const char *comm,
                      uint64_t ns, bool before)
{
    struct held_row *row;
    struct held held;
    uint64_t off;

    if (held_read(pid, tid, &held) || (!held.frozen && held.state != 'T' && held.state != 't'))
        return;
    if (held.frozen)
        held.state = 'S'; /* the first freezer shows D */
    row = row_of(threads, pid, &held);
    if (!row) {
        threads->left++;
        return;
    }
    if (!row->threads++)
        snprintf(row->comm, sizeof(row->comm), "%s", comm);
    if (before && !held_threads_off(pid, tid, &off) && off > ns)
        ns = off;
    row->ns = ns > row->ns ? ns : row->ns;
}

static void write_tracer(FILE *out, pid_t tracer)
{
    char raw[64], comm[256];

    if (!tracer)
        return;
    comm_read(tracer, tracer, raw, sizeof(raw));
    text_copy(TEXT_MARKS, raw, comm, sizeof(comm));
    fprintf(out, ", %s%s(%d)", comm, *comm ? " " : "", (int)tracer);
}

static void write_row(FILE *out, const char *lead, const struct held_row *row)
{
    time_t began = time(NULL) - (time_t)(row->ns / 1000000000);
    char comm[64], clock[32], span[FORMAT_CELL], group[4 * sizeof(row->held.group)];
    struct tm tm;

    text_copy(TEXT_MARKS, row->comm, comm, sizeof(comm));
    format_time(row->ns, span, sizeof(span));
    strftime(clock, sizeof(clock), row->ns < 86400000000000u ? "%H:%M:%S" : "%F %H:%M",
             localtime_r(&began, &tm));
    fprintf(out, "%s%s (%d): %" PRIu64 " thread%s", lead, comm, (int)row->pid, row->threads,
            row->threads == 1 ? " is" : "s are");
    if (row->held.frozen) {
        text_copy(TEXT_MARKS, row->held.group, group, sizeof(group));
        fprintf(out, " frozen by cgroup %s", group);
    } else if (row->held.state == 't') {
        fputs(" stopped by a tracer", out);
        write_tracer(out, row->held.tracer);
    } else {
        fputs(" stopped by a signal", out);
    }
    fprintf(out, " since %s (%s).\n", clock, span);
}

void held_threads_write(FILE *out, const char *lead, const struct held_threads *threads)
{
    for (size_t i = 0; i < threads->count; i++)
        write_row(out, lead, &threads->rows[i]);
    if (threads->left)
        fprintf(out, "%s%" PRIu64 " more thread%s stopped or frozen.\n", lead, threads->left,
                threads->left == 1 ? " is" : "s are");
}

bool held_quota_write(FILE *out, pid_t pid, pid_t tid)
{
    char quota[FORMAT_CELL], period[FORMAT_CELL], group[4 * sizeof(((struct quota *)0)->group)];
    struct quota by;
    int policy = sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK;

    /* These have budgets of their own, which cgroups of processor time do not tell. */
    if (policy == SCHED_DEADLINE)
        return fputs(": its own budget of SCHED_DEADLINE", out) >= 0;
    if (policy == SCHED_FIFO || policy == SCHED_RR)
        return fputs(": the budget of real-time threads", out) >= 0;
    if (quota_read(pid, tid, &by))
        return false;
    format_time(by.quota_us * 1000, quota, sizeof(quota));
    format_time(by.period_us * 1000, period, sizeof(period));
    text_copy(TEXT_MARKS, by.group, group, sizeof(group));
    fprintf(out,
            ": cgroup %s may run %s in each %s, and was held back in %" PRIu64 " of its %" PRIu64
            " periods so far",
            group, quota, period, by.throttled, by.periods);
    return true;
}
