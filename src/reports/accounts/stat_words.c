/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Says what the table means, in sentences: the biggest cost, who paid it, and what the figures
 * lack.
 */
#include "array.h"
#include "stat_report.h"
#include "stat_idle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cause.h"
#include "format.h"
#include "held_words.h"
#include "misses.h"
#include "quota.h"
#include "text.h"

const struct stat_rows_kind stat_rows_kinds[] = {
    [STAT_THREADS] = {0, "TID", "THREAD", "threads"},
    [STAT_PROCESSES] = {ACCOUNT_VIEW_PROCESSES, "PID", "PROCESS", "processes"},
    [STAT_CGROUPS] = {ACCOUNT_VIEW_CGROUPS, NULL, "CGROUP", "cgroups"},
    [STAT_NAMES] = {ACCOUNT_VIEW_NAMES, NULL, "NAME", "names"},
};

#define COST_RUN       PRCB_CAUSE_MAX       /* on a processor */
#define COST_READY     (PRCB_CAUSE_MAX + 1) /* able to run, waiting for a processor */
#define COST_WAIT      (PRCB_CAUSE_MAX + 2) /* waiting, for what is not known */
#define COSTS          (PRCB_CAUSE_MAX + 3)
#define IDLE_WORDS     4
#define SECOND_PERCENT 10 /* a second cost is worth a sentence from here on */

/* The threads that the words are about, and what they spent. Kernel threads are left out if
 * there are others: they wait for work by design. */
struct costs {
    struct account_row **rows; /* owned; sorted by name */
    size_t count;
    uint64_t threads, wall_ns;
    uint64_t spent_ns[COSTS]; /* open stretches included */
    uint64_t open_ns[COSTS];  /* of that, what is not over */
    uint64_t ready_counts[PRCB_CAUSE_MAX];
    uint64_t idle_ns; /* by design: in none of spent_ns */
    bool kernel_left_out;
    uint64_t blocked_ns;               /* of kernel threads that are left out */
    const struct account_row *blocked; /* the one that was for longest; NULL: none */
    const bool *shown;                 /* causes of which there may be a sentence */
    const struct stat_report *report;
};

static uint64_t cost_of(const struct account_row *row, uint32_t cost)
{
    const struct prcb_cause_info *info = prcb_cause_info(cost);
    bool waits = row->now.present & PRCB_HAS_WAITS;
    const struct wait_cell *cell;

    if (cost == COST_RUN)
        return row->now.run_ns;
    if (cost == COST_READY)
        return row->now.ready_ns;
    if (cost == COST_WAIT && waits)
        return 0;
    if (cost == COST_WAIT) {
        cell = account_sums_cell(&row->now, PRCB_CAUSE_NONE);
        return row->now.wait_ns - (cell ? cell->idle_ns : 0);
    }
    if (!waits || (info && info->kind == PRCB_KIND_READY))
        return 0;
    cell = account_sums_cell(&row->now, cost);
    return cell ? cell->spent_ns - cell->idle_ns : 0;
}

static void add_row(struct costs *costs, struct account_row *row)
{
    costs->rows[costs->count++] = row;
    costs->threads += row->threads;
    costs->wall_ns += row->now.wall_ns;
    for (uint32_t cost = 0; cost < COSTS; cost++)
        costs->spent_ns[cost] += cost_of(row, cost);
    for (uint32_t i = 0; i < row->now.cell_count; i++) {
        const struct wait_cell *cell = &row->now.cells[i];

        costs->open_ns[cell->cause] +=
            cell->open_ns - (cell->idle_ns < cell->open_ns ? cell->idle_ns : cell->open_ns);
        costs->idle_ns += cell->idle_ns;
        costs->ready_counts[cell->cause] += cell->count;
    }
}

/* Returns for how long a kernel thread was blocked: neither without work nor in the midst of what
 * it can be interrupted in. It counts in the load average then. */
static uint64_t blocked_of(const struct account_row *row)
{
    uint64_t ns = 0;

    for (uint32_t i = 0; i < row->now.cell_count; i++)
        ns += cause_has(row->now.cells[i].cause, CAUSE_HELD) ? row->now.cells[i].spent_ns : 0;
    return ns;
}

static void add_blocked(struct costs *costs, const struct account_row *row)
{
    uint64_t ns = blocked_of(row);

    costs->blocked_ns += ns;
    if (ns > (costs->blocked ? blocked_of(costs->blocked) : 0))
        costs->blocked = row;
}

