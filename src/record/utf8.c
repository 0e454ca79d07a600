/* SPDX-License-Identifier: BSD-2-Clause */
#include "utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the character at a place; 0: none begins here. */
static size_t character(const unsigned char *at)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } lengths[] = {{0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

    for (size_t i = 0; i < 4; i++) {
        uint32_t value = *at & (unsigned char)~lengths[i].mask;
        size_t j;

        if ((*at & lengths[i].mask) != lengths[i].lead)
            continue;
        for (j = 1; j <= i && (at[j] & 0xc0) == 0x80; j++)
            value = value << 6 | (at[j] & 0x3f);
        if (j <= i || value < lengths[i].least || value > 0x10ffff ||
            (value >= 0xd800 && value < 0xe000))
            return 0;
        return i + 1;
    }
    return 0;
}

char *utf8_clean(const char *text)
{
    char *copy = strdup(text), *at = copy;

    while (at && *at) {
        size_t length = character((const unsigned char *)at);

        if (!length)
            *at = '?';
        at += length ? length : 1;
    }
    return copy;
}

void utf8_print(FILE *out, const char *text, char reserved, char instead)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at) {
        size_t length = character(at);
        bool odd = length == 1 ? *at < ' ' || *at == 0x7f || *at == (unsigned char)reserved
                               : !length || (length == 2 && at[0] == 0xc2 && at[1] < 0xa0);

        if (odd)
            fputc(instead, out);
        else
            fwrite(at, 1, length, out);
        at += length ? length : 1;
    }
}
