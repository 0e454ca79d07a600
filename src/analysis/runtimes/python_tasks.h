/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tasks of asyncio in CPython: from the modules that an interpreter has imported to asyncio's set
 * of them, and from each to the coroutines that await one another. Offsets are rows by version in
 * python_layouts.c.
 *
 * Threads  One process's by one thread at a time.
 */
#ifndef PRCB_RUNTIMES_PYTHON_TASKS_H
#define PRCB_RUNTIMES_PYTHON_TASKS_H

#include "python_code.h"
#include "tasks.h"

/* False: asyncio was not imported, or has no tasks. runtime: where _PyRuntime is. */
bool python_tasks_read(struct python_code *code, uint64_t runtime, struct tasks_answer *ret);

#endif
