/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Makes a recording's tables functions and stack_functions from its addresses.
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
