/* SPDX-License-Identifier: BSD-2-Clause */
#include "format.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_ELSE 120
#define COLUMNS_MIN  60
#define COLUMNS_MAX  1000

void format_time(uint64_t ns, char *ret, size_t size)
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

void format_share(uint64_t part, uint64_t whole, char *ret, size_t size)
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

void format_cut(char *text, size_t width)
{
    while (*text && (width || ((unsigned char)*text & 0xc0) == 0x80))
        width -= ((unsigned char)*text++ & 0xc0) != 0x80;
    *text = '\0';
}

size_t format_width(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

size_t format_fits(const char *text, size_t width)
{
    size_t length = 0, cut = 0, columns = 0;

    for (; text[length] && (columns < width || ((unsigned char)text[length] & 0xc0) == 0x80);
         length++) {
        columns += ((unsigned char)text[length] & 0xc0) != 0x80;
        if (text[length] == ' ')
            cut = length + 1;
    }
    if (!text[length])
        return length;
    return text[length] == ' ' ? length + 1 : cut ? cut : length;
}

void format_lines(FILE *out, const char *text, size_t indent, size_t columns)
{
    for (size_t length; *text; text += length) {
        size_t ink;

        length = format_fits(text, columns > indent ? columns - indent : 1);
        for (ink = length; ink && text[ink - 1] == ' ';)
            ink--;
        fprintf(out, "%.*s%s%*s", (int)ink, text, text[length] ? "\n" : "",
                text[length] ? (int)indent : 0, "");
    }
    fputc('\n', out);
}

void format_count(uint64_t count, const char *word, const char *words, char *ret, size_t size)
{
    snprintf(ret, size, "%" PRIu64 " %s", count, count == 1 ? word : words);
}

size_t format_columns(FILE *out)
{
    const char *text = getenv("COLUMNS");
    struct winsize window;
    unsigned long columns;
    char *end;

    if (text && isdigit((unsigned char)*text)) {
        columns = strtoul(text, &end, 10);
        if (!*end && columns >= COLUMNS_MIN && columns <= COLUMNS_MAX)
            return columns;
    }
    if (isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &window) && window.ws_col)
        return window.ws_col < COLUMNS_MIN ? COLUMNS_MIN : window.ws_col;
    return COLUMNS_ELSE;
}
