/* SPDX-License-Identifier: BSD-2-Clause
 *
 * From options to a session that profiles what they name, and a command that
 * runs.
 */
#ifndef PRCB_CLI_STAT_TARGETS_H
#define PRCB_CLI_STAT_TARGETS_H

#include <prcb/prcb.h>
#include <prcb/processors.h>

#include "stat_options.h"
#include "stat_wait.h"

/* A session as prcb_open's, with room for the targets. prcbd gives a client that names no number a
 * small map: where the user names none either, it is asked for twice the threads that there are,
 * and for less where it refuses that. */
int stat_targets_open(const struct prcb_options *how, const struct stat_options *options,
                      struct prcb **ret, struct prcb_error *err);

/* Begins profiling -p, -t, --cgroup and -a, and watches the processes for their
 * end. Threads that found no room are counted by the session and are no failure.
 * 0 or -errno. */
int stat_targets_profile(struct prcb *session, const struct stat_options *options,
                         struct stat_wait *wait, struct prcb_error *err);

/* The same; where the options name nothing: every thread, or, where that is not allowed, those of
 * the user's own processes and what these start (*ret_own). What finds no room is counted. */
int stat_targets_profile_visible(struct prcb *session, const struct stat_options *options,
                                 struct stat_wait *wait, bool *ret_own, struct prcb_error *err);

/* A view of the processors on the options' tier, or on the best one where that is not available.
 * NULL: there is none. To be closed. */
struct prcb_processors *stat_targets_view(const struct stat_options *options);

/* Starts the command: profiled, and seen by the hook before its exec, if there is
 * nothing else to profile. *ret is the
 * child. On failure *ret_status is the exit code that tells of it: 127 not found,
 * 126 not executable, else 1. */
int stat_targets_start(struct prcb *session, const struct stat_options *options,
                       const struct prcb_spawn_hook *hook, pid_t *ret, int *ret_status,
                       struct prcb_error *err);

#endif
