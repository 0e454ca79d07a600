/* SPDX-License-Identifier: BSD-2-Clause
 *
 * From the addresses of a recording to its tables functions and stack_functions.
 */
#ifndef PRCB_RECORD_RESOLVE_H
#define PRCB_RECORD_RESOLVE_H

#include <stdbool.h>

#include <prcb/prcb.h>

struct namer;
struct sqlite3;

/* Names the function of each row of stacks. An address that nothing names becomes
 * "[unknown]" of its mapping's file. temporary: the two tables are made for this connection
 * only, and nothing is written to the file. 0 or -errno. */
int resolve_functions(struct sqlite3 *db, bool temporary, struct namer *namer,
                      struct prcb_error *err);

#endif
