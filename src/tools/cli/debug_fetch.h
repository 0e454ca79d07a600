/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Fetches separate debug information from the servers that the user names (DEBUGINFOD_URLS), by
 * elfutils' libdebuginfod, which keeps it where debug_file.h finds it. It is loaded by a child that
 * has given up its capabilities, and only here: nothing else of prcb asks a network. One thread.
 */
#ifndef PRCB_CLI_DEBUG_FETCH_H
#define PRCB_CLI_DEBUG_FETCH_H

#include "stat_options.h"

/* Checks that it can be done. Returns CLI_OK, or what follows from the error, which was printed. */
int debug_fetch_check(const struct cli_command *command);
/* Fetches that of what the targets' processes have mapped as code, and of the command's program,
 * which may take a minute; what servers do not have is left out. */
void debug_fetch(const struct cli_command *command, const struct stat_options *targets);

#endif
