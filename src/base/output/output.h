/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The file or stream that a report goes to. A file is opened before anything is started, so that
 * a path that cannot be written costs nothing, and changed only once the measuring has begun, so
 * that a command line that fails leaves it as it was.
 */
#ifndef PRCB_OUTPUT_H
#define PRCB_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *stream;
    const char *path; /* borrowed; NULL: standard output */
    bool created;     /* the file was not there before */
    int error;        /* errno of the first write that failed; 0: none */
};

/* path NULL: standard output. 0 or -errno. */
int output_open(struct output *output, const char *path);
/* Standard error in place of standard output, as a stream of its own. 0 or -errno. */
int output_to_errors(struct output *output);
/* From here on the file is ours: what it held is gone. */
void output_begin(struct output *output);
/* Hands what was written to the system; -errno of the first failure of all. */
int output_flush(struct output *output);
/* Flushes and closes. */
int output_close(struct output *output);
/* Closes and leaves the file system as it was; for use before output_begin. */
void output_abort(struct output *output);

#endif
