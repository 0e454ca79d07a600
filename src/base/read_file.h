/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Files read whole, or from their start: plain ones, and those of procfs and sysfs, which tell no
 * size and come in pieces. No state.
 */
#ifndef PRCB_BASE_READ_FILE_H
#define PRCB_BASE_READ_FILE_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Reads as many bytes as there are, at most `size`, over short reads and signals. Returns how
 * many, or -errno. */
ssize_t read_full(int fd, void *to, size_t size);
/* Does the same for the file at `path`, which is opened for it and never waited for (a FIFO has
 * none). */
ssize_t read_start(const char *path, void *to, size_t size);

/* Reads the bytes of a stream from here on, at most `limit`, and puts a NUL behind them; the
 * caller frees *ret. 0, -ENOMEM or the -errno of reading. */
int read_stream(FILE *in, size_t limit, char **ret, size_t *ret_length);
/* Does the same for the file at `path`: -EFBIG if it has more than `limit` (below SIZE_MAX). */
int read_file(const char *path, size_t limit, char **ret, size_t *ret_length);

#endif