static int by_row_name(const void *left, const void *right, void *ctx)
{
    return strcmp(stat_row_name(ctx, *(struct account_row *const *)left),
                  stat_row_name(ctx, *(struct account_row *const *)right));
}

static int make_costs(const struct stat_report *report, struct costs *ret)
{
    const struct account_view *view = report->view;
    size_t count = view->count + view->other_rows;

    *ret = (struct costs){.report = report};
    ret->rows = calloc(count + 1, sizeof(struct account_row *));
    if (!ret->rows)
        return -ENOMEM;
    ret->kernel_left_out = report->rows != STAT_CGROUPS && view->total.kernel &&
                           view->total.kernel < view->total.threads;
    for (size_t i = 0; i < count; i++) {
        if (!ret->kernel_left_out || view->rows[i]->kernel < view->rows[i]->threads)
            add_row(ret, view->rows[i]);
        else
            add_blocked(ret, view->rows[i]);
    }
    array_sort_r(ret->rows, ret->count, by_row_name, (void *)report);
    return 0;
}

static const char *cost_words(uint32_t cost)
{
    const struct prcb_cause_info *info = prcb_cause_info(cost);

    switch (cost) {
    case COST_RUN:
        return "running on a processor";
    case COST_READY:
        return "ready to run, waiting for a processor";
    case COST_WAIT:
        return "waiting (for what is not known on this tier)";
    case HELD_BY_QUOTA:
        return "held back by a CPU quota"; /* a cgroup's or its own: that is said behind */
    default:
        return info ? info->words : "waiting since before profiling began, for what is not known";
    }
}

/* Returns the biggest cost that is not in the set of those named already; COSTS: none. */
static uint32_t biggest(const struct costs *costs, const bool *named)
{
    uint32_t best = COSTS;

    for (uint32_t cost = 0; cost < COSTS; cost++) {
        if (!named[cost] && costs->spent_ns[cost] &&
            (cost >= PRCB_CAUSE_MAX || costs->shown[cost]) &&
            (best == COSTS || costs->spent_ns[cost] > costs->spent_ns[best]))
            best = cost;
    }
    return best;
}

/* The name that paid most of a cost: rows of one name count together. */
struct payer {
    const char *name;
    uint64_t paid, units; /* threads, or processes where rows are processes */
};

static bool counts_processes(const struct costs *costs)
{
    return costs->report->rows == STAT_PROCESSES;
}

static struct payer top_payer(const struct costs *costs, uint32_t cost, uint64_t *ret_units)
{
    struct payer best = {0}, here = {0};

    *ret_units = 0;
    for (size_t i = 0; i < costs->count; i++) {
        const struct account_row *row = costs->rows[i];
        const char *name = stat_row_name(costs->report, row);

        if (!here.name || strcmp(here.name, name))
            here = (struct payer){.name = name};
        if (cost_of(row, cost)) {
            here.paid += cost_of(row, cost);
            here.units += counts_processes(costs) ? 1 : row->threads;
            *ret_units += counts_processes(costs) ? 1 : row->threads;
        }
        if (here.paid > best.paid)
            best = here;
    }
    return best;
}

static void write_payer(FILE *out, const struct costs *costs, uint32_t cost)
{
    uint64_t whole = costs->spent_ns[cost], units;
    struct payer payer = top_payer(costs, cost, &units);
    const char *word = counts_processes(costs) ? "process" : "thread";
    const char *words = counts_processes(costs) ? "processes" : "threads";
    char comm[FORMAT_CELL], count[FORMAT_CELL], share[FORMAT_CELL];

    if (costs->threads < 2 || !payer.paid)
        return;
    text_copy(TEXT_MARKS, payer.name, comm, sizeof(comm));
    format_count(payer.units, word, words, count, sizeof(count));
    format_share(payer.paid, whole, share, sizeof(share));
    if (payer.paid >= whole - whole / 100)
        fprintf(out, ", by %s (%s)", comm, count);
    else if (payer.paid >= whole / 2)
        fprintf(out, ", mostly by %s (%s)", comm, count);
    else if (payer.paid >= whole / 5)
        fprintf(out, ", the largest part (%s of it) by %s (%s)", share, comm, count);
    else
        fprintf(out, ", spread over %" PRIu64 " %s", units, words);
}

