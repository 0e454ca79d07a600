/* SPDX-License-Identifier: BSD-2-Clause */
#include "idioms.h"

#include <stdbool.h>
#include <string.h>

/* The kernel's. */
static const struct {
    const char *word, *functions;
} places[] = {
#define K(word, functions) {word, functions},
#include "idioms.def"
};

static const struct idiom rows[] = {
#define I(kind, word, inner, outer) {IDIOM_##kind, word, inner, outer},
#include "idioms.def"
#undef I
};

static const struct idiom sources[] = {
#define S(kind, word, function, file) {IDIOM_##kind, word, function, file},
#include "idioms_source.def"
#undef S
};

#define NEAR 2 /* callers that "<" stands for, and functions that "^" does */

/* Returns a name's length without a version and without what a compiler appends to copies. */
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

/* Whether one of the alternatives is the name, or its beginning if the alternative ends with a
 * star. The alternatives end with the text, or at "/", where those of the caller begin. */
static bool fits(const char *alternatives, const char *name)
{
    size_t length = plain_length(name);

    while (*alternatives && *alternatives != '/') {
        size_t part = strcspn(alternatives, "|/");
        bool open = part && alternatives[part - 1] == '*';
        size_t fixed = open ? part - 1 : part;

        if ((open ? length >= fixed : length == fixed) && !strncmp(alternatives, name, fixed))
            return true;
        alternatives += part;
        alternatives += *alternatives == '|';
    }
    return false;
}

static bool is_named(const char *function)
{
    return function && *function;
}

/* Whether function number `at` was called by the first of the outer ones, and that by the
 * second. */
static bool is_chain(const char *first, const char *second, const char *const *functions,
                     size_t count, size_t at)
{
    return at + 2 < count && is_named(functions[at + 1]) && fits(first, functions[at + 1]) &&
           is_named(functions[at + 2]) && fits(second, functions[at + 2]);
}

/* Whether a function that called number `at` is one of the outer ones. */
static bool is_below(const char *outer, const char *const *functions, size_t count, size_t at)
{
    const char *second = strchr(outer, '/');
    bool near = *outer == '<';
    size_t end = near && count - at > NEAR ? at + NEAR : count - 1;

    if (near && second)
        return is_chain(outer + 1, second + 1, functions, count, at);
    for (size_t i = at + 1; i <= end; i++) {
        if (is_named(functions[i]) && fits(outer + near, functions[i]))
            return true;
    }
    return false;
}

static bool row_fits(const struct idiom *row, const char *const *functions, size_t count)
{
    bool innermost = *row->inner == '^';
    size_t end = innermost && count > NEAR ? NEAR : count;

    for (size_t i = 0; i < end; i++) {
        if (is_named(functions[i]) && fits(row->inner + innermost, functions[i]) &&
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

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), part = strlen(end);

    return length >= part && !strcmp(text + length - part, end);
}

/* Whether a row fits function number `at` of an interpreter's. */
static bool source_fits(const struct idiom *row, const char *const *functions, const char *file,
                        size_t at)
{
    const char *name = row->inner, *further = NULL;

    if (*name == '^' && at)
        return false;
    if (*name == '<') {
        further = name + 1;
        name = strchr(name, '/');
    }
    for (size_t i = 0; further && i < at; i++) {
        if (!fits(further, functions[i]))
            return false;
    }
    return fits(further || *name == '^' ? name + 1 : name, functions[at]) &&
           ends_with(file, row->outer);
}

const struct idiom *idiom_find_source(const char *const *functions, const char *const *files,
                                      size_t count)
{
    for (size_t k = 0; k < sizeof(sources) / sizeof(*sources); k++) {
        for (size_t i = 0; i < count; i++) {
            if (source_fits(&sources[k], functions, files[i], i))
                return &sources[k];
        }
    }
    return NULL;
}

const char *idiom_kernel_word(const char *const *functions, size_t count)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        for (size_t k = 0; k < count; k++) {
            if (is_named(functions[k]) && fits(places[i].functions, functions[k]))
                return places[i].word;
        }
    }
    return NULL;
}
