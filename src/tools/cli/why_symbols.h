/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Finds the names of the variables that futexes lie in. One thread.
 */
#ifndef PRCB_CLI_WHY_SYMBOLS_H
#define PRCB_CLI_WHY_SYMBOLS_H

#include "objects.h"

/* Asks for the names of each file at once. A variable without a name stays without. fetched: by
 * what debuginfod's client has, too. */
void why_find_symbols(struct objects *objects, bool fetched);

#endif
