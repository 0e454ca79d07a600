/* SPDX-License-Identifier: BSD-2-Clause */
#include "stat_options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "comm.h"
#include "held_up.h"
#include "living.h"
#include "read_file.h"
#include "text.h"

#define NS_PER_MS       1000000ull
#define TOP_ROWS        40         /* of a table */
#define TOP_LINES       15         /* of an interval */
#define TOP_DEFAULT     UINT64_MAX /* none was chosen */
#define MIN_INTERVAL_NS (10 * NS_PER_MS)
#define MAX_INTERVAL_NS (86400000 * NS_PER_MS)

int stat_options_take_cgroup(struct cli_parser *parser, void *target)
{
    struct stat_options *options = target;

    if (!*parser->value)
        return cli_usage_error(parser->command, "--cgroup: the path is empty");
    if (array_append(options->cgroups, options->cgroup_count, parser->value))
        return cli_error(parser->command, "out of memory");
    return CLI_OK;
}

static int take_order(struct cli_parser *parser, void *target)
{
    struct stat_options *options = target;

    if (!account_order_parse(parser->value, &options->order))
        return CLI_OK;
    return cli_usage_error(
        parser->command,
        "--sort '%s': must be run, ready, wait, wall, open, switches, tid, comm or "
        "the name of a cause",
        parser->value);
}

#define AT(member) .at = offsetof(struct stat_options, member)
/* clang-format off */
const struct cli_option stat_option_rows[] = {
    STAT_TARGET_ROWS(0, "profile", "profile every thread"),
    {'a', "all", NULL, "profile every thread of the system", AT(all)},
    {0, "no-follow", NULL, "leave out threads and processes that the profiled ones start", AT(no_follow)},
    {0, "for", "SEC", "end after SEC seconds (0.5 is fine); a command that still runs is\n"
                      "then ended with SIGTERM", .take = cli_take_duration, AT(for_ns)},
    {'e', "event", "NAME[,NAME]", "count these events for every thread; prcb list names them",
     .kind = CLI_TEXT, AT(events), .what = "no event is named"},
    {'I', "interval", "MS", "report what changed every MS milliseconds, or 2s (10 or more)",
     .take = cli_take_duration, AT(interval_ns), .min = MIN_INTERVAL_NS, .max = MAX_INTERVAL_NS},
    {0, "by-whom", NULL, "which threads woke these, and which had their processor",
     AT(by_whom)},
    {0, "owners", NULL, "the same, and who held the kernel's mutexes and semaphores that they waited for",
     AT(owners)},
    {0, "tails", NULL, "tell how long each wait and each ready time took: median, p99, longest",
     AT(tails)},
    {0, "nt", NULL, "NT's name for the reason of each cause, in the table's legend", AT(nt)},
    {0, "interrupted", NULL, "tell what interrupts took of the run time", AT(interrupted)},
    {0, "per-thread", NULL, "a row for each thread (the default)", AT(per_thread)},
    {0, "per-process", NULL, "a row for each process: its threads summed", AT(per_process)},
    {0, "per-cgroup", NULL, "a row for each cgroup: its threads summed, while they were in it", AT(per_cgroup)},
    {0, "per-name", NULL, "a row for each name: threads of that name summed", AT(per_name)},
    {0, "sort", "KEY", "run (the default), ready, wait, wall, open, switches, tid, comm,\n"
                       "or the name of a cause, such as futex", .take = take_order,
     .choices = "run ready wait wall open switches tid comm"},
    {0, "top", "N", "the first N rows only, the rest summed in one (0: all; default\n"
                     "of tables: 40, with -I 15)",
     .kind = CLI_NUMBER, AT(order.top), .max = UINT32_MAX},
    {'x', "csv", "SEP", "a line of values per row, with SEP between them ('\\t': a tab)",
     .take = cli_take_values, AT(form), .min = STAT_CSV},
    {'j', "json", NULL, "one JSON document", .take = cli_take_form, AT(form), .min = STAT_JSON},
    {0, "brief", NULL, "the largest figures as one JSON document of at most 8 KiB",
     .take = cli_take_form, AT(form), .min = STAT_BRIEF},
    {0, "ndjson", NULL, "JSON, one line per interval; without -I one line at the end",
     .take = cli_take_form, AT(form), .min = STAT_NDJSON},
    {'o', "output", "FILE", "write the report to FILE",
     .kind = CLI_TEXT, AT(output), .what = "the file name is empty"},
    STAT_TIER_ROW(0),
    STAT_VERBOSE_ROW(0),
    STAT_MAX_THREADS_ROW(0),
    {0},
};
/* clang-format on */

bool stat_options_have_targets(const struct stat_options *options)
{
    return options->all || options->pids.count || options->tids.count || options->cgroup_count;
}

/* Returns the process that a thread number belongs to, or the number itself if that is not
 * known. */
static pid_t process_of(pid_t id)
{
    pid_t pid = status_number(id, "Tgid");

    return pid > 0 ? pid : id;
}

