/* SPDX-License-Identifier: BSD-2-Clause */
#include "first_line.h"

#include <stdio.h>
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
