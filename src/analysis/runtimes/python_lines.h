/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The tables by which CPython's code objects say the line of an instruction. The bytes are somebody
 * else's: nothing in them is believed.
 */
#ifndef PRCB_RUNTIMES_PYTHON_LINES_H
#define PRCB_RUNTIMES_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "python_layouts.h"

/* at: offset of the instruction, in bytes. 0: not known. */
uint32_t python_line(enum python_lines kind, const unsigned char *table, size_t size,
                     uint32_t first, uint64_t at);

#endif
