/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of files, threads and functions are bytes; JSON and protocol buffers want UTF-8.
 */
#ifndef PRCB_RECORD_UTF8_H
#define PRCB_RECORD_UTF8_H

#include <stdio.h>

/* A copy in which each byte that is not UTF-8 is a question mark; NULL: no memory. */
char *utf8_clean(const char *text);

/* For lines that people read: control characters, of which terminals obey U+0080 to U+009F as
 * well, bytes that are not UTF-8, and the one that is reserved (0: none) become the other one. */
void utf8_print(FILE *out, const char *text, char reserved, char instead);

#endif
