/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Targets as people call them: the options --unit, --container and --pod, and a word that is a
 * process's number or name, a cgroup, a unit or a container.
 */
#ifndef PRCB_CLI_NAMED_TARGETS_H
#define PRCB_CLI_NAMED_TARGETS_H

#include "stat_options.h"

enum named_word {
    NAMED_NOTHING, /* nothing that runs is called so */
    NAMED_TARGET,  /* it was added to the targets */
    NAMED_FAILED,  /* the error was printed */
};
/* Adds what a word names: a process's number, the path of a cgroup, processes' name, or else a
 * unit's or a container's. */
enum named_word named_target_add(const struct cli_command *command, const char *word,
                                 struct stat_options *options);

#endif
