/* SPDX-License-Identifier: BSD-2-Clause */
#include "first_line.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool first_line(const char *path, char *ret, size_t size)
{
    FILE *file = fopen(path, "re");
    bool good;

    if (!file)
        return false;
    good = fgets(ret, (int)size, file) != NULL;
    fclose(file);
    if (good)
        ret[strcspn(ret, "\n")] = '\0';
    return good;
}

bool first_number(const char *path, uint64_t *ret)
{
    char line[64];

    if (!first_line(path, line, sizeof(line)) || !isdigit((unsigned char)*line))
        return false;
    *ret = strtoull(line, NULL, 10);
    return true;
}
