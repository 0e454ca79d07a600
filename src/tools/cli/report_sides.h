/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb report --diff A1 A2 ... --vs B1 B2 ...`: several recordings a side, compared as prcb bench
 * compares runs. One thread.
 */
#ifndef PRCB_CLI_REPORT_SIDES_H
#define PRCB_CLI_REPORT_SIDES_H

#include <stdbool.h>
#include <stddef.h>

#define REPORT_CONDITIONS_MAX 32

struct cli_command;
struct recording;

struct report_sides {
    const struct cli_command *command;
    char *const *paths[2];
    size_t counts[2];
    const char *const *conditions; /* of --fail-if */
    size_t condition_count;
    const char *output; /* NULL: standard output */
    bool json;
    /* Opens one, or prints why not and returns the exit code. */
    int (*open)(const void *ctx, const char *path, struct recording *ret);
    const void *ctx;
};

/* Compares and prints. Returns the exit code; 3: a condition holds. */
int report_sides(const struct report_sides *sides);

#endif
