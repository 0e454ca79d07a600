/* SPDX-License-Identifier: BSD-2-Clause */
#include "present.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "first_line.h"

#define LIST "/sys/devices/system/cpu/present"

uint32_t present_by_list(const char *list, uint32_t possible)
{
    size_t at = strlen(list);
    unsigned long last;

    while (at && isdigit((unsigned char)list[at - 1]))
        at--;
    if (!isdigit((unsigned char)list[at]))
        return possible;
    last = strtoul(list + at, NULL, 10);
    return last < possible ? (uint32_t)last + 1 : possible;
}

uint32_t present_processors(uint32_t possible)
{
    char list[32768]; /* "0,2,4,..." up to 4,095 is 12 KB long */

    return first_line(LIST, list, sizeof(list)) ? present_by_list(list, possible) : possible;
}

uint32_t numbered_processors(void)
{
    uint32_t present = present_processors(UINT32_MAX);
    long known = present == UINT32_MAX ? sysconf(_SC_NPROCESSORS_CONF) : (long)present;

    return known < 1 ? 1 : (uint32_t)known;
}
