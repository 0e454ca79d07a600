/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb why`: where in the code threads wait, and why. Looks at the accounts some fifty times a
 * second and reads the stack of each wait that goes on, once; what it costs is bounded.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/stack.h>

#include "cli.h"
#include "stat_options.h"
#include "output.h"
#include "stat_targets.h"
#include "format.h"
#include "stat_wait.h"
#include "why_report.h"

#define NS_PER_MS  1000000ull
#define LOOK_NS    (20 * NS_PER_MS)
#define PERF_NS    (100 * NS_PER_MS) /* perf tier: a look reads /proc for each thread */
#define LOOK_PART  40                /* a look takes at most one part in so many of the time */
#define BUDGET_NS  (500 * NS_PER_MS) /* of the unwinding child: at once, and then by share */
#define ROOM_PART  4                 /* accounts of ended threads go back at this share */
#define MAX_FOR_NS (365ull * 86400 * 1000 * NS_PER_MS)
#define WALK_TRIES 50

enum {
    OPT_CGROUP = CLI_LONG,
    OPT_FOR,
    OPT_FOLDED,
    OPT_IDLE,
    OPT_TOP,
    OPT_STACKS,
    OPT_BUDGET,
    OPT_TIER,
    OPT_MIN,
    OPT_MAX_THREADS
};

enum why_format { WHY_TEXT, WHY_JSON, WHY_FOLDED };

struct options {
    struct stat_options targets; /* what is profiled, for how long, where the report goes */
    enum why_format format;
    bool idle;
    uint64_t top, top_stacks, budget, min_us;
    bool top_given;
};

struct run {
    const struct cli_command *command;
    const struct options *options;
    struct prcb *session;
    struct prcb_stacks *stacks;
    struct why *why;
    struct stat_wait wait;
    struct output output;
    uint64_t start, next, end, now;
    uint64_t child_cpu_ns; /* of the child that unwinds, as of the last look */
    bool perf, had_child, ended_early, failed;
    int child_status;
    uint64_t *ended; /* keys of accounts to give back */
    size_t ended_count;
};

static const struct cli_option option_rows[] = {
    {'p', "pid", "PID[,PID]", "profile these processes, with all their threads", 'p'},
    {'t', "tid", "TID[,TID]", "profile these threads", 't'},
    {0, "cgroup", "PATH", "profile all threads of this cgroup", OPT_CGROUP},
    {'a', "all", NULL, "profile every thread of the system", 'a'},
    {0, "for", "SECONDS", "end after this time", OPT_FOR},
    {'j', "json", NULL, "one JSON document", 'j'},
    {0, "folded", NULL, "folded stacks, for flame graphs; the number is nanoseconds", OPT_FOLDED},
    {0, "idle", NULL, "show where threads idle by design, too", OPT_IDLE},
    {0, "top", "N", "show N processes; 0: all (default: 5 with -a, else all)", OPT_TOP},
    {0, "stacks", "N", "show N stacks of each cause; 0: all (default: 3)", OPT_STACKS},
    {0, "min", "MICROSECONDS", "read stacks of waits that last this long (default: 1000)", OPT_MIN},
    {0, "budget", "PERCENT", "of one processor, for unwinding (default: 5)", OPT_BUDGET},
    {'o', "output", "FILE", "write the report to FILE", 'o'},
    {0, "tier", "TIER", "daemon, bpf or perf instead of the best there is", OPT_TIER},
    {0, "max-threads", "N", "make room for N threads (default: 16384)", OPT_MAX_THREADS},
    {0},
};

/* ---- options ------------------------------------------------------------------------------ */

struct state {
    const struct cli_command *command;
    struct options *options;
};

static int add_cgroup(const struct state *state, const char *path)
{
    struct stat_options *targets = &state->options->targets;

    if (targets->cgroup_count)
        return cli_usage_error(state->command, "--cgroup: one cgroup at a time");
    targets->cgroups = calloc(1, sizeof(*targets->cgroups));
    if (!targets->cgroups)
        return cli_error(state->command, "out of memory");
    targets->cgroups[targets->cgroup_count++] = path;
    return CLI_OK;
}

static int parse_for(const struct state *state, const char *text)
{
    uint64_t ns;

    if (cli_parse_seconds(text, &ns) || !ns || ns > MAX_FOR_NS)
        return cli_usage_error(
            state->command, "--for '%s': not a number of seconds above 0 and below a year", text);
    state->options->targets.for_ns = ns;
    return CLI_OK;
}

static int take_option(void *ctx, int id, const char *value)
{
    const struct state *state = ctx;
    struct options *options = state->options;
    struct stat_options *targets = &options->targets;
    uint64_t number = 0;
    int status;

    switch (id) {
    case 'p':
        return cli_parse_ids(state->command, "-p", "process", value, &targets->pids);
    case 't':
        return cli_parse_ids(state->command, "-t", "thread", value, &targets->tids);
    case OPT_CGROUP:
        return add_cgroup(state, value);
    case 'a':
        targets->all = true;
        return CLI_OK;
    case OPT_FOR:
        return parse_for(state, value);
    case 'j':
        options->format = WHY_JSON;
        return CLI_OK;
    case OPT_FOLDED:
        options->format = WHY_FOLDED;
        return CLI_OK;
    case OPT_IDLE:
        options->idle = true;
        return CLI_OK;
    case OPT_TOP:
        options->top_given = true;
        return cli_parse_number(state->command, "--top", value, 0, UINT32_MAX, &options->top);
    case OPT_STACKS:
        return cli_parse_number(state->command, "--stacks", value, 0, UINT32_MAX,
                                &options->top_stacks);
    case OPT_MIN:
        return cli_parse_number(state->command, "--min", value, 1, 60000000, &options->min_us);
    case OPT_BUDGET:
        return cli_parse_number(state->command, "--budget", value, 1, 100, &options->budget);
    case 'o':
        targets->output = value;
        return *value ? CLI_OK : cli_usage_error(state->command, "-o: the file name is empty");
    case OPT_TIER:
        return cli_parse_tier(value, &targets->tier)
                   ? cli_usage_error(state->command, CLI_TIER_ERROR, value)
                   : CLI_OK;
    case OPT_MAX_THREADS:
        status = cli_parse_number(state->command, "--max-threads", value, 1, 1u << 22, &number);
        targets->max_threads = (uint32_t)number;
        return status;
    }
    return CLI_OK;
}

static int check(const struct cli_command *self, const struct options *options)
{
    const struct stat_options *targets = &options->targets;

    if (!stat_options_have_targets(targets) && !targets->command)
        return cli_usage_error(self, "nothing to look at: give a command, -p, -t, --cgroup or -a; "
                                     "see prcb why --help");
    if (targets->all && (targets->pids.count || targets->tids.count || targets->cgroup_count))
        return cli_usage_error(self, "-a profiles everything: leave -p, -t and --cgroup out");
    return CLI_OK;
}

static int parse(const struct cli_command *self, int argc, char **argv, struct options *ret,
                 int *ret_status)
{
    struct cli_parser parser = {.command = self, .argc = argc, .argv = argv};
    struct state state = {self, ret};

    *ret = (struct options){
        .targets = {.follow = PRCB_FOLLOW_ALL}, .top_stacks = 3, .budget = 5, .min_us = 1000};
    if (cli_take_all(&parser, take_option, &state, ret_status))
        return -1;
    if (parser.index < argc)
        ret->targets.command = argv + parser.index;
    else if (parser.dashes) {
        *ret_status = cli_usage_error(self, "no command behind --");
        return -1;
    }
    if (!ret->top_given)
        ret->top = ret->targets.all ? 5 : 0;
    *ret_status = check(self, ret);
    return *ret_status == CLI_OK ? CLI_OK : -1;
}

/* ---- looking ------------------------------------------------------------------------------ */

static int fail(struct run *run, const struct prcb_error *err, int result)
{
    run->failed = true;
    cli_error(run->command, "%s", err->text);
    return result;
}

/* The child's processor time is asked of the kernel once a look: new programs cost it most, and it
 * may use some at the start, then its share. */
static bool has_budget(struct run *run)
{
    struct prcb_stacks_status status = {.size = sizeof(status)};
    uint64_t elapsed = run->now - run->start;

    if (prcb_stacks_status(run->stacks, &status))
        return false;
    return status.cpu_ns < BUDGET_NS + elapsed / 100 * run->options->budget;
}

struct look {
    struct run *run;
    struct prcb_account *accounts; /* those that may need a stack: read after the walk */
    size_t count, room;
    int result;
};

/* The walk holds the session's lock, under which no stack can be read. */
static int take_account(const struct prcb_account *a, void *ctx)
{
    struct look *look = ctx;

    if (look->count == look->room) {
        size_t room = look->room ? 2 * look->room : 256;
        struct prcb_account *grown = realloc(look->accounts, room * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        look->accounts = grown;
        look->room = room;
    }
    look->accounts[look->count++] = *a;
    return 0;
}

static int read_stack(void *ctx, const struct prcb_account *a, struct prcb_stack *ret)
{
    struct run *run = ctx;

    return has_budget(run) ? prcb_stacks_read(run->stacks, a, ret, NULL) : -EBUSY;
}

static int walk(struct run *run, struct look *look, struct prcb_error *err)
{
    int result = -EAGAIN;

    for (int i = 0; i < WALK_TRIES && result == -EAGAIN; i++) {
        look->count = 0;
        result = prcb_walk(run->session, take_account, look, err);
    }
    return result;
}

/* Ended threads' accounts go back when there are many, so that there is room for others. */
static int give_back(struct run *run, const struct look *look)
{
    struct prcb_status status = {.size = sizeof(status)};
    struct prcb_error err = {.text = "out of memory"};
    int result = prcb_session_status(run->session, &status);

    if (result || (uint64_t)status.threads * ROOM_PART < status.max_threads)
        return 0;
    for (size_t i = 0; i < look->count && !result; i++) {
        if (!(look->accounts[i].flags & PRCB_ACCOUNT_EXITED))
            continue;
        result = prcb_release(run->session, look->accounts[i].key, &err);
        if (!result || result == -ESTALE)
            result = why_released(run->why, look->accounts[i].key);
    }
    return result && result != -ESTALE ? fail(run, &err, result) : 0;
}

static bool all_ended(const struct look *look)
{
    for (size_t i = 0; i < look->count; i++) {
        if (!(look->accounts[i].flags & PRCB_ACCOUNT_EXITED))
            return false;
    }
    return true;
}

/* *ret_ended: nothing is left to look at. */
static int do_look(struct run *run, bool *ret_ended)
{
    const struct stat_options *targets = &run->options->targets;
    struct prcb_error err = {.text = "out of memory"};
    struct look look = {.run = run};
    int result = walk(run, &look, &err);

    run->now = stat_wait_now();
    for (size_t i = 0; i < look.count && !result; i++)
        result = why_account(run->why, &look.accounts[i], run->now);
    if (result)
        fail(run, &err, result);
    else
        result = give_back(run, &look);
    *ret_ended = !targets->all && !targets->cgroup_count && !run->wait.child && all_ended(&look);
    free(look.accounts);
    return result;
}

static void measure(struct run *run)
{
    uint64_t period = run->perf ? PERF_NS : LOOK_NS;
    bool ended = false, nothing = false;

    while (!ended && !run->failed) {
        uint64_t before = stat_wait_now(), cost;
        unsigned events;

        do_look(run, &nothing);
        cost = (stat_wait_now() - before) * LOOK_PART;
        run->next = before + (cost > period ? cost : period);
        events = stat_wait_until(&run->wait, run->next < run->end ? run->next : run->end);
        ended = nothing || events & (STAT_WAIT_CHILD | STAT_WAIT_SIGNAL);
        if (stat_wait_now() >= run->end) {
            run->ended_early = run->wait.child != 0;
            ended = true;
        }
    }
    if (!run->failed)
        do_look(run, &nothing);
}

/* ---- a run -------------------------------------------------------------------------------- */

static int report(struct run *run)
{
    struct prcb_stacks_status stacks = {.size = sizeof(stacks)};
    struct prcb_status status = {.size = sizeof(status)};
    struct why_report report;
    struct why_output output = {
        .report = &report,
        .session = run->session,
        .status = &status,
        .stacks = &stacks,
        .wall_ns = run->now - run->start,
        .top = run->options->top,
        .top_stacks = run->options->top_stacks,
        .idle = run->options->idle,
        .columns = format_columns(run->output.stream),
    };
    int result = why_report_make(run->why, &report);

    if (result)
        return result;
    prcb_session_status(run->session, &status);
    prcb_stacks_status(run->stacks, &stacks);
    if (run->options->format == WHY_JSON)
        result = why_write_json(run->output.stream, &output);
    else if (run->options->format == WHY_FOLDED)
        why_write_folded(run->output.stream, &output);
    else
        why_write_text(run->output.stream, &output);
    why_report_deinit(&report);
    return result;
}

static int start(struct run *run)
{
    const struct stat_options *targets = &run->options->targets;
    struct prcb_error err = {0};
    int status = CLI_FAILED, ended_by;
    pid_t child;

    run->start = stat_wait_now();
    if (stat_targets_profile(run->session, targets, &run->wait, &err))
        return fail(run, &err, CLI_FAILED);
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
    run->child_status = stat_wait_reap(&run->wait);
}

static int exit_status(const struct run *run)
{
    if (run->had_child && cli_child_status(run->child_status, run->ended_early) != CLI_OK)
        return cli_child_status(run->child_status, run->ended_early);
    if (run->output.error)
        return run->output.error == EPIPE ? 128 + SIGPIPE : CLI_FAILED;
    return run->failed ? CLI_FAILED : CLI_OK;
}

static int run_opened(struct run *run)
{
    const char *path = run->options->targets.output;
    int result = output_open(&run->output, path), status;

    if (result)
        return cli_error(run->command, "cannot write to %s: %s", path, strerror(-result));
    status = start(run);
    if (status != CLI_OK) {
        output_abort(&run->output);
        return status;
    }
    output_begin(&run->output);
    if (!run->had_child && isatty(STDERR_FILENO))
        cli_warn(run->command, "looking; Ctrl-C ends it and reports");
    measure(run);
    end_child(run);
    result = report(run);
    if (result) {
        run->failed = true;
        cli_error(run->command, "no report: %s", strerror(-result));
    }
    result = output_close(&run->output);
    if (result && result != -EPIPE)
        cli_error(run->command, "the report could not be written to %s: %s",
                  path ? path : "standard output", strerror(-result));
    return exit_status(run);
}

static int open_all(struct run *run, struct prcb_error *err)
{
    const struct prcb_options how = {
        .size = sizeof(how),
        .tier = run->options->targets.tier,
        .max_threads = run->options->targets.max_threads,
        .flags = PRCB_OPEN_REGISTERS,
    };
    const struct why_source source = {read_stack, run, run->options->min_us * 1000};
    int result = prcb_open(&how, &run->session, err);

    if (!result)
        result = prcb_stacks_open(run->session, NULL, &run->stacks, err);
    if (!result && why_open(&source, &run->why)) {
        snprintf(err->text, sizeof(err->text), "out of memory");
        result = -ENOMEM;
    }
    return result;
}

static int run_with(const struct cli_command *self, const struct options *options)
{
    struct run run = {.command = self, .options = options};
    struct prcb_error err;
    int status, result = stat_wait_init(&run.wait);

    if (result)
        return cli_error(self, "pipe: %s", strerror(-result));
    if (open_all(&run, &err)) {
        status = cli_error(self, "%s", err.text);
    } else {
        run.perf = prcb_session_tier(run.session) == PRCB_TIER_PERF;
        status = run_opened(&run);
    }
    why_close(run.why);
    prcb_stacks_close(run.stacks);
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
    .synopsis = "[options] [--] COMMAND [ARGUMENT...]\n"
                "       prcb why [options] -p PID | -t TID | --cgroup PATH | -a  "
                "[-- COMMAND [ARGUMENT...]]",
    .summary = "where in the code do these threads wait? stacks of waits, by cause",
    .description =
        "Says of each process what its threads waited for and where in the code: for each cause\n"
        "the stacks with their shares of its exact time. Stacks are complete without frame\n"
        "pointers; threads are not stopped. Threads that idle by design (event loops, pools) are\n"
        "one row. Reads processes that ptrace(2) would let you trace.",
    .options = option_rows,
    .examples = "  prcb why -p 1234 --for 10              a process, for ten seconds\n"
                "  prcb why -- ./server --port 8080       a command, until it ends\n"
                "  prcb why -a --for 5 --top 10           the ten processes that wait most\n"
                "  prcb why --folded -p 1234 --for 10 | flamegraph.pl > waits.svg\n",
    .run = run_why,
};
