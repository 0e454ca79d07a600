/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the commands of `prcb` share beside their command lines (options.h): the table of commands,
 * exit codes, output. A command is one file, cmd_NAME.c, with one struct cli_command.
 */
#ifndef PRCB_CLI_H
#define PRCB_CLI_H

#include "number.h"
#include "options.h"
#include "output.h"

/* Further exit codes, of commands that are run. */
#define CLI_CANNOT_EXEC 126
#define CLI_NOT_FOUND   127
/* a child ended by signal N: 128 + N */

/* Writes what prcb_load_log says to standard error; nothing for NULL. For -v. */
void cli_write_load_log(const char *log);

/* Opens a command's output, a file or (NULL) standard output: CLI_OK, or CLI_FAILED after the
 * error. */
int cli_open_output(const struct cli_command *command, const char *path, struct output *ret);
/* Closes it. Returns the exit code: status; that of a command that SIGPIPE ended if the reader
 * had seen enough; or CLI_FAILED, after the error, if it could not be written. */
int cli_close_output(const struct cli_command *command, struct output *output, int status);

/* Returns the exit code that a command's end means for us: its own, or 128 + the signal that
 * ended it, except for the signal with which we ended it early. */
int cli_child_status(int wait_status, bool ended_early);
/* Returns the exit code for a command that could not be started (-errno of prcb_spawn): 127 not
 * found, 126 not executable, else 1. */
int cli_exec_status(int code);

/* Lets this program, and what it starts, have as many open files as it may ask for. */
void cli_allow_descriptors(void);

/* Returns true if the stream is a terminal and NO_COLOR is not set. */
bool cli_colour(int fd);

/* Finds a program that commands start: "serve/prcb-serve" is in that folder beside this program's
 * where both were built, else where such programs are installed. */
void cli_find_program(const char *name, char *ret, size_t size);

/* The commands, NULL-terminated; commands.c. */
extern const struct cli_command *const cli_commands[];

#endif
