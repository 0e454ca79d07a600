/* SPDX-License-Identifier: BSD-2-Clause */
#include "json_stream.h"

#include <inttypes.h>

#include "text.h"

static void write_string(FILE *out, const char *text)
{
    putc_unlocked('"', out);
    text_print(out, TEXT_JSON, text);
    putc_unlocked('"', out);
}

static void key(struct json_stream *s, const char *name)
{
    if (s->comma)
        fputs_unlocked(s->dense ? "," : ", ", s->out);
    s->comma = true;
    if (!name)
        return;
    write_string(s->out, name);
    fputs_unlocked(s->dense ? ":" : ": ", s->out);
}

void json_stream_line(struct json_stream *s)
{
    fputs_unlocked(s->comma ? ",\n" : "\n", s->out);
    s->comma = false;
}

void json_stream_open(struct json_stream *s, const char *name, char bracket)
{
    key(s, name);
    putc_unlocked(bracket, s->out);
    s->comma = false;
}

void json_stream_close(struct json_stream *s, char bracket)
{
    putc_unlocked(bracket, s->out);
    s->comma = true;
}

void json_stream_text(struct json_stream *s, const char *name, const char *text)
{
    key(s, name);
    if (text)
        write_string(s->out, text);
    else
        fputs_unlocked("null", s->out);
}

/* Writes a number by hand: a dump has hundreds of thousands of them, and printf looks at its
 * format each time. */
void json_stream_number(struct json_stream *s, const char *name, uint64_t value)
{
    char text[24], *at = text + sizeof(text);

    key(s, name);
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    fwrite_unlocked(at, 1, (size_t)(text + sizeof(text) - at), s->out);
}

void json_stream_signed(struct json_stream *s, const char *name, int64_t value)
{
    key(s, name);
    fprintf(s->out, "%" PRId64, value);
}

void json_stream_address(struct json_stream *s, const char *name, uint64_t value)
{
    key(s, name);
    fprintf(s->out, "\"0x%" PRIx64 "\"", value);
}

void json_stream_micros(struct json_stream *s, const char *name, uint64_t ns)
{
    key(s, name);
    fprintf(s->out, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

void json_stream_bool(struct json_stream *s, const char *name, bool value)
{
    key(s, name);
    fputs_unlocked(value ? "true" : "false", s->out);
}

void json_stream_null(struct json_stream *s, const char *name)
{
    key(s, name);
    fputs_unlocked("null", s->out);
}
