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

bool line_after(const char *path, const char *word, char *ret, size_t size)
{
    FILE *file = fopen(path, "re");
    bool found = false;
    char line[512];

    if (!file)
        return false;
    while (!found && fgets(line, sizeof(line), file)) {
        const char *value = line + strlen(word);

        if (strncmp(line, word, strlen(word)))
            continue;
        value += strspn(value, " \t:");
        snprintf(ret, size, "%.*s", (int)strcspn(value, "\n"), value);
        found = true;
    }
    fclose(file);
    return found;
}