/* Returns the row of one thread or process that paid most of a cost; NULL: rows are of several. */
static const struct account_row *top_row(const struct costs *costs, uint32_t cost)
{
    const struct account_row *best = NULL;

    for (size_t i = 0; i < costs->count; i++) {
        const struct account_row *row = costs->rows[i];

        if (row->pid && cost_of(row, cost) > (best ? cost_of(best, cost) : 0))
            best = row;
    }
    return best;
}

/* Whether the tier's ready time has in it what a quota took, of who was ready most. */
static bool hides_quota(const struct costs *costs, uint32_t cost)
{
    const struct account_row *row = cost == COST_READY ? top_row(costs, cost) : NULL;
    struct quota quota;

    return row && !(row->now.present & PRCB_HAS_WAITS) &&
           !quota_read(row->pid, row->tid ? row->tid : row->pid, &quota);
}

/* Names the quota that held threads back, or may have. */
static void write_quota(FILE *out, const struct costs *costs, uint32_t cost, bool hidden)
{
    const struct account_row *row = cost == HELD_BY_QUOTA || hidden ? top_row(costs, cost) : NULL;

    if (row)
        held_quota_write(out, row->pid, row->tid ? row->tid : row->pid);
}

/* Says why threads had to wait for a processor. */
static void write_ready_counts(FILE *out, const struct costs *costs)
{
    static const char *const words[PRCB_CAUSE_MAX] = {
        [PRCB_CAUSE_QUANTUM] = "out of time slice",
        [PRCB_CAUSE_YIELD] = "yielded",
    };
    const char *before = " (";

    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
        const struct prcb_cause_info *info = prcb_cause_info(cause);
        uint64_t count = costs->ready_counts[cause];

        if (!info || info->kind != PRCB_KIND_READY || !count)
            continue;
        fprintf(out, "%s%s %" PRIu64 " time%s", before, words[cause] ? words[cause] : info->name,
                count, count == 1 ? "" : "s");
        before = ", ";
    }
    fputs(*before == ',' ? ")" : "", out);
}

static void write_open(FILE *out, const struct costs *costs, uint32_t cost)
{
    uint64_t open = costs->open_ns[cost];
    char time[FORMAT_CELL];

    if (cost >= PRCB_CAUSE_MAX || !open)
        return;
    format_time(open, time, sizeof(time));
    if (open >= costs->spent_ns[cost])
        fputs("; none of these waits had ended", out);
    else
        fprintf(out, "; %s of it in waits that had not ended", time);
}

static void write_sentence(FILE *out, const struct costs *costs, uint32_t cost)
{
    char share[FORMAT_CELL], time[FORMAT_CELL];
    bool hidden = hides_quota(costs, cost);

    format_share(costs->spent_ns[cost], costs->wall_ns, share, sizeof(share));
    format_time(costs->spent_ns[cost], time, sizeof(time));
    fprintf(out, "%s of thread time (%s) was spent %s%s", share, time, cost_words(cost),
            hidden ? " or held back by a CPU quota" : "");
    if (cost == COST_READY)
        write_ready_counts(out, costs);
    write_payer(out, costs, cost);
    write_quota(out, costs, cost, hidden);
    write_open(out, costs, cost);
    fputs(".\n", out);
}

/* Returns what a quota took, if it is enough to be what the sentences begin with, for somebody set
 * it; COSTS: it is not. */
static uint32_t held_back(const struct costs *costs)
{
    uint32_t cost = hides_quota(costs, COST_READY) ? COST_READY : HELD_BY_QUOTA;
    uint64_t ns = costs->spent_ns[cost];

    return ns && ns * 100 >= costs->wall_ns - costs->idle_ns &&
                   (cost == COST_READY || costs->shown[cost])
               ? cost
               : COSTS;
}

/* Writes the biggest cost, then the second if it counts for much. Running is what threads are
 * for: if it is the biggest, it is named besides. */
