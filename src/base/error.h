/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Fills a caller's struct prcb_error. Every function takes NULL for a caller who does not want
 * words. Text in a message that others chose is made harmless (text.h). No allocation, no
 * output, thread safe.
 */
#ifndef PRCB_BASE_ERROR_H
#define PRCB_BASE_ERROR_H

#include <prcb/error.h>

/* Stores -errno and a formatted line in *err, and returns the same -errno, so
 * that a failure is one statement: return prcb_fail(err, -EINVAL, "..."); */
int prcb_fail(struct prcb_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts words in front of the text that is there: "FILE: " + text. */
void prcb_error_prepend(struct prcb_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
