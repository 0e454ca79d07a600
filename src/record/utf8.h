/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of files, threads and functions are bytes; JSON and protocol buffers want UTF-8.
 */
#ifndef PRCB_RECORD_UTF8_H
#define PRCB_RECORD_UTF8_H

/* A copy in which each byte that is not UTF-8 is a question mark; NULL: no memory. */
char *utf8_clean(const char *text);

#endif
