/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb why` shows where in the code threads wait, and why. It looks at the accounts some fifty
 * times a second and reads the stack of each wait that goes on, once; its cost is bounded.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/stack.h>

#include "cli.h"
#ifdef HAVE_RECORD
#include "debug_fetch.h"
#endif
#include "found.h"
#include "now.h"
#include "stat_options.h"
#include "output.h"
#include "stat_targets.h"
#include "objects.h"
#include "format.h"
#include "stat_wait.h"
#include "looks.h"
#include "named_targets.h"
#include "around.h"
#include "misses.h"
#include "whom_words.h"
#include "why_pprof.h"
#include "why_report.h"
#include "why_symbols.h"

#define SETTLED_NS      1000000000u /* plus twice the shortest wait: looks.h */
#define CHAIN_AFTER_NS  100000000u  /* by then it has seen the waits that were there before */
#define MEET_NS         200000000u  /* for what is read of targets before their time begins */
#define FOR_NS          5000000000u /* of targets that run already */
#define AROUND_NS       200000000u  /* between two looks at cgroups */
#define TASKS_PROCESSES 16          /* whose goroutines are read */
#define LINES_NOW       16          /* threads that wait now, of each process */

enum why_format { WHY_TEXT, WHY_JSON, WHY_FOLDED, WHY_BRIEF, WHY_PPROF };

struct options {
    struct stat_options targets; /* what is profiled, for how long, where the report goes */
    bool idle, native, spans, no_whom, chain, no_objects, owners, objects, debuginfod;
    uint64_t top, top_stacks, budget, min_ns;
    enum why_profile profile;
};

struct run {
    const struct cli_command *command;
    const struct options *options;
    struct prcb *session;
    struct looks *looks;
    struct why *why;
    struct objects *objects; /* NULL: not asked for */
    struct whom *whom;       /* NULL: not asked for, or not to be had */
    struct prcb_error no_whom;
    struct stat_wait wait;
    struct output output;
    uint64_t start, end, now, met_ns;
    struct unanswered unanswered;
    struct around around; /* as it was first, of the groups that the target is in */
    pid_t around_pid;
    uint64_t around_ns; /* when it was looked at last; 0: not yet */
    bool had_child, ended_early, failed;
    int child_status;
};

static int take_pprof(struct cli_parser *parser, void *target)
{
    static const char *const names[] = {"wait", "lock", "run"}; /* enum why_profile */
    struct options *options = target;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (!strcmp(parser->value, names[i])) {
            options->profile = (enum why_profile)i;
            return cli_take_form(parser, &options->targets.form);
        }
    }
    return cli_usage_error(parser->command, "--pprof '%s': must be wait, lock or run",
                           parser->value);
}

#define AT(member) .at = offsetof(struct options, member)
/* clang-format off */
static const struct cli_option option_rows[] = {
    STAT_TARGET_ROWS(offsetof(struct options, targets), "report", "report every thread"),
    {'a', "all", NULL, "report every thread of the system", AT(targets.all)},
    {0, "for", "SEC", "end after SEC seconds (0.5 is fine; default 5, a command: when it ends); a\n"
                      "command that still runs is then ended with SIGTERM", .take = cli_take_duration, AT(targets.for_ns)},
    {'j', "json", NULL, "one JSON document, with all processes and stacks",
     .take = cli_take_form, AT(targets.form), .min = WHY_JSON},
    {0, "brief", NULL, "a JSON document of at most 8 KiB: the verdict, the largest causes, and what\n"
                       "it cannot say", .take = cli_take_form, AT(targets.form), .min = WHY_BRIEF},
    {0, "folded", NULL, "folded stacks for flame graphs; the number is nanoseconds",
     .take = cli_take_form, AT(targets.form), .min = WHY_FOLDED},
    {0, "pprof", "KIND", "a profile for pprof, of exact nanoseconds: wait (all but running), lock (of these\n"
                         "waits for locks, none that idles by design), or run", .take = take_pprof, .min = WHY_PPROF,
     .choices = "wait lock run"},
    {0, "chain", NULL, "which thread waits for which now: mutexes, their holders, what these wait for,\n"
                       "deadlocks; at one moment, after --for (default 0.1 s)", AT(chain)},
    {0, "spans", NULL, "by span of a trace (request), the slowest first: of programs that publish\n"
                       "OpenTelemetry's thread context", AT(spans)},
    {0, "owners", NULL, "say who held the kernel's own locks, too: attaches programs to them", AT(owners)},
    {0, "objects", NULL, "the same as --owners", AT(owners)},
    {0, "no-objects", NULL, "do not look up what was waited for (files, sockets, locks), and who held it",
     AT(no_objects)},
    {0, "idle", NULL, "show where threads idle by design, too", AT(idle)},
    {0, "native", NULL, "show an interpreter's own functions, not those of its program", AT(native)},
    {0, "debuginfod", NULL, "fetch debug information first, for lines of source, from the servers that\n"
                            "DEBUGINFOD_URLS names", AT(debuginfod)},
    {0, "no-whom", NULL, "without wakers and preemptors: attach nothing to wakeups and interrupts",
     AT(no_whom)},
    {0, "top", "N", "the first N processes only (default 5; 0: all)",
     .kind = CLI_NUMBER, AT(top), .max = UINT32_MAX},
    {0, "stacks", "N", "the first N stacks of each cause only (default 3; 0: all)",
     .kind = CLI_NUMBER, AT(top_stacks), .max = UINT32_MAX},
    {0, "min", "US", "read the stacks of waits of US microseconds and longer (default 1000)",
     .take = cli_take_duration, AT(min_ns), .min = 1000, .max = 60000000000},
    {0, "budget", "PERCENT", "of one processor, for reading stacks (default 5); when little is\n"
                             "left, fewer short waits are read and stand for the others, and waits\n"
                             "beyond it count as [not read]", .kind = CLI_NUMBER, AT(budget), .min = 1, .max = 100},
    {'o', "output", "FILE", "write the report to FILE",
     .kind = CLI_TEXT, AT(targets.output), .what = "the file name is empty"},
    STAT_TIER_ROW(offsetof(struct options, targets)),
    STAT_VERBOSE_ROW(offsetof(struct options, targets)),
    STAT_MAX_THREADS_ROW(offsetof(struct options, targets)),
    {0},
};
/* clang-format on */

static int check(const struct cli_command *self, struct stat_options *targets)
{
    if (!stat_options_have_targets(targets) && !targets->command)
        return cli_usage_error(self,
                               "no target: give a process's number or name, a cgroup, -a, or a "
                               "command behind --; see prcb why --help");
    return stat_options_check_all(self, targets, "includes");
}

static int check_pprof(const struct cli_command *self, const struct options *options)
{
    if (!why_has_pprof())
        return cli_usage_error(self, "this prcb was built without protobuf-c or zlib, which "
                                     "--pprof needs (meson option 'pprof')");
    if (!options->targets.output && isatty(STDOUT_FILENO))
        return cli_usage_error(self, "a profile is nothing for a terminal: give -o FILE");
    return CLI_OK;
}

/* A word that is not behind "--" names what runs; options may follow. If nothing is called so it
 * begins a command. Returns CLI_OK, or -1 as cli_take_all. */
static int take_word(struct cli_parser *parser, struct options *options, int *ret_status)
{
    char **words = parser->argv + parser->index;
    bool alone = !words[1] || *words[1] == '-', number = !words[0][strspn(words[0], "0123456789")];
    enum named_word named =
        alone ? named_target_add(parser->command, *words, &options->targets) : NAMED_NOTHING;

    if (named == NAMED_TARGET) {
        parser->index++;
        if (cli_take_all(parser, options, ret_status))
            return -1;
        if (parser->index == parser->argc || parser->dashes)
            return CLI_OK;
        *ret_status = cli_usage_error(parser->command,
                                      "'%s': one word names what to look at; a "
                                      "command stands behind --",
                                      parser->argv[parser->index]);
        return -1;
    }
    if (!alone && number) {
        *ret_status = cli_usage_error(parser->command,
                                      "'%s' and '%s': several processes are one word, with commas "
                                      "between them; a command stands behind --",
                                      words[0], words[1]);
        return -1;
    }
    if (named == NAMED_NOTHING &&
        (!alone || (strchr(*words, '/') && (**words != '/' || !access(*words, X_OK)))))
        return CLI_OK;
    *ret_status =
        named == NAMED_FAILED ? CLI_FAILED
        : **words == '/'
            ? cli_usage_error(parser->command, "there is no cgroup and no program '%s'", *words)
            : cli_usage_error(parser->command,
                              "no process, unit or container is called '%s'; to start it as a "
                              "command: prcb why -- %s",
                              *words, *words);
    return -1;
}

static int check_debuginfod(const struct cli_command *self, const struct options *options)
{
    if (options->targets.all)
        return cli_usage_error(self, "--debuginfod is not for all of a machine: name what to look "
                                     "at");
#ifdef HAVE_RECORD
    return debug_fetch_check(self);
#else
    return cli_usage_error(self,
                           "this prcb was built without what --debuginfod needs (meson option "
                           "'record')");
#endif
}

static int parse(const struct cli_command *self, int argc, char **argv, struct options *ret,
                 int *ret_status)
{
    struct cli_parser parser = {.command = self, .argc = argc, .argv = argv};

    *ret = (struct options){.top = 5, .top_stacks = 3, .budget = 5, .min_ns = 1000000};
    if (cli_take_all(&parser, ret, ret_status))
        return -1;
    ret->targets.follow = PRCB_FOLLOW_ALL;
    if (parser.index < argc && !parser.dashes && take_word(&parser, ret, ret_status))
        return -1;
    ret->objects = (!ret->no_objects && ret->targets.form.number != WHY_PPROF) || ret->chain;
    ret->no_whom |= ret->targets.form.number == WHY_PPROF;
    if (parser.index < argc)
        ret->targets.command = argv + parser.index;
    else if (parser.dashes) {
        *ret_status = cli_usage_error(self, "no command behind --");
        return -1;
    }
    if (ret->chain) {
        ret->no_whom = true;
        if (!ret->targets.for_ns)
            ret->targets.for_ns = CHAIN_AFTER_NS;
    }
    if (!ret->targets.command && !ret->targets.for_ns)
        ret->targets.for_ns = FOR_NS;
    *ret_status = check(self, &ret->targets);
    if (*ret_status == CLI_OK && ret->chain && ret->targets.form.number >= WHY_FOLDED)
        *ret_status = cli_usage_error(self, "--chain has no folded stacks, no profile and no brief "
                                            "form: use --json or text");
    if (*ret_status == CLI_OK && ret->spans &&
        (ret->chain || ret->targets.form.number == WHY_FOLDED))
        *ret_status =
            cli_usage_error(self, "--spans is for text, --json, --brief and --pprof alone");
    if (*ret_status == CLI_OK && ret->targets.form.number == WHY_PPROF)
        *ret_status = check_pprof(self, ret);
    if (*ret_status == CLI_OK && ret->debuginfod)
        *ret_status = check_debuginfod(self, ret);
    return *ret_status == CLI_OK ? CLI_OK : -1;
}

/* ---- looking ------------------------------------------------------------------------------ */

static int fail(struct run *run, const struct prcb_error *err, int result)
{
    run->failed = true;
    cli_error(run->command, "%s", err->text);
    return result;
}

static uint64_t whom_group(const struct prcb_account *a, void *ctx)
{
    (void)ctx;
    return (uint64_t)why_process_of(a);
}

static int keep_seen(const struct prcb_account *a, void *ctx)
{
    *(struct prcb_account *)ctx = *a;
    return 0;
}

/* Gets by whom a thread was held up, and the account of the same moment, which this divides. If
 * neither is available, what is known of the account stays, without edges. */
static int take_whom(struct run *run, uint64_t key, struct prcb_account *a)
{
    const struct whom_taker taker = {whom_group, keep_seen, a};
    int result = run->whom ? whom_take(run->whom, run->session, key, &taker) : 0;

    return result == -EAGAIN || result == -ESTALE ? 0 : result;
}

static int look_divided(void *ctx, struct prcb_account *a)
{
    return take_whom(ctx, a->key, a);
}

static int look_account(void *ctx, const struct prcb_account *a, uint64_t now)
{
    struct run *run = ctx;

    return why_account(run->why, a, now);
}

static int look_released(void *ctx, uint64_t key)
{
    struct prcb_account a = {.key = 0};
    struct run *run = ctx;
    int result = take_whom(run, key, &a);

    if (!result && a.key)
        result = why_account(run->why, &a, now_ns());
    return result ? result : why_released(run->why, key);
}

static int look_chosen(void *ctx, const struct prcb_chosen *chosen, const struct prcb_stack *stack,
                       int result, struct object_wait wait)
{
    struct run *run = ctx;

    return why_chosen(run->why, chosen, stack, result, wait);
}

/* Looks once. *ret_ended: nothing is left to look at. last: the report needs to know how long
 * each thread waits. */
static void do_look(struct run *run, bool last, bool *ret_ended)
{
    const struct stat_options *targets = &run->options->targets;
    const struct looks_fns fns = {
        .account = look_account,
        .released = look_released,
        .chosen = look_chosen,
        .estimates = true,
        .divided = last ? look_divided : NULL,
        .keep_ended = last, /* its edges are taken once */
        .last = last,
        .settled_ns = last ? 0 : SETTLED_NS + 2 * run->options->min_ns,
        .ctx = run,
    };
    struct prcb_error err;
    bool ended = false;

    if (looks_take(run->looks, &fns, &ended, &err))
        fail(run, &err, CLI_FAILED);
    if (last)
        looks_grant(run->looks);
    if (!run->failed && (why_looked(run->why) || (last && why_confirm(run->why))))
        fail(run, &(struct prcb_error){.text = "out of memory"}, CLI_FAILED);
    run->now = now_ns();
    *ret_ended = ended && !targets->all && !targets->cgroup_count && !run->wait.child;
}

/* Returns a process of what is looked at; 0: all are. */
static pid_t one_of(const struct run *run)
{
    const struct stat_options *targets = &run->options->targets;

    return targets->pids.count   ? targets->pids.ids[0]
           : targets->tids.count ? targets->tids.ids[0]
           : run->wait.child     ? run->wait.child
                                 : why_busiest(run->why);
}

/* Keeps the counts of the beginning, or of when the process came to its groups. */
static void look_around(struct run *run)
{
    struct around around;

    if (run->around_ns && run->now - run->around_ns < AROUND_NS)
        return;
    run->around_pid = one_of(run);
    around_read(run->around_pid, &around);
    if (!run->around_ns || strcmp(around.group, run->around.group) != 0)
        run->around = around;
    run->around_ns = run->now;
}

#define UNANSWERED_PROCESSES 256

/* Of all threads of the machine there is always somebody who awaits something. */
static void look_for_answers(struct run *run)
{
    pid_t pids[UNANSWERED_PROCESSES];
    size_t count;

    if (!run->objects || run->options->targets.all || !unanswered_is_due(&run->unanswered))
        return;
    count = why_living(run->why, pids, UNANSWERED_PROCESSES);
    if (count && count <= UNANSWERED_PROCESSES)
        unanswered_look(&run->unanswered, pids, count);
}

static void measure(struct run *run)
{
    bool ended = false, nothing = false;
    struct around around;

    while (!ended && !run->failed) {
        uint64_t next;
        unsigned events;

        do_look(run, false, &nothing);
        look_around(run);
        look_for_answers(run);
        next = looks_next(run->looks);
        events = stat_wait_until(&run->wait, next < run->end ? next : run->end);
        ended = nothing || events & (STAT_WAIT_CHILD | STAT_WAIT_SIGNAL);
        if (now_ns() >= run->end) {
            run->ended_early = run->wait.child != 0;
            ended = true;
        }
    }
    if (!run->failed)
        do_look(run, true, &nothing);
    around_read(one_of(run), &around);
    around_since(&around, &run->around);
    run->around = around;
}

static int next_program(void *from, uint32_t i, struct prcb_program *ret)
{
    return prcb_session_program(from, i, ret);
}

/* ---- a run -------------------------------------------------------------------------------- */

static const struct object *object_at(const void *ctx, uint32_t number)
{
    return objects_at(ctx, number);
}

/* Of all processes of the report, or, alone, of one of several. */
static int make_verdict(const struct run *run, const struct why_report *report, bool alone,
                        struct verdict *ret)
{
    bool one = report->count == 1 && report->processes[0].pid != run->around_pid;

    char *quota = why_find_quota(report);
    struct held_threads held;
    const struct verdict_figures figures = {.report = report,
                                            .folded = alone ? NULL : why_folded,
                                            .folded_ctx = run->why,
                                            .object = object_at,
                                            .ctx = run->objects,
                                            .whom = run->whom,
                                            .unanswered = alone ? NULL : &run->unanswered,
                                            .around = one ? NULL : &run->around,
                                            .held = &held,
                                            .quota = quota};
    int result;

    why_find_held(report, &held);
    result = verdict_make(&figures, ret);
    free(quota);
    return result;
}

struct verdicts {
    struct verdict all, *each; /* each: NULL: there is one process */
    size_t count;
};

static void verdicts_free(struct verdicts *v)
{
    verdict_free(&v->all);
    for (size_t i = 0; i < v->count; i++)
        verdict_free(&v->each[i]);
    free(v->each);
}

/* Makes them of all processes together, and, where there are several, of each alone. */
static int verdicts_make(const struct run *run, const struct why_report *report,
                         struct verdicts *ret)
{
    struct verdicts v = {.count = 0};
    int result = make_verdict(run, report, false, &v.all);

    if (!result && report->count > 1) {
        v.each = calloc(report->count, sizeof(*v.each));
        result = v.each ? 0 : -ENOMEM;
    }
    while (!result && v.each && v.count < report->count) {
        const struct why_report one = {&report->processes[v.count], 1};

        result = make_verdict(run, &one, true, &v.each[v.count]);
        v.count += !result;
    }
    if (result)
        verdicts_free(&v);
    else
        *ret = v;
    return result;
}

/* Reads goroutines, once: those of the processes that waited most. */
static void read_tasks(const struct run *run, struct why_report *report)
{
    for (size_t i = 0; i < report->count && i < TASKS_PROCESSES; i++) {
        struct why_process *process = &report->processes[i];
        struct prcb_tasks tasks = {.size = sizeof(tasks)};

        if (process->pid && process->known_ns &&
            !prcb_stacks_tasks(looks_stacks(run->looks), process->pid, &tasks, NULL))
            why_set_tasks(process, &tasks);
    }
}

/* Whether the report has every stack of every process. */
static bool has_all_stacks(const struct options *o)
{
    return o->targets.form.number == WHY_JSON || o->targets.form.number == WHY_PPROF;
}

static void find_lines_in(const struct run *run, const struct why_cause *cause)
{
    const struct options *o = run->options;
    bool all = has_all_stacks(o);
    uint64_t found = 0;

    for (size_t i = 0; i < cause->part_count; i++) {
        const struct why_part *part = &cause->parts[i];

        if (part->kind != WHY_STACK || (!all && !o->idle && part->stack.kind == PRCB_STACK_IDLE))
            continue;
        if (!all && o->top_stacks && found++ >= o->top_stacks)
            break;
        prcb_stacks_lines(looks_stacks(run->looks), &part->stack);
    }
}

/* Finds lines of source, of the stacks that are shown. */
static void find_lines(const struct run *run, const struct why_report *report)
{
    uint64_t top = has_all_stacks(run->options) ? 0 : run->options->top;

    for (size_t i = 0; i < report->count && (!top || i < top); i++) {
        const struct why_process *process = &report->processes[i];

        for (size_t n = 0; n < process->doing_count; n++) {
            if (process->doings[n].part.kind == WHY_STACK && process->doings[n].state == WHY_WAITS)
                prcb_stacks_lines(looks_stacks(run->looks), &process->doings[n].part.stack);
        }
        for (size_t n = 0; n < process->path_count && n < WHY_PATHS_SHOWN; n++) {
            if (process->paths[n].part.kind == WHY_STACK)
                prcb_stacks_lines(looks_stacks(run->looks), &process->paths[n].part.stack);
        }
        for (size_t n = 0; n < process->now_count && n < LINES_NOW; n++) {
            if (process->now[n].has_stack)
                prcb_stacks_lines(looks_stacks(run->looks), &process->now[n].stack);
        }
        for (size_t n = 0; n < process->cause_count; n++)
            find_lines_in(run, &process->causes[n]);
    }
}

/* Where there is little room, ended processes of one name are one. */
static int fold_ended(struct run *run)
{
    uint64_t form = run->options->targets.form.number;
    int result;

    if (run->options->spans)
        return 0;
    result = why_fold_ended(run->why, form != WHY_TEXT && form != WHY_BRIEF);
    return result || !run->whom ? result : whom_regroup(run->whom, why_folded, run->why);
}

static int write_pprof(struct run *run, const struct why_report *report)
{
    const struct why_pprof profile = {.report = report,
                                      .profile = run->options->profile,
                                      .wall_ns = run->now - run->start,
                                      .spans = run->options->spans};
    int result = why_write_pprof(run->output.stream, &profile);

    misses_write(stderr, "prcb why: ", next_program, run->session, "some waits may be missing");
    return result;
}

static int write_output(struct run *run, const struct why_output *output)
{
    FILE *out = run->output.stream;

    switch (run->options->targets.form.number) {
    case WHY_JSON:
        return why_write_json(out, output);
    case WHY_BRIEF:
        return why_write_brief(out, output);
    case WHY_FOLDED:
        why_write_folded(out, output);
        return 0;
    default:
        if (output->spans)
            why_write_spans(out, output);
        else
            why_write_text(out, output);
        return 0;
    }
}

/* Writes the report with its verdicts and spans. */
static int report_all(struct run *run, struct why_report *report)
{
    struct prcb_stacks_status stacks = {.size = sizeof(stacks)};
    struct prcb_status status = {.size = sizeof(status)};
    struct verdicts verdicts;
    struct why_spans spans = {0};
    uint64_t accounts;
    bool text = run->options->targets.form.number == WHY_TEXT;
    struct why_output output = {
        .report = report,
        .session = run->session,
        .status = &status,
        .stacks = &stacks,
        .wall_ns = run->now - run->start,
        .looks = looks_count(run->looks, &accounts),
        .percent = run->options->budget,
        .top = run->options->top,
        .top_stacks = run->options->top_stacks,
        .whom = run->whom,
        .objects = run->objects,
        .owners = run->options->owners,
        .no_whom = run->no_whom.text,
        .idle = run->options->idle,
        .columns = format_columns(run->output.stream),
    };
    int result;

    output.accounts = accounts;
    output.cost_ns = looks_cost(run->looks);
    prcb_session_status(run->session, &status);
    prcb_stacks_status(looks_stacks(run->looks), &stacks);
    if (run->objects) {
        objects_find_ends(run->objects);
        why_find_symbols(run->objects, run->options->debuginfod);
    }
    result = verdicts_make(run, report, &verdicts);
    if (result)
        return result;
    output.verdict = &verdicts.all;
    output.verdicts = verdicts.each;
    if (run->options->spans)
        result = why_spans_make(run->why, &spans);
    output.spans = run->options->spans && !result ? &spans : NULL;
    if (!result)
        result = write_output(run, &output);
    misses_write(text ? run->output.stream : stderr, text ? "" : "prcb why: ", next_program,
                 run->session, "wakers, or what waits were for, may be missing");
    why_spans_deinit(&spans);
    verdicts_free(&verdicts);
    return result;
}

static int report(struct run *run)
{
    struct why_report report;
    int result = fold_ended(run);

    if (!result)
        result = why_report_make(run->why, &report);
    if (result)
        return result;
    if (run->options->targets.form.number != WHY_FOLDED)
        find_lines(run, &report);
    if (run->options->targets.form.number == WHY_PPROF) {
        result = write_pprof(run, &report);
    } else {
        read_tasks(run, &report);
        result = report_all(run, &report);
    }
    why_report_deinit(&report);
    return result;
}

static int report_chain(struct run *run)
{
    struct chain chain;
    struct prcb_error err = {0};
    int result = chain_take(run->session, looks_stacks(run->looks), run->objects,
                            run->options->min_ns, &chain, &err);

    if (result)
        return result;
    objects_find_ends(run->objects);
    chain_add_ends(&chain, run->objects);
    why_find_symbols(run->objects, run->options->debuginfod);
    if (run->options->targets.form.number == WHY_JSON)
        result = why_write_chain_json(run->output.stream, &chain, run->objects);
    else
        why_write_chain(run->output.stream, &chain, run->objects);
    chain_deinit(&chain);
    return result;
}

/* Waits, and looks once when the time is over. */
static int wait_for_chain(struct run *run)
{
    while (now_ns() < run->end) {
        if (stat_wait_until(&run->wait, run->end) & (STAT_WAIT_CHILD | STAT_WAIT_SIGNAL))
            break;
    }
    run->ended_early = run->wait.child != 0;
    return report_chain(run);
}

/* Ends the round when it takes long: what is not met now is met with its first wait. */
static int meet(pid_t pid, void *ctx)
{
    const struct run *run = ctx;

    prcb_stacks_meet(looks_stacks(run->looks), pid, NULL);
    return now_ns() - run->met_ns > MEET_NS;
}

/* Reads what takes longest before the time begins, and then what needs accounts: the first waits
 * of an interpreter's threads shall be known, too. */
static void meet_targets(struct run *run)
{
    const struct stat_options *targets = &run->options->targets;

    run->met_ns = now_ns();
    found_each(targets->pids.ids, targets->pids.count, targets->pids.named, meet, run);
}

static int start(struct run *run)
{
    const struct stat_options *targets = &run->options->targets;
    struct prcb_error err = {0};
    int status = CLI_FAILED, ended_by;
    pid_t child;

    meet_targets(run);
    run->start = now_ns();
    if (stat_targets_profile(run->session, targets, &run->wait, &err))
        return fail(run, &err, CLI_FAILED);
    meet_targets(run);
    if (targets->command) {
        ended_by = stat_wait_pending(&run->wait);
        if (ended_by) {
            cli_warn(run->command, "ended before the command was started");
            return 128 + ended_by;
        }
        if (stat_targets_start(run->session, targets, NULL, &child, &status, &err))
            return fail(run, &err, status);
        stat_wait_set_child(&run->wait, child);
        run->had_child = true;
    }
    run->end = targets->for_ns ? run->start + targets->for_ns : UINT64_MAX;
    return CLI_OK;
}

static void end_child(struct run *run)
{
    if (!run->wait.child)
        return;
    if (run->ended_early)
        stat_wait_end_child(&run->wait);
    run->child_status = stat_wait_reap(&run->wait, NULL);
}

static int exit_status(const struct run *run, int written)
{
    if (run->had_child && cli_child_status(run->child_status, run->ended_early) != CLI_OK)
        return cli_child_status(run->child_status, run->ended_early);
    return written == CLI_OK && run->failed ? CLI_FAILED : written;
}

static int run_opened(struct run *run)
{
    const char *path = run->options->targets.output;
    int status = cli_open_output(run->command, path, &run->output), result;

    if (status != CLI_OK)
        return status;
    status = start(run);
    if (status != CLI_OK) {
        output_abort(&run->output);
        return status;
    }
    output_begin(&run->output);
    if (!run->had_child && isatty(STDERR_FILENO) && !run->options->chain)
        cli_warn(run->command, "looking for %.3g s (--for); Ctrl-C ends it and reports",
                 (double)run->options->targets.for_ns / 1e9);
    if (run->options->chain) {
        result = wait_for_chain(run);
        end_child(run);
    } else {
        measure(run);
        end_child(run);
        result = report(run);
    }
    if (result) {
        run->failed = true;
        cli_error(run->command, "no report: %s", strerror(-result));
    }
    return exit_status(run, cli_close_output(run->command, &run->output, CLI_OK));
}

/* Only some sessions keep edges: the report goes without them on the others, and says why. */
static int open_whom(struct run *run, struct prcb_error *err)
{
    if (run->options->no_whom ||
        prcb_edges_walk(run->session, 0, NULL, NULL, NULL, &run->no_whom) == -EOPNOTSUPP)
        return 0;
    run->no_whom.text[0] = '\0';
    return whom_open(&run->whom) ? snprintf(err->text, sizeof(err->text), "out of memory"),
           -ENOMEM               : 0;
}

static int open_objects(struct run *run, struct prcb_error *err)
{
    if (!run->options->objects)
        return 0;
    if (objects_open(run->session, &run->objects))
        return snprintf(err->text, sizeof(err->text), "out of memory"), -ENOMEM;
    looks_set_objects(run->looks, run->objects);
    return 0;
}

/* Whether the report says what waits lead to. */
static bool has_paths(const struct run *run)
{
    uint64_t form = run->options->targets.form.number;

    return run->whom && (form == WHY_TEXT || form == WHY_JSON || form == WHY_BRIEF);
}

static int open_all(struct run *run, struct prcb_error *err)
{
    const struct prcb_options how = {
        .size = sizeof(how),
        .tier = run->options->targets.tier,
        .max_threads = (uint32_t)run->options->targets.max_threads,
        .flags = PRCB_OPEN_REGISTERS | (run->options->chain ? 0 : PRCB_OPEN_CHOSEN) |
                 (run->options->no_whom ? 0 : PRCB_OPEN_EDGES) |
                 (run->options->objects ? PRCB_OPEN_OBJECTS : 0) |
                 (run->options->owners ? PRCB_OPEN_OWNERS : 0),
    };
    const uint32_t flags = (run->options->native ? PRCB_STACKS_NATIVE : 0) |
                           (run->options->spans ? PRCB_STACKS_SPANS : 0) |
                           (run->options->debuginfod ? PRCB_STACKS_FETCHED : 0);
    bool pprof = run->options->targets.form.number == WHY_PPROF;
    struct why_source source = {.read = looks_read,
                                .min_wait_ns = run->options->min_ns,
                                .by_name = pprof,
                                .by_span = pprof && run->options->spans};
    int result = stat_targets_open(&how, &run->options->targets, &run->session, err);

    if (run->options->targets.verbose)
        cli_write_load_log(prcb_load_log());
    if (!result)
        result = looks_open(run->session, run->options->budget, flags, &run->looks, err);
    source.ctx = run->looks;
    source.object = run->options->objects && !run->options->chain ? looks_object : NULL;
    source.holder = source.object ? looks_holder : NULL;
    source.still = source.object ? looks_still : NULL;
    if (!result)
        result = open_objects(run, err);
    if (!result)
        result = open_whom(run, err);
    source.edges = run->whom ? looks_edges : NULL;
    if (!result && (why_open(&source, &run->why) ||
                    (run->options->spans && !pprof && why_spans_open(run->why)) ||
                    (has_paths(run) && why_paths_open(run->why, WHY_PATHS_PIECES, false)))) {
        snprintf(err->text, sizeof(err->text), "out of memory");
        result = -ENOMEM;
    }
    return result;
}

static int run_with(const struct cli_command *self, const struct options *options)
{
    struct run run = {.command = self, .options = options};
    struct prcb_error err;
    int status, result;

#ifdef HAVE_RECORD
    if (options->debuginfod)
        debug_fetch(self, &options->targets);
#endif
    result = stat_wait_init(&run.wait);
    if (result)
        return cli_error(self, "pipe: %s", strerror(-result));
    if (open_all(&run, &err)) {
        status = cli_error(self, "%s", err.text);
    } else {
        status = run_opened(&run);
    }
    whom_close(run.whom);
    why_close(run.why);
    looks_close(run.looks);
    objects_close(run.objects);
    prcb_close(run.session);
    stat_wait_deinit(&run.wait);
    return status;
}

static int run_why(const struct cli_command *self, int argc, char **argv)
{
    struct options options;
    int status, result = parse(self, argc, argv, &options, &status);

    if (result == CLI_OK)
        status = run_with(self, &options);
    stat_options_deinit(&options.targets);
    return status;
}

extern const struct cli_command cmd_why;
const struct cli_command cmd_why = {
    .name = "why",
    .synopsis = "[options] PID | NAME | CGROUP [options] [-- COMMAND...]\n"
                "       prcb why [options] --unit UNIT | --container NAME | --pod NAME | -t TID\n"
                "       prcb why [options] -a\n"
                "       prcb why [options] -- COMMAND [ARGUMENT...]",
    .summary = "why is this slow? what threads wait for, where, and who holds it",
    .description =
        "Says of each process what its threads waited for and where in the code: for each cause\n"
        "the stacks with their shares of its exact time. Stacks are complete without frame\n"
        "pointers; threads are not stopped. Threads that idle by design (event loops, pools) are\n"
        "one row. Reads processes that ptrace(2) would let you trace.",
    .options = option_rows,
    .examples = "  prcb why 1234                          a process, for five seconds\n"
                "  prcb why nginx --for 10                all processes of this name, for ten\n"
                "  prcb why --unit postgresql.service     all threads of a service\n"
                "  prcb why -- ./server --port 8080       a command, until it ends\n"
                "  prcb why -a --for 5 --top 10           the ten processes that wait most\n"
                "  prcb why --chain -p 1234               who holds what its threads wait for\n"
                "  prcb why --folded -p 1234 --for 10 | flamegraph.pl > waits.svg\n",
    .run = run_why,
};
