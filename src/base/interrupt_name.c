/* SPDX-License-Identifier: BSD-2-Clause */
#include "interrupt_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool interrupt_name(uint32_t number, char *ret, size_t size)
{
    FILE *in = fopen("/proc/interrupts", "re");
    char *line = NULL, *end;
    size_t room = 0;

    *ret = '\0';
    while (in && getline(&line, &room, in) > 0) {
        char *last;

        if (strtoul(line, &end, 10) != number || end == line || *end != ':')
            continue;
        line[strcspn(line, "\n")] = '\0';
        last = strrchr(line, ' ');
        if (last)
            snprintf(ret, size, "%s", last + 1);
        break;
    }
    free(line);
    if (in)
        fclose(in);
    return *ret;
}
