/* SPDX-License-Identifier: BSD-2-Clause */
#include "present.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "first_line.h"

#define LIST "/sys/devices/system/cpu/present" /* "0-3,8-11" */

uint32_t present_processors(uint32_t possible)
{
    char list[4096];
    size_t at;
    unsigned long last;

    if (!first_line(LIST, list, sizeof(list)))
        return possible;
    at = strlen(list);
    while (at && isdigit((unsigned char)list[at - 1]))
        at--;
    if (!isdigit((unsigned char)list[at]))
        return possible;
    last = strtoul(list + at, NULL, 10);
    return last < possible ? (uint32_t)last + 1 : possible;
}
