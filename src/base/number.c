/* SPDX-License-Identifier: BSD-2-Clause */
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
    unsigned long long value;
    char *end;

    if (!isdigit((unsigned char)*text))
        return -EINVAL;
    errno = 0;
    value = strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
    if (*end)
        return -EINVAL;
    if (errno || value < min || value > max)
        return -ERANGE;
    *ret = value;
    return 0;
}
