/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How `prcb cpu` and `prcb power` look at the processors: options, the view, each look. One
 * thread.
 */
#ifndef PRCB_CLI_CPU_SAMPLES_H
#define PRCB_CLI_CPU_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli.h"
#include "cpu_looks.h"

/* What a command line chose to look at; the words are borrowed. */
struct cpu_choice {
    const char *list; /* "0,2-3", "all"; NULL: all */
    enum prcb_tier tier;
    bool verbose;
    const char *root; /* of a recorded machine; NULL: this one */
};

/* The option rows that both commands have; their struct run has .choice. */
/* clang-format off */
#define CPU_CHOICE_AT(member) .at = offsetof(struct run, choice.member)
#define CPU_CHOICE_OPTIONS                                                                         \
    {'C', "cpu", "LIST", "these processors only: numbers and ranges (0,2-3), or all",              \
     .kind = CLI_TEXT, CPU_CHOICE_AT(list), .choices = "all @cpu"},                                \
    {'P', "processor", "LIST", "the same, with mpstat's letter",                                   \
     .kind = CLI_TEXT, CPU_CHOICE_AT(list), .choices = "all @cpu"},                                \
    {0, "tier", "TIER", "use this source of figures and no other: daemon, bpf or perf",            \
     .take = cli_take_tier, CPU_CHOICE_AT(tier)},                                                       \
    {'v', "verbose", NULL, "where the kernel refuses an eBPF program, its verifier's last lines", CPU_CHOICE_AT(verbose)}, \
    {0, "root", "DIR", "a recorded machine: the files of DIR/proc and DIR/sys",                    \
     .kind = CLI_TEXT, CPU_CHOICE_AT(root), .what = "the folder's name is empty",                  \
     .choices = "@folder"}
/* clang-format on */
/* Checks for contradictions: returns CLI_OK or CLI_USAGE. */
int cpu_choice_check(const struct cli_command *command, const struct cpu_choice *choice);

/* Parses the seconds between two looks, from 1 ms to a day. Returns CLI_OK or CLI_USAGE. */
int cpu_interval_parse(const struct cli_command *command, const char *text, uint64_t *ret_ns);

/* Opens the view and looks for the first time. Returns CLI_OK, or the exit status after the
 * error. */
int cpu_samples_open(const struct cli_command *command, const struct cpu_choice *choice,
                     struct cpu_samples *ret);
void cpu_samples_close(struct cpu_samples *s);

/* Looks at all processors that were chosen: returns 0, or -errno with words. */
int cpu_samples_take(struct cpu_samples *s, struct prcb_error *err);
/* The same, and makes it the start of everything. */
int cpu_samples_start(struct cpu_samples *s, struct prcb_error *err);
/* Makes the last look the mark. */
void cpu_samples_mark(struct cpu_samples *s);

#endif
