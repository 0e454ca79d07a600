/* SPDX-License-Identifier: BSD-2-Clause */
#include "stat_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

#define COLUMNS_ELSE 120
#define COLUMNS_MIN  60
#define COLUMNS_MAX  1000

void stat_text_time(uint64_t ns, char *ret, size_t size)
{
    static const struct {
        double ns, below; /* below: what would round up to 1000 of it belongs to the next */
        const char *name;
    } units[] = {{1e3, 999.5e3, "us"}, {1e6, 999.5e6, "ms"}, {1e9, 0, "s"}};
    size_t unit = 0;
    double value;

    if (!ns) {
        snprintf(ret, size, "0");
        return;
    }
    while (units[unit].below > 0 && (double)ns >= units[unit].below)
        unit++;
    value = (double)ns / units[unit].ns;
    snprintf(ret, size, "%.*f%s",
             value < 9.995   ? 2
             : value < 99.95 ? 1
                             : 0,
             value, units[unit].name);
}

void stat_text_share(uint64_t part, uint64_t whole, char *ret, size_t size)
{
    double percent = whole ? 100.0 * (double)part / (double)whole : 0;

    if (!whole)
        snprintf(ret, size, "-");
    else if (!part)
        snprintf(ret, size, "0 %%");
    else if (percent < 0.05)
        snprintf(ret, size, "under 0.1 %%");
    else
        snprintf(ret, size, "%.*f %%", percent < 9.95 ? 1 : 0, percent);
}

/* Bytes of the UTF-8 character at text, 0 if there is none: stray or cut-off
 * bytes, overlong forms, surrogates, beyond U+10FFFF. */
static size_t utf8_length(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] < 0x80   ? 1
                    : text[0] < 0xc0 ? 0
                    : text[0] < 0xe0 ? 2
                    : text[0] < 0xf0 ? 3
                    : text[0] < 0xf8 ? 4
                                     : 0;
    uint32_t code;

    if (length < 2)
        return length;
    code = text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    return code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0
                                                                                        : length;
}

/* Copies character by character; what is not good becomes the replacement. */
static void copy_text(const char *text, const char *replacement, bool controls, char *ret,
                      size_t size)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t used = 0;

    while (*at) {
        size_t length = utf8_length(at), bytes;
        /* C0, DEL, and C1 (U+0080 to U+009F), which terminals obey as well */
        bool control =
            length == 1 ? *at < 0x20 || *at == 0x7f : length == 2 && at[0] == 0xc2 && at[1] < 0xa0;
        bool good = length && (controls || !control);
        const char *from = good ? (const char *)at : replacement;

        bytes = good ? length : strlen(replacement);
        if (used + bytes >= size)
            break;
        memcpy(ret + used, from, bytes);
        used += bytes;
        at += length ? length : 1;
    }
    ret[used] = '\0';
}

void stat_text_comm(const char *comm, char *ret, size_t size)
{
    copy_text(comm, "?", false, ret, size);
}

void stat_text_utf8(const char *text, char *ret, size_t size)
{
    copy_text(text, "\xef\xbf\xbd", true, ret, size);
}

size_t stat_text_width(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void stat_text_count(uint64_t count, const char *word, const char *words, char *ret, size_t size)
{
    snprintf(ret, size, "%" PRIu64 " %s", count, count == 1 ? word : words);
}

size_t stat_text_columns(FILE *out)
{
    const char *text = getenv("COLUMNS");
    struct winsize window;
    uint64_t columns;

    if (text && !cli_parse_u64(text, COLUMNS_MIN, COLUMNS_MAX, &columns))
        return (size_t)columns;
    if (isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &window) && window.ws_col)
        return window.ws_col < COLUMNS_MIN ? COLUMNS_MIN : window.ws_col;
    return COLUMNS_ELSE;
}

void stat_text_csv(FILE *out, const char *text, const char *separator)
{
    if (!strstr(text, separator) && !strpbrk(text, "\"\n\r")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}
