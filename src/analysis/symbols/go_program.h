/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where a Go program or library keeps the table of its functions (go_table.h). The file is somebody
 * else's.
 */
#ifndef PRCB_STACK_GO_PROGRAM_H
#define PRCB_STACK_GO_PROGRAM_H

#include <libelf.h>

#include "go_table.h"

/* The table lives as long as the file is open. -ENOENT: it has none, or does not tell where
 * the code begins that it is about. */
int go_program_table(Elf *elf, struct go_table *ret);

#endif
