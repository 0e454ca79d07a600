/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Words, lines and decimal numbers of a text, taken from its front: files of procfs and sysfs. What
 * is not there is not taken, and the text stays as it was. Nothing is copied; no NUL is needed.
 */
#ifndef PRCB_BASE_WORDS_H
#define PRCB_BASE_WORDS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct words {
    const char *at, *end;
};

static inline bool words_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static inline void words_skip_blanks(struct words *words)
{
    while (words->at < words->end && words_is_blank(*words->at))
        words->at++;
}

/* Takes the next line, without its end. */
static inline bool words_take_line(struct words *words, struct words *ret)
{
    const char *end;

    if (words->at == words->end)
        return false;
    end = memchr(words->at, '\n', (size_t)(words->end - words->at));
    *ret = (struct words){words->at, end ? end : words->end};
    words->at = end ? end + 1 : words->end;
    return true;
}

static inline bool words_take_prefix(struct words *words, const char *prefix)
{
    size_t length = strlen(prefix);

    if ((size_t)(words->end - words->at) < length || memcmp(words->at, prefix, length))
        return false;
    words->at += length;
    return true;
}

static inline bool words_is_digit(const struct words *words)
{
    return words->at < words->end && *words->at >= '0' && *words->at <= '9';
}

/* Takes digits up to a character that is none; the caller checks what that is. 0 or -EBADMSG. */
static inline int words_take_digits(struct words *words, uint64_t *ret)
{
    struct words rest = *words;
    uint64_t value = 0;

    if (!words_is_digit(&rest))
        return -EBADMSG;
    for (; words_is_digit(&rest); rest.at++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*rest.at - '0'), &value))
            return -EBADMSG;
    }
    *words = rest;
    *ret = value;
    return 0;
}

/* Takes a number no greater than `most` behind blanks; it ends where a word does. 0 or -EBADMSG. */
static inline int words_take_number(struct words *words, uint64_t most, uint64_t *ret)
{
    struct words rest = *words;
    uint64_t value;

    words_skip_blanks(&rest);
    if (words_take_digits(&rest, &value) || value > most ||
        (rest.at < rest.end && !words_is_blank(*rest.at)))
        return -EBADMSG;
    *words = rest;
    *ret = value;
    return 0;
}

#endif
