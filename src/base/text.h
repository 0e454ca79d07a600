/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Text from outside, made fit to be shown: names of threads, functions and files, paths, and what
 * other programs answer. A terminal obeys control characters, some characters turn the order of
 * a line round, and none of this need be UTF-8. Everything that prcb and prcbd print of others goes
 * through here, in one of five forms. No state.
 */
#ifndef PRCB_BASE_TEXT_H
#define PRCB_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the bytes of the UTF-8 character at a place, and its code; the end of the text is one
 * of one byte. 0: none begins there (a stray byte, one that is cut off, an overlong form, a
 * surrogate, beyond U+10FFFF). It reads nothing behind the first byte that does not fit, so
 * nothing behind the end. */
size_t text_character(const char *at, uint32_t *ret);

/* Whether a character does more than stand for itself: C0, DEL and C1 controls, separators of
 * lines, and marks that change the direction of what follows. */
bool text_is_control(uint32_t code);

/* How controls, and bytes that are not UTF-8, are written: */
enum text_form {
    TEXT_MARKS,   /* '?': tables, where width counts */
    TEXT_ESCAPES, /* \x1b, byte by byte: messages and logs, where names are to be told apart */
    TEXT_JSON,    /* what stands between the quotes of a JSON string: \u001b, \" and \\; U+FFFD */
    TEXT_LABEL, /* the value of a label of Prometheus, between its quotes: \" and \\; U+FFFD and two
                   digits for each byte, and U+FFFD itself twice: no two names become one */
    TEXT_DOCUMENT, /* the same as TEXT_JSON for a whole JSON document; its quotes and line ends stay
                    */
};

/* Writes the text into a buffer; cut between characters if that is too small. Returns the bytes
 * written. TEXT_MARKS and text itself may share a buffer: no character grows. */
size_t text_copy(enum text_form form, const char *text, char *ret, size_t size);

void text_print(FILE *out, enum text_form form, const char *text);

/* Writes one value of a line of values: TEXT_MARKS, in quotes (RFC 4180) if it has the
 * separator. An apostrophe is put before it if a spreadsheet would take it for a formula, which
 * can start programs. */
void text_print_csv(FILE *out, const char *text, const char *separator);

/* Returns a copy in which each byte that is not UTF-8 is a question mark, as protocol buffers and
 * Parquet want it; NULL: no memory. */
char *text_utf8(const char *text);

/* Writes bytes as lower case digits, 2 * count of them and the end of a text. Returns ret. */
const char *text_hex(const void *bytes, size_t count, char *ret);

#endif
