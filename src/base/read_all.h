/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A stream read into memory: a file, a pipe, a file of procfs that does not tell its size.
 */
#ifndef PRCB_BASE_READ_ALL_H
#define PRCB_BASE_READ_ALL_H

#include <stddef.h>
#include <stdio.h>

/* Its bytes from here on, at most `limit`, and a NUL behind them; the caller frees *ret. 0, -ENOMEM
 * or the -errno of reading. */
int read_all(FILE *in, size_t limit, char **ret, size_t *ret_length);

#endif