static void write_sentences(FILE *out, const struct costs *costs)
{
    bool named[COSTS] = {0}, wanted = true;
    uint32_t first = held_back(costs);
    int left = 2;

    if (first != COSTS) {
        write_sentence(out, costs, first);
        named[first] = true;
        wanted = false;
        left--;
    }
    while (left) {
        uint32_t cost = biggest(costs, named);

        if (cost == COSTS ||
            (!wanted &&
             costs->spent_ns[cost] * 100 < (costs->wall_ns - costs->idle_ns) * SECOND_PERCENT) ||
            (costs->idle_ns && costs->spent_ns[cost] * 1000 < costs->wall_ns))
            return;
        write_sentence(out, costs, cost);
        named[cost] = true;
        if (cost == COST_RUN && wanted)
            continue;
        wanted = false;
        left--;
    }
}

static void write_idle_words(FILE *out, const struct stat_idle_word *words)
{
    bool named[STAT_IDLE_WORDS] = {0};

    for (size_t i = 0; i < IDLE_WORDS; i++) {
        char threads[FORMAT_CELL];
        size_t most = STAT_IDLE_WORDS;

        for (size_t k = 0; k < STAT_IDLE_WORDS; k++) {
            if (words[k].word && !named[k] &&
                (most == STAT_IDLE_WORDS || words[k].ns > words[most].ns))
                most = k;
        }
        if (most == STAT_IDLE_WORDS)
            return;
        named[most] = true;
        format_count(words[most].threads, "thread", "threads", threads, sizeof(threads));
        fprintf(out, "%s%s (%s)", i ? ", " : "", words[most].word, threads);
    }
}

/* Names the threads that wait by design, and those for which this cannot be told. */
static void write_idle(FILE *out, const struct costs *costs)
{
    const struct stat_idle *idle = costs->report->idle;
    char share[FORMAT_CELL], time[FORMAT_CELL], threads[FORMAT_CELL];
    uint64_t either = 0;

    if (!idle)
        return;
    for (size_t i = 0; i < STAT_IDLE_WORDS; i++)
        either += idle->either[i].ns;
    format_share(costs->idle_ns, costs->wall_ns, share, sizeof(share));
    format_time(costs->idle_ns, time, sizeof(time));
    if (costs->idle_ns * 100 >= costs->wall_ns) {
        fprintf(out, "%s of thread time (%s) was idle by design: ", share, time);
        write_idle_words(out, idle->idle);
        fputs(".\n", out);
    }
    format_share(either, costs->wall_ns, share, sizeof(share));
    if (either * 100 >= costs->wall_ns * SECOND_PERCENT) {
        fprintf(out,
                "Of %s of thread time it cannot be told whether it is idle by design: ", share);
        write_idle_words(out, idle->either);
        fputs("; prcb why shows where.\n", out);
    }
    format_share(idle->refused_ns, costs->wall_ns, share, sizeof(share));
    format_count(idle->refused, "thread", "threads", threads, sizeof(threads));
    if (idle->refused_ns * 100 >= costs->wall_ns * SECOND_PERCENT)
        fprintf(out,
                "Of %s of thread time it cannot be told whether it is idle by design: the stacks "
                "of %s may not be read (prcb doctor).\n",
                share, threads);
}

/* Says that kernel threads are left out, and what they were blocked for if that is a tenth of a
 * thread all the time. */
static void write_kernel(FILE *out, const struct costs *costs)
{
    char comm[FORMAT_CELL], time[FORMAT_CELL], most[FORMAT_CELL];
    uint64_t count = costs->report->view->total.kernel;

    fprintf(out, "(Thread time here is without the %" PRIu64 " kernel thread%s.)\n", count,
            count == 1 ? "" : "s");
    if (!costs->blocked || costs->blocked_ns * 100 < costs->report->wall_ns * SECOND_PERCENT)
        return;
    text_copy(TEXT_MARKS, stat_row_name(costs->report, costs->blocked), comm, sizeof(comm));
    format_time(costs->blocked_ns, time, sizeof(time));
    format_time(blocked_of(costs->blocked), most, sizeof(most));
    fprintf(out,
            "Kernel threads were blocked, not idle, for %s, %s for %s of it; prcb why -a shows "
            "where.\n",
            time, comm, most);
}

void stat_words_write(FILE *out, const struct stat_report *report, const bool *shown)
{
    struct costs costs;

    if (make_costs(report, &costs))
        return;
    costs.shown = shown;
    if (report->idle)
        held_threads_write(out, "", &report->idle->held);
    if (costs.wall_ns) {
        write_sentences(out, &costs);
        write_idle(out, &costs);
        if (costs.kernel_left_out)
            write_kernel(out, &costs);
    }
    free(costs.rows);
}

