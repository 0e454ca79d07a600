/* SPDX-License-Identifier: BSD-2-Clause */
#include "accept.h"

#include <string.h>
#include <strings.h>

#define BLANKS " \t"

/* A piece of a header; it is not terminated. */
struct piece {
    const char *at;
    size_t length;
};

static struct piece trim(const char *at, size_t length)
{
    while (length && strchr(BLANKS, *at)) {
        at++;
        length--;
    }
    while (length && strchr(BLANKS, at[length - 1]))
        length--;
    return (struct piece){at, length};
}

static bool is(struct piece piece, const char *word)
{
    return piece.length == strlen(word) && !strncasecmp(piece.at, word, piece.length);
}

/* Takes the next piece up to a separator that stands in no quotes; moves *at behind it. Returns
 * false at the end of the text. */
static bool next(const char **at, const char *end, char separator, struct piece *ret)
{
    const char *from = *at;
    bool quoted = false;

    if (from >= end)
        return false;
    while (*at < end && (quoted || **at != separator)) {
        if (quoted && **at == '\\' && *at + 1 < end)
            ++*at;
        else if (**at == '"')
            quoted = !quoted;
        ++*at;
    }
    *ret = trim(from, (size_t)(*at - from));
    if (*at < end)
        ++*at;
    return true;
}

/* Returns a weight in thousandths; text that is no weight gives 1000. */
static int weight_of(struct piece value)
{
    int weight = 0, unit = 1000;

    if (!value.length || (value.at[0] != '0' && value.at[0] != '1'))
        return 1000;
    for (size_t i = 0; i < value.length && i < 5; i++) {
        if (i == 1 && value.at[i] == '.')
            continue;
        if (i == 1 || value.at[i] < '0' || value.at[i] > '9')
            return 1000;
        weight += unit * (value.at[i] - '0');
        unit /= 10;
    }
    return weight > 1000 ? 1000 : weight;
}

/* One element of a list: a name with parameters. */
struct element {
    struct piece name, version;
    int weight;
};

static struct element element_of(struct piece piece)
{
    const char *at = piece.at, *end = piece.at + piece.length;
    struct element ret = {.weight = 1000};
    struct piece parameter;

    if (!next(&at, end, ';', &ret.name))
        return ret;
    while (next(&at, end, ';', &parameter)) {
        const char *equals = memchr(parameter.at, '=', parameter.length);
        struct piece key, value;

        if (!equals)
            continue;
        key = trim(parameter.at, (size_t)(equals - parameter.at));
        value = trim(equals + 1, (size_t)(parameter.at + parameter.length - equals - 1));
        if (value.length > 1 && value.at[0] == '"' && value.at[value.length - 1] == '"')
            value = (struct piece){value.at + 1, value.length - 2};
        if (is(key, "q"))
            ret.weight = weight_of(value);
        else if (is(key, "version"))
            ret.version = value;
    }
    return ret;
}

struct accept accept_parse(const char *header)
{
    struct accept ret = {EXPOSITION_TEXT, "1.0.0"};
    const char *at = header ? header : "", *end = at + strlen(at);
    int text = 0, any = 0, open = 0;
    struct piece piece;

    while (next(&at, end, ',', &piece)) {
        struct element e = element_of(piece);
        bool old = is(e.version, "0.0.1");

        if (is(e.name, "application/openmetrics-text")) {
            if ((old || !e.version.length || is(e.version, "1.0.0")) && e.weight > open) {
                open = e.weight;
                ret.version = old ? "0.0.1" : "1.0.0";
            }
        } else if (is(e.name, "text/plain")) {
            if ((!e.version.length || is(e.version, "0.0.4")) && e.weight > text)
                text = e.weight;
        } else if ((is(e.name, "text/*") || is(e.name, "*/*")) && e.weight > any) {
            any = e.weight;
        }
    }
    text = text ? text : any;
    if (open && open >= text)
        ret.format = EXPOSITION_OPENMETRICS;
    return ret;
}

bool accept_gzip(const char *header)
{
    const char *at = header ? header : "", *end = at + strlen(at);
    int gzip = -1, any = 0;
    struct piece piece;

    while (next(&at, end, ',', &piece)) {
        struct element e = element_of(piece);

        if (is(e.name, "gzip"))
            gzip = e.weight;
        else if (is(e.name, "*"))
            any = e.weight;
    }
    return gzip >= 0 ? gzip > 0 : any > 0;
}
