/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb report --ds`: a Debug Store buffer that somebody saved, in words.
 */
#ifndef PRCB_CLI_REPORT_DS_H
#define PRCB_CLI_REPORT_DS_H

#include <stdint.h>

#include "cli.h"

enum report_ds_style { REPORT_DS_TEXT, REPORT_DS_JSON, REPORT_DS_CSV };

struct report_ds {
    const struct cli_command *command;
    const char *path;   /* of the buffer */
    const char *output; /* NULL: standard output */
    const char *separator;
    enum report_ds_style style;
    bool bts;        /* else PEBS of this format: */
    uint32_t format; /* 0 to 6 */
};

/* Records before one that is cut or damaged are printed. Returns the exit code. */
int report_ds(const struct report_ds *how);

#endif
