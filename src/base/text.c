/* SPDX-License-Identifier: BSD-2-Clause */
#include "text.h"

#include <stdlib.h>
#include <string.h>

#define RENDERED_MAX 16 /* bytes that one character, or one that is none, can become */

size_t text_character(const char *text, uint32_t *ret)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } lengths[] = {{0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    const unsigned char *at = (const unsigned char *)text;

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        uint32_t code = *at & (unsigned char)~lengths[i].mask;
        size_t j;

        if ((*at & lengths[i].mask) != lengths[i].lead)
            continue;
        for (j = 1; j <= i && (at[j] & 0xc0) == 0x80; j++)
            code = code << 6 | (at[j] & 0x3f);
        if (j <= i || code < lengths[i].least || code > 0x10ffff ||
            (code >= 0xd800 && code < 0xe000))
            return 0;
        *ret = code;
        return i + 1;
    }
    return 0;
}

bool text_is_control(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0, 0x1f},        {0x7f, 0x9f},     {0x061c, 0x061c},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    }
    return false;
}

/* Whether a byte stands for itself, whatever is around it. */
static bool is_plain(enum text_form form, char byte)
{
    if (byte < ' ' || byte > '~')
        return form == TEXT_DOCUMENT && (byte == '\n' || byte == '\t');
    return (form != TEXT_JSON && form != TEXT_LABEL) || (byte != '"' && byte != '\\');
}

/* Writes the character at a place as the form has it, into a buffer of RENDERED_MAX + 1 bytes.
 * Returns the bytes that it takes up in the text. */
static size_t render(enum text_form form, const char *at, char *ret)
{
    uint32_t code = 0xfffd;
    size_t length = text_character(at, &code), bytes = length ? length : 1;
    bool good = length && !text_is_control(code);
    bool taken = form == TEXT_LABEL && code == 0xfffd && length; /* it marks what is no text */

    if (taken) {
        strcpy(ret, "\xef\xbf\xbd\xef\xbf\xbd");
    } else if (is_plain(form, *at) || (good && length > 1)) {
        memcpy(ret, at, bytes);
        ret[bytes] = '\0';
    } else if (form == TEXT_MARKS) {
        strcpy(ret, "?");
    } else if (form == TEXT_ESCAPES) {
        *ret = '\0';
        for (size_t i = 0; i < bytes; i++)
            snprintf(ret + 4 * i, 5, "\\x%02x", (unsigned char)at[i]);
    } else if (form == TEXT_LABEL && !good) {
        *ret = '\0';
        for (size_t i = 0; i < bytes; i++)
            snprintf(ret + 5 * i, 6, "\xef\xbf\xbd%02x", (unsigned char)at[i]);
    } else if (good) { /* between quotes */
        snprintf(ret, RENDERED_MAX, "\\%c", *at);
    } else {
        snprintf(ret, RENDERED_MAX, "\\u%04x", (unsigned)code);
    }
    return bytes;
}

size_t text_copy(enum text_form form, const char *text, char *ret, size_t size)
{
    size_t used = 0;

    while (*text) {
        char shown[RENDERED_MAX + 1];
        size_t bytes;

        text += render(form, text, shown);
        bytes = strlen(shown);
        if (used + bytes >= size)
            break;
        memcpy(ret + used, shown, bytes);
        used += bytes;
    }
    ret[used] = '\0';
    return used;
}

void text_print(FILE *out, enum text_form form, const char *text)
{
    while (*text) {
        char shown[RENDERED_MAX + 1];
        size_t plain = 0;

        while (is_plain(form, text[plain]))
            plain++;
        fwrite(text, 1, plain, out);
        text += plain;
        if (*text) {
            text += render(form, text, shown);
            fputs(shown, out);
        }
    }
}

/* Names such as "-bash" are no formulas: formulas that begin with a sign call something. */
static bool is_formula(const char *text)
{
    return *text == '=' || *text == '@' ||
           ((*text == '+' || *text == '-') && strpbrk(text, "(|!="));
}

void text_print_csv(FILE *out, const char *text, const char *separator)
{
    /* A mark can be a separator, too. */
    bool quoted = strstr(text, separator) || strpbrk(text, "\"\r\n") || strchr(separator, '?');

    if (quoted)
        fputc('"', out);
    if (is_formula(text))
        fputc('\'', out);
    while (*text) {
        char shown[RENDERED_MAX + 1];

        if (*text == '"')
            fputc('"', out);
        text += render(TEXT_MARKS, text, shown);
        fputs(shown, out);
    }
    if (quoted)
        fputc('"', out);
}

char *text_utf8(const char *text)
{
    char *copy = strdup(text);
    uint32_t code;

    for (char *at = copy; at && *at;) {
        size_t length = text_character(at, &code);

        if (!length)
            *at = '?';
        at += length ? length : 1;
    }
    return copy;
}

const char *text_hex(const void *bytes, size_t count, char *ret)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;

    for (size_t i = 0; i < count; i++) {
        ret[2 * i] = digits[from[i] >> 4];
        ret[2 * i + 1] = digits[from[i] & 15];
    }
    ret[2 * count] = '\0';
    return ret;
}
