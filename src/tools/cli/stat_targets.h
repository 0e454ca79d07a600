/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Makes from options a session that profiles what they name, and starts a command.
 */
#ifndef PRCB_CLI_STAT_TARGETS_H
#define PRCB_CLI_STAT_TARGETS_H

#include <prcb/prcb.h>
#include <prcb/processors.h>

#include "stat_options.h"
#include "stat_wait.h"

/* Opens a session as prcb_open does, with room for the targets. prcbd gives a client that names
 * no number a small map: if the user names none either, prcbd is asked for twice the threads
 * that there are, and for less if it refuses that. */
int stat_targets_open(const struct prcb_options *how, const struct stat_options *options,
                      struct prcb **ret, struct prcb_error *err);

/* Begins profiling -p, -t, --cgroup and -a, and watches the processes for their end. Threads for
 * which there was no room are counted by the session and are no failure. 0 or -errno. */
int stat_targets_profile(struct prcb *session, const struct stat_options *options,
                         struct stat_wait *wait, struct prcb_error *err);

/* The same; if the options name nothing it profiles every thread, or, if that is not allowed,
 * those of the user's own processes and what these start (*ret_own). Threads for which there is
 * no room are counted. */
int stat_targets_profile_visible(struct prcb *session, const struct stat_options *options,
                                 struct stat_wait *wait, bool *ret_own, struct prcb_error *err);

/* Opens a view of the processors on the options' tier, or on the best one if that is not
 * available. NULL: there is none. The caller closes it. */
struct prcb_processors *stat_targets_view(const struct stat_options *options);

/* Starts the command; if there is nothing else to profile, the command is profiled and the hook
 * sees it before its exec. *ret is the child. On failure *ret_status is the exit code for it:
 * 127 not found, 126 not executable, else 1. */
int stat_targets_start(struct prcb *session, const struct stat_options *options,
                       const struct prcb_spawn_hook *hook, pid_t *ret, int *ret_status,
                       struct prcb_error *err);

#endif
