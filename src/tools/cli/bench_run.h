/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One run of a command, profiled and split into the parts of bench.h. One thread.
 */
#ifndef PRCB_CLI_BENCH_RUN_H
#define PRCB_CLI_BENCH_RUN_H

#include "bench.h"
#include "stat_options.h"
#include "stat_wait.h"

struct bench_runner {
    const struct cli_command *command; /* for messages */
    const struct stat_options *options;
    struct prcb *session;
    struct stat_wait *wait;
    bool show_output;   /* of the commands; else it goes nowhere */
    uint64_t untracked; /* threads for which there was no account */
    bool left;          /* a run left threads behind that did not end with it */
};

/* Starts argv, waits for its end and puts its parts into *ret. *ret_status is that of waitpid;
 * a command that does not start is an error, which was printed: CLI_OK, or the exit code. A signal
 * that asks for the end ends the command, and *ret_signal is its number; 0: none. */
int bench_run_once(struct bench_runner *runner, char **argv, struct bench_run *ret, int *ret_status,
                   int *ret_signal);

/* Starts it and watches it by runner->wait, and no more. hook: for prcb_spawn_hooked, or NULL.
 * CLI_OK, or the exit code after the error. */
int bench_run_start(struct bench_runner *runner, char **argv, const struct prcb_spawn_hook *hook,
                    struct prcb_error *err);

#endif
