/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A run of `prcb top`, and its parts: cmd_top.c has its options and course, top_details.c fills
 * the panes of a row, top_files.c handles recordings and saved screens.
 */
#ifndef PRCB_CLI_TOP_RUN_H
#define PRCB_CLI_TOP_RUN_H

#include <prcb/processors.h>

#include "cli.h"
#include "stat_options.h"
#include "stat_wait.h"
#include "top_source.h"
#include "top_view.h"

struct top_run_options {
    struct stat_options targets; /* what is shown: none is everything there may be */
    uint64_t delay_ns, history_ns, count, rows;
    const char *write, *read;
    uint64_t keep_ns, max_mib;
    bool whom, quiet, batch, no_colour, no_unicode, no_mouse, sleeping, no_kernel;
    enum top_group group;
    struct top_order order;
    const char *filter, *user;
};

struct top_run {
    const struct cli_command *command;
    const struct top_run_options *options;
    struct prcb *session;
    struct prcb_processors *view;
    struct top_source *source;
    struct top_model model;
    struct top_ui ui;
    struct top_grid grid;
    struct top_where *where;     /* NULL: no stacks */
    struct top_history *history; /* NULL: -w was not given */
    struct top_reader *reader;   /* NULL: -r was not given */
    struct stat_wait wait;
    struct output output;
    uint64_t next, next_refresh, takes;
    uint64_t untracked; /* threads that found no room, as counted so far */
    bool left_out;      /* some have none yet */
    uint64_t again;     /* when the screen is drawn once more, with what was asked for meanwhile */
    bool ended, perf, own;
    bool whom;                    /* wakers are recorded */
    struct cgroup_names *cgroups; /* for the pane BY WHOM; NULL: nobody asked yet */
    int status;
};

/* ---- stacks: without them all of this does nothing ---- */

void top_run_open_stacks(struct top_run *run);
/* Returns false if the reading thread goes on, and may still use the session. */
bool top_run_close_stacks(struct top_run *run);
/* Has the threads of the row that is open watched, as long as it is. */
void top_run_watch(struct top_run *run);
/* Asks about threads that slept through the interval in a wait that may be for a lock, and is then
 * no idleness. */
void top_run_ask_sleepers(struct top_run *run);
/* Returns whether something that was asked for is there. */
bool top_run_has_news(struct top_run *run);

/* Tells who woke and held up the row's threads since they are profiled; ctx: the run. */
void top_run_whom_pieces(void *ctx, const struct top_row *row, uint32_t cause,
                         struct top_pieces *ret);

/* ---- files: 0 or -errno ---- */

int top_run_open_history(struct top_run *run, struct prcb_error *err);
/* Writes the interval that has just ended. */
int top_run_write_history(struct top_run *run, struct prcb_error *err);
/* Begins the history with what the switches tell that prcbd keeps, if it does: before the source is
 * opened. */
int top_run_look_back(struct top_run *run, struct prcb_error *err);
int top_run_open_reader(struct top_run *run, struct prcb_error *err);
void top_run_close_files(struct top_run *run);
/* Save the history in memory and the screen, or the panes of the selected row. The screen says
 * what became of it. */
void top_run_save(struct top_run *run);
void top_run_export(struct top_run *run);

#endif