static bool is_zombie(pid_t pid)
{
    struct held held;

    return living_thread(pid) == pid && !held_read(pid, pid, &held) && held.state == 'Z';
}

static bool has_id(const struct cli_ids *ids, size_t count, pid_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (ids->ids[i] == id)
            return true;
    }
    return false;
}

static void name_process(pid_t pid, char *ret, size_t size)
{
    char comm[32];

    comm_read(pid, pid, comm, sizeof(comm));
    text_copy(TEXT_MARKS, comm, ret, size);
}

void stat_options_find_processes(const struct cli_command *command, struct stat_options *options)
{
    struct cli_ids *ids = &options->pids;
    size_t count = 0, zombies = 0;

    for (size_t i = 0; i < ids->count; i++)
        zombies += is_zombie(ids->ids[i]);
    for (size_t i = 0; i < ids->count; i++) {
        pid_t id = ids->ids[i], pid = process_of(id);
        char comm[128];

        /* If all are zombies, this is reported when they are about to be profiled. */
        if (zombies < ids->count && is_zombie(pid)) {
            cli_warn(command, "process %d has ended and waits to be reaped: it is left out",
                     (int)pid);
            continue;
        }
        if (pid != id) {
            name_process(pid, comm, sizeof(comm));
            cli_warn(command,
                     "%d is a thread of process %d (%s): all of that is looked at (-t %d: "
                     "the thread alone)",
                     (int)id, (int)pid, comm, (int)id);
        }
        if (!has_id(ids, count, pid))
            ids->ids[count++] = pid;
    }
    ids->count = count;
}

int stat_options_check_all(const struct cli_command *command, struct stat_options *options,
                           const char *verb)
{
    stat_options_find_processes(command, options);
    if (options->all && (options->pids.count || options->tids.count || options->cgroup_count))
        return cli_usage_error(command, "-a %s everything: leave -p, -t and --cgroup out", verb);
    return CLI_OK;
}

/* Refuses options that are fine alone but make no sense together. */
static int check(const struct cli_command *command, struct stat_options *options)
{
    if (!stat_options_have_targets(options) && !options->command)
        return cli_usage_error(command,
                               "nothing to profile: give a command, -p, -t, --cgroup or -a; "
                               "see prcb stat --help");
    if (stat_options_check_all(command, options, "profiles"))
        return CLI_USAGE;
    if (options->no_follow && (options->all || options->cgroup_count))
        return cli_usage_error(command,
                               "--no-follow cannot be used with %s, which includes new threads",
                               options->all ? "-a" : "--cgroup");
    if (options->per_thread + options->per_process + options->per_cgroup + options->per_name > 1)
        return cli_usage_error(command, "--per-thread, --per-process, --per-cgroup and "
                                        "--per-name exclude each other: choose one");
    if (options->tails && options->form.number == STAT_CSV)
        return cli_usage_error(command, "--tails are of all threads, -x writes a line per row: "
                                        "with --tails use -j");
    if ((options->form.number == STAT_JSON || options->form.number == STAT_BRIEF) &&
        options->interval_ns)
        return cli_usage_error(
            command, "-j and --brief write one document at the end: with -I use --ndjson");
    return CLI_OK;
}

int stat_options_parse(const struct cli_command *command, int argc, char **argv,
                       struct stat_options *ret, int *ret_status)
{
    struct cli_parser parser = {.command = command, .argc = argc, .argv = argv};

    *ret = (struct stat_options){.order = {.key = ACCOUNT_BY_RUN, .top = TOP_DEFAULT}};
    if (cli_take_all(&parser, ret, ret_status))
        return -1;
    ret->rows = ret->per_process  ? STAT_PROCESSES
                : ret->per_cgroup ? STAT_CGROUPS
                : ret->per_name   ? STAT_NAMES
                                  : STAT_THREADS;
    ret->by_whom = ret->by_whom || ret->owners;
    /* Nobody reads a report of thousands of rows, but programs that read values want them all. */
    if (ret->order.top == TOP_DEFAULT)
        ret->order.top = ret->form.number != STAT_TABLE ? 0
                         : ret->interval_ns             ? TOP_LINES
                                                        : TOP_ROWS;
    ret->follow = ret->no_follow ? PRCB_FOLLOW_NONE : PRCB_FOLLOW_ALL;
    if (parser.index < argc)
        ret->command = argv + parser.index;
    else if (parser.dashes)
        *ret_status = cli_usage_error(command, "no command behind --");
    if (parser.dashes && !ret->command)
        return -1;
    *ret_status = check(command, ret);
    return *ret_status == CLI_OK ? CLI_OK : -1;
}

void stat_options_deinit(struct stat_options *options)
{
    free(options->pids.ids);
    free(options->tids.ids);
    free(options->cgroups);
    cgroup_list_free(&options->found);
    memset(options, 0, sizeof(*options));
}
