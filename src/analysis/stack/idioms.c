/* SPDX-License-Identifier: BSD-2-Clause */
#include "idioms.h"

#include <stdbool.h>
#include <string.h>

static const struct idiom rows[] = {
#define I(kind, word, inner, outer) {IDIOM_##kind, word, inner, outer},
#include "idioms.def"
#undef I
};

#define NEAR 2 /* callers that "<" stands for */

/* A name's length without a version and without what a compiler appends to copies. */
static size_t plain_length(const char *name)
{
    static const char *const appended[] = {".constprop.", ".isra.", ".part.", ".cold",
                                           ".lto_priv."};
    size_t length = strcspn(name, "@");

    for (size_t i = 0; i < sizeof(appended) / sizeof(*appended); i++) {
        const char *at = strstr(name, appended[i]);

        if (at && (size_t)(at - name) < length)
            length = (size_t)(at - name);
    }
    return length;
}

/* One of the alternatives is the name, or its beginning where it ends with a star. */
static bool fits(const char *alternatives, const char *name)
{
    size_t length = plain_length(name);

    while (*alternatives) {
        size_t part = strcspn(alternatives, "|");
        bool open = part && alternatives[part - 1] == '*';
        size_t fixed = open ? part - 1 : part;

        if ((open ? length >= fixed : length == fixed) && !strncmp(alternatives, name, fixed))
            return true;
        alternatives += part;
        alternatives += *alternatives == '|';
    }
    return false;
}

/* Whether a function that called number `at` is one of the outer ones. */
static bool is_below(const char *outer, const char *const *functions, size_t count, size_t at)
{
    bool near = *outer == '<';
    size_t end = near && count - at > NEAR ? at + NEAR : count - 1;

    for (size_t i = at + 1; i <= end; i++) {
        if (functions[i] && *functions[i] && fits(outer + near, functions[i]))
            return true;
    }
    return false;
}

static bool row_fits(const struct idiom *row, const char *const *functions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (functions[i] && *functions[i] && fits(row->inner, functions[i]) &&
            (!row->outer || is_below(row->outer, functions, count, i)))
            return true;
    }
    return false;
}

const struct idiom *idiom_find(const char *const *functions, size_t count)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (row_fits(&rows[i], functions, count))
            return &rows[i];
    }
    return NULL;
}
