/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The command table has one row for each command, in the order in which `prcb --help` shows
 * them.
 */
#include "cli.h"

extern const struct cli_command cmd_stat, cmd_doctor, cmd_layout, cmd_dump, cmd_list, cmd_cpu,
    cmd_power, cmd_record, cmd_report, cmd_why, cmd_top, cmd_serve, cmd_export, cmd_bench,
    cmd_neighbours, cmd_push, cmd_flight, cmd_mcp;

const struct cli_command *const cli_commands[] = {
#ifdef HAVE_PROFILER
    &cmd_stat,
#ifdef HAVE_STACK
    &cmd_why,
#endif
#ifdef HAVE_TOP
    &cmd_top,
#endif
#ifdef HAVE_SERVE
    &cmd_serve,
#endif
    &cmd_neighbours,
    &cmd_record,
    &cmd_flight,
    &cmd_report,
    &cmd_cpu,
#ifdef HAVE_STACK
    &cmd_bench,
#endif
#endif
#ifdef HAVE_WINDOWS
    &cmd_power,
#endif
#ifdef HAVE_PROFILER
    &cmd_doctor,
    &cmd_list,
#endif
#ifdef HAVE_WINDOWS
    &cmd_layout,
    &cmd_dump,
#endif
#ifdef HAVE_PROFILER
    &cmd_export,
    &cmd_mcp,
#ifdef HAVE_STACK
    &cmd_push,
#endif
#endif
    NULL,
};
