/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What all of prcb's headers share: one failure in words, and the mark of what is exported.
 */
#ifndef PRCB_ERROR_H
#define PRCB_ERROR_H

#include <stdint.h>

#ifndef PRCB_API
#define PRCB_API __attribute__((visibility("default")))
#endif

/* One failure in words. Owned by the caller; never allocated by the library. */
struct prcb_error {
    int code;        /* the -errno that the call returned */
    uint64_t offset; /* parsers: offset in the input; else 0 */
    char text[496];  /* one line, no newline */
};

#endif
