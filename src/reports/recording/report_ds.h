/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb report --ds` prints a Debug Store buffer that somebody saved, in words.
 */
#ifndef PRCB_REPORTS_DS_H
#define PRCB_REPORTS_DS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <prcb/prcb.h>

enum report_ds_style { REPORT_DS_TEXT, REPORT_DS_JSON, REPORT_DS_CSV };

struct report_ds {
    const char *separator;
    enum report_ds_style style;
    bool bts;        /* else PEBS of this format: */
    uint32_t format; /* 0 to 6 */
};

/* Prints the records before one that is cut or damaged; err->offset says where that is. 0 or
 * -errno. */
int report_ds(const struct report_ds *how, const char *bytes, size_t length, FILE *out,
              struct prcb_error *err);

#endif
