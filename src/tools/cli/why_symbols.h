/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of the variables that futexes lie in. One thread.
 */
#ifndef PRCB_CLI_WHY_SYMBOLS_H
#define PRCB_CLI_WHY_SYMBOLS_H

#include "objects.h"

/* Asks for those of each file at once. What has no name stays without. */
void why_find_symbols(struct objects *objects);

#endif
