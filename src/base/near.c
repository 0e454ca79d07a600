/* SPDX-License-Identifier: BSD-2-Clause */
#include "near.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_LENGTH 63 /* longer names are compared up to here */
#define FAR             UINT_MAX

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
    unsigned int least = a < b ? a : b;

    return least < c ? least : c;
}

/* Counts the edits between two names, ignoring case (Levenshtein, one row at a time). */
static unsigned int edits(const char *a, const char *b)
{
    unsigned int row[NAME_MAX_LENGTH + 1];
    size_t length_b = strnlen(b, NAME_MAX_LENGTH);

    for (size_t j = 0; j <= length_b; j++)
        row[j] = (unsigned int)j;
    for (size_t i = 0; a[i] && i < NAME_MAX_LENGTH; i++) {
        unsigned int diagonal = row[0];

        row[0] = (unsigned int)i + 1;
        for (size_t j = 0; j < length_b; j++) {
            unsigned int above = row[j + 1];
            bool differ = tolower((unsigned char)a[i]) != tolower((unsigned char)b[j]);

            row[j + 1] = min3(above + 1, row[j] + 1, diagonal + differ);
            diagonal = above;
        }
    }
    return row[length_b];
}

/* Small is near: 1 if the candidate contains what was typed, else edits, up to a third of its
 * length; beyond that, or if no letter is left, it is not near at all. There are at least as
 * many edits as the lengths differ, so most candidates need no count. */
static unsigned int distance(const char *wanted, const char *candidate)
{
    size_t length = strlen(wanted), other = strlen(candidate), limit = length / 3 + 1;
    unsigned int e;

    if (length >= 3 && strcasestr(candidate, wanted))
        return 1;
    if ((length > other ? length - other : other - length) > limit)
        return FAR;
    e = edits(wanted, candidate);
    return e <= limit && e < (length > other ? length : other) ? e : FAR;
}

void near_offer(struct near *near, const char *wanted, const char *candidate)
{
    unsigned int d = distance(wanted, candidate);
    size_t at = near->count;

    if (d == FAR)
        return;
    while (at > 0 && near->distance[at - 1] > d)
        at--;
    if (at == NEAR_NAMES)
        return;
    if (near->count < NEAR_NAMES)
        near->count++;
    for (size_t i = near->count - 1; i > at; i--) {
        near->name[i] = near->name[i - 1];
        near->distance[i] = near->distance[i - 1];
    }
    near->name[at] = candidate;
    near->distance[at] = d;
}

const char *near_text(const struct near *near, char *buffer, size_t size)
{
    static const char *const glue[] = {": perhaps ", ", ", " or "};
    size_t used = 0;

    buffer[0] = '\0';
    for (size_t i = 0; i < near->count && used < size; i++) {
        const char *before = i == 0 ? glue[0] : i + 1 < near->count ? glue[1] : glue[2];

        used += (size_t)snprintf(buffer + used, size - used, "%s%s", before, near->name[i]);
    }
    return buffer;
}
