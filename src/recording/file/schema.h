/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The tables of a recording, version RECORD_VERSION; docs/record-file.md says what
 * each column means, and a test compares the two. Columns are only ever added. The columns of
 * processor_times are the parts of a processor's time (processor_figures.def): writer.c.
 */
#ifndef PRCB_RECORD_SCHEMA_H
#define PRCB_RECORD_SCHEMA_H

/* clang-format off */
#define RECORD_FUNCTIONS(temporary)                                                               \
    "CREATE " temporary " TABLE functions("                                                       \
    "id INTEGER PRIMARY KEY, name TEXT, file TEXT);"                                              \
    "CREATE " temporary " TABLE stack_functions("                                                 \
    "stack INTEGER PRIMARY KEY, function INTEGER);"

#define RECORD_SCHEMA                                                                             \
    "CREATE TABLE facts("                                                                         \
    "name TEXT PRIMARY KEY, value TEXT);"                                                         \
    "CREATE TABLE threads("                                                                       \
    "id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, parent_pid INTEGER, name TEXT, "           \
    "start_ns INTEGER, end_ns INTEGER, start_state TEXT, start_cause TEXT, "                      \
    "start_reason INTEGER);"                                                                      \
    "CREATE TABLE maps("                                                                          \
    "id INTEGER PRIMARY KEY, pid INTEGER, time_ns INTEGER, start INTEGER, length INTEGER, "       \
    "file_offset INTEGER, file TEXT, build_id TEXT, uid INTEGER, here_ns INTEGER, "               \
    "device INTEGER, inode INTEGER);"                                                             \
    "CREATE TABLE stacks("                                                                        \
    "id INTEGER PRIMARY KEY, caller INTEGER, kernel INTEGER, map INTEGER, address INTEGER, "      \
    "name TEXT, file TEXT, line INTEGER);"                                                        \
    "CREATE TABLE samples("                                                                       \
    "time_ns INTEGER, cpu INTEGER, thread INTEGER, stack INTEGER, weight INTEGER, missing TEXT);" \
    "CREATE TABLE switches("                                                                      \
    "time_ns INTEGER, cpu INTEGER, old_thread INTEGER, new_thread INTEGER, state TEXT, "          \
    "cause TEXT, reason INTEGER, ready_ns INTEGER, pebs_index INTEGER, waker INTEGER, "           \
    "woken_ns INTEGER, woken_cpu INTEGER);"                                                       \
    "CREATE TABLE wakers("                                                                        \
    "id INTEGER PRIMARY KEY, by TEXT, thread INTEGER, pid INTEGER, tid INTEGER, name TEXT, "      \
    "number INTEGER);"                                                                            \
    "CREATE TABLE wait_stacks("                                                                   \
    "time_ns INTEGER, thread INTEGER, stack INTEGER, missing TEXT, kind TEXT, word TEXT, "        \
    "one_in INTEGER, trace_id TEXT, span_id TEXT);"                                               \
    "CREATE TABLE losses("                                                                        \
    "time_ns INTEGER, cpu INTEGER, what TEXT, count INTEGER);"                                    \
    RECORD_FUNCTIONS("")                                                                          \
    "CREATE VIEW sampled AS SELECT "                                                              \
    "s.time_ns, s.cpu, t.pid, t.tid, t.name AS thread, f.name AS function, f.file, k.kernel, "    \
    "s.weight, s.stack FROM samples s LEFT JOIN threads t ON t.id = s.thread "                    \
    "LEFT JOIN stacks k ON k.id = s.stack "                                                       \
    "LEFT JOIN stack_functions sf ON sf.stack = s.stack "                                         \
    "LEFT JOIN functions f ON f.id = sf.function;"

/* The name of a fact begins with this; the name of a program follows. */
#define RECORD_MISSES "recursion_misses."

/* The history of prcb top: recordings that it wrote have these tables instead of samples and
 * switches. After these columns of intervals come the parts of a processor's time, and a
 * parenthesis: top_file.c. */
#define RECORD_HISTORY                                                                            \
    "CREATE TABLE interval_threads("                                                              \
    "interval INTEGER, thread INTEGER, state TEXT, cause TEXT, since_ns INTEGER, "                \
    "wall_ns INTEGER, run_ns INTEGER, ready_ns INTEGER, wait_ns INTEGER, switches INTEGER);"      \
    "CREATE TABLE interval_waits("                                                                \
    "interval INTEGER, thread INTEGER, cause TEXT, ns INTEGER, count INTEGER);"                   \
    "CREATE TABLE processes("                                                                     \
    "pid INTEGER, time_ns INTEGER, command TEXT, cgroup TEXT, user TEXT);"                        \
    "CREATE TABLE intervals("                                                                     \
    "id INTEGER PRIMARY KEY, end_ns INTEGER, wall_ns INTEGER, clock_ns INTEGER, "                 \
    "present INTEGER, first_thread INTEGER, first_wait INTEGER, processors INTEGER, "             \
    "exact INTEGER, switches INTEGER"
/* clang-format on */

#endif
