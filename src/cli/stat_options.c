/* SPDX-License-Identifier: BSD-2-Clause */
#include "stat_options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS       1000000ull
#define MIN_INTERVAL_MS 10
#define MAX_INTERVAL_MS 86400000
#define MAX_FOR_NS      (366ull * 86400 * 1000 * NS_PER_MS)
#define MAX_THREADS     (1u << 22) /* the most that prcb_open takes */

enum {
    OPT_CGROUP = CLI_LONG,
    OPT_FOR,
    OPT_NDJSON,
    OPT_SORT,
    OPT_TOP,
    OPT_PER_THREAD,
    OPT_PER_PROCESS,
    OPT_NO_FOLLOW,
    OPT_TIER,
    OPT_MAX_THREADS,
    OPT_INTERRUPTED,
};

/* clang-format off */
const struct cli_option stat_option_rows[] = {
    {'p', "pid", "PID[,PID]", "profile these processes, and all that they start", 'p'},
    {'t', "tid", "TID[,TID]", "profile these threads, and all that they start", 't'},
    {0, "cgroup", "PATH", "profile every thread in this cgroup directory and below it", OPT_CGROUP},
    {'a', "all", NULL, "profile every thread of the system", 'a'},
    {0, "no-follow", NULL, "leave out threads and processes that the profiled ones start", OPT_NO_FOLLOW},
    {0, "for", "SEC", "end after SEC seconds (0.5 is fine); a command that still runs is\n"
                      "then ended with SIGTERM", OPT_FOR},
    {'e', "event", "NAME[,NAME]", "count these events for every thread; prcb list names them", 'e'},
    {'I', "interval", "MS", "report every MS milliseconds what changed (10 or more)", 'I'},
    {0, "interrupted", NULL, "tell what interrupts took of the run time", OPT_INTERRUPTED},
    {0, "per-thread", NULL, "a row for each thread (the default)", OPT_PER_THREAD},
    {0, "per-process", NULL, "a row for each process: its threads summed", OPT_PER_PROCESS},
    {0, "sort", "KEY", "run (the default), ready, wait, wall, open, switches, tid, comm,\n"
                       "or the name of a cause, such as futex", OPT_SORT},
    {0, "top", "N", "the first N rows only; the rest is summed in one (0: all)", OPT_TOP},
    {'x', "csv", "SEP", "a line of values per row, with SEP between them ('\\t': a tab)", 'x'},
    {'j', "json", NULL, "one JSON document", 'j'},
    {0, "ndjson", NULL, "JSON, one line per interval; without -I one line at the end", OPT_NDJSON},
    {'o', "output", "FILE", "write the report to FILE", 'o'},
    {0, "tier", "TIER", "use this source of figures and no other: daemon, bpf or perf", OPT_TIER},
    {0, "max-threads", "N", "room for N threads at one time (default 16384)", OPT_MAX_THREADS},
    {0},
};
/* clang-format on */

/* One command line being parsed. */
struct state {
    const struct cli_command *command;
    struct stat_options *options;
    const char *format; /* the option that chose the format */
    bool per_thread;
};

static int fail(const struct state *state)
{
    return cli_error(state->command, "out of memory");
}

static int add_cgroup(struct state *state, const char *path)
{
    struct stat_options *options = state->options;
    const char **grown =
        realloc(options->cgroups, (options->cgroup_count + 1) * sizeof(const char *));

    if (!grown)
        return fail(state);
    options->cgroups = grown;
    if (!*path)
        return cli_usage_error(state->command, "--cgroup: the path is empty");
    options->cgroups[options->cgroup_count++] = path;
    return CLI_OK;
}

static int parse_for(struct state *state, const char *text)
{
    uint64_t ns;

    if (cli_parse_seconds(text, &ns) || !ns || ns > MAX_FOR_NS)
        return cli_usage_error(
            state->command, "--for '%s': not a number of seconds above 0 and below a year", text);
    state->options->for_ns = ns;
    return CLI_OK;
}

static int set_format(struct state *state, enum stat_format format, const char *option)
{
    if (state->format && strcmp(state->format, option))
        return cli_usage_error(state->command, "%s and %s contradict each other: choose one",
                               state->format, option);
    state->format = option;
    state->options->format = format;
    return CLI_OK;
}

static int parse_separator(struct state *state, const char *text)
{
    if (cli_parse_separator(text, &state->options->separator))
        return cli_usage_error(state->command, CLI_SEPARATOR_ERROR, text);
    return set_format(state, STAT_CSV, "-x");
}

