/* SPDX-License-Identifier: BSD-2-Clause */
#include "interrupt_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel puts two spaces before the names, which may have one in them, and pads what is before:
 * a line that ends in a space has none. */
static const char *names_in(const char *line)
{
    const char *names = "";

    for (const char *at = line; (at = strstr(at, "  ")); at++)
        names = at + 2;
    return *names && names[strlen(names) - 1] != ' ' ? names : "";
}

bool interrupt_name(const char *list, uint32_t number, char *ret, size_t size)
{
    FILE *in = fopen(list, "re");
    char *line = NULL, *end;
    size_t room = 0;

    *ret = '\0';
    while (in && getline(&line, &room, in) > 0) {
        if (strtoul(line, &end, 10) != number || end == line || *end != ':')
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(ret, size, "%s", names_in(line));
        break;
    }
    free(line);
    if (in)
        fclose(in);
    return *ret;
}
