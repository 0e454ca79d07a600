/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where the report goes. A file is opened before anything is started, so that a
 * path that cannot be written costs nothing, and changed only once the measuring
 * has begun, so that a command line that fails leaves it as it was.
 */
#ifndef PRCB_CLI_STAT_OUTPUT_H
#define PRCB_CLI_STAT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct stat_output {
    FILE *stream;
    const char *path; /* borrowed; NULL: standard output */
    bool created;     /* the file was not there before */
    int error;        /* errno of the first write that failed; 0: none */
};

/* path NULL: standard output. 0 or -errno. */
int stat_output_open(struct stat_output *output, const char *path);
/* From here on the file is ours: what it held is gone. */
void stat_output_begin(struct stat_output *output);
/* Hands what was written to the system; -errno of the first failure of all. */
int stat_output_flush(struct stat_output *output);
/* Flushes and closes. */
int stat_output_close(struct stat_output *output);
/* Closes and leaves the file system as it was; for use before stat_output_begin. */
void stat_output_abort(struct stat_output *output);

#endif