static int parse_tier(struct state *state, const char *text)
{
    if (cli_parse_tier(text, &state->options->tier))
        return cli_usage_error(state->command, CLI_TIER_ERROR, text);
    return CLI_OK;
}

static int take_option(void *ctx, int id, const char *value)
{
    struct state *state = ctx;
    struct stat_options *options = state->options;
    uint64_t number = 0;
    int status = CLI_OK;

    switch (id) {
    case 'p':
        return cli_parse_ids(state->command, "-p", "process", value, &options->pids);
    case 't':
        return cli_parse_ids(state->command, "-t", "thread", value, &options->tids);
    case OPT_CGROUP:
        return add_cgroup(state, value);
    case 'a':
        options->all = true;
        break;
    case OPT_NO_FOLLOW:
        options->no_follow = true;
        options->follow = PRCB_FOLLOW_NONE;
        break;
    case OPT_FOR:
        return parse_for(state, value);
    case 'e':
        options->events = value;
        if (!*value)
            return cli_usage_error(state->command, "-e: no event is named");
        break;
    case 'I':
        status = cli_parse_number(state->command, "-I", value, MIN_INTERVAL_MS, MAX_INTERVAL_MS,
                                  &number);
        options->interval_ns = number * NS_PER_MS;
        break;
    case OPT_INTERRUPTED:
        options->interrupted = true;
        break;
    case OPT_PER_THREAD:
        state->per_thread = true;
        break;
    case OPT_PER_PROCESS:
        options->per_process = true;
        break;
    case OPT_SORT:
        if (account_order_parse(value, &options->order))
            return cli_usage_error(state->command,
                                   "--sort '%s': not run, ready, wait, wall, open, switches, tid, "
                                   "comm or the name of a cause",
                                   value);
        break;
    case OPT_TOP:
        return cli_parse_number(state->command, "--top", value, 0, UINT32_MAX, &options->order.top);
    case 'x':
        return parse_separator(state, value);
    case 'j':
        return set_format(state, STAT_JSON, "-j");
    case OPT_NDJSON:
        return set_format(state, STAT_NDJSON, "--ndjson");
    case 'o':
        options->output = value;
        if (!*value)
            return cli_usage_error(state->command, "-o: the file name is empty");
        break;
    case OPT_TIER:
        return parse_tier(state, value);
    case OPT_MAX_THREADS:
        status = cli_parse_number(state->command, "--max-threads", value, 1, MAX_THREADS, &number);
        options->max_threads = (uint32_t)number;
        break;
    }
    return status;
}

bool stat_options_have_targets(const struct stat_options *options)
{
    return options->all || options->pids.count || options->tids.count || options->cgroup_count;
}

/* What is fine alone and senseless together. */
static int check(const struct state *state)
{
    const struct stat_options *options = state->options;
    const struct cli_command *command = state->command;

    if (!stat_options_have_targets(options) && !options->command)
        return cli_usage_error(command,
                               "nothing to profile: give a command, -p, -t, --cgroup or -a; "
                               "see prcb stat --help");
    if (options->all && (options->pids.count || options->tids.count || options->cgroup_count))
        return cli_usage_error(command, "-a profiles everything: leave -p, -t and --cgroup out");
    if (options->no_follow && (options->all || options->cgroup_count))
        return cli_usage_error(command,
                               "--no-follow cannot be had with %s: new threads belong to it",
                               options->all ? "-a" : "--cgroup");
    if (state->per_thread && options->per_process)
        return cli_usage_error(command,
                               "--per-thread and --per-process contradict each other: choose one");
    if (options->format == STAT_JSON && options->interval_ns)
        return cli_usage_error(command, "-j writes one document at the end: with -I use --ndjson");
    return CLI_OK;
}

int stat_options_parse(const struct cli_command *command, int argc, char **argv,
                       struct stat_options *ret, int *ret_status)
{
    struct cli_parser parser = {.command = command, .argc = argc, .argv = argv};
    struct state state = {.command = command, .options = ret};

    *ret = (struct stat_options){.follow = PRCB_FOLLOW_ALL, .order = {.key = ACCOUNT_BY_RUN}};
    if (cli_take_all(&parser, take_option, &state, ret_status))
        return -1;
    if (parser.index < argc)
        ret->command = argv + parser.index;
    else if (parser.dashes)
        *ret_status = cli_usage_error(command, "no command behind --");
    if (parser.dashes && !ret->command)
        return -1;
    *ret_status = check(&state);
    return *ret_status == CLI_OK ? CLI_OK : -1;
}

void stat_options_deinit(struct stat_options *options)
{
    free(options->pids.ids);
    free(options->tids.ids);
    free(options->cgroups);
    memset(options, 0, sizeof(*options));
}