const char *stat_row_name(const struct stat_report *report, const struct account_row *row)
{
    const char *path;

    if (report->rows != STAT_CGROUPS)
        return row->comm;
    path = row->cgroup ? cgroup_names_find(report->cgroups, row->cgroup) : NULL;
    return path ? path : row->cgroup ? "(gone)" : "(unknown)";
}

/* ---- notes --------------------------------------------------------------- */

bool stat_figure_wanted(const struct stat_report *report, const struct figure *figure)
{
    return figure->present != PRCB_HAS_INTERRUPTED || report->interrupted;
}

const char *stat_absent_reason(const struct stat_report *report, const struct figure *figure)
{
    return stat_figure_wanted(report, figure) ? prcb_absent_reason(report->session, figure->present)
                                              : NULL;
}

static const char *reason_of(const void *ctx, const struct figure *figure)
{
    return stat_absent_reason(ctx, figure);
}

static void write_interrupted(FILE *out, const char *prefix, const struct stat_report *report)
{
    const struct account_sums *total = &report->view->total.now;
    char interrupted[FORMAT_CELL], run[FORMAT_CELL];

    if (!report->interrupted || !(total->present & PRCB_HAS_INTERRUPTED))
        return;
    format_time(total->interrupted_ns, interrupted, sizeof(interrupted));
    format_time(total->run_ns, run, sizeof(run));
    fprintf(out, "%sinterrupts and softirqs took %s of %s run time\n", prefix, interrupted, run);
}

static int next_program(void *from, uint32_t i, struct prcb_program *ret)
{
    return prcb_session_program(from, i, ret);
}

void stat_notes_write(FILE *out, const char *prefix, const struct stat_report *report)
{
    const struct prcb_status *status = report->status;
    const char *reason = prcb_session_tier_reason(report->session);
    enum prcb_tier tier = prcb_session_tier(report->session);
    const char *limit;

    if (status->untracked_threads)
        fprintf(out,
                "%s%" PRIu64 " thread%s not tracked: all %u accounts were in use; "
                "--max-threads makes room for more\n",
                prefix, status->untracked_threads,
                status->untracked_threads == 1 ? " was" : "s were", status->max_threads);
    misses_write(out, prefix, next_program, report->session,
                 "kernel locks as causes, or names, may be missing");
    if (report->view->total.now.missed_switches)
        fprintf(out,
                "%s%" PRIu64 " switch%s counted and not reported by the kernel: the time is made "
                "good, the causes are not known\n",
                prefix, report->view->total.now.missed_switches,
                report->view->total.now.missed_switches == 1 ? " was" : "es were");
    if (report->view->total.now.unclear_wakes)
        fprintf(out,
                "%s%" PRIu64 " wait%s of threads that the kernel moved while they slept: when %s "
                "ended is not known, ready time after %s is counted as wait\n",
                prefix, report->view->total.now.unclear_wakes,
                report->view->total.now.unclear_wakes == 1 ? "" : "s",
                report->view->total.now.unclear_wakes == 1 ? "it" : "they",
                report->view->total.now.unclear_wakes == 1 ? "it" : "them");
    if (tier == PRCB_TIER_PERF)
        fprintf(out, "%s%s tier%s%s\n", prefix, prcb_tier_name(tier), reason ? ": " : " (--tier)",
                reason ? reason : "");
    if (report->cgroups && cgroup_names_setup(report->cgroups) != CGROUP_V2)
        fprintf(out, "%s%s\n", prefix, cgroup_setup_words(cgroup_names_setup(report->cgroups)));
    for (size_t i = 0; (limit = prcb_session_limit(report->session, i)); i++)
        fprintf(out, "%s%s\n", prefix, limit);
    write_interrupted(out, prefix, report);
    if (*report->no_tails)
        fprintf(out, "%show long each wait took is not known: %s\n", prefix, report->no_tails);
    if (*report->no_whom)
        fprintf(out, "%swakers and preemptors are unknown: %s\n", prefix, report->no_whom);
    figures_write_absent(out, account_figures, reason_of, report, prefix, " absent: ");
    if (report->counters)
        stat_counters_write_notes(out, prefix, report->counters);
    if (status->short_threads_missed)
        fprintf(out,
                "%sthreads that lived shorter than %" PRIu64 " ms may be missing on this tier\n",
                prefix, (report->longest_gap + 999999) / 1000000);
}
