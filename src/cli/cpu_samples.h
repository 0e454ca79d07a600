/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The processors as `prcb cpu` and `prcb power` look at them: a view, which of them were
 * asked for, and their records at the start, at the mark before and now. One thread.
 */
#ifndef PRCB_CLI_CPU_SAMPLES_H
#define PRCB_CLI_CPU_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/processors.h>

#include "cli.h"

/* What to look at, from a command line; the words are borrowed. */
struct cpu_choice {
    const char *list; /* "0,2-3", "all"; NULL: all */
    enum prcb_tier tier;
    const char *root; /* of a recorded machine; NULL: this one */
};

/* The option rows and their parsing that both commands have. */
enum { CPU_OPTION_TIER = CLI_LONG + 100, CPU_OPTION_ROOT };
/* clang-format off */
#define CPU_CHOICE_OPTIONS                                                                         \
    {'C', "cpu", "LIST", "these processors only: numbers and ranges (0,2-3), or all", 'C'},        \
    {'P', "processor", "LIST", "the same, with mpstat's letter", 'C'},                             \
    {0, "tier", "TIER", "use this source of figures and no other: daemon, bpf or perf", CPU_OPTION_TIER},  \
    {0, "root", "DIR", "a recorded machine: the files of DIR/proc and DIR/sys", CPU_OPTION_ROOT}
/* clang-format on */
/* CLI_OK if the option is one of these, and taken; CLI_USAGE after its error; -1: not one. */
int cpu_choice_option(const struct cli_command *command, int id, const char *value,
                      struct cpu_choice *choice);
/* Contradictions: CLI_OK or CLI_USAGE. */
int cpu_choice_check(const struct cli_command *command, const struct cpu_choice *choice);

/* Seconds between two looks; 1 ms to a day. CLI_OK or CLI_USAGE. */
int cpu_interval_parse(const struct cli_command *command, const char *text, uint64_t *ret_ns);

/* Which of the records a difference is taken to. */
enum cpu_since { CPU_SINCE_MARK, CPU_SINCE_START };

struct cpu_samples {
    struct prcb_processors *view;
    uint32_t count; /* possible processors */
    bool recorded;  /* another machine than this */
    bool *chosen;
    struct prcb_processor *start, *mark, *now; /* count of each */
    uint64_t start_ns, mark_ns, now_ns;        /* CLOCK_MONOTONIC of the looks */
};

/* Opens the view and looks for the first time. CLI_OK, or the exit status after the error. */
int cpu_samples_open(const struct cli_command *command, const struct cpu_choice *choice,
                     struct cpu_samples *ret);
void cpu_samples_close(struct cpu_samples *s);

/* Looks at all that were chosen: 0 or -errno with words. */
int cpu_samples_take(struct cpu_samples *s, struct prcb_error *err);
/* The same, and it is the start of all. */
int cpu_samples_start(struct cpu_samples *s, struct prcb_error *err);
/* What is now becomes the mark. */
void cpu_samples_mark(struct cpu_samples *s);

/* What a processor did since then; *ret is a record of differences, its present values (flags,
 * frequency, idle state) as they are now. */
void cpu_samples_delta(const struct cpu_samples *s, enum cpu_since since, uint32_t number,
                       struct prcb_processor *ret);
uint64_t cpu_samples_wall(const struct cpu_samples *s, enum cpu_since since);

/* True when it was offline all the time: there are no figures. */
bool cpu_was_offline(const struct prcb_processor *delta);

/* The next processor that was chosen, from number on; count: no further one. */
uint32_t cpu_samples_next(const struct cpu_samples *s, uint32_t number);

#endif
