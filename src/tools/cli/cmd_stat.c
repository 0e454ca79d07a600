/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb stat` profiles a command, processes, threads, a cgroup or the whole system, and reports
 * why each thread was not running. This file has the course of one run; its parts are in
 * stat_*.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <prcb/prcb.h>
#include <prcb/tails.h>

#include "cli.h"
#include "now.h"
#include "stat_idle.h"
#include "stat_options.h"
#include "output.h"
#include "stat_report.h"
#include "stat_tails.h"
#include "account_rows.h"
#include "stat_targets.h"
#include "format.h"
#include "stat_wait.h"
#include "whom_words.h"

#define NS_PER_MS    1000000ull
#define REFRESH_NS   (20 * NS_PER_MS)  /* perf tier: how short-lived a thread may be missed */
#define REFRESH_PART 16                /* a look takes at most one part in this many of the time */
#define COUNT_NS     (100 * NS_PER_MS) /* how often to see to the counters */
#define CHECK_NS     (250 * NS_PER_MS) /* how often to look for room and for the end of targets */
#define ROOM_PART    4   /* ended threads' accounts go back when one in this many is in use */
#define WALK_TRIES   50  /* 20 ms each: a writer without a processor */
#define SETTLE_TRIES 100 /* 1 ms each: from a child's end to its last switch */

struct run {
    const struct cli_command *command;
    const struct stat_options *options;
    struct prcb *session;
    struct output output;
    struct stat_wait wait;
    struct account_rows rows;
    struct account_counters *counters; /* NULL: none were asked for */
    struct cgroup_names *cgroups;      /* NULL: rows are none */
    /* By whom threads were held up; NULL: this was not asked for, or is not available. The first
     * is of accounts that were given back; the second of all, as of the last look; the third of
     * all, as of the end of the last interval. */
    struct whom *whom_ended, *whom, *whom_before;
    struct stat_tails *tails_before; /* of the interval before; NULL: none */
    struct prcb_error no_whom;
    struct prcb_error
        no_tails;   /* why there are none; empty: there are, or they were not asked for */
    uint64_t asked; /* when the first target was about to be profiled: no account is older */
    uint64_t start, interval_start;
    uint64_t refresh_ns;  /* how often the session is brought up to date; 0: no need */
    uint64_t longest_gap; /* between two looks, so far */
    /* UINT64_MAX: never */
    uint64_t next_refresh, next_interval, next_check, next_count, end;
    size_t reports;
    bool bpf;
    bool ended_early; /* --for was over before the command */
    int child_status; /* of waitpid */
    bool had_child;
    bool failed; /* an error was printed */
    struct stat_idle idle;
    bool has_idle;
};

/* Prints the error; returns result. */
static int fail(struct run *run, const struct prcb_error *err, int result)
{
    run->failed = true;
    cli_error(run->command, "%s", err->text);
    return result;
}

/* Checks what counting returned. */
static int check_counters(struct run *run, int result)
{
    struct prcb_error err;

    snprintf(err.text, sizeof(err.text), "counters: %s", strerror(-result));
    return result ? fail(run, &err, result) : 0;
}

/* ---- collecting ---------------------------------------------------------- */

static int update_row(const struct prcb_account *account, void *ctx)
{
    return account_rows_update(ctx, account);
}

/* Returns whether every thread has an account. */
static bool all_seen(const struct run *run)
{
    struct prcb_status status = {.size = sizeof(status)};

    return run->bpf && !prcb_session_status(run->session, &status) && !status.untracked_threads;
}

static uint64_t whom_group(const struct prcb_account *account, void *ctx)
{
    const struct run *run = ctx;

    return stat_whom_group_of(run->options->rows, account);
}

static int whom_seen(const struct prcb_account *account, void *ctx)
{
    const struct prcb_cause_info *open = prcb_cause_info(account->open.cause);
    struct prcb_edge rest = {.kind = PRCB_EDGE_BEHIND, .by = PRCB_BY_REST, .ns = account->open.ns};
    struct run *run = ctx;
    int result = account_rows_update(&run->rows, account);

    /* Rows count an open stretch as ready time if it certainly is. */
    if (result || !(account->present & PRCB_HAS_READY) || !open || open->kind != PRCB_KIND_READY)
        return result;
    result = whom_add(run->whom, whom_group(account, ctx), &rest);
    rest.kind = PRCB_EDGE_MEANWHILE;
    return result || !run->rows.by_cgroup ? result
                                          : whom_add(run->whom, whom_group(account, ctx), &rest);
}

/* Collects rows and by whom threads were held up at the same moments: the parts of one account
 * sum to its total. */
static int collect_whom(struct run *run, struct prcb_error *err)
{
    const struct whom_taker taker = {whom_group, whom_seen, run};

    whom_close(run->whom);
    run->whom = NULL;
    return whom_open(&run->whom) || whom_join(run->whom, run->whom_ended)
               ? -ENOMEM
               : whom_take_all(run->whom, run->session, &taker, err);
}

/* whom: also collects by whom threads were held up, for a report. */
static int collect_with(struct run *run, bool whom)
{
    struct prcb_error err = {.text = "out of memory"};
    int result = -EAGAIN;

    for (int i = 0; i < WALK_TRIES && result == -EAGAIN; i++)
        result = whom && run->whom_ended ? collect_whom(run, &err)
                                         : prcb_walk(run->session, update_row, &run->rows, &err);
    if (result)
        return fail(run, &err, result);
    return run->counters ? check_counters(run, account_counters_update(run->counters, &run->rows,
                                                                       all_seen(run)))
                         : 0;
}

static int collect(struct run *run)
{
    return collect_with(run, false);
}

/* Gives the accounts of ended threads back; their rows stay. */
static int release_ended(struct run *run)
{
    const struct whom_taker taker = {whom_group, whom_seen, run};
    struct prcb_error err = {.text = "out of memory"};

    /* The loop runs backwards: a row that is summed into another leaves its place to the last
     * one. */
    for (size_t i = run->rows.count; i-- > 0;) {
        struct account_row *row = run->rows.rows[i];
        int result = 0;

        if (row->released || !row->exited)
            continue;
        account_counters_released(run->counters, row);
        if (run->whom_ended)
            whom_take(run->whom_ended, run->session, row->key, &taker);
        result = prcb_release(run->session, row->key, &err);
        if (!result || result == -ESTALE)
            result = account_rows_released(&run->rows, row);
        if (result)
            return fail(run, &err, result);
    }
    return 0;
}

static int make_room(struct run *run)
{
    struct prcb_status status = {.size = sizeof(status)};
    int result = prcb_session_status(run->session, &status);

    if (result || (uint64_t)status.threads * ROOM_PART < status.max_threads)
        return 0;
    result = collect(run);
    return result ? result : release_ended(run);
}

/* Returns true if there is nothing left to wait for. */
static bool targets_ended(struct run *run)
{
    const struct stat_options *options = run->options;

    if (options->all || options->cgroup_count || run->wait.child)
        return false;
    return !collect(run) && account_rows_all_exited(&run->rows);
}

/* ---- reporting ----------------------------------------------------------- */

static void write_report(struct run *run, const struct stat_report *report)
{
    FILE *out = run->output.stream;

    switch (run->options->form.number) {
    case STAT_TABLE:
        if (report->interval)
            stat_lines_write(out, report);
        else
            stat_table_write(out, report);
        break;
    case STAT_CSV:
        stat_csv_write(out, report);
        break;
    case STAT_JSON:
    case STAT_NDJSON:
    case STAT_BRIEF:
        if (run->options->form.number == STAT_BRIEF ? stat_brief_write(out, report)
                                                    : stat_json_write(out, report)) {
            run->failed = true;
            cli_error(run->command, "out of memory");
        }
        break;
    }
}

/* Values with separators leave no place for notes, so these go to standard error. */
static void note(struct run *run, const struct stat_report *report, bool last)
{
    if (last && run->options->form.number == STAT_CSV)
        stat_notes_write(stderr, "prcb stat: ", report);
}

static void note_tails(struct run *run)
{
    struct prcb_tail tail = {.size = sizeof(tail)};

    prcb_tail_read(run->session, PRCB_CAUSE_NONE, &tail, &run->no_tails);
}

/* Gets the tails of the whole time, or of the interval. */
static int take_tails(struct run *run, bool interval, struct stat_tails **ret)
{
    struct stat_tails *now = stat_tails_read(run->session), *mark;

    if (!now)
        return -ENOMEM;
    *ret = now;
    if (!interval)
        return 0;
    mark = malloc(sizeof(*mark));
    if (!mark)
        return -ENOMEM;
    *mark = *now;
    if (run->tails_before)
        stat_tails_since(now, run->tails_before);
    free(run->tails_before);
    run->tails_before = mark;
    return 0;
}

/* The parts of a report that are made for it alone. */
struct made {
    struct prcb_status status;
    struct account_view view;
    struct stat_tails *tails;
    struct whom *grown; /* of an interval */
};

static void made_deinit(struct made *made)
{
    whom_close(made->grown);
    free(made->tails);
    account_view_deinit(&made->view);
}

/* Where there is little room, ended threads or processes of one name are one. What divides a row
 * further is of each. */
static bool folds_ended(const struct run *run)
{
    const struct stat_options *options = run->options;

    return (options->form.number == STAT_TABLE || options->form.number == STAT_BRIEF) &&
           (options->rows == STAT_THREADS || options->rows == STAT_PROCESSES) &&
           !options->by_whom && !run->counters;
}

/* Makes the sums, tails and edges of the whole time or of the interval. */
static int make(struct run *run, bool interval, struct made *ret)
{
    const struct stat_options *options = run->options;
    unsigned kind = stat_rows_kinds[options->rows].view | (interval ? ACCOUNT_VIEW_INTERVAL : 0u) |
                    (folds_ended(run) ? ACCOUNT_VIEW_ENDED : 0u);
    int result = prcb_session_status(run->session, &ret->status);

    if (!result && options->tails && !run->no_tails.text[0]) {
        result = take_tails(run, interval, &ret->tails);
        if (!result) /* ask after reading: they may have become incomplete */
            note_tails(run);
    }
    if (!result && interval && run->whom)
        result = whom_since(run->whom, run->whom_before, &ret->grown);
    if (run->cgroups)
        cgroup_names_refresh(run->cgroups);
    if (!result)
        result = account_view_make(&run->rows, kind, &options->order, &ret->view);
    if (!result && run->counters)
        account_counters_total(run->counters, interval, &ret->view.total.now);
    return result;
}

/* The next interval begins here. */
static int mark(struct run *run)
{
    int result = account_rows_mark(&run->rows);

    if (run->counters)
        account_counters_mark(run->counters);
    if (!result && run->whom) {
        whom_close(run->whom_before);
        run->whom_before = run->whom;
        run->whom = NULL;
    }
    return result;
}

static struct stat_report describe(const struct run *run, const struct made *made, uint64_t now,
                                   bool interval)
{
    const struct stat_options *options = run->options;
    const struct whom *whom = run->whom ? run->whom : run->whom_before;

    return (struct stat_report){
        .profiled = {.all = options->all,
                     .pids = options->pids.ids,
                     .pid_count = options->pids.count,
                     .tids = options->tids.ids,
                     .tid_count = options->tids.count,
                     .cgroups = options->cgroups,
                     .cgroup_count = options->cgroup_count,
                     .command = options->command},
        .rows = options->rows,
        .by_whom = options->by_whom,
        .nt = options->nt,
        .owners = options->owners,
        .interrupted = options->interrupted,
        .separator = options->form.separator,
        .interval_ns = options->interval_ns,
        .session = run->session,
        .status = &made->status,
        .view = &made->view,
        .counters = run->counters,
        .cgroups = run->cgroups,
        .idle = !interval && run->has_idle ? &run->idle : NULL,
        .whom = interval && run->whom ? made->grown : whom,
        .tails = run->no_tails.text[0] ? NULL : made->tails,
        .no_whom = run->no_whom.text,
        .no_tails = run->no_tails.text,
        .time_ns = now - run->start,
        .wall_ns = now - (interval ? run->interval_start : run->start),
        .interval = interval,
        .first = !run->reports,
        .number = run->reports,
        .ended_early = run->ended_early,
        .longest_gap = run->longest_gap ? run->longest_gap : run->refresh_ns,
    };
}

static void report(struct run *run, uint64_t now, bool interval, bool last)
{
    struct made made = {.status = {.size = sizeof(made.status)}};
    int result = make(run, interval, &made);
    struct stat_report report = describe(run, &made, now, interval);

    run->reports++;
    if (!result && interval)
        result = mark(run);
    if (result) {
        run->failed = true;
        cli_error(run->command, "no report: %s", strerror(-result));
    } else {
        write_report(run, &report);
        note(run, &report, last);
        output_flush(&run->output);
    }
    made_deinit(&made);
}

/* Returns whether the figures at the end are wanted on top of the intervals'. */
static bool wants_summary(const struct stat_options *options)
{
    return !options->interval_ns || options->form.number == STAT_TABLE;
}

/* ---- measuring ----------------------------------------------------------- */

static uint64_t earliest(const struct run *run)
{
    uint64_t next = run->end;

    next = run->next_refresh < next ? run->next_refresh : next;
    next = run->next_interval < next ? run->next_interval : next;
    next = run->next_count < next ? run->next_count : next;
    return run->next_check < next ? run->next_check : next;
}

static int do_interval(struct run *run)
{
    uint64_t now;
    int result = collect_with(run, true);

    if (result)
        return result;
    now = now_ns();
    report(run, now, true, false);
    run->interval_start = now;
    return 0;
}

/* Looks for threads that came and went. With thousands of threads a look takes long, and the
 * next is put off accordingly. */
static int refresh(struct run *run, uint64_t now)
{
    struct prcb_error err;
    int result = prcb_refresh(run->session, &err);
    uint64_t gap = (now_ns() - now) * REFRESH_PART;

    if (result)
        return fail(run, &err, result);
    gap = gap > run->refresh_ns ? gap : run->refresh_ns;
    run->longest_gap = gap > run->longest_gap ? gap : run->longest_gap;
    stat_wait_advance(&run->next_refresh, gap, now);
    return 0;
}

/* Empties buffers of counts, and gives new threads their counters. */
static int count(struct run *run, uint64_t now)
{
    bool wanted;
    int result = check_counters(run, account_counters_tick(run->counters, &wanted));

    stat_wait_advance(&run->next_count, COUNT_NS, now);
    if (result)
        return result;
    return wanted ? collect(run) : 0;
}

/* Does what is due by now. *ret: nothing is left to wait for. */
static int do_due(struct run *run, uint64_t now, bool *ret)
{
    int result = 0;

    if (now >= run->next_refresh) {
        result = refresh(run, now);
        if (result)
            return result;
    }
    if (now >= run->next_count) {
        result = count(run, now);
        if (result)
            return result;
    }
    if (now >= run->next_interval) {
        result = do_interval(run);
        stat_wait_advance(&run->next_interval, run->options->interval_ns, now);
    }
    if (!result && now >= run->next_check) {
        /* What a thread did since the last look counts for the cgroup that it was in then. */
        result = run->rows.by_cgroup ? collect(run) : 0;
        if (!result)
            result = make_room(run);
        *ret = *ret || targets_ended(run);
        stat_wait_advance(&run->next_check, CHECK_NS, now);
    }
    return result;
}

/* Returns true if there is no point in going on: nobody receives what is written. */
static bool in_vain(const struct run *run)
{
    return run->output.error && !run->wait.child;
}

static void measure(struct run *run)
{
    bool ended = false;

    while (!ended) {
        unsigned events = stat_wait_until(&run->wait, earliest(run));
        uint64_t now = now_ns();

        ended = events & (STAT_WAIT_CHILD | STAT_WAIT_SIGNAL);
        if (!ended && now >= run->end) {
            ended = true;
            run->ended_early = run->wait.child != 0;
        }
        if (!ended && events & STAT_WAIT_TARGET)
            ended = targets_ended(run);
        if (!ended && do_due(run, now, &ended))
            ended = true;
        ended = ended || run->failed || in_vain(run);
    }
}

static bool child_has_switched(const struct run *run)
{
    for (size_t i = 0; i < run->rows.count; i++) {
        if (run->rows.rows[i]->pid == run->wait.child && !run->rows.rows[i]->exited)
            return false;
    }
    return true;
}

/* Waits for a child's last switch, for its end is known before that: otherwise its account would
 * now and then lack that switch. */
static void settle(struct run *run)
{
    struct timespec pause = {.tv_nsec = 1000000};

    for (int i = 0; i < SETTLE_TRIES; i++) {
        if (collect(run) || child_has_switched(run))
            return;
        nanosleep(&pause, NULL);
    }
}

/* Does what remains from the end of the measuring to the last figures and a child that is gone. */
static void finish(struct run *run)
{
    bool profiled = !stat_options_have_targets(run->options);
    bool child = run->wait.child != 0;
    uint64_t now;

    /* While the child is a zombie the perf tier can still read it to the end, so it
     * is looked at once before it is reaped. */
    if (child && !run->ended_early && profiled && run->bpf)
        settle(run);
    if (!run->failed)
        collect_with(run, true);
    now = now_ns();
    /* Only what has sentences mentions idle threads. */
    if (!run->failed && wants_summary(run->options) &&
        (run->options->form.number == STAT_TABLE || run->options->form.number == STAT_BRIEF)) {
        stat_idle_find(run->session, &run->rows, &run->idle);
        run->has_idle = true;
    }
    if (child && !run->ended_early) {
        run->child_status = stat_wait_reap(&run->wait, NULL);
        if (!run->bpf && !run->failed)
            collect(run);
    }
    if (run->options->interval_ns)
        report(run, now, true, !wants_summary(run->options));
    if (child && run->wait.child) {
        stat_wait_end_child(&run->wait);
        run->child_status = stat_wait_reap(&run->wait, NULL);
    }
    if (wants_summary(run->options))
        report(run, now, false, true);
}

/* ---- the course of a run ------------------------------------------------- */

static void say_what(const struct run *run)
{
    const struct stat_options *options = run->options;
    char time[FORMAT_CELL];

    if (options->command || !isatty(STDERR_FILENO))
        return;
    format_time(options->for_ns, time, sizeof(time));
    cli_warn(run->command, "measuring %s%s%s; Ctrl-C ends it and reports",
             options->all ? "every thread" : "what was named", options->for_ns ? " for " : "",
             options->for_ns ? time : "");
}

/* Time starts with the first account, because putting the programs in place took a while before
 * it. But no row, whatever it says, moves the start to before anything was asked for. looked:
 * when the rows were about to be read, so that no account is older than the time that is
 * reported. */
static uint64_t start_time(const struct run *run, uint64_t looked)
{
    uint64_t wall = 0;

    for (size_t i = 0; i < run->rows.count; i++) {
        if (run->rows.rows[i]->now.wall_ns > wall)
            wall = run->rows.rows[i]->now.wall_ns;
    }
    return wall < looked - run->asked ? looked - wall : run->asked;
}

static void set_times(struct run *run, uint64_t looked)
{
    const struct stat_options *options = run->options;

    run->start = start_time(run, looked);
    /* The bpf tier sees threads come and go by itself, except for those that are moved into a
     * cgroup. */
    run->refresh_ns = !run->bpf ? REFRESH_NS : options->cgroup_count ? CHECK_NS : 0;
    run->next_refresh = run->refresh_ns ? run->start + run->refresh_ns : UINT64_MAX;
    run->next_interval = options->interval_ns ? run->start + options->interval_ns : UINT64_MAX;
    run->next_check = run->start + CHECK_NS;
    run->next_count = run->counters ? run->start + COUNT_NS : UINT64_MAX;
    run->end = options->for_ns ? run->start + options->for_ns : UINT64_MAX;
    run->interval_start = run->start;
}

/* Profiles and starts what was asked for. Returns CLI_OK, or the exit code. */
static int start(struct run *run)
{
    const struct stat_options *options = run->options;
    const struct prcb_spawn_hook hook = {sizeof(hook), account_counters_before_exec, run->counters};
    struct prcb_error err = {0};
    int status = CLI_FAILED, ended_by;
    uint64_t looked;
    pid_t child;

    run->asked = now_ns();
    if (stat_targets_profile(run->session, options, &run->wait, &err))
        return fail(run, &err, CLI_FAILED);
    if (run->counters && stat_options_have_targets(options) && collect(run))
        return CLI_FAILED;
    if (options->command) {
        /* A Ctrl-C that came before there was a child is not for the child to obey. */
        ended_by = stat_wait_pending(&run->wait);
        if (ended_by) {
            cli_warn(run->command, "ended before the command was started");
            return 128 + ended_by;
        }
        if (stat_targets_start(run->session, options, run->counters ? &hook : NULL, &child, &status,
                               &err))
            return fail(run, &err, status);
        stat_wait_set_child(&run->wait, child);
        run->had_child = true;
        if (account_counters_have_sets(run->counters))
            cli_allow_descriptors(); /* not earlier: the child keeps the original limits */
        /* Until its exec a child has our handlers, which do not obey any signal. */
        ended_by = stat_wait_pending(&run->wait);
        if (ended_by)
            kill(child, ended_by);
    }
    looked = now_ns();
    collect(run);
    set_times(run, looked);
    return CLI_OK;
}

/* Returns the command's exit status, or else what became of the report. */
static int exit_status(const struct run *run, int written)
{
    int status = CLI_OK;

    if (run->had_child)
        status = cli_child_status(run->child_status, run->ended_early);
    if (status == CLI_OK)
        status = written;
    return status == CLI_OK && run->failed ? CLI_FAILED : status;
}

/* Beside a command the table is on standard error, as of time(1), strace and perf stat: standard
 * output is the command's. What a program is to read is on standard output even so. */
static int open_output(struct run *run)
{
    const struct stat_options *options = run->options;
    int status = cli_open_output(run->command, options->output, &run->output);

    if (status == CLI_OK && !options->output && options->command &&
        options->form.number == STAT_TABLE && output_to_errors(&run->output))
        return cli_error(run->command, "standard error: %s", strerror(errno));
    return status;
}

static int run_opened(struct run *run)
{
    int status = open_output(run);

    if (status != CLI_OK)
        return status;
    status = start(run);
    if (status != CLI_OK) {
        output_abort(&run->output);
        return status;
    }
    output_begin(&run->output);
    say_what(run);
    measure(run);
    finish(run);
    return exit_status(run, cli_close_output(run->command, &run->output, CLI_OK));
}

static int open_cgroups(struct run *run)
{
    const char *reason = prcb_absent_reason(run->session, PRCB_HAS_CGROUP);
    struct prcb_error err;

    if (reason)
        return cli_error(run->command, "--per-cgroup is not possible: %s", reason);
    return cgroup_names_open(NULL, &run->cgroups, &err) ? cli_error(run->command, "%s", err.text)
                                                        : CLI_OK;
}

/* Only some sessions keep edges: the report goes without them on the others, and says why. */
static int open_whom(struct run *run)
{
    if (prcb_edges_walk(run->session, 0, NULL, NULL, NULL, &run->no_whom) == -EOPNOTSUPP)
        return CLI_OK;
    run->no_whom.text[0] = '\0';
    return whom_open(&run->whom_ended) || whom_open(&run->whom_before)
               ? cli_error(run->command, "out of memory")
               : CLI_OK;
}

static int run_with(const struct cli_command *self, const struct stat_options *options)
{
    struct run run = {
        .command = self, .options = options, .rows.by_cgroup = options->rows == STAT_CGROUPS};
    struct prcb_options how = {
        .size = sizeof(how),
        .tier = options->tier,
        .max_threads = (uint32_t)options->max_threads,
        .flags = (options->interrupted ? PRCB_OPEN_INTERRUPTED : 0u) |
                 (options->by_whom ? PRCB_OPEN_EDGES : 0u) |
                 (options->by_whom && options->per_cgroup ? PRCB_OPEN_MEANWHILE : 0u) |
                 (options->owners ? PRCB_OPEN_OWNERS : 0u) |
                 (options->tails ? PRCB_OPEN_TAILS : 0u),
    };
    struct prcb_error err;
    int status, result;

    result = account_counters_open(options->events, !stat_options_have_targets(options),
                                   !options->no_follow, &run.counters, &err);
    if (result)
        return result == -EINVAL ? cli_usage_error(self, "-e: %s", err.text)
                                 : cli_error(self, "out of memory");
    if (account_counters_have_sets(run.counters))
        cli_allow_descriptors(); /* a set takes one descriptor per thread and event */
    result = stat_wait_init(&run.wait);
    if (result) {
        account_counters_close(run.counters, NULL);
        return cli_error(self, "pipe: %s", strerror(-result));
    }
    result = stat_targets_open(&how, options, &run.session, &err);
    if (options->verbose)
        cli_write_load_log(prcb_load_log());
    if (result) {
        account_counters_close(run.counters, NULL);
        stat_wait_deinit(&run.wait);
        return cli_error(self, "%s", err.text);
    }
    run.bpf = prcb_session_tier(run.session) != PRCB_TIER_PERF;
    status = run.rows.by_cgroup ? open_cgroups(&run) : CLI_OK;
    if (status == CLI_OK && options->by_whom)
        status = open_whom(&run);
    if (options->tails)
        note_tails(&run);
    if (status == CLI_OK)
        status = run_opened(&run);
    whom_close(run.whom_ended);
    whom_close(run.whom_before);
    free(run.tails_before);
    whom_close(run.whom);
    cgroup_names_close(run.cgroups);
    stat_wait_deinit(&run.wait);
    account_counters_close(run.counters, &run.rows);
    account_rows_deinit(&run.rows);
    prcb_close(run.session);
    return status;
}

static int run_stat(const struct cli_command *self, int argc, char **argv)
{
    struct stat_options options;
    int status, result = stat_options_parse(self, argc, argv, &options, &status);

    if (result == CLI_OK)
        status = run_with(self, &options);
    stat_options_deinit(&options);
    return status;
}

extern const struct cli_command cmd_stat;
const struct cli_command cmd_stat = {
    .name = "stat",
    .synopsis = "[options] [--] COMMAND [ARGUMENT...]\n"
                "       prcb stat [options] -p PID | -t TID | --cgroup PATH | -a  "
                "[-- CMD...]",
    .summary = "why were these threads not running? exact times by cause",
    .description =
        "Says of each thread how long it ran, how long it was ready and had no processor, and\n"
        "what it waited for. Profiles COMMAND with all its threads and children, or what -p, -t,\n"
        "--cgroup or -a name: until Ctrl-C, for the time of --for, or as long as COMMAND runs.\n"
        "The exit status is COMMAND's.",
    .options = stat_option_rows,
    .examples = "  prcb stat -- make -j4                  a command, with all it starts\n"
                "  prcb stat -p 1234 --for 10             a process, for ten seconds\n"
                "  prcb stat -p 1234 -- curl localhost    a server, while a request runs\n"
                "  prcb stat -a --top 10 -I 1000          the system, each second\n"
                "  prcb stat -e page-faults,cycles -- make  with counters; prcb list names them\n"
                "  prcb stat -j -o report.json -- make    for a program to read\n"
                "  prcb stat --sort disk -x, -- make      widest disk waits first, as CSV\n",
    .run = run_stat,
};
