/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a `prcb stat` command line asks for: it is parsed and checked for contradictions, but
 * nothing is done yet.
 */
#ifndef PRCB_CLI_STAT_OPTIONS_H
#define PRCB_CLI_STAT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/prcb.h>

#include "cli.h"
#include "account_rows.h"
#include "cgroup.h"
#include "stat_report.h"

enum stat_format { STAT_TABLE, STAT_CSV, STAT_JSON, STAT_NDJSON, STAT_BRIEF };

struct stat_options {
    struct cli_ids pids, tids;
    bool below;           /* what the processes have made already is profiled with them */
    const char **cgroups; /* owned array of borrowed words */
    size_t cgroup_count;
    struct cgroup_list found; /* of these: those that --unit, --container and --pod found */
    bool all;
    char **command;  /* borrowed, NULL-terminated; NULL: none */
    unsigned follow; /* enum prcb_follow */
    bool no_follow;
    uint64_t for_ns, interval_ns; /* 0: none */
    struct cli_form form;         /* enum stat_format */
    const char *events;           /* counters; NULL: none */
    const char *output;           /* NULL: standard output */
    struct account_order order;
    bool per_thread, per_process, per_cgroup, per_name;
    enum stat_rows rows;
    enum prcb_tier tier;
    uint64_t max_threads;
    bool interrupted, by_whom, owners, tails, nt;
    bool verbose;
};

extern const struct cli_option stat_option_rows[];

/* Returns CLI_OK with *ret filled, or -1 and *ret_status is the exit code: help was printed, or
 * the error was. The caller deinitialises *ret in both cases. */
int stat_options_parse(const struct cli_command *command, int argc, char **argv,
                       struct stat_options *ret, int *ret_status);
void stat_options_deinit(struct stat_options *options);

/* Option rows of the commands that profile. base: where the structure that a command fills has
 * its struct stat_options. verb, every: for example "report", "report every thread". */
/* clang-format off */
#define STAT_TARGET_ROWS(base, verb, every)                                                        \
    {'p', "pid", "PID[,PID]", verb " these processes, and all that they start",                    \
     .take = cli_take_ids, .at = (base) + offsetof(struct stat_options, pids), .what = "process",  \
     .choices = "@pid"},                                                                           \
    {'t', "tid", "TID[,TID]", verb " these threads, and all that they start",                      \
     .take = cli_take_ids, .at = (base) + offsetof(struct stat_options, tids), .what = "thread",   \
     .choices = "@tid"},                                                                           \
    {0, "cgroup", "PATH", every " in this cgroup directory and below it; may\n"                    \
                          "be given several times",                                                \
     .take = stat_options_take_cgroup, .at = (base), .choices = "@folder"},                        \
    {0, "unit", "UNIT", every " of this unit of systemd",                                          \
     .take = stat_options_take_unit, .at = (base)},                                                \
    {0, "container", "NAME", every " of this container: its name, or the\n"                        \
                             "beginning of its id",                                                \
     .take = stat_options_take_container, .at = (base)},                                           \
    {0, "pod", "NAME", every " of this pod of Kubernetes: NAME,\n"                                 \
                       "NAMESPACE/NAME or its uid",                                                \
     .take = stat_options_take_pod, .at = (base)}
#define STAT_TIER_ROW(base)                                                                        \
    {0, "tier", "TIER", "use this source of figures and no other: daemon, bpf or perf",            \
     .take = cli_take_tier, .at = (base) + offsetof(struct stat_options, tier)}
#define STAT_VERBOSE_ROW(base)                                                                     \
    {'v', "verbose", NULL, "where the kernel refuses an eBPF program, its verifier's last lines",  \
     .at = (base) + offsetof(struct stat_options, verbose)}
#define STAT_MAX_THREADS_ROW(base)                                                                 \
    {0, "max-threads", "N", "room for N threads at one time (default 16384,\nwith prcbd what the targets need)", .kind = CLI_NUMBER,\
     .at = (base) + offsetof(struct stat_options, max_threads), .min = 1,                          \
     .max = 1u << 22 /* the most that prcb_open takes */}
/* clang-format on */
int stat_options_take_cgroup(struct cli_parser *parser, void *target);
int stat_options_take_unit(struct cli_parser *parser, void *target);
int stat_options_take_container(struct cli_parser *parser, void *target);
int stat_options_take_pod(struct cli_parser *parser, void *target);
/* Replaces a thread's number in -p by its process's, and leaves zombies out if there are others;
 * it reports either. */
void stat_options_find_processes(const struct cli_command *command, struct stat_options *options);
/* The same, and checks that -a stands alone. verb: what the command does with it all, "shows".
 * Returns CLI_OK, or CLI_USAGE after the error. */
int stat_options_check_all(const struct cli_command *command, struct stat_options *options,
                           const char *verb);

/* Returns true if the options name something to profile besides a command. */
bool stat_options_have_targets(const struct stat_options *options);

#endif
