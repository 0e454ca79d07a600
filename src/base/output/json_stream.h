/* SPDX-License-Identifier: BSD-2-Clause
 *
 * JSON that is written as it goes, for what is too long to be kept: no document in memory, nothing
 * allocated. The caller opens and closes scopes in pairs. A name is NULL in an array.
 */
#ifndef PRCB_OUTPUT_JSON_STREAM_H
#define PRCB_OUTPUT_JSON_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_stream {
    FILE *out;
    bool comma; /* one belongs before what comes next */
    bool dense; /* no blanks between, for what machines read */
};

/* Makes what comes next begin a line. */
void json_stream_line(struct json_stream *s);
/* '{' or '['; '}' or ']'. */
void json_stream_open(struct json_stream *s, const char *name, char bracket);
void json_stream_close(struct json_stream *s, char bracket);

void json_stream_text(struct json_stream *s, const char *name, const char *text); /* NULL: null */
void json_stream_number(struct json_stream *s, const char *name, uint64_t value);
void json_stream_signed(struct json_stream *s, const char *name, int64_t value);
void json_stream_address(struct json_stream *s, const char *name, uint64_t value); /* "0x1f" */
/* Writes nanoseconds as microseconds, exactly: 1234 is 1.234. */
void json_stream_micros(struct json_stream *s, const char *name, uint64_t ns);
void json_stream_bool(struct json_stream *s, const char *name, bool value);
void json_stream_null(struct json_stream *s, const char *name);

#endif
