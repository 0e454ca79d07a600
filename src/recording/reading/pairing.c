/* SPDX-License-Identifier: BSD-2-Clause */
#include "pairing.h"

#include <stdlib.h>
#include <string.h>

char *pairing_name(const char *name)
{
    char *pair = malloc(strlen(name) + 1), *to = pair;

    if (!pair)
        return NULL;
    while (*name) {
        size_t digits = strspn(name, "0123456789");

        *to++ = digits ? '#' : *name;
        name += digits ? digits : 1;
    }
    *to = 0;
    return pair;
}
