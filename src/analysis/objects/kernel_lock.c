/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel_lock.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OBJECT_MOST (64u << 10) /* bytes into what a symbol names */

/* Finds the nearest symbol at or below the address, which must be data. A kernel that does not
 * list all of its data lists some: there the nearest may belong to another variable, and only a
 * symbol at the address itself counts. */
void kernel_lock_name(const char *list, uint64_t address, char *ret, size_t size)
{
    FILE *in = fopen(list, "re");
    uint64_t best = 0;
    char *line = NULL, name[128] = "", type = 0;
    size_t room = 0;
    bool all = false;

    while (in && getline(&line, &room, in) > 0) {
        char of, what[128];
        uint64_t at;

        if (sscanf(line, "%" SCNx64 " %c %127s", &at, &of, what) != 3)
            continue;
        all |= strchr("dDbB", of) && !strcmp(what, "init_task");
        if (at > address || at <= best)
            continue;
        best = at;
        type = of;
        memcpy(name, what, sizeof(name));
    }
    free(line);
    if (in)
        fclose(in);
    if (!best || !type || !strchr("dDbB", type) || address - best > OBJECT_MOST ||
        (address != best && !all))
        *ret = '\0';
    else if (address == best)
        snprintf(ret, size, "%s", name);
    else
        snprintf(ret, size, "%s+0x%" PRIx64, name, address - best);
}
